"""The way to the expensive moment and back, by keyboard alone; searching, sorting, and addresses that last."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.browser_pages import EXPENSIVE, Window, opened_window, served
from tests.demo_sessions import SESSION, write_demo

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def base(demo: Path) -> Iterator[str]:
    with served(demo / "sessions") as address:
        yield address


@pytest.fixture
def window(chromium: Browser, base: str) -> Iterator[Window]:
    """The list of sessions."""
    with opened_window(chromium) as opened:
        opened.go(base)
        yield opened
        assert opened.said == []
        assert opened.strangers(base) == []


def place_of(page: Page) -> str:
    return page.url.partition("#")[2]


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def press_until_focused(page: Page, selector: str, most: int = 30) -> None:
    """Tab on until an element has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} is not within {most} tabs")


def listed(page: Page, column: str = "session") -> list[str]:
    """The cells of a column, from the top down."""
    cells = page.locator(f".sessions .body .line .{column}")
    tops = cells.evaluate_all("cells => cells.map(cell => [cell.closest('.line').offsetTop, cell.textContent])")
    return [text for _, text in sorted(tops)]


def test_from_the_list_to_the_expensive_moment_and_back(window: Window) -> None:
    page = window.page
    press(page, "/")
    page.keyboard.type("release")
    assert page.get_by_text("1 of 7 sessions").is_visible()
    press(page, "Enter", "Enter")
    page.wait_for_selector(".moment")
    assert place_of(page) == f"/session/{SESSION}"
    press_until_focused(page, ".moment")
    assert "$0.45" in page.locator(":focus").inner_text()
    press(page, "Enter")
    page.wait_for_selector(".call .difference")
    assert f"#{place_of(page)}" == EXPENSIVE
    assert page.locator(".difference del").inner_text() == "2"
    assert page.locator(".difference ins").inner_text() == "3"
    press(page, "Escape")
    page.wait_for_selector(".panel-box", state="hidden")
    assert place_of(page) == f"/session/{SESSION}"
    for _ in range(3):
        page.go_back()
    page.wait_for_selector(".sessions")
    assert page.input_value("#search") == "release", "the list is as it was left"


@pytest.mark.slow
def test_keys_go_from_rewrite_to_rewrite_and_turn_the_pages_of_calls(window: Window, base: str) -> None:
    page = window.page
    window.go(f"{base}#/session/{SESSION}")
    numbers = []
    for _ in range(4):
        press(page, "n")
        numbers.append(_selected(page))
    assert numbers == sorted(set(numbers)) and numbers[0] > 1
    press(page, "p")
    assert _selected(page) == numbers[-2]
    page.focus(".plot")
    press(page, "Enter")
    page.wait_for_selector(f".call h2:has-text('Call {numbers[-2]}')")
    press(page, "ArrowRight")
    page.wait_for_selector(f".call h2:has-text('Call {numbers[-2] + 1}')")
    assert place_of(page).endswith(f"/call/{numbers[-2] + 1}")
    press(page, "End")
    assert _selected(page) == 50
    press(page, "Home")
    assert _selected(page) == 1


def _selected(page: Page) -> int:
    """The number of the call that the line below the timeline describes."""
    found = re.search(r"Call\s(\d+)", page.inner_text(".readout"))
    assert found
    return int(found[1])


@pytest.mark.slow
def test_the_timeline_zooms_in_and_out_by_keys(window: Window, base: str) -> None:
    page = window.page
    window.go(f"{base}#/session/03dae740-c3ff-4678-a409-24b8c211f61e")
    overview = page.locator(".overview")
    assert not overview.is_visible()
    press(page, "+", "+")
    overview.wait_for(state="visible")
    press(page, "0")
    overview.wait_for(state="hidden")


@pytest.mark.slow
def test_sorting_by_every_column(window: Window) -> None:
    page = window.page
    for name, column in (("cost", "cost"), ("rewritten", "rewritten"), ("hit rate", "rate")):
        page.get_by_role("button", name=name, exact=True).first.click()
        if name == "cost":  # it is sorted by cost at first, so that a click turns the order round
            page.get_by_role("button", name=name).first.click()
        figures = [float(re.sub(r"[^\d.]", "", text) or 0) for text in listed(page, column)]
        assert figures == sorted(figures, reverse=True), name
    first = listed(page)
    page.get_by_role("button", name="hit rate").first.click()
    assert listed(page) != first


def test_the_search_looks_at_models_and_causes_and_can_be_left(window: Window) -> None:
    page = window.page
    page.fill("#search", "compacted")
    assert len(listed(page)) == 1
    page.fill("#search", "HAIKU shop")
    assert listed(page) == ["03dae740"]
    page.fill("#search", "nowhere to be found")
    assert listed(page) == []
    press(page, "Escape")
    assert len(listed(page)) == 7


@pytest.mark.slow
def test_addresses_are_valid_after_a_restart(demo: Path, chromium: Browser, base: str) -> None:
    from playwright.sync_api import expect

    places = ((EXPENSIVE, ".call .difference ins", "3"), (f"{EXPENSIVE}/block/5", ".block[open] .text ins", "13"))
    with served(demo / "sessions") as other, opened_window(chromium) as window:
        assert other != base
        for place, awaited, text in places:
            window.page.goto("about:blank")
            window.go(f"{other}{place}")
            expect(window.page.locator(awaited).first).to_have_text(text)
        assert window.said == []


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("#/session/nobody", "no such session"),
        (f"#/session/{SESSION}/call/999", "999"),
        (f"{EXPENSIVE}/block/999", ""),
        ("#/%E0%A4%A", ""),
    ],
)
@pytest.mark.slow
def test_a_wrong_address_is_an_error_in_words(chromium: Browser, base: str, place: str, words: str) -> None:
    with opened_window(chromium) as window:
        window.go(f"{base}{place}")
        if words:
            assert words in window.page.get_by_role("alert").first.inner_text()
        assert [said for said in window.said if "404" not in said] == []
