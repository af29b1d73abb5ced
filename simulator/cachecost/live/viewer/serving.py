"""The page on a loopback port, until it is stopped."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from starlette.types import ASGIApp

from cachecost.live.callbacks import ignore
from cachecost.live.loopback import QuietServer


class _PageServer(QuietServer):
    """Ends at once, without the answers that are being made: a page can ask again."""

    def __init__(self, app: ASGIApp, ready: Callable[[], None]) -> None:
        super().__init__(app, ws="none", proxy_headers=False, timeout_graceful_shutdown=0)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def page_server(app: ASGIApp, ready: Callable[[], None] = ignore) -> QuietServer:
    """A server of the page, for whoever runs it in a thread."""
    return _PageServer(app, ready)


def serve_page(app: ASGIApp, listener: socket.socket, ready: Callable[[], None] = ignore) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    asyncio.run(page_server(app, ready).serve(sockets=[listener]))
