"""Every view of `cachecost view` in a real browser, both themes, three widths: nothing cut, covered or pale."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.browser_checks import accessibility_faults, layout_faults
from tests.browser_pages import VIEWS, View, Window, opened_window
from tests.command_runs import run_here
from tests.demo_sessions import SESSION, write_demo, write_fixed

from slow_cases import mostly_slow
from tools.pages import running_views

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Served = Callable[[tuple[str, ...]], str]
WIDTHS = (1280, 768, 390)
THEMES = ("light", "dark")
CASES = [
    pytest.param(
        view, width, id=f"{view}-{width}", marks=() if width == 390 or view.place == "#/" else pytest.mark.slow
    )
    for view in VIEWS
    for width in WIDTHS
]
"""The narrowest shows most faults: of most views the others are left for -m slow."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_demo(tmp_path_factory.mktemp("demo"))
    write_fixed(folder)
    return folder


@pytest.fixture(scope="module")
def served(demo: Path) -> Iterator[Served]:
    with running_views(demo) as address_of:
        yield address_of


@pytest.fixture(scope="module")
def window(chromium: Browser) -> Iterator[Window]:
    """One window for all views: what is kept from one to the next must do no harm."""
    with opened_window(chromium) as opened:
        yield opened


def faults_of(window: Window, name: str) -> list[str]:
    """What is wrong with what is shown, in any theme."""
    found = [f"{name}: {words}" for words in window.said]
    for theme in THEMES:
        window.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        window.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        found += [f"{name} {theme}: {fault}" for fault in layout_faults(window.page)]
    return found


@pytest.mark.parametrize(("view", "width"), mostly_slow(CASES, 4))
def test_nothing_is_cut_covered_pale_or_without_a_name(view: View, width: int, window: Window, served: Served) -> None:
    window.said.clear()
    window.asked.clear()
    window.page.set_viewport_size({"width": width, "height": 1400})
    window.page.goto("about:blank")
    view.open(window, served(view.words))
    assert "\n".join(faults_of(window, view.name)) == ""
    assert window.strangers(served(view.words)) == []
    if width == min(WIDTHS):
        assert "\n".join(accessibility_faults(window.page)) == ""


@pytest.mark.parametrize("view", [view for view in VIEWS if view.name in ("sessions", "session", "call")], ids=str)
def test_a_window_that_becomes_narrow_shows_the_same(view: View, window: Window, served: Served) -> None:
    window.page.set_viewport_size({"width": 1280, "height": 1400})
    window.page.goto("about:blank")
    view.open(window, served(view.words))
    window.page.set_viewport_size({"width": 390, "height": 1400})
    assert "\n".join(faults_of(window, view.name)) == ""


def test_the_table_of_calls_is_filled_at_once(window: Window, served: Served) -> None:
    view = next(view for view in VIEWS if view.name == "table")
    window.page.set_viewport_size({"width": 1280, "height": 1400})
    window.page.goto("about:blank")
    view.open(window, served(view.words))
    rows = window.page.locator(".calls .body .line")
    bottoms = rows.evaluate_all("rows => rows.map(row => row.getBoundingClientRect().bottom)")
    box = window.page.locator(".calls-box").bounding_box()
    assert box and max(bottoms) >= box["y"] + box["height"] - 2


def test_a_saved_page_is_as_sound_and_asks_for_nothing(demo: Path, chromium: Browser, tmp_path: Path) -> None:
    saved = tmp_path / "saved.html"
    assert (
        run_here("view", demo / "sessions" / "release-bot.jsonl", "--session", SESSION, "--save", saved).returncode == 0
    )
    with opened_window(chromium) as window:
        window.go(saved.as_uri())
        assert window.page.locator(".moment").count() == 5
        assert faults_of(window, "saved session") == []
        window.go(f"{saved.as_uri()}#/session/{SESSION}/call/34")
        window.page.wait_for_selector(".call .difference ins")
        assert faults_of(window, "saved call") == []
        assert accessibility_faults(window.page) == []
        assert {url.partition("#")[0] for url in window.asked if not url.startswith("data:")} == {saved.as_uri()}
