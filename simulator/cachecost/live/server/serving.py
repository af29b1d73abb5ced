"""The simulated API on a loopback port, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from starlette.types import ASGIApp

from cachecost.live.callbacks import ignore
from cachecost.live.hosts import LoopbackHosts
from cachecost.live.loopback import QuietServer, address_of, listen
from cachecost.live.server.state import AnswerDelays


class _Server(QuietServer):
    """Ends waits when it stops, so that running answers complete; `stop` ends others. It answers under the names of
    this machine only.
    """

    def __init__(
        self, app: ASGIApp, pauses: AnswerDelays | None, ready: Callable[[], None], stop: Callable[[], None] = ignore
    ) -> None:
        super().__init__(LoopbackHosts(app))
        self._pauses = pauses
        self._ready = ready
        self._stop = stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stop()
        if self._pauses is not None:
            self._pauses.stop()
        await super().shutdown(sockets)


def serve_until_stopped(
    app: ASGIApp,
    listener: socket.socket,
    pauses: AnswerDelays | None = None,
    ready: Callable[[], None] = ignore,
    stop: Callable[[], None] = ignore,
) -> None:
    """Serve until Ctrl-C or SIGTERM. Running answers complete first, unless a second Ctrl-C comes; `stop` ends those
    that would never end.
    """
    asyncio.run(_Server(app, pauses, ready, stop).serve(sockets=[listener]))


@contextlib.contextmanager
def serving(app: ASGIApp, pauses: AnswerDelays | None = None, port: int = 0) -> Iterator[str]:
    """Serve from a thread while the block runs; yields the address."""
    with listen(port) as listener, serving_at(app, listener, pauses):
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
        server.should_exit = True
        thread.join()
