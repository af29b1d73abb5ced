"""What all tests share: golden files, and hypothesis without chance unless asked for."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from cachecost.cli import COLLECTION_THRESHOLDS
from goldens import Golden, golden_path, orphans

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TESTS = Path(__file__).parent
os.environ.setdefault("CACHECOST_STORE", "off")  # no test reads or writes what the user's commands keep
os.environ.setdefault("CACHECOST_TOKENS", "tiktoken")  # the same figures whether ctok is installed or not
os.environ.setdefault("CACHECOST_TODAY", "2026-11-24")  # the same models are offered on every day of a test
sys.dont_write_bytecode = False  # each process that a test starts, and each worker, would compile all modules again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
for _name in ("COLUMNS", "LINES"):  # readline, which pytest loads, sets them for child processes
    os.environ.pop(_name, None)
    os.unsetenv(_name)
gc.set_threshold(*COLLECTION_THRESHOLDS)  # as commands do; the tests themselves are a heap that never shrinks
ORPHANS = pytest.StashKey[list[Path]]()

settings.register_profile("quick", derandomize=True, deadline=None, max_examples=30)
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("dev", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "quick"))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("goldens")
    group.addoption("--update-goldens", action="store_true", help="write golden files anew and remove those left over")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Find golden files that no test has, before tests are deselected; single tests (`::`) judge nothing."""
    whole = not any("::" in argument for argument in config.args)
    used = [golden_path(item.path, item.name) for item in items if "golden" in getattr(item, "fixturenames", ())]
    config.stash[ORPHANS] = orphans(TESTS, {item.path for item in items}, used) if whole else []
    if config.getoption("--update-goldens"):
        for path in config.stash[ORPHANS]:
            path.unlink(missing_ok=True)


def pytest_collection_finish() -> None:
    """What collecting made lives until the end: no collection of garbage looks through it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser; skips where there is none. No test of another module runs beside it: it holds the event loop."""
    from tests.browser import browser

    from tools.pages import running_browser

    with running_browser(browser()) as opened:
        yield opened


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """The golden file of this test."""
    return Golden(golden_path(request.path, request.node.name), request.config.getoption("--update-goldens"))


@pytest.fixture
def orphaned_goldens(request: pytest.FixtureRequest) -> list[Path]:
    """Golden files that no test has."""
    return request.config.stash[ORPHANS]
