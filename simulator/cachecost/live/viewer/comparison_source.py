"""Two recordings as a source: their calls beside each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

from cachecost.analysis.viewing.listing import SessionListing
from cachecost.analysis.viewing.pairs import call_keys, calls_by_time, pair_calls
from cachecost.analysis.viewing.replay import CallReading
from cachecost.live.viewer.source import Answer, PageSource
from cachecost.live.viewer.threads import held
from cachecost.views.viewer.comparison import comparison_object
from cachecost.views.viewer.sessions import start_object


@dataclass(slots=True)
class ComparisonSource(PageSource):
    """The page of two recordings, each under its title."""

    titles: tuple[str, str]
    listings: tuple[SessionListing, SessionListing]
    reading: CallReading
    command: str = "cachecost view"
    _lock: Lock = field(default_factory=Lock)
    _answer: Answer | None = None

    def start(self) -> Answer:
        return start_object("compare", " and ".join(self.titles), self.command)

    def compare(self) -> Answer:
        with held(self._lock):
            self._answer = self._answer or self._compare()
            return self._answer

    def _compare(self) -> Answer:
        left, right = self.listings
        calls = calls_by_time(left), calls_by_time(right)
        pairs = pair_calls(call_keys(left, self.reading, calls[0]), call_keys(right, self.reading, calls[1]))
        return comparison_object(self.titles, (left.summary, right.summary), calls, pairs)
