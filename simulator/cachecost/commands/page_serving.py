"""Serving a page on this machine, and opening it in a browser."""

from __future__ import annotations

import os
import secrets
import sys
from threading import Thread
from typing import TYPE_CHECKING

import click

from cachecost.commands.diagnostics import print_diagnostic

if TYPE_CHECKING:
    from cachecost.live.viewer.source import PageSource

TOKEN_BYTES = 16
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def new_token() -> str:
    """What the addresses of a page begin with, so that nobody finds them by chance."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def serve_source(source: PageSource, opened: str, port: int, opens_browser: bool) -> None:
    """Serve a page until stopped; it opens at the address `opened` ("": where it begins). Raises UsageError for a port
    that is taken.
    """
    from cachecost.live.loopback import PortTaken, address_of, listen
    from cachecost.live.viewer.app import viewer_app
    from cachecost.live.viewer.serving import serve_page
    from cachecost.live.viewer.static_files import read_static_files

    token = new_token()
    try:
        taken = listen(port)
    except PortTaken as error:
        raise click.UsageError(str(error)) from None
    with taken:
        address = f"{address_of(taken)}/{token}/{opened}"
        app = viewer_app(source, read_static_files(), token, taken.getsockname()[1], print_diagnostic)
        serve_page(app, taken, lambda: _greet(address, opens_browser))


def _greet(address: str, opens_browser: bool) -> None:
    """Say where the page is, and open it where there is a display."""
    print_diagnostic(f"{address}  (Ctrl-C stops it)")
    if opens_browser and _has_display():
        Thread(target=_open_browser, args=(address,), daemon=True).start()


def _has_display() -> bool:
    """Whether a browser could show a window; those in a terminal would take the terminal."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in DISPLAYS)


def _open_browser(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
