"""The recorder as a server on this machine: it starts, runs until it is told to stop, and lets running calls end."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import httpx2
import uvicorn

from cachecost.live.clock import ScaledClock
from cachecost.live.recorder.loops import LOOPBACK, token_for
from cachecost.live.recorder.passing import Listener, Passing

MOST_HEADER_BYTES = 1 << 20
IDLE_S = 5.0
"""How long a connection to the upstream is kept for the next call."""


class Server(uvicorn.Server):
    """Ends at the first SIGINT or SIGTERM when its calls have ended; at the second it cuts them. It raises nothing."""

    def __init__(self, passing: Passing) -> None:
        super().__init__(_config(passing))
        self._passing = passing

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            self.force_exit = True  # it still waits until every connection is closed, so calls are cut first
            self._passing.cut_soon()
        self.should_exit = True


async def serve(
    upstream: httpx2.URL,
    bound: socket.socket,
    listener: Listener,
    ready: Callable[[], None],
    say: Callable[[str], None],
) -> None:
    """Pass calls on to `upstream` until a signal comes; what then still runs after a second one is cut."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_S)
    async with httpx2.AsyncHTTPTransport(limits=limits, trust_env=False) as transport:
        clock = ScaledClock(wall=time.time)
        passing = Passing(upstream, transport, listener, clock, token=token_for(upstream), say=say)
        ready()
        await Server(passing).serve(sockets=[bound])
        await passing.stop()


def _config(passing: Passing) -> uvicorn.Config:
    """Nothing of uvicorn's own: no header, no log, no lifespan, no look at who forwarded what."""
    return uvicorn.Config(
        passing,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
    )


def bound_to(port: int) -> socket.socket:
    """A socket that listens on this machine only; port 0 is any that is free. Raises OSError.

    What is written goes out at once: asyncio sees to that only for sockets that it made itself, and without it the
    last bytes of an answer wait 40 ms for the client's acknowledgement of those before.
    """
    bound = socket.create_server((LOOPBACK, port), backlog=2048)
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound
