"""The page as an ASGI application on a loopback port: its files, its answers, and what happens while it is open.

A session is also one HTML file that needs no server: the page, its style and modules, and the answers it asks for. Its
modules are joined to one script (rules: static/README.md).
"""

from __future__ import annotations

import asyncio
import re
import socket
import traceback
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from time import monotonic
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from cachecost.analysis.viewing.what_if import WrongChoice
from cachecost.base.atomic_files import WorkStopped
from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.base.formatting import count_text
from cachecost.live.clock import Say, ignore
from cachecost.live.loopback import LoopbackGuard, QuietServer
from cachecost.live.viewer.sessions_source import SessionsSource
from cachecost.live.viewer.source import (
    Answer,
    LiveEvents,
    NotHere,
    PageSource,
    WorkLimit,
    run_for_client,
    run_in_thread,
)
from cachecost.views.viewer.sessions import inert_json

IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
LEFT_OVER = re.compile(r'^(?:import\b|\}\s*from\s+").*', re.MULTILINE)
MAIN = "app.js"


def join_modules(modules: Mapping[str, str]) -> str:
    """The module MAIN and all that it imports as one: each after those that it imports.

    Raises ValueError where they import each other, import one that is not there, or import in another form.
    """
    parts = []
    done: list[str] = []
    _visit(modules, MAIN, done, ())
    for name in done:
        text = re.sub(r"^export ", "", IMPORT.sub("", modules[name]), flags=re.MULTILINE)
        if left := LEFT_OVER.search(text):
            raise ValueError(f'{name}: expected imports as {{ name }} from "./x.js"; got {left[0]}')
        parts.append(text)
    return "\n".join(parts).replace("</", "<\\/").replace("<!--", "<\\!--")


def _visit(modules: Mapping[str, str], name: str, done: list[str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"modules import each other: {' → '.join([*above, name])}")
    if name not in modules:
        raise ValueError(f"{above[-1] if above else 'the page'} imports {name}, which is not there")
    if name in done:
        return
    for imported in IMPORT.findall(modules[name]):
        _visit(modules, imported, done, (*above, name))
    done.append(name)


NAME = re.compile(r"[a-z0-9_-]+\.(html|css|js)")
TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
INDEX = "index.html"


def read_static_files() -> Mapping[str, bytes]:
    """The content of each file by its name; others than those of the page are left out."""
    folder = files("cachecost.live.viewer") / "static"
    found = (one for one in folder.iterdir() if NAME.fullmatch(one.name)) if folder.is_dir() else ()
    return {one.name: one.read_bytes() for one in found}


def content_type(name: str) -> str:
    """The type of a file by its suffix. Raises KeyError for one that is not served."""
    return TYPES[name.rpartition(".")[2]]


MOST_BYTES = 6 << 20
"""Of JSON in a page, besides that of the session itself and that of texts."""
MOST_TEXT_BYTES = 2 << 20
CHARSET, STYLE = re.compile(r'<meta charset="utf-8" ?/?>'), "style.css"


@dataclass(frozen=True, slots=True)
class SavedPage:
    source: PageSource
    static: Mapping[str, bytes]
    most_bytes: int = MOST_BYTES
    most_text_bytes: int = MOST_TEXT_BYTES

    def of_session(self, id_: str, selected: int = 0) -> str:
        """The page of a session; it opens at the call that is selected (0: none). Raises what the source raises."""
        path, source = f"session/{id_}", self.source.current()
        session = dict(source.session(id_))
        answers: dict[str, Any] = {"start": self.source.start(), path: session}
        if session["has_blocks"]:
            with suppress(CannotEvaluate, InputError):
                answers[f"{path}/simulated"] = source.simulated(id_)
        calls = self._fitting_calls(source, session, selected)
        answers.update((f"{path}/call/{number}", call) for number, call in calls.items())
        shown = [number for number in _of_note(session, selected) if number in calls]
        texts, words = _saved_texts(source, id_, shown, self.most_text_bytes)
        answers.update((f"{path}/call/{call}/block/{n}", block) for (call, n), block in texts.items())
        total = len(session["calls"]["number"])
        kept = "all calls with their blocks"
        if len(calls) < total:
            count = f"{len(calls):,} of {count_text(total, 'call')}"
            kept = f"{count} with their blocks: the most expensive moments, then the first"
        session["facts"] = [*session["facts"], ("saved page", f"{kept}; {words}")]
        home = f"#/{path}/call/{selected}" if selected else f"#/{path}"
        return render_page(self.static, {"home": home, "answers": answers})

    def _fitting_calls(self, source: SessionsSource, session: Answer, selected: int) -> dict[int, Answer]:
        """Calls with their blocks, as many as there is room for: those of note, the calls before them, then all."""
        found: dict[int, Answer] = {}
        room = self.most_bytes
        noted, numbers = _of_note(session, selected), session["calls"]["number"]
        for number in dict.fromkeys([*noted, *(number - 1 for number in noted if number > 1), *numbers]):
            try:
                call = source.call(session["id"], number)
            except (CannotEvaluate, InputError):
                return found
            room -= len(inert_json(call))
            if room < 0:
                return found
            found[number] = call
        return found


def render_page(static: Mapping[str, bytes], data: Mapping[str, Any]) -> str:
    """The page as one file, with its data. Raises ValueError where the page lacks a place for a part of it."""
    texts = {name: content.decode() for name, content in static.items()}
    script = "\n" + join_modules({name: text for name, text in texts.items() if name.endswith(".js")})
    style = texts[STYLE].replace("</", "<\\/")
    embedded = inert_json(data).decode().replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    scripts = f'<script type="application/json" id="data">{embedded}</script>\n<script type="module">{script}</script>'
    charset = f'<meta charset="utf-8">\n<meta http-equiv="content-security-policy" content="{policy}">'
    parts = (
        (CHARSET, charset),
        (re.compile(r'<link rel="stylesheet" href="static/style\.css" ?/?>'), f"<style>{style}</style>"),
        (re.compile(r'<script type="module" src="static/app\.js"></script>'), scripts),
    )
    page, made, end = texts[INDEX], "", 0
    for place, text in parts:
        match = place.search(page)
        if match is None or match.start() < end:
            raise ValueError(f"{INDEX}: expected {', '.join(one.pattern for one, _ in parts)}, in this order")
        made += page[end : match.start()] + text
        end = match.end()
    return made + page[end:]


def _digest(text: str) -> str:
    """The source expression of a content security policy for an inline script or style."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _of_note(session: Answer, selected: int) -> list[int]:
    moments = [moment["call"] for moment in session["moments"]]
    return list(dict.fromkeys([selected, *moments] if selected in session["calls"]["number"] else moments))


def _saved_texts(
    source: SessionsSource, id_: str, calls: Sequence[int], room: int
) -> tuple[Mapping[tuple[int, int], Answer], str]:
    """The answers for blocks, by the numbers of their call and their own, and what there is of their texts in words.

    First those that are new or changed, then the rest, as long as there is room. A text is in them once, a difference
    in its parts alone.
    """
    blocks: list[tuple[tuple[int, int], Answer]] = []
    for call in calls:
        with suppress(CannotEvaluate, InputError):
            for one in source.blocks(id_, call):
                parts = one["parts"] if one["change"] == "changed" else []
                blocks.append(((call, one["n"]), {**one, "before": None, "parts": parts}))
    found: dict[tuple[int, int], Answer] = {}
    for key, block in sorted(blocks, key=lambda pair: pair[1]["change"] == "same"):
        size = len(inert_json(block))
        if size <= room:
            room -= size
            found[key] = block
    known, saved = (sum(bool(one["text"]) for one in some) for some in ([one for _, one in blocks], found.values()))
    if not known:
        return found, "no texts of blocks"
    count = f"the {known:,}" if saved == known else f"{saved:,} of {known:,}"
    rest = "" if saved == known else ", as there is no room for more"
    return found, f"the texts of {count} blocks of the most expensive moments{rest}"


def page_server(app: ASGIApp, ready: Callable[[], None] = ignore) -> QuietServer:
    """A server of the page. It ends at once, without the answers that are being made: a page can ask again."""
    return QuietServer(app, ready, ws="none", proxy_headers=False, timeout_graceful_shutdown=0)


def serve_page(app: ASGIApp, listener: socket.socket, ready: Callable[[], None] = ignore) -> None:
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
    routes = [Route(f"{start}/", site.file), Route(f"{start}/static/{{name}}", site.file), *site.routes(f"{start}/api")]
    app = Starlette(routes=routes, exception_handlers={HTTPException: site.not_here})
    app.router.redirect_slashes = False
    return LoopbackGuard(app, f"{start}/", port)


class _PageEndpoints:
    def __init__(
        self, source: PageSource, static: Mapping[str, bytes], say: Say, limits: Callable[[], WorkLimit]
    ) -> None:
        self._source, self._static, self._say, self._limits = source, static, say, limits

    def routes(self, api: str) -> list[Route]:
        source, session = self._source, f"{api}/session/{{id}}"

        def now() -> SessionsSource:
            return source.current()

        return [
            self._route(f"{api}/start", lambda request: source.start()),
            self._route(f"{api}/sessions", lambda request: source.sessions()),
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

    async def file(self, request: Request) -> Response:
        name = request.path_params.get("name", INDEX)
        if name not in self._static:
            return error_answer(404, UNKNOWN_ADDRESS)
        return Response(self._static[name], media_type=content_type(name))

    async def saved_page(self, request: Request) -> Response:
        id_ = _id(request)

        def work() -> Response:
            selected = request.query_params.get("call", "")
            number = int(selected) if selected.isdecimal() and len(selected) < 10 else 0
            page = SavedPage(self._source, self._static).of_session(id_, number)
            headers = {"content-disposition": f'attachment; filename="cachecost-{id_}.html"'}
            return Response(page.encode(), media_type=content_type(INDEX), headers=headers)

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
        return error_answer(404, UNKNOWN_ADDRESS)


def error_answer(status: int, message: str) -> Response:
    return Response(inert_json({"error": {"message": message}}), status, media_type=JSON)


def _id(request: Request) -> str:
    return str(request.path_params["id"])


def _call(request: Request) -> int:
    return int(request.path_params["call"])
