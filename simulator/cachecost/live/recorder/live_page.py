"""The page of a recorder: its calls while they come, served by the process that predicts them.

That process parses the calls anyway, and nothing that the page asks for delays a call that is passed on.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Iterable
from threading import Thread

from cachecost.conversations.calls import RecordedCall
from cachecost.live.clock import Say
from cachecost.live.loopback import address_of
from cachecost.live.viewer.app import page_server, viewer_app
from cachecost.live.viewer.calls import CallList, CallSignal
from cachecost.live.viewer.live_source import LiveSource
from cachecost.live.viewer.saved_page import read_static_files
from cachecost.simulation.setup import ReplaySetup

NAME = "cachecost record"
TOKEN_BYTES = 16


class RecorderPage:
    """Serves the page on a socket that is listened on already, in a thread that ends with the process.

    The token is made here: the options of a process are seen by all users of a machine.
    """

    def __init__(self, descriptor: int, setup: ReplaySetup, earlier: Iterable[RecordedCall], say: Say) -> None:
        self._signal = CallSignal()
        self._calls = CallList(self._signal)
        for call in earlier:
            self.add(call)
        listener = socket.socket(fileno=descriptor)
        token, port = secrets.token_urlsafe(TOKEN_BYTES), listener.getsockname()[1]
        source = LiveSource(self._calls, self._signal, setup, NAME)
        app = viewer_app(source, read_static_files(), token, port, say)
        address = f"{address_of(listener)}/{token}/"
        server = page_server(app, lambda: say(f"the calls so far: {address}"))
        Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), name="page", daemon=True).start()

    def add(self, call: RecordedCall) -> None:
        """Show a call; calls come in the order they started."""
        self._calls.add(call)
