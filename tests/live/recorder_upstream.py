"""A stand-in for the API that tells what it got to the byte, and a client that does the same; and the recorder."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h11
import httpx2

from cachecost.live.clock import ScaledClock
from cachecost.live.loopback import listen
from cachecost.live.recorder.proxy import Proxy, Server
from cachecost.live.recorder.writing import Capture, CaptureMemory

Pairs = list[tuple[bytes, bytes]]
MODEL = "claude-sonnet-4-5"


@dataclass
class Seen:
    """A request as the upstream got it."""

    method: bytes
    target: bytes
    headers: Pairs
    body: bytes


Answering = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Upstream:
    """What it saw, and where it is."""

    answering: Answering
    seen: list[Seen] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER)
        try:
            while (seen := await _request(connection, reader)) is not None:
                self.seen.append(seen)
                await self.answering(seen, writer)
                connection = h11.Connection(h11.SERVER)
        except (ConnectionError, h11.RemoteProtocolError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def _request(connection: h11.Connection, reader: asyncio.StreamReader) -> Seen | None:
    seen: Seen | None = None
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(1 << 16))
        elif isinstance(event, h11.Request):
            raw = [(bytes(name), bytes(value)) for name, value in event.headers.raw_items()]
            seen = Seen(bytes(event.method), bytes(event.target), raw, b"")
        elif isinstance(event, h11.Data):
            assert seen
            seen.body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return seen
        else:
            return None


@asynccontextmanager
async def upstream(answering: Answering) -> AsyncIterator[Upstream]:
    made = Upstream(answering)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, backlog=2048)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        if hasattr(server, "close_clients"):
            server.close_clients()
        await asyncio.sleep(0)


@dataclass
class Heard:
    """A listener that keeps what it hears."""

    captures: list[Capture] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)

    def on_start(self, number: int) -> None:
        self.begun.append(number)

    def on_end(self, capture: Capture) -> None:
        self.captures.append(capture)


@asynccontextmanager
async def passing(url: str, heard: Any, room: CaptureMemory | None = None) -> AsyncIterator[int]:
    """The pass-through in this process; its port."""
    with listen(0) as bound:
        async with httpx2.AsyncHTTPTransport(trust_env=False) as transport:
            app = Proxy(httpx2.URL(url), transport, heard, ScaledClock(wall=time.time), room or CaptureMemory())
            server = Server(app)
            task = asyncio.ensure_future(server.serve(sockets=[bound]))
            while not server.started:
                await asyncio.sleep(0.001)
            try:
                yield bound.getsockname()[1]
            finally:
                server.should_exit = server.force_exit = True
                app.cut_soon()
                await task
                await app.stop()


@dataclass
class Got:
    """An answer as a client got it. `is_whole` is false where the connection broke off."""

    status: int
    reason: bytes
    headers: Pairs
    chunks: list[bytes]
    is_whole: bool = True

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)


async def send(
    port: int,
    method: bytes = b"POST",
    target: bytes = b"/v1/messages",
    headers: Sequence[tuple[bytes, bytes]] = (),
    pieces: Sequence[bytes] = (),
    on_chunk: Callable[[bytes], bool] | None = None,
) -> Got | None:
    """Send a request in pieces; a client whose `on_chunk` says False leaves, and has no answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    connection = h11.Connection(h11.CLIENT)
    framing = [(b"content-length", str(sum(map(len, pieces))).encode())] if pieces else []
    if any(name.lower() == b"transfer-encoding" for name, _ in headers):
        framing = []
    request = h11.Request(method=method, target=target, headers=[(b"Host", b"localhost"), *headers, *framing])
    try:
        writer.write(connection.send(request) or b"")
        for piece in pieces:
            writer.write(connection.send(h11.Data(data=piece)) or b"")
            await writer.drain()
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        return await _answer(connection, reader, on_chunk)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def send_again(
    port: int, headers: Sequence[tuple[bytes, bytes]], bodies: Iterator[tuple[int, bytes]]
) -> AsyncIterator[int]:
    """Send one body after the other over one connection; the numbers of those that were answered, as they are."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    connection = h11.Connection(h11.CLIENT)
    try:
        for number, data in bodies:
            fields = [(b"Host", b"localhost"), *headers, (b"content-length", str(len(data)).encode())]
            request = h11.Request(method=b"POST", target=b"/v1/messages", headers=fields)
            for event in (request, h11.Data(data=data), h11.EndOfMessage()):
                writer.write(connection.send(event) or b"")
            got = await _answer(connection, reader, None)
            if got is None or not got.is_whole:
                return
            yield number
            connection.start_next_cycle()
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def _answer(
    connection: h11.Connection, reader: asyncio.StreamReader, on_chunk: Callable[[bytes], bool] | None
) -> Got | None:
    got: Got | None = None
    while True:
        try:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await reader.read(1 << 16))
                continue
        except (h11.RemoteProtocolError, ConnectionError):
            if got:
                got.is_whole = False
            return got
        if isinstance(event, h11.Response):
            raw = [(bytes(name), bytes(value)) for name, value in event.headers.raw_items()]
            got = Got(event.status_code, bytes(event.reason), raw, [])
        elif isinstance(event, h11.Data):
            assert got
            got.chunks.append(bytes(event.data))
            if on_chunk and not on_chunk(bytes(event.data)):
                return None
        elif isinstance(event, (h11.EndOfMessage, h11.ConnectionClosed)):
            return got


# ------------------------------------------------------------------------------------------- answers of the API


def body(text: str = "Hi", **more: Any) -> bytes:
    told = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": text}], **more}
    return json.dumps(told, separators=(",", ":")).encode()


def usage(read: int = 0, write: int = 0, plain: int = 3, output: int = 5) -> dict[str, Any]:
    return {
        "input_tokens": plain,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "cache_creation": {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
    }


def message(text: str = "Yes", **more: Any) -> dict[str, Any]:
    told = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "stop_reason": "end_turn"}
    return {**told, "content": [{"type": "text", "text": text}], "usage": usage(), **more}


def events(text: str = "Yes", bill: dict[str, Any] | None = None) -> list[bytes]:
    """A stream, event by event; the text comes in two pieces."""
    bill = bill or usage()
    start = {**message(), "content": [], "stop_reason": None, "usage": {**bill, "output_tokens": 1}}
    told: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}}
            for part in (text[: len(text) // 2], text[len(text) // 2 :])
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in told]


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def plain(told: Any, status: bytes = b"200 OK", more: bytes = b"") -> bytes:
    data = told if isinstance(told, bytes) else json.dumps(told).encode()
    length = b"Content-Length: %d\r\n" % len(data)
    return b"HTTP/1.1 %b\r\nContent-Type: application/json\r\n%b%b\r\n%b" % (status, length, more, data)


async def answers_at_once(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """As the API would, streamed where it is asked for."""
    told = json.loads(seen.body or b"{}")
    if told.get("stream"):
        writer.write(STREAM)
        for event in events():
            writer.write(chunk(event))
        writer.write(b"0\r\n\r\n")
    else:
        writer.write(plain(message()))
    await writer.drain()


@contextmanager
def upstream_thread(answering: Answering = answers_at_once) -> Iterator[Upstream]:
    """The stand-in in a thread of its own, for a recorder in another process."""
    made = Upstream(answering)
    loop = asyncio.new_event_loop()
    started, stop = threading.Event(), asyncio.Event()

    async def run() -> None:
        server = await asyncio.start_server(made.serve, "127.0.0.1", 0, backlog=2048)
        made.port = server.sockets[0].getsockname()[1]
        started.set()
        await stop.wait()
        server.close()

    async def whole() -> None:
        await run()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(whole()))
    thread.start()
    started.wait()
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


# ------------------------------------------------------------------------------------------ the command as a whole

COMMAND = "from cachecost.cli import COMMANDS, main; COMMANDS.setdefault('record', 'record:record'); main()"


@dataclass
class Running:
    """`cachecost record` in another process."""

    process: subprocess.Popen[bytes]
    port: int
    first: list[str]
    _lines: list[bytes] = field(default_factory=list)
    _thread: threading.Thread | None = None

    def listen(self) -> None:
        """Take in what it says from now on, so that it never waits for us."""
        self._thread = threading.Thread(target=lambda: self._lines.extend(self.process.stderr or ()))
        self._thread.start()

    def kill(self) -> None:
        self.process.kill()
        self.ended()

    def stop(self, sign: int = signal.SIGINT) -> tuple[int, list[str]]:
        """Its exit code and everything it said."""
        self.process.send_signal(sign)
        return self.ended()

    def ended(self) -> tuple[int, list[str]]:
        """Wait for it; its exit code and everything it said."""
        code = self.process.wait(30)
        assert self._thread and self.process.stderr and self.process.stdout
        self._thread.join()
        out = self.process.stdout.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert out == b""
        return code, [*self.first, *(line.decode().rstrip("\n") for line in self._lines)]

    @property
    def helper(self) -> int:
        """The process id of the one process that it has started."""
        until(lambda: len(self._children()) == 1)
        return self._children().pop()

    def _children(self) -> set[int]:
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return {int(pid) for one in tasks for pid in one.read_text().split()}

    def count(self, words: str) -> int:
        """How many lines have these words so far."""
        return sum(words in line.decode() for line in list(self._lines))

    def said(self, pattern: str) -> bool:
        return any(re.search(pattern, line.decode()) for line in list(self._lines))


class NotStarted(Exception):
    """It ended before it listened: its exit code, and what it said."""

    def __init__(self, code: int, said: list[str]) -> None:
        super().__init__(code, said)
        self.code = code
        self.said = said


def _gone(process: subprocess.Popen[bytes]) -> int:
    with process:
        return process.wait(30)


def recorder(url: str, out: Path, *more: str, most_bytes: int | None = None) -> Running:
    """Start it, and wait until it listens. No file gets longer than `most_bytes`: its disk is full then."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({most_bytes}, {most_bytes})); "
    code = (limit if most_bytes else "") + COMMAND
    command = [sys.executable, "-c", code, "record", "--upstream", url, "--port", "0", "-o", str(out), *more]
    return _listening(command)


def server(out: Path) -> Running:
    """`cachecost serve --record`, once it listens."""
    return _listening([sys.executable, "-c", COMMAND, "serve", "--port", "0", "--no-bill", "--record", str(out)])


def _listening(command: list[str]) -> Running:
    env = {**os.environ, "HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
    env["PYTHONDONTWRITEBYTECODE"] = "1"  # on a full disk compiled modules are cut off, and no process can read them
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    assert process.stderr
    first: list[str] = []
    while not first or not (found := re.search(r"ANTHROPIC_BASE_URL=http://127\.0\.0\.1:(\d+)", first[-1])):
        line = process.stderr.readline().decode()
        if not line:
            raise NotStarted(_gone(process), first)
        first.append(line.rstrip("\n"))
    running = Running(process, int(found[1]), first)
    running.listen()
    return running


def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def free_port() -> int:
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
