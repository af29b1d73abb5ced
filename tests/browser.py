"""A real browser for the tests that look at pages: where it is, and who goes without one."""

from __future__ import annotations

import os

import pytest

from tools.pages import NAMES, find_chromium


def browser() -> str:
    """Its path; skips without one, and fails where CACHECOST_BROWSER says that it is required."""
    found = find_chromium()
    if found is None and os.environ.get("CACHECOST_BROWSER") == "required":
        pytest.fail(f"CACHECOST_BROWSER=required, and there is none of {', '.join(NAMES)}")
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    return found
