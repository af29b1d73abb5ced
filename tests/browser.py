"""A real browser for the tests that look at pages: where it is, and how it is started without a screen or a network."""

from __future__ import annotations

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    "--enable-logging=stderr",
)


def browser() -> str:
    """Its path; skips without one, and fails where CACHECOST_BROWSER says that it is required."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and os.environ.get("CACHECOST_BROWSER") == "required":
        pytest.fail(f"CACHECOST_BROWSER=required, and there is none of {', '.join(NAMES)}")
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    return found
