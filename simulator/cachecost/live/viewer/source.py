"""What a page shows: whoever serves one has a source of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

Answer = Mapping[str, Any]


class NotHere(LookupError):
    """There is nothing of this name or number; the text says of what kind."""


class ViewSource(Protocol):
    """The answers of a page, as JSON objects (docs/output-formats.md, `view`).

    Methods may take seconds and are called in threads, several at once. They raise NotHere (404), WrongChoice (400),
    and CannotEvaluate or InputError (422).
    """

    def start(self) -> Answer:
        """What the page begins with: its kind, title, command and colours."""
        ...

    def sessions(self) -> Answer: ...

    def session(self, id_: str) -> Answer: ...

    def simulated(self, id_: str) -> Answer: ...

    def call(self, id_: str, number: int) -> Answer: ...

    def block(self, id_: str, number: int, block: int) -> Answer: ...

    def options(self, id_: str) -> Answer: ...

    def what_if(self, id_: str, choices: Mapping[str, str]) -> Answer: ...

    def run(self) -> Answer:
        """The strategies of a scenario's report."""
        ...

    def compare(self) -> Answer:
        """Two recordings beside each other."""
        ...
