"""The page and its answers as an ASGI application.

Work in threads that keep nobody waiting.

The page on a loopback port, until it is stopped.

What happens while a page is open, as server-sent events.

Two recordings as a source: their calls beside each other.

Recorded sessions as a source: the bill of all is read, a session's requests when its page first needs them.
"""

from __future__ import annotations

import asyncio
import contextvars
import socket
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import date
from threading import Event, Lock, RLock, Thread
from time import monotonic
from typing import TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive

from cachecost.analysis.viewing.call_view import ViewedCall, call_keys, calls_by_time, pair_calls, view_call
from cachecost.analysis.viewing.listing import (
    CallReading,
    NoRequests,
    Reading,
    SessionListing,
    SessionReplay,
    ViewedSession,
)
from cachecost.analysis.viewing.what_if import SessionAlternatives, WrongChoice, check_choices, chosen_values
from cachecost.base.atomic_files import WorkStopped, checked_by, current_work_check
from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.base.formatting import inert
from cachecost.live.clock import Say, ignore, today
from cachecost.live.loopback import QuietServer, client_left
from cachecost.live.viewer.guard import LoopbackGuard
from cachecost.live.viewer.source import INDEX, Answer, LiveEvents, NotHere, PageSource, SavedPage, content_type
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
from cachecost.views.viewer.sessions import inert_json, sessions_object, start_object

Made = TypeVar("Made")
POLL_S = 0.25
"""How soon who waits for a lock sees that nobody waits for the answer."""


class TooLong(WorkStopped):
    """The work takes longer than a page waits; the text says what to do instead."""


class WorkLimit:
    """Ends the work for an answer when its client has left, or after `seconds` (None: never)."""

    def __init__(self, seconds: float | None, now: Callable[[], float] = monotonic) -> None:
        self._now, self._seconds = now, seconds
        self._end = float("inf") if seconds is None else now() + seconds
        self._has_left = Event()

    def stop(self) -> None:
        """The client has left."""
        self._has_left.set()

    def check(self) -> None:
        """Raises WorkStopped where the work is to end."""
        if self._has_left.is_set():
            raise WorkStopped("the client has left")
        if self._now() >= self._end:
            raise TooLong(f"a replay of this takes longer than the {self._seconds:g} s that a page waits")


@contextmanager
def held(lock: Lock | RLock) -> Iterator[None]:
    """The lock, unless the work is to end before it is free."""
    check = current_work_check()
    while not lock.acquire(timeout=POLL_S if check else -1):
        if check:
            check()
    try:
        yield
    finally:
        lock.release()


async def run_for_client(work: Callable[[], Made], receive: Receive, limit: WorkLimit) -> Made:
    """As `run_in_thread`, within the limit and for as long as the client is there."""

    def limited() -> Made:
        with checked_by(limit.check):
            return work()

    leaving = asyncio.ensure_future(client_left(receive))
    leaving.add_done_callback(lambda _: limit.stop())
    try:
        return await run_in_thread(limited)
    finally:
        leaving.cancel()


async def run_in_thread(work: Callable[[], Made]) -> Made:
    """What `work` returns. Its thread does not keep the process from ending: Ctrl-C waits for no replay."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[Made] = loop.create_future()
    context = contextvars.copy_context()

    def finish(outcome: Callable[[], None]) -> None:
        if not made.done():
            outcome()

    def run() -> None:
        try:
            found = context.run(work)
        except BaseException as error:
            failed = error
            _tell(loop, lambda: finish(lambda: made.set_exception(failed)))
        else:
            _tell(loop, lambda: finish(lambda: made.set_result(found)))

    Thread(target=run, daemon=True).start()
    return await made


def _tell(loop: asyncio.AbstractEventLoop, outcome: Callable[[], None]) -> None:
    """Hand the outcome to the loop, unless that has ended."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(outcome)


def page_server(app: ASGIApp, ready: Callable[[], None] = ignore) -> QuietServer:
    """A server of the page. It ends at once, without the answers that are being made: a page can ask again."""
    return QuietServer(app, ready, ws="none", proxy_headers=False, timeout_graceful_shutdown=0)


def serve_page(app: ASGIApp, listener: socket.socket, ready: Callable[[], None] = ignore) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    asyncio.run(page_server(app, ready).serve(sockets=[listener]))


EVENT_STREAM = "text/event-stream"
COMMENT_S = 15.0
"""How often something is sent when nothing happens, so that both sides know that the other is there."""
PAUSE_S = 0.25
"""Between two looks at what is new; calls that come faster are told together."""
SHARE = 5
"""A look that takes long is followed by a pause so many times as long."""


def event_response(live: LiveEvents, request: Request) -> Response:
    """The stream of a page, until either side ends it."""
    if request.method == "HEAD":
        return Response(media_type=EVENT_STREAM)
    return StreamingResponse(event_stream(live), media_type=EVENT_STREAM)


async def event_stream(live: LiveEvents) -> AsyncIterator[bytes]:
    """The events, and a comment where there is none for long."""
    with live.signal.waiter() as waiter:
        seen = await run_in_thread(live.seen)
        yield b": cachecost\n\n"
        while not live.signal.has_stopped:
            if not await waiter.changed(COMMENT_S):
                yield b": nothing new\n\n"
                continue
            began = monotonic()
            for name, data in await run_in_thread(lambda: live.changes(seen)):
                yield b"event: %b\ndata: %b\n\n" % (name.encode(), inert_json(data))
            await waiter.pause(max(PAUSE_S, SHARE * (monotonic() - began)))


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


KEPT_SESSIONS = 4
MOST_SHOWN = 60
"""Characters of an id that is not known, in the words that say so."""
Watch = Callable[[str, Sequence[str]], AbstractContextManager[object]]
"""Shows that something is done with these files for as long as it takes."""


def unwatched(what: str, files: Sequence[str]) -> AbstractContextManager[object]:
    """Nothing is shown."""
    return nullcontext()


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
    watch: Watch = unwatched
    has_files: bool = True
    titles: Mapping[str, str] = field(default_factory=dict)
    _open: dict[str, OpenSession] = field(default_factory=dict)
    _opening: Lock = field(default_factory=Lock)
    _reading: Lock = field(default_factory=Lock)

    def start(self) -> Answer:
        return start_object("sessions", self.title, self.command)

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
                replay.workload.require_breakpoints("whatif")
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

    def _known_replay(self, one: OpenSession) -> SessionReplay | None:
        """The replay; None where only the bill is known."""
        try:
            return self._replay(one)
        except NoRequests:
            return None

    def _alternatives(self, one: OpenSession) -> SessionAlternatives:
        if one.alternatives is None:
            replay = self._replay(one)
            with self.watch("replaying", ()):
                one.alternatives = SessionAlternatives.of(replay, self._today())
        return one.alternatives

    def _today(self) -> date | None:
        return None if self.setup.day else today()

    def _view(self, one: OpenSession, number: int) -> ViewedCall:
        replay = self._known_replay(one)
        try:
            with self.watch("replaying", ()):
                return view_call(one.session, replay, number)
        except KeyError:
            raise NotHere(f"the session has no call {number}; it has {len(one.session.calls):,}") from None


JSON = "application/json"
MOST_DIGITS = 10
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotHere, 404),
    (WrongChoice, 400),
    (CannotEvaluate, 422),
    (InputError, 422),
    (WorkStopped, 422),
)
WAIT_S = 30.0
"""How long an answer may take, what it waits for included. A page to save has all the time that it takes."""
INTERNAL = "internal error: the terminal of `cachecost view` says more"
NOT_LIVE = "nothing more comes here"
UNKNOWN_ADDRESS = "there is nothing at this address"


def viewer_app(
    source: PageSource,
    static: Mapping[str, bytes],
    token: str,
    port: int,
    say: Say,
    below: str = "/",
    limits: Callable[[], WorkLimit] = lambda: WorkLimit(WAIT_S),
) -> ASGIApp:
    """The application. `static` are the files of the page by name, `say` gets internal errors; addresses begin with
    `below` and the token. `limits` makes the limit of each answer.
    """
    site, start = _PageEndpoints(source, static, say, limits), f"{below}{token}"
    routes = [
        Route(f"{start}/", site.page),
        Route(f"{start}/static/{{name}}", site.file),
        *site.routes(f"{start}/api"),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: site.not_here})
    app.router.redirect_slashes = False
    return LoopbackGuard(app, f"{start}/", port)


class _PageEndpoints:
    """The endpoints."""

    def __init__(
        self, source: PageSource, static: Mapping[str, bytes], say: Say, limits: Callable[[], WorkLimit]
    ) -> None:
        self._source, self._static, self._say, self._limits = source, static, say, limits

    def routes(self, api: str) -> list[Route]:
        """The API, whose paths begin with `api`."""
        source = self._source
        session = f"{api}/session/{{id}}"
        return [
            self._route(f"{api}/start", lambda request: source.start()),
            self._route(f"{api}/sessions", lambda request: source.sessions()),
            self._route(f"{api}/run", lambda request: source.run()),
            self._route(f"{api}/compare", lambda request: source.compare()),
            self._route(session, lambda request: source.session(_id(request))),
            self._route(f"{session}/simulated", lambda request: source.simulated(_id(request))),
            self._route(f"{session}/options", lambda request: source.options(_id(request))),
            self._route(f"{session}/whatif", lambda request: source.what_if(_id(request), dict(request.query_params))),
            self._route(f"{session}/call/{{call:int}}", lambda request: source.call(_id(request), _call(request))),
            self._route(f"{session}/call/{{call:int}}/block/{{block:int}}", self._block),
            Route(f"{session}/page", self.saved_page),
            Route(f"{api}/events", self.events),
        ]

    def _block(self, request: Request) -> Answer:
        return self._source.block(_id(request), _call(request), request.path_params["block"])

    def _route(self, path: str, answer: Callable[[Request], Answer]) -> Route:
        async def endpoint(request: Request) -> Response:
            def work() -> Response:
                return Response(inert_json(answer(request)), media_type=JSON)

            return await self._guarded(request, work, self._limits())

        return Route(path, endpoint)

    async def _guarded(self, request: Request, work: Callable[[], Response], limit: WorkLimit) -> Response:
        """What `work` makes in a thread; its errors as answers."""
        try:
            return await run_for_client(work, request.receive, limit)
        except Exception as error:
            return self._error(request, error)

    def _error(self, request: Request, error: Exception) -> Response:
        status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
        if status == 500:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            self._say(f"internal error: {type(error).__name__}: {error} (line {frame.lineno} of {frame.filename})")
        return error_answer(status, INTERNAL if status == 500 else str(error))

    async def page(self, request: Request) -> Response:
        return self._file(INDEX)

    async def file(self, request: Request) -> Response:
        return self._file(request.path_params["name"])

    def _file(self, name: str) -> Response:
        if name not in self._static:
            return error_answer(404, UNKNOWN_ADDRESS)
        return Response(self._static[name], media_type=content_type(name))

    async def saved_page(self, request: Request) -> Response:
        id_ = _id(request)

        def work() -> Response:
            selected = request.query_params.get("call", "")
            number = int(selected) if selected.isdecimal() and len(selected) < MOST_DIGITS else 0
            page = SavedPage(self._source, self._static).of_session(id_, number)
            return Response(
                page.encode(),
                media_type=content_type(INDEX),
                headers={"content-disposition": f'attachment; filename="cachecost-{id_}.html"'},
            )

        return await self._guarded(request, work, WorkLimit(None))

    async def events(self, request: Request) -> Response:
        live = self._source.live()
        return event_response(live, request) if live else error_answer(404, NOT_LIVE)

    async def not_here(self, request: Request, error: Exception) -> Response:
        """The answer to addresses that there are not."""
        return error_answer(404, UNKNOWN_ADDRESS)


def error_answer(status: int, message: str) -> Response:
    """An error as the page shows it."""
    return Response(inert_json({"error": {"message": message}}), status, media_type=JSON)


def _id(request: Request) -> str:
    return str(request.path_params["id"])


def _call(request: Request) -> int:
    return int(request.path_params["call"])
