"""Every view of `cachecost view` in a real browser, both themes, three widths: nothing cut, covered or pale."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.browser import browser
from tests.browser_checks import accessibility_faults, layout_faults
from tests.browser_pages import VIEWS, View, Window, opened_window, served
from tests.command_runs import run_here
from tests.demo_sessions import SESSION, write_demo

from tools.pages import running_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WIDTHS = (1280, 768, 390)
THEMES = ("light", "dark")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with running_browser(browser()) as opened:
        yield opened


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def base(demo: Path) -> Iterator[str]:
    with served(demo) as address:
        yield address


@pytest.fixture(scope="module")
def window(chromium: Browser) -> Iterator[Window]:
    """One window for all views: what is kept from one to the next must do no harm."""
    with opened_window(chromium) as opened:
        yield opened


def faults_of(window: Window, name: str) -> list[str]:
    """What is wrong in any theme at any width."""
    found = [f"{name}: {words}" for words in window.said]
    for width in WIDTHS:
        window.page.set_viewport_size({"width": width, "height": 1400})
        for theme in THEMES:
            window.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            window.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            found += [f"{name} {width} {theme}: {fault}" for fault in layout_faults(window.page)]
    return found


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_nothing_is_cut_covered_or_pale(view: View, window: Window, base: str) -> None:
    window.said.clear()
    window.page.set_viewport_size({"width": 1280, "height": 900})
    view.open(window, base)
    assert "\n".join(faults_of(window, view.name)) == ""
    assert window.strangers(base) == []


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_axe_finds_nothing_serious(view: View, window: Window, base: str) -> None:
    window.page.set_viewport_size({"width": 390, "height": 1400})
    view.open(window, base)
    assert "\n".join(accessibility_faults(window.page)) == ""


def test_a_saved_page_is_as_sound_and_asks_for_nothing(demo: Path, chromium: Browser, tmp_path: Path) -> None:
    saved = tmp_path / "saved.html"
    assert run_here("view", demo / "release-bot.jsonl", "--session", SESSION, "--save", saved).returncode == 0
    with opened_window(chromium) as window:
        window.go(saved.as_uri())
        assert window.page.locator(".moment").count() == 5
        assert faults_of(window, "saved session") == []
        window.go(f"{saved.as_uri()}#/session/{SESSION}/call/34")
        window.page.wait_for_selector(".call .difference ins")
        assert faults_of(window, "saved call") == []
        assert accessibility_faults(window.page) == []
        assert {url.partition("#")[0] for url in window.asked if not url.startswith("data:")} == {saved.as_uri()}
