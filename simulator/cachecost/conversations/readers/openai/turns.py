"""Messages while they are put together: the system prompt, and who said what after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Body = dict[str, Any]


class Turns:
    """System blocks at the start, then messages. What one side says in several pieces is one message."""

    def __init__(self) -> None:
        self.system: list[Body] = []
        self.messages: list[dict[str, Any]] = []
        self._open = ""

    def add(self, role: str, blocks: Sequence[Body], result: bool = False, joins: bool = False) -> None:
        """One piece. `result`: it is what a tool returned, and goes with the results before it; `joins`: it goes
        with what its role said right before."""
        kind = "result" if result else role if joins else ""
        if role == "system" and not self.messages:
            self.system += blocks
        elif kind and kind == self._open:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": list(blocks)})
        self._open = kind

    def body(self) -> Body:
        """The fields of a Messages body."""
        return {**({"system": self.system} if self.system else {}), "messages": self.messages}
