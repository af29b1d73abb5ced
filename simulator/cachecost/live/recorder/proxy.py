"""A recording from its start to its summary, and the proxy: an ASGI application that forwards requests and answers
chunk by chunk, and keeps a copy.

It runs until it is stopped, and lets running calls end. A recorder whose upstream is itself is refused at the start, or
at the first call that comes back.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import Protocol

import httpx2
from starlette.types import Receive, Scope, Send

from cachecost.base.errors import Fault, InputError
from cachecost.base.structs import replace
from cachecost.conversations.readers.http.exchange import route_of
from cachecost.live.clock import Clock, Say, ScaledClock, ignore
from cachecost.live.keys import longest_first, query_secrets, secrets_in
from cachecost.live.loopback import LOOPBACK, PortTaken, QuietServer, address_of, client_left, listen, messages_error
from cachecost.live.recorder.helper import NO_PAGE, HelperOptions, RecorderHelper
from cachecost.live.recorder.writing import (
    BodyCopy,
    CallWriter,
    Capture,
    CaptureMemory,
    DigestSink,
    LogSink,
    Pairs,
    decoded,
    for_client,
    for_upstream,
    free_place,
    has_two_lengths,
    put_in_order,
    put_recording_in_order,
)
from cachecost.live.request_log import CallLog, input_errors, lines_in

HEADER = b"x-cachecost-recorder"
"""One token for each recorder that a request has passed. It is sent only over plain HTTP, the only way for a call to
come back; requests to the API stay unchanged."""
LOOP = "--upstream leads back to this recorder: expected the API, or a server that forwards calls to it"


def is_itself(upstream: httpx2.URL, port: int) -> bool:
    """Whether `upstream` is a recorder on this port of LOOPBACK. A name is resolved only if the port matches."""
    if (upstream.port or {"http": 80, "https": 443}[upstream.scheme]) != port:
        return False
    try:
        found = socket.getaddrinfo(upstream.host, port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for *_, address in found:
        plain = ip_address(address[0])
        plain = getattr(plain, "ipv4_mapped", None) or plain
        if str(plain) == LOOPBACK or plain.is_unspecified:
            return True
    return False


def token_for(upstream: httpx2.URL) -> bytes | None:
    """The token by which a recorder recognizes its own calls; None if none is sent."""
    return secrets.token_hex(16).encode() if upstream.scheme == "http" else None


class Listener(Protocol):
    """Is notified of calls to the Messages API, from the event loop, so it must not block."""

    def on_start(self, number: int) -> None: ...

    def on_end(self, capture: Capture) -> None: ...


class ClientLeft(Exception):
    """The client closed its connection before its request was whole."""


@dataclass(slots=True)
class Proxy:
    """Forwards every request to `upstream` (a URL, perhaps with a path), and notifies `listener` of calls.

    `token` identifies its own requests, which are refused; the first one is reported.
    """

    upstream: httpx2.URL
    transport: httpx2.AsyncBaseTransport
    listener: Listener
    clock: Clock
    room: CaptureMemory = field(default_factory=CaptureMemory)
    running: set[asyncio.Future[None]] = field(default_factory=set)
    token: bytes | None = None
    say: Say = ignore
    _calls: int = 0
    _has_looped: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.token and any(name.lower() == HEADER and value == self.token for name, value in scope["headers"]):
            if not self._has_looped:
                self._has_looped = True
                self.say(LOOP)
            await _refuse(send, 508, LOOP)
            return
        if has_two_lengths(scope["headers"]):
            await _refuse(send, 400, "a request has either Content-Length or Transfer-Encoding; this one has both")
            return
        capture = self._capture(scope)
        try:
            await _Exchange(self, scope, receive, send, capture).pass_on()
        finally:
            if capture is not None:
                capture.end = self.clock.now()
                self.listener.on_end(capture)

    def _capture(self, scope: Scope) -> Capture | None:
        start = self.clock.now()
        if isinstance(route := route_of(scope["method"], scope["path"]), str) or route.api != "messages":
            return None
        self._calls += 1
        self.listener.on_start(self._calls)
        headers = decoded(scope["headers"])
        secrets = longest_first([*secrets_in(headers), *query_secrets(scope["query_string"].decode("latin-1"))])
        return Capture(self._calls, start, dict(headers), BodyCopy(self.room), BodyCopy(self.room), secrets=secrets)

    def target(self, scope: Scope) -> bytes:
        """The path and the query as the client wrote them, after the upstream's own path."""
        query: bytes = scope["query_string"]
        path: bytes = self.upstream.raw_path.rstrip(b"/") + scope["raw_path"]
        return path + b"?" + query if query else path

    def cut_soon(self) -> None:
        """Cut off running exchanges; may be called from a signal handler."""
        for task in list(self.running):
            task.get_loop().call_soon_threadsafe(task.cancel)

    async def stop(self) -> None:
        """Cut off running exchanges, and wait until the listener is notified."""
        self.cut_soon()
        while self.running:
            await asyncio.wait(set(self.running))
            await asyncio.sleep(0)


class _Upload(httpx2.AsyncByteStream):
    def __init__(self, receive: Receive, capture: Capture | None, clock: Clock) -> None:
        self._receive, self._capture, self._clock = receive, capture, clock
        self._is_done = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        is_more = True
        while is_more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            is_more = message.get("more_body", False)
            if data := message.get("body", b""):
                yield data
                if self._capture:
                    self._capture.request.add(self._clock.now(), data)
        self._is_done.set()

    async def client_left(self) -> None:
        """Wait until the client has gone, once its body is here."""
        await self._is_done.wait()
        await client_left(self._receive)


class _Exchange:
    def __init__(self, passing: Proxy, scope: Scope, receive: Receive, send: Send, capture: Capture | None) -> None:
        self._passing, self._scope, self._send, self._capture = passing, scope, send, capture
        self._upload = _Upload(receive, capture, passing.clock)
        self._is_passed = False

    async def pass_on(self) -> None:
        """Run until the answer is forwarded, the client has left, or the upstream has broken off."""
        answer = asyncio.ensure_future(self._answer())
        left = asyncio.ensure_future(self._upload.client_left())
        self._passing.running.add(answer)
        try:
            await asyncio.wait({answer, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _finish(left, is_unwanted=True)
            await _finish(answer, is_unwanted=not self._is_passed)
            self._passing.running.discard(answer)
        if not answer.cancelled() and (fault := answer.exception()):
            raise fault

    async def _answer(self) -> None:
        passing, capture = self._passing, self._capture
        headers = for_upstream(self._scope["headers"], passing.upstream.netloc)
        if passing.token is not None:
            headers.append((HEADER, passing.token))
        # timeout for connecting to the upstream. Apart from that, the client decides how long to wait
        wait = {"connect": 60.0, "read": None, "write": None, "pool": None}
        extensions = {"target": passing.target(self._scope), "timeout": wait}
        request = httpx2.Request(
            self._scope["method"], passing.upstream, headers=headers, stream=self._upload, extensions=extensions
        )
        try:
            response = await passing.transport.handle_async_request(request)
        except ClientLeft:
            return
        except httpx2.TransportError as error:
            headers, body = _error_of(f"{passing.upstream.host} did not answer ({type(error).__name__})")
            await self._start(502, headers, headers)
            await self._end(body)
            if capture:
                capture.answer.add(passing.clock.now(), body)
            return
        # Where the upstream breaks off, this ends too early, and the server closes the connection: the client sees it.
        try:
            with suppress(httpx2.TransportError):
                raw = response.headers.raw
                await self._start(response.status_code, for_client(raw), raw)
                async for data in response.stream:  # type: ignore[union-attr]
                    at = passing.clock.now()
                    await self._send({"type": "http.response.body", "body": data, "more_body": True})
                    if capture:
                        capture.answer.add(at, data)
                await self._end()
        finally:
            await response.aclose()

    async def _end(self, body: bytes = b"") -> None:
        """Send the end of the answer. It is noted before, because clients leave as soon as they have it."""
        self._is_passed = True
        if self._capture:
            self._capture.is_cut = False
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _start(self, status: int, passed: Pairs, headers: Pairs) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": passed})
        if self._capture:
            self._capture.status = status
            self._capture.answered = dict(decoded(headers))


def _error_of(words: str) -> tuple[Pairs, bytes]:
    return messages_error("api_error", f"cachecost record: {words}")


async def _refuse(send: Send, status: int, words: str) -> None:
    """Answer a request that is not forwarded. What follows it on its connection is not read."""
    headers, body = _error_of(words)
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})


async def _finish(task: asyncio.Future[None], is_unwanted: bool) -> None:
    """Wait for a task, cancelling it if unwanted; its exception is handled elsewhere."""
    if is_unwanted:
        task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task


IDLE_S = 5.0
"""How long a connection to the upstream is kept for the next call."""


class Server(QuietServer):
    """Ends at the first SIGINT or SIGTERM once its calls have ended; at the second it cuts them off.

    It adds nothing of uvicorn's: no header, no upgrade to websockets, no reading of proxy headers.
    """

    def __init__(self, passing: Proxy) -> None:
        super().__init__(
            passing,
            http="h11",
            ws="none",
            proxy_headers=False,
            date_header=False,
            h11_max_incomplete_event_size=1 << 20,
        )
        self._passing = passing

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            self._passing.cut_soon()
        super().handle_exit(sig, frame)


async def serve(
    upstream: httpx2.URL, bound: socket.socket, listener: Listener, ready: Callable[[], None], say: Say
) -> None:
    """Pass calls on to `upstream` until a signal comes; a second signal cuts off those still running."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_S)
    async with httpx2.AsyncHTTPTransport(limits=limits, trust_env=False) as transport:
        clock = ScaledClock(wall=time.time)
        passing = Proxy(upstream, transport, listener, clock, token=token_for(upstream), say=say)
        ready()
        await Server(passing).serve(sockets=[bound])
        await passing.stop()


@dataclass(frozen=True, slots=True)
class RecordingResult:
    """The file, how many calls of this recorder are in it, and how many are missing."""

    path: Path
    calls: int
    lost: int


def record(
    upstream: httpx2.URL, port: int, options: HelperOptions, say: Say, page_port: int | None = None
) -> RecordingResult:
    """Forward calls and record them until a signal comes; `page_port` is that of the page (None: there is none).

    Raises InputError.
    """
    with _listen(port) as bound, nullcontext() if page_port is None else _listen(page_port, "--page") as page:
        options = options if page is None else replace(options, page=page.fileno())
        if is_itself(upstream, bound.getsockname()[1]):
            raise InputError([Fault("--upstream", f"{upstream}: {LOOP.partition(': ')[2]}; got this recorder itself")])

        def run(writer: CallWriter, path: Path) -> None:
            # With Python's 5 ms between threads, the writing of a busy recorder falls behind forwarding.
            sys.setswitchinterval(0.0005)
            words = f"recording calls to {upstream} in {path}; set ANTHROPIC_BASE_URL={address_of(bound)}"
            asyncio.run(serve(upstream, bound, writer, lambda: say(f"{words}; Ctrl-C stops"), say))

        return (_record_digest if options.digest else _record_log)(options, say, run)


Run = Callable[[CallWriter, Path], None]


def _record_log(options: HelperOptions, say: Say, run: Run) -> RecordingResult:
    path = Path(options.path)
    with CallLog(path) as log:
        if log.cut:
            say(f"{path}: {log.cut:,} bytes of an incomplete call removed")
        size = path.stat().st_size
        if size:
            say(f"{path}: appending to it")
        is_watched = options.prints or options.page != NO_PAGE
        watcher = _predicting(replace(options, earlier_bytes=size), say) if is_watched else None
        writer = CallWriter(LogSink(log, watcher), say)
        try:
            run(writer, path)
        finally:  # in any case, finished calls are written
            writer.close()
            if watcher:
                watcher.close()
        recorded = _count_result(path, log.count_recorded(), writer, say)
        _in_order(path, say)
    return recorded


def _predicting(options: HelperOptions, say: Say) -> RecorderHelper:
    def ended(code: int) -> None:
        if code:
            say(f"the prediction process exited early (exit code {code}); calls are recorded without predictions")

    return RecorderHelper(options, ended=ended)


def _record_digest(options: HelperOptions, say: Say, run: Run) -> RecordingResult:
    path = free_place(Path(options.path))
    if str(path) != options.path:
        say(f"{options.path} exists, and a recording without content cannot be continued; writing to {path}")
    with input_errors(path, ""):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT, 0o600))
    helper = _predicting(replace(options, path=str(path)), say)
    sink = DigestSink(path, helper, say)
    writer, left = CallWriter(sink, say), 0
    try:
        run(writer, path)
    finally:
        writer.close()
        left = sink.close()
        helper.close()
    recorded = _count_result(path, lines_in(path, prefix=b'{"call":'), writer, say, left)
    if recorded.calls:
        _in_order(path, say, put_recording_in_order)
    return recorded


def _count_result(path: Path, calls: int, writer: CallWriter, say: Say, unwritten: int = 0) -> RecordingResult:
    """Count the calls that are in the files now, and report those that are missing."""
    lost = max(0, writer.taken + writer.lost - calls)
    if gone := max(0, lost - writer.lost - unwritten):
        were = "call was" if gone == 1 else "calls were"
        say(f"{gone:,} {were} written but missing from {path}: the file was moved, removed or changed")
    return RecordingResult(path, calls, lost)


def _in_order(path: Path, say: Say, put: Callable[[Path], bool] = put_in_order) -> None:
    try:
        if put(path):
            say(f"{path}: calls sorted by start time")
    except (OSError, InputError):
        say(f"{path}: calls are in the order they ended; `cachecost recording concat` sorts them")


def _listen(port: int, option: str = "--port") -> socket.socket:
    try:
        return listen(port)
    except PortTaken as error:
        raise InputError([Fault(option, str(error).removeprefix("--port "))]) from None
