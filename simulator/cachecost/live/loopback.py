"""Servers on this machine: the socket they listen on, whom they answer, and how they end.

A page of another site may reach loopback under a name of its own (DNS rebinding); the browser then takes the server for
that site, and lets the page read its answers. Its name is in the Host header. A page of ours also has a token in its
address, without which another page in the same browser finds nothing, and answers no other Origin.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from secrets import compare_digest
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cachecost.live.clock import ignore

LOOPBACK, LOCALHOST = NAMES = ("127.0.0.1", "localhost")
ENCODING = "latin-1"
BACKLOG = 2048
LOOK_S, GRACE_S = 0.005, 0.1
"""How often a server that ends looks whether its connections are closed, and how long it waits for them at least."""


class PortTaken(Exception):
    """The port cannot be listened on."""


def listen(port: int) -> socket.socket:
    """A socket that listens on loopback; port 0 lets the system choose. Raises PortTaken.

    Nagle's algorithm is off, or each answer waits 40 ms for the client's acknowledgement. asyncio turns it off only for
    sockets created with the TCP protocol number.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((LOOPBACK, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or str(error)
        raise PortTaken(f"--port {port} is not available ({why}); use 0 to let the system choose") from None
    return listener


def is_loopback(host: str) -> bool:
    """Whether a host of a URL is this machine. A name other than localhost is not resolved: it may change."""
    if host.lower().rstrip(".") == LOCALHOST:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def address_of(listener: socket.socket) -> str:
    return f"http://{LOOPBACK}:{listener.getsockname()[1]}"


def header_values(scope: Scope, name: bytes) -> list[str]:
    """The values of a header, whose `name` is in lower case."""
    return [value.decode(ENCODING) for key, value in scope["headers"] if key == name]


def names_loopback(scope: Scope, port: int | None = None) -> bool:
    """Whether the request names this machine, once, and `port` (None: any, as behind a tunnel)."""
    hosts = header_values(scope, b"host")
    if len(hosts) != 1:
        return False
    name, _, number = hosts[0].lower().partition(":")
    return name in NAMES and (number == str(port) if port is not None else not number or number.isdecimal())


def messages_error(kind: str, message: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    return [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))], body


class LoopbackHosts:
    """Passes requests on that name this machine; others are answered with status 421."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or names_loopback(scope):
            await self._app(scope, receive, send)
            return
        message = f"host: expected {' or '.join(NAMES)}, as this server answers no other site"
        headers, body = messages_error("invalid_request_error", message)
        await send({"type": "http.response.start", "status": 421, "headers": headers})
        await send({"type": "http.response.body", "body": body})


METHODS = ("GET", "HEAD")
HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
OWN_HEADERS = [(name.encode(), text.encode()) for name, text in HEADERS.items()]


class LoopbackGuard:
    """Passes a request on where it may; every answer gets the headers. Paths begin with `start`, which holds the token;
    `port` is the one that is listened on.
    """

    def __init__(self, app: ASGIApp, start: str, port: int) -> None:
        self._app = app
        self._start = start.encode()
        self._port = port
        self._origins = {f"http://{name}:{port}" for name in NAMES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"].encode("utf-8", "surrogateescape")
        if not names_loopback(scope, self._port):
            status = 421
        elif any(origin not in self._origins for origin in header_values(scope, b"origin")):
            status = 403
        elif not compare_digest(path[: len(self._start)], self._start):
            status = 404
        elif scope["method"] not in METHODS:
            status = 405
        else:

            async def send_with_headers(message: Message) -> None:
                if message["type"] == "http.response.start":
                    own = {name for name, _ in OWN_HEADERS}
                    rest = [(name, value) for name, value in message.get("headers", []) if name not in own]
                    message = {**message, "headers": [*rest, *OWN_HEADERS]}
                await send(message)

            await self._app(scope, receive, send_with_headers)
            return
        more = [(b"allow", ", ".join(METHODS).encode())] if status == 405 else []
        headers = [*OWN_HEADERS, *more, (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


async def client_left(receive: Receive) -> None:
    """Return when the client of a request has gone; its body has been received."""
    while (await receive())["type"] != "http.disconnect":
        pass


class QuietServer(uvicorn.Server):
    """Uvicorn without its log and headers, which returns after SIGINT or SIGTERM: the caller still has work to do.

    The first signal lets running calls end, the second one closes all connections. `ready` is called when it listens,
    `options` are uvicorn's.
    """

    def __init__(self, app: Any, ready: Callable[[], None] = ignore, **options: Any) -> None:
        quiet: dict[str, Any] = {"log_config": None, "log_level": "critical", "access_log": False}
        quiet |= {"lifespan": "off", "server_header": False, "backlog": BACKLOG}
        super().__init__(uvicorn.Config(app, **quiet, **options))
        self._ready = ready
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self._ready()

    def stop(self) -> None:
        """Let running calls end, then return. From any thread."""
        self.should_exit = True
        with suppress(RuntimeError):  # it has ended by itself
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._stopping.set)

    async def main_loop(self) -> None:
        """As uvicorn's, which sees only every 0.1 s that it is to end. A tick sets the time in the Date header."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), 1.0)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, which waits 0.1 s before it looks whether its connections are closed, and between looks."""
        for closing in (*self.servers, *(sockets or ())):
            closing.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        given = self.config.timeout_graceful_shutdown
        left_s = float("inf") if given is None else max(given, GRACE_S)
        while (self.server_state.connections or self.server_state.tasks) and not self.force_exit:
            if left_s <= 0:
                for task in self.server_state.tasks:
                    task.cancel()
                return
            await asyncio.sleep(LOOK_S)
            left_s -= LOOK_S
        for server in self.servers:
            await server.wait_closed()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        def abort_connections() -> None:  # uvicorn would wait for a client that neither sends nor reads
            for connection in list(self.server_state.connections):
                if connection.transport is not None:
                    connection.transport.abort()

        if self.should_exit and self._loop is not None:
            self.force_exit = True
            self._loop.call_soon_threadsafe(abort_connections)
        self.stop()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at Ctrl-C and SIGTERM, without raising them again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
