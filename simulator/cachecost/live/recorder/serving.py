"""The recorder's server: runs until it is stopped, and lets running calls end."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from types import FrameType

import httpx2

from cachecost.live.callbacks import Say
from cachecost.live.clock import ScaledClock
from cachecost.live.loopback import QuietServer
from cachecost.live.recorder.own_calls import token_for
from cachecost.live.recorder.proxy import Listener, Proxy

MOST_HEADER_BYTES = 1 << 20
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
            h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        )
        self._passing = passing

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            self._passing.cut_soon()
        super().handle_exit(sig, frame)


async def serve(
    upstream: httpx2.URL,
    bound: socket.socket,
    listener: Listener,
    ready: Callable[[], None],
    say: Say,
) -> None:
    """Pass calls on to `upstream` until a signal comes; a second signal cuts off those still running."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_S)
    async with httpx2.AsyncHTTPTransport(limits=limits, trust_env=False) as transport:
        clock = ScaledClock(wall=time.time)
        passing = Proxy(upstream, transport, listener, clock, token=token_for(upstream), say=say)
        ready()
        await Server(passing).serve(sockets=[bound])
        await passing.stop()
