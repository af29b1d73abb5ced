"""What a server has seen so far as a source: the pages of its conversations, and what is new in them.

The calls are those that the server holds anyway. The bill of all is made again when a page asks and calls were added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from cachecost.analysis.bill.account import account_for
from cachecost.analysis.bill.explanation import bills_of_calls
from cachecost.analysis.bill.found_sessions import prices_under
from cachecost.analysis.viewing.listing import LoggedSessions, SessionListing
from cachecost.conversations.calls import Call
from cachecost.live.viewer.calls import CallFeed, CallSignal, call_of_session, conversation_title
from cachecost.live.viewer.sessions_source import SessionsSource
from cachecost.live.viewer.source import Answer, LiveEvents, PageSource
from cachecost.live.viewer.work import held
from cachecost.simulation.setup import ReplaySetup
from cachecost.views.viewer.sessions import start_object

SeenCalls = dict[str, tuple[int, float | None]]
"""How many calls of each session a page knows, and when the last of them started."""


@dataclass(frozen=True, slots=True)
class CallsRead:
    """A reading of calls that are there already."""

    calls: Sequence[Call]

    def read(self, files: Sequence[str]) -> Sequence[Call]:
        """All calls."""
        return self.calls


@dataclass(slots=True)
class LiveSource(PageSource):
    """The pages of calls while they come: those of their sessions as of now.

    `name` is what serves them ("cachecost serve"). Without `has_bill` the usage of calls is simulated. `bill_path` is
    where the server's bill is as JSON, from the page; "" without one.
    """

    feed: CallFeed
    signal: CallSignal
    setup: ReplaySetup
    name: str
    has_bill: bool = True
    bill_path: str = ""
    _calls: list[Call] = field(default_factory=list)
    _titles: dict[str, str] = field(default_factory=dict)
    _source: SessionsSource | None = None
    _lock: Lock = field(default_factory=Lock)

    def start(self) -> Answer:
        return {**start_object("live", self.name, ""), "bill": self.bill_path}

    def current(self) -> SessionsSource:
        with held(self._lock):
            new = self.feed.since(len(self._calls))
            for call in new:
                self._calls.append(call_of_session(call, len(self._calls) + 1))
                self._titles.setdefault(self._calls[-1].session, conversation_title(call.request.thread.beginning))
            if new:
                self._source = None
            if self._source is None:
                calls, logged, prices = list(self._calls), LoggedSessions(self.setup), prices_under(self.setup)
                complete = logged.complete(calls)
                if not self.has_bill:
                    logged.without_bill.update(call.session for call in calls)
                bills = bills_of_calls(complete, self.setup, prices, self.name)
                listing = SessionListing(account_for(bills.files, prices, known=bills.rewrites), logged)
                titles = {key: title for key, title in self._titles.items() if title}
                self._source = SessionsSource(listing, self.setup, CallsRead(calls), has_files=False, titles=titles)
            return self._source

    def live(self) -> LiveEvents:
        return self

    def seen(self) -> SeenCalls:
        """What a page knows that asks now."""
        seen: SeenCalls = {}
        self.changes(seen)
        return seen

    def changes(self, seen: SeenCalls) -> list[tuple[str, Answer]]:
        """The events that tell a page what it does not know, which is then in `seen`: of each session that has other
        calls than were seen, those after them; -1 where a call came between those, so that the page asks for all.
        """
        events: list[tuple[str, Answer]] = []
        source = self.current()
        for id_, count in source.listing.count_calls().items():
            known, last = seen.get(id_, (0, None))
            if count == known:
                continue
            answer = source.session(id_)
            starts = answer["calls"]["start"]
            is_later = not known or starts[known - 1] == last
            event = {
                "session": id_,
                "from": known if is_later else -1,
                "calls": {name: values[known:] for name, values in answer["calls"].items()} if is_later else {},
                "total": {name: answer[name] for name in ("cost_usd", "rewritten_usd")},
                **{name: answer[name] for name in ("models", "agents", "causes", "headline", "moments")},
            }
            events += [*([] if id_ in seen else [("sessions", {})]), ("calls", event)]
            seen[id_] = len(starts), starts[-1] if starts else None
        return events
