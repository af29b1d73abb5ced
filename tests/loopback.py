"""The simulated API without a socket, as a client meets it: streams come piece by piece, a cut breaks them.

`httpx2.ASGITransport` keeps an answer back until it is whole, knows no timeouts and hands a cut on as `Cut`; this
transport tells each piece as it comes, minds the read timeout, and makes of a cut what a socket would.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import httpx2
from starlette.types import ASGIApp

BROKEN = "peer closed connection without sending complete message body"
Message = MutableMapping[str, Any]


class Loopback(httpx2.AsyncBaseTransport):
    """`AsyncAnthropic(http_client=httpx2.AsyncClient(transport=Loopback(app)))`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        exchange = _Exchange(request)
        exchange.begin(self._app)
        try:
            head = await exchange.next()
        except BaseException:
            await exchange.aclose()
            raise
        return httpx2.Response(head["status"], headers=head["headers"], stream=exchange, request=request)


class _Exchange(httpx2.AsyncByteStream):
    """One request and its answer. Closing it early is a client that leaves."""

    def __init__(self, request: httpx2.Request) -> None:
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        self._request = request
        self._sent = request.stream.__aiter__()
        self._is_sent = False
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue()
        self._left = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_broken = False

    def begin(self, app: ASGIApp) -> None:
        self._task = asyncio.create_task(self._run(app))

    async def _run(self, app: ASGIApp) -> None:
        try:
            await app(_scope(self._request), self._receive, self._send)
        except ConnectionError:
            self._is_broken = True
        finally:
            self._messages.put_nowait(None)

    async def _receive(self) -> Message:
        if not self._is_sent:
            async for chunk in self._sent:
                return {"type": "http.request", "body": chunk, "more_body": True}
            self._is_sent = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self._messages.put_nowait(message)
        await asyncio.sleep(0)

    async def next(self) -> Message:
        """The next message of the app. Raises what a socket would: ReadTimeout, RemoteProtocolError."""
        patience = self._request.extensions.get("timeout", {}).get("read")
        try:
            message = await asyncio.wait_for(self._messages.get(), patience)
        except TimeoutError:
            raise httpx2.ReadTimeout("", request=self._request) from None
        if message is None:
            raise httpx2.RemoteProtocolError(BROKEN, request=self._request)
        return message

    async def __aiter__(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self.next()
            more = message.get("more_body", False)
            if message.get("body"):
                yield message["body"]

    async def aclose(self) -> None:
        self._left.set()
        if self._task is not None:
            await asyncio.sleep(0)
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task


def _scope(request: httpx2.Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "server": (request.url.host, request.url.port),
        "client": ("127.0.0.1", 1),
        "root_path": "",
    }
