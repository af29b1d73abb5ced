"""What a page shows: whoever serves one has a source of its answers. That of a report, beside another revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cachecost.live.viewer.calls import CallSignal
from cachecost.views.viewer.sessions import Report, run_page_object, start_object

Answer = Mapping[str, Any]


class NotHere(LookupError):
    """There is nothing of this name or number; the text says of what kind."""


class LiveEvents(Protocol):
    """What is new since a page last looked; `signal` tells when to look. The methods are called in threads."""

    @property
    def signal(self) -> CallSignal: ...

    def seen(self) -> dict[str, tuple[int, float | None]]:
        """How many calls of each session there are, and when the last of them started."""

    def changes(self, seen: dict[str, tuple[int, float | None]]) -> Sequence[tuple[str, Answer]]:
        """Names and data of the events that make what was seen what there is; then it is in `seen`."""


class PageSource:
    """The answers of a page, as JSON objects (docs/reference/output-formats.md, `view`): only what a page shows.

    Methods may take seconds and are called in threads, several at once. They raise NotHere (404), WrongChoice (400),
    and CannotEvaluate, InputError or WorkStopped (422).
    """

    __slots__ = ()

    def start(self) -> Answer:
        """What the page begins with: its kind, title, command and colours."""
        raise NotImplementedError

    def current(self) -> PageSource:
        """What answers of sessions, as of now."""
        return self

    def sessions(self) -> Answer:
        raise NotHere("no sessions are shown here")

    def session(self, id_: str) -> Answer:
        raise NotHere("no such session")

    def simulated(self, id_: str) -> Answer:
        raise NotHere("no such session")

    def call(self, id_: str, number: int) -> Answer:
        raise NotHere("no such session")

    def block(self, id_: str, number: int, block: int) -> Answer:
        raise NotHere("no such session")

    def blocks(self, id_: str, number: int) -> Sequence[Answer]:
        """All blocks of a call, as `block` answers them."""
        raise NotHere("no such session")

    def options(self, id_: str) -> Answer:
        raise NotHere("no such session")

    def what_if(self, id_: str, choices: Mapping[str, str]) -> Answer:
        raise NotHere("no such session")

    def run(self) -> Answer:
        """The strategies of a scenario's report."""
        raise NotHere("no report is shown here")

    def compare(self) -> Answer:
        """Two recordings beside each other."""
        raise NotHere("no recordings are compared here")

    def live(self) -> LiveEvents | None:
        """What tells a page of calls that come; None where none do."""
        return None


@dataclass(slots=True)
class ReportSource(PageSource):
    """The page of a run. `other` is the report of the revision `other_title`."""

    report: Report
    command: str = "cachecost view"
    other: Report | None = None
    other_title: str = ""

    def start(self) -> Answer:
        return start_object("run", str(self.report.result["scenario"]), self.command)

    def run(self) -> Answer:
        return run_page_object(self.report, self.other, self.other_title)
