"""What primitives may look at, and how they look back at a thread without walking it again and again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

from cachecost.prompts.blocks import NOTHING, Message, Part, Thread

Role = Literal["any", "assistant", "user_wire", "human", "prompt", "tool", "not_system"]
State = TypeVar("State")


def _has_results(message: Message) -> bool:
    return any(block.kind == "tool_result" for block in message.blocks)


ROLES: dict[Role, Callable[[Message], bool]] = {
    "any": lambda message: True,
    "assistant": lambda message: message.role == "assistant",
    "user_wire": lambda message: message.role == "user",
    "human": lambda message: message.is_human,
    "prompt": lambda message: message.role == "user" and not _has_results(message),
    "tool": lambda message: message.role == "user" and _has_results(message),
    "not_system": lambda message: message.role != "system",
}
"""What a message can count as. `user_wire` is what the wire calls a user: tool results count.

`human` is a user message with anything besides tool results; `prompt` one without any. `not_system` leaves
out messages of `role: system` in mid-conversation.
"""


class LatestMessage(NamedTuple):
    """The latest message of a role at or before some message, and how many there are up to it."""

    node: Thread | None
    number: int


class ThreadIndex:
    """Results per message of the threads of one plan: each question visits each message once.

    `memory` is for what a primitive learns from one request for the next.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, dict[Thread, Any]] = {}
        self.memory: dict[Hashable, Any] = {}

    def fold(self, key: Hashable, tail: Thread, start: State, step: Callable[[State, Thread], State]) -> State:
        """`start`, stepped on by every message from the first to `tail`. `key` names the question."""
        known: dict[Thread, State] = self._known.setdefault(key, {})
        path: list[Thread] = []
        node: Thread | None = tail
        while node is not None and node.message is not None and node not in known:
            path.append(node)
            node = node.parent
        state = known.get(node, start) if node else start
        for passed in reversed(path):
            state = known[passed] = step(state, passed)
        return state

    def latest(self, role: Role, tail: Thread) -> LatestMessage:
        """The latest message of a role."""

        def step(station: LatestMessage, node: Thread) -> LatestMessage:
            assert node.message is not None
            return LatestMessage(node, station.number + 1) if ROLES[role](node.message) else station

        return self.fold(("latest", role), tail, LatestMessage(None, 0), step)

    def back(self, role: Role, tail: Thread) -> Iterator[Thread]:
        """The messages of a role, latest first."""
        node = self.latest(role, tail).node
        while node is not None:
            yield node
            node = self.latest(role, node.parent).node if node.parent else None


@dataclass(frozen=True, slots=True)
class View:
    """What a placement may look at: a request before it gets breakpoints."""

    thread: Thread
    tools: Part = NOTHING
    system: Part = NOTHING
    trail: ThreadIndex = field(default_factory=ThreadIndex)
