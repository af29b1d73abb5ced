"""A real browser for the tests that look at pages: where it is, and how it is started without a screen or a network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
)


def find_chromium() -> str | None:
    """The path of the system's Chromium."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def browser() -> str:
    """Its path; skips without one, and fails where CACHECOST_BROWSER says that it is required."""
    found = find_chromium()
    if found is None and os.environ.get("CACHECOST_BROWSER") == "required":
        pytest.fail(f"CACHECOST_BROWSER=required, and there is none of {', '.join(NAMES)}")
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    return found


@contextmanager
def running_browser(path: str, *flags: str) -> Iterator[Browser]:
    """The browser at `path`. No `asyncio.run` works in this thread as long as it is open."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags])
        try:
            yield opened
        finally:
            opened.close()
