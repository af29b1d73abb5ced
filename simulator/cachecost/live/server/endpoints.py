"""Responses as they are sent, with headers, the pace of a stream and injected faults; and serving an application."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from cachecost.live.clock import ignore
from cachecost.live.loopback import ENCODING, LoopbackHosts, QuietServer, address_of, client_left, listen
from cachecost.live.server.model import ApiError
from cachecost.live.server.served_api import ServedApi, ServedResponse, encode_json
from cachecost.live.server.state import GARBAGE, AnswerDelays, ConnectionCut

JSON = "application/json"


class PacedResponse:
    """An answer with its delays. A cut is raised as ConnectionCut once half of it is sent."""

    def __init__(self, answered: ServedResponse, pauses: AnswerDelays) -> None:
        self._answered = answered
        self._pauses = pauses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answered, api = self._answered, self._answered.api
        kind = answered.fault.kind if answered.fault else ""
        if kind == "timeout":
            await self._pauses.until(client_left(receive))
            await _start(send, 200, {"content-type": JSON})  # nobody listens, or the server stops: no proper end
            raise ConnectionCut("nothing was answered")
        if answered.streams:
            chunks = [GARBAGE] if kind == "garbage" else list(api.events(answered))
            await self._pauses.sleep(answered.first_token_s)
            names = {"content-type": api.stream_type, "cache-control": "no-cache", "request-id": answered.request_id}
            await _start(send, 200, names)
            between = max(0.0, answered.seconds - answered.first_token_s) / len(chunks)
            for chunk in chunks[: len(chunks) // 2] if kind == "cut" else chunks:
                await _more(send, chunk)
                await asyncio.sleep(0)  # a client that has left is noticed, or asyncio warns of every further write
                await self._pauses.sleep(between)
            if kind == "cut":
                raise ConnectionCut("the stream was cut in the middle")
            await send({"type": "http.response.body", "body": b""})
            return
        refused = answered.message if isinstance(answered.message, ApiError) else None
        body = encode_json(api.error(refused, answered.request_id) if refused else api.whole(answered))
        await self._pauses.sleep(answered.seconds)
        sent = GARBAGE if kind == "garbage" else body
        headers = {"content-type": JSON, "content-length": str(len(sent)), "request-id": answered.request_id}
        await _start(send, api.status(refused) if refused else 200, {**headers, **(refused.headers if refused else {})})
        if kind == "cut":
            await _more(send, body[: len(body) // 2])
            raise ConnectionCut("the answer was cut in the middle")
        await send({"type": "http.response.body", "body": sent})


class JsonResponse:
    """A JSON body, sent at once."""

    def __init__(self, body: Mapping[str, Any], request_id: str, status: int = 200, headers: Any = None) -> None:
        self._body = encode_json(body)
        self._status = status
        head = {"content-type": JSON, "content-length": str(len(self._body)), "request-id": request_id}
        self._headers = {**head, **(headers or {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _start(send, self._status, self._headers)
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else self._body})


def error_response(api: ServedApi, refused: ApiError, request_id: str) -> JsonResponse:
    return JsonResponse(api.error(refused, request_id), request_id, api.status(refused), refused.headers)


async def _start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    raw = [(name.encode(ENCODING), value.encode(ENCODING, "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})


async def _more(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


class _Server(QuietServer):
    """Ends waits when it stops, so that answers complete; `stop` ends others. Only for names of this machine."""

    def __init__(
        self, app: ASGIApp, pauses: AnswerDelays | None, ready: Callable[[], None], stop: Callable[[], None] = ignore
    ) -> None:
        super().__init__(LoopbackHosts(app), ready)
        self._pauses = pauses
        self._stop = stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stop()
        if self._pauses is not None:
            self._pauses.stop()
        await super().shutdown(sockets)


def serve_until_stopped(
    app: ASGIApp, listener: socket.socket, pauses: AnswerDelays, ready: Callable[[], None], stop: Callable[[], None]
) -> None:
    """Serve until Ctrl-C or SIGTERM. Answers complete unless a second Ctrl-C comes; `stop` ends the endless ones."""
    asyncio.run(_Server(app, pauses, ready, stop).serve(sockets=[listener]))


@contextlib.contextmanager
def serving(app: ASGIApp, pauses: AnswerDelays | None = None) -> Iterator[str]:
    """Serve from a thread while the block runs; yields the address."""
    with listen(0) as listener, serving_at(app, listener, pauses):
        yield address_of(listener)


@contextlib.contextmanager
def serving_at(app: ASGIApp, listener: socket.socket, pauses: AnswerDelays | None = None) -> Iterator[None]:
    """Serve a socket from a thread while the block runs."""
    began = threading.Event()
    server = _Server(app, pauses, began.set)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    try:
        began.wait()
        yield
    finally:
        server.stop()
        thread.join()
