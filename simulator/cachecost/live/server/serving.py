"""The simulated API on a loopback port, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from cachecost.live.server.served import Pauses

LOOPBACK = "127.0.0.1"
BACKLOG = 1024
STOPS = (signal.SIGINT, signal.SIGTERM)


class PortTaken(Exception):
    """The port cannot be listened on."""


def listening(port: int) -> socket.socket:
    """A socket on loopback; port 0 lets the system choose. Raises PortTaken."""
    # said to be TCP, so that asyncio sends small pieces at once: otherwise each answer waits 40 ms for the client
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        taken.close()
        why = getattr(error, "strerror", None) or str(error)
        raise PortTaken(f"port {port} of {LOOPBACK} cannot be used ({why}); --port 0 lets the system choose") from None
    return taken


def address_of(taken: socket.socket) -> str:
    return f"http://{LOOPBACK}:{taken.getsockname()[1]}"


class _Server(uvicorn.Server):
    """Uvicorn, which ends as a call returns: whoever stopped it still wants the bill."""

    def __init__(self, app: ASGIApp, pauses: Pauses | None, ready: Callable[[], None]) -> None:
        # no words of uvicorn's: a connection that is cut on purpose is no error
        config: Any = uvicorn.Config(
            app,
            log_config=None,
            log_level="critical",
            access_log=False,
            backlog=BACKLOG,
            lifespan="off",
            server_header=False,
        )
        super().__init__(config)
        self._pauses = pauses
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._pauses is not None:
            self._pauses.stop()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at Ctrl-C and SIGTERM, without raising them again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.signal(one, self._stop) for one in STOPS}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.handle_exit(number, frame)


def serve_until_stopped(
    app: ASGIApp, taken: socket.socket, pauses: Pauses | None = None, ready: Callable[[], None] = lambda: None
) -> None:
    """Serve until Ctrl-C or SIGTERM; running answers come to their end. A second Ctrl-C does not wait for them."""
    asyncio.run(_Server(app, pauses, ready).serve(sockets=[taken]))


@contextlib.contextmanager
def serving(app: ASGIApp, pauses: Pauses | None = None, port: int = 0) -> Iterator[str]:
    """Serve from a thread of its own while the block runs; gives the address."""
    taken = listening(port)
    began = threading.Event()
    server = _Server(app, pauses, began.set)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[taken])), daemon=True)
    thread.start()
    try:
        began.wait()
        yield address_of(taken)
    finally:
        server.should_exit = True
        thread.join()
        taken.close()
