"""The page on a loopback port, until it is stopped."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from types import FrameType

from starlette.types import ASGIApp

from cachecost.live.callbacks import ignore
from cachecost.live.loopback import QuietServer


class _PageServer(QuietServer):
    """Ends at once: a page can ask again."""

    def __init__(self, app: ASGIApp, ready: Callable[[], None]) -> None:
        super().__init__(app, ws="none", proxy_headers=False)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = self.force_exit = True


def serve_page(app: ASGIApp, listener: socket.socket, ready: Callable[[], None] = ignore) -> None:
    """Serve until Ctrl-C or SIGTERM; answers that are being made are dropped."""
    asyncio.run(_PageServer(app, ready).serve(sockets=[listener]))
