"""ASGI responses: headers, the pace of a stream, and injected faults."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.types import Receive, Scope, Send

from cachecost.live.loopback import client_left
from cachecost.live.server.faults import GARBAGE, ConnectionCut
from cachecost.live.server.message import encode_json
from cachecost.live.server.model import ApiError
from cachecost.live.server.served_api import ServedApi, ServedResponse
from cachecost.live.server.state import AnswerDelays

JSON = "application/json"


class PacedResponse:
    """An answer with its delays. A cut is raised as ConnectionCut once half of it is sent."""

    def __init__(self, answered: ServedResponse, pauses: AnswerDelays) -> None:
        self._answered = answered
        self._pauses = pauses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = self._answered.fault.kind if self._answered.fault else ""
        if kind == "timeout":
            await self._pauses.until(client_left(receive))
            await _start(send, 200, {"content-type": JSON})  # nobody listens, or the server stops: no proper end
            raise ConnectionCut("nothing was answered")
        if self._answered.streams:
            await self._stream(send, kind)
        else:
            await self._whole(send, kind)

    async def _whole(self, send: Send, kind: str) -> None:
        answered = self._answered
        api, refused = answered.api, answered.message if isinstance(answered.message, ApiError) else None
        body = encode_json(api.error(refused, answered.request_id) if refused else api.whole(answered))
        await self._pauses.sleep(answered.seconds)
        sent = GARBAGE if kind == "garbage" else body
        headers = {"content-type": JSON, "content-length": str(len(sent)), "request-id": answered.request_id}
        await _start(send, api.status(refused) if refused else 200, {**headers, **(refused.headers if refused else {})})
        if kind == "cut":
            await _more(send, body[: len(body) // 2])
            raise ConnectionCut("the answer was cut in the middle")
        await send({"type": "http.response.body", "body": sent})

    async def _stream(self, send: Send, kind: str) -> None:
        answered = self._answered
        chunks = [GARBAGE] if kind == "garbage" else list(answered.api.events(answered))
        await self._pauses.sleep(answered.first_token_s)
        headers = {
            "content-type": answered.api.stream_type,
            "cache-control": "no-cache",
            "request-id": answered.request_id,
        }
        await _start(send, 200, headers)
        between = max(0.0, answered.seconds - answered.first_token_s) / len(chunks)
        for chunk in chunks[: len(chunks) // 2] if kind == "cut" else chunks:
            await _more(send, chunk)
            await asyncio.sleep(0)  # a client that has left is noticed, or asyncio warns of every further write
            await self._pauses.sleep(between)
        if kind == "cut":
            raise ConnectionCut("the stream was cut in the middle")
        await send({"type": "http.response.body", "body": b""})


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
    await send({"type": "http.response.start", "status": status, "headers": list(_raw(headers.items()))})


def _raw(headers: Iterable[tuple[str, str]]) -> Iterable[tuple[bytes, bytes]]:
    return ((name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers)


async def _more(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
