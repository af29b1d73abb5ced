"""Serving a page on this machine, and opening it in a browser."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING

import click

from cachecost.commands.diagnostics import print_diagnostic

if TYPE_CHECKING:
    from cachecost.live.viewer.source import PageSource

TOKEN_BYTES = 16
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
REDIRECT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={0}"><title>cachecost view</title></head>
<body><a href="{0}">cachecost view</a></body></html>
"""


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
        if opens_browser and _has_display():
            with redirect_file(address) as path:
                serve_page(app, taken, lambda: _greet(address, path))
        else:
            serve_page(app, taken, lambda: _greet(address, None))


def _greet(address: str, opened: Path | None) -> None:
    """Say where the page is, and open it by a file that leads there."""
    print_diagnostic(f"{address}  (Ctrl-C stops it)")
    if opened is not None:
        Thread(target=_open_browser, args=(opened,), daemon=True).start()


@contextmanager
def redirect_file(address: str) -> Iterator[Path]:
    """A file that leads a browser to `address`, and that only this user can read: command lines, which everyone on the
    machine can list, then have no token.
    """
    with TemporaryDirectory(prefix="cachecost-view-") as folder:
        path = Path(folder) / "open.html"
        path.write_text(REDIRECT.format(escape(address, quote=True)), encoding="utf-8")
        path.chmod(0o600)
        yield path


def _has_display() -> bool:
    """Whether a browser could show a window; those in a terminal would take the terminal."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in DISPLAYS)


def _open_browser(path: Path) -> None:
    import webbrowser

    webbrowser.open(path.as_uri())
