"""Sources of recorded sessions (read when a page needs them), of two recordings, and of the calls of a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import date
from threading import Lock, RLock

from cachecost.analysis.bill.account import account_for
from cachecost.analysis.bill.explanation import bills_of_calls
from cachecost.analysis.bill.found_sessions import prices_under
from cachecost.analysis.bill.timeline import calls_by_time
from cachecost.analysis.viewing.listing import (
    CallReading,
    LoggedSessions,
    NoRequests,
    Reading,
    SessionListing,
    SessionReplay,
    ViewedCall,
    ViewedSession,
    call_keys,
    pair_calls,
    view_call,
)
from cachecost.analysis.viewing.what_if import SessionAlternatives, check_choices, chosen_values
from cachecost.base.formatting import inert
from cachecost.conversations.calls import Call
from cachecost.live.clock import today
from cachecost.live.viewer.source import (
    Answer,
    CallFeed,
    CallSignal,
    LiveEvents,
    NotHere,
    PageSource,
    TooLong,
    call_of_session,
    conversation_title,
    held,
)
from cachecost.simulation.setup import ReplaySetup
from cachecost.views.bill.words import session_names
from cachecost.views.viewer.call import (
    block_object,
    command_line,
    comparison_object,
    options_object,
    session_object,
    simulated_object,
    viewed_call_object,
    what_if_object,
)
from cachecost.views.viewer.sessions import sessions_object, start_object


@dataclass(slots=True)
class ComparisonSource(PageSource):
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
            if self._answer is None:
                left, right = self.listings
                calls = calls_by_time(left.account, left.keys), calls_by_time(right.account, right.keys)
                pairs = pair_calls(call_keys(left, self.reading, calls[0]), call_keys(right, self.reading, calls[1]))
                self._answer = comparison_object(self.titles, (left.summary, right.summary), calls, pairs)
            return self._answer


KEPT_SESSIONS = 4
MOST_SHOWN = 60
"""Characters of an id that is not known, in the words that say so."""


@dataclass(slots=True)
class OpenSession:
    """A session and what was made of it so far; `lock` is held by whoever makes more."""

    session: ViewedSession
    lock: RLock = field(default_factory=RLock)
    replay: SessionReplay | None = None
    alternatives: SessionAlternatives | None = None


@dataclass(slots=True)
class SessionsSource(PageSource):
    """The pages of sessions. `command` is what was typed, `options_given` those of its options that change
    a replay. `titles` are those of sessions that have one, by their keys. Where a session `has_files`, a command
    repeats what the page says of it.
    """

    listing: SessionListing
    setup: ReplaySetup
    reading: Reading
    title: str = "Sessions"
    command: str = "cachecost view"
    options_given: Sequence[str] = ()
    watch: Callable[[str, Sequence[str]], AbstractContextManager[object]] = lambda what, files: nullcontext()
    """Shows that something is done with these files for as long as it takes."""
    has_files: bool = True
    titles: Mapping[str, str] = field(default_factory=dict)
    _open: dict[str, OpenSession] = field(default_factory=dict)
    _opening: Lock = field(default_factory=Lock)
    _reading: Lock = field(default_factory=Lock)

    def start(self) -> Answer:
        return start_object("sessions", self.title, self.command)

    def current(self) -> SessionsSource:
        return self

    def sessions(self) -> Answer:
        return sessions_object(self.listing, self.titles)

    def session(self, id_: str) -> Answer:
        one = self._session(id_).session
        name = session_names(self.listing.keys)[one.key]
        return {**session_object(one, name), "title": self.titles.get(one.key, "")}

    def simulated(self, id_: str) -> Answer:
        with self._locked(id_) as one:
            replay = self._replay(one)
            with self.watch("replaying", ()):
                made = replay.made
            return simulated_object(one.session, made, replay.workload.setup.token_source)

    def call(self, id_: str, number: int) -> Answer:
        with self._locked(id_) as one:
            viewed = self._view(one, number)
            return viewed_call_object(viewed, self.listing.account.prices, one.session.calls[0].call.model)

    def block(self, id_: str, number: int, block: int) -> Answer:
        with self._locked(id_) as one:
            viewed = self._view(one, number)
        try:
            return block_object(viewed, block)
        except KeyError:
            raise NotHere(f"the call has no block {block}; it has {len(viewed.blocks):,}") from None

    def blocks(self, id_: str, number: int) -> Sequence[Answer]:
        """All blocks of a call, as `block` answers them."""
        with self._locked(id_) as one:
            viewed = self._view(one, number)
        return [block_object(viewed, place + 1) for place in range(len(viewed.blocks))]

    def options(self, id_: str) -> Answer:
        with self._locked(id_) as one, self._with_command(one, {}):
            return options_object(self._alternatives(one))

    def what_if(self, id_: str, choices: Mapping[str, str]) -> Answer:
        chosen = chosen_values(choices)
        with self._locked(id_) as one, self._with_command(one, chosen):
            if one.alternatives is None:
                replay = self._replay(one)
                replay.workload.require_support("whatif")
                check_choices(replay.workload, chosen, self._today())
            alternatives = self._alternatives(one)
            with self.watch("replaying", ()):
                found = alternatives.evaluate(chosen)
            answer = what_if_object(alternatives, found, chosen, self.options_given)
        return answer if self.has_files else {**answer, "command": "", "yaml": ""}

    @contextmanager
    def _with_command(self, one: OpenSession, chosen: Mapping[str, str]) -> Iterator[None]:
        """A replay that takes too long for a page names the command that makes it, where there is one."""
        try:
            yield
        except TooLong as error:
            known = one.replay if self.has_files else None
            command = known and command_line(known, chosen, self.options_given)
            raise TooLong(f"{error}; run: {command}" if command else str(error)) from None

    def _session(self, id_: str) -> OpenSession:
        with self._opening:
            found = self._open.pop(id_, None)
            if found is None:
                try:
                    found = OpenSession(self.listing.open(id_))
                except KeyError:
                    raise NotHere(f"no such session: {inert(id_[:MOST_SHOWN])}") from None
            self._open[id_] = found
            while len(self._open) > KEPT_SESSIONS:
                del self._open[next(iter(self._open))]
            return found

    @contextmanager
    def _locked(self, id_: str) -> Iterator[OpenSession]:
        """The session, for as long as nobody else works on it."""
        one = self._session(id_)
        with held(one.lock):
            yield one

    def _replay(self, one: OpenSession) -> SessionReplay:
        if one.replay is None:
            with held(self._reading), self.watch("reading", one.session.files):
                one.replay = SessionReplay.of(one.session, self.reading, self.setup)
        return one.replay

    def _alternatives(self, one: OpenSession) -> SessionAlternatives:
        if one.alternatives is None:
            replay = self._replay(one)
            with self.watch("replaying", ()):
                one.alternatives = SessionAlternatives.of(replay, self._today())
        return one.alternatives

    def _today(self) -> date | None:
        return None if self.setup.day else today()

    def _view(self, one: OpenSession, number: int) -> ViewedCall:
        replay = None
        with suppress(NoRequests):  # then only the bill is known
            replay = self._replay(one)
        try:
            with self.watch("replaying", ()):
                return view_call(one.session, replay, number)
        except KeyError:
            raise NotHere(f"the session has no call {number}; it has {len(one.session.calls):,}") from None


SeenCalls = dict[str, tuple[int, float | None]]
"""How many calls of each session a page knows, and when the last of them started."""


@dataclass(frozen=True, slots=True)
class CallsRead:
    calls: Sequence[Call]

    def read(self, files: Sequence[str]) -> Sequence[Call]:
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

    def sessions(self) -> Answer:
        return self.current().sessions()

    def live(self) -> LiveEvents:
        return self

    def seen(self) -> SeenCalls:
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
