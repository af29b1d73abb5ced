"""The page as an ASGI application on a loopback port: its files, its answers, and what happens while it is open."""

from __future__ import annotations

import asyncio
import socket
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from time import monotonic

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from cachecost.analysis.viewing.what_if import WrongChoice
from cachecost.base.atomic_files import WorkStopped
from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.live.clock import Say, ignore
from cachecost.live.loopback import LoopbackGuard, QuietServer
from cachecost.live.viewer.saved_page import INDEX, SavedPage, content_type
from cachecost.live.viewer.source import Answer, LiveEvents, NotHere, PageSource
from cachecost.live.viewer.work import WorkLimit, run_for_client, run_in_thread
from cachecost.views.viewer.sessions import inert_json


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


JSON = "application/json"
MOST_DIGITS = 10
STATUS: tuple[tuple[type[Exception], int], ...] = (
    *((NotHere, 404), (WrongChoice, 400)),
    *((kind, 422) for kind in (CannotEvaluate, InputError, WorkStopped)),
)
WAIT_S = 30.0
"""How long an answer may take, what it waits for included. A page to save has all the time that it takes."""
INTERNAL = "internal error: the terminal of `cachecost view` says more"
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
    routes = [Route(f"{start}/", site.page), Route(f"{start}/static/{{name}}", site.file), *site.routes(f"{start}/api")]
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
        source, session = self._source, f"{api}/session/{{id}}"

        def now() -> PageSource:
            return source.current()

        return [
            self._route(f"{api}/start", lambda request: source.start()),
            self._route(f"{api}/sessions", lambda request: now().sessions()),
            self._route(f"{api}/run", lambda request: source.run()),
            self._route(f"{api}/compare", lambda request: source.compare()),
            self._route(session, lambda request: now().session(_id(request))),
            self._route(f"{session}/simulated", lambda request: now().simulated(_id(request))),
            self._route(f"{session}/options", lambda request: now().options(_id(request))),
            self._route(f"{session}/whatif", lambda request: now().what_if(_id(request), dict(request.query_params))),
            self._route(f"{session}/call/{{call:int}}", lambda request: now().call(_id(request), _call(request))),
            self._route(
                f"{session}/call/{{call:int}}/block/{{block:int}}",
                lambda request: now().block(_id(request), _call(request), request.path_params["block"]),
            ),
            Route(f"{session}/page", self.saved_page),
            Route(f"{api}/events", self.events),
        ]

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
        """The stream of a page, until either side ends it."""
        live = self._source.live()
        if live is None:
            return error_answer(404, "nothing more comes here")
        if request.method == "HEAD":
            return Response(media_type=EVENT_STREAM)
        return StreamingResponse(event_stream(live), media_type=EVENT_STREAM)

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
