"""The checks of pages find what they are there for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.browser import browser
from tests.browser_checks import accessibility_faults, layout_faults

from tools.pages import running_browser

if TYPE_CHECKING:
    from playwright.sync_api import Page

SOUND = "<!doctype html><html lang='en'><title>t</title><body style='margin: 20px; font: 16px/1.4 sans-serif'><main>"
SOUND += "<h1>Sessions</h1>" + "".join(f"<p>Line {number} of a page without faults.</p>" for number in range(12))


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with running_browser(browser()) as opened:
        yield opened.new_page(viewport={"width": 400, "height": 900})


def test_a_sound_page_has_no_faults(page: Page) -> None:
    page.set_content(SOUND)
    assert layout_faults(page) == accessibility_faults(page) == []


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        ("<p style='width: 900px'>wide</p>", "wider than the window"),
        ("<p style='overflow: hidden; white-space: nowrap; width: 40px'>cut in the middle</p>", "cut without a cue"),
        ("<p style='overflow: auto; white-space: nowrap; width: 40px'>no cue to scroll</p>", "cut without a cue"),
        ("<p style='position: absolute; left: -30px'>gone</p>", "outside of the window"),
        ("<p>one under</p><p style='position: relative; top: -38px'>one over</p>", "on top of each other"),
        ("<p style='color: #888'>pale</p>", "contrast 3.5"),
        ("<p style='opacity: .5'>half there</p>", "contrast"),
        ("<div style='background: #333'><p style='color: #555'>dark on dark</p></div>", "contrast 1."),
    ],
)
def test_a_fault_is_found(page: Page, part: str, fault: str) -> None:
    page.set_content(f"{SOUND}{part}")
    assert any(found.startswith(fault) for found in layout_faults(page)), layout_faults(page)


@pytest.mark.parametrize(
    "part",
    [
        "<p style='overflow: hidden; text-overflow: ellipsis; white-space: nowrap; width: 40px'>cut with dots</p>",
        "<p tabindex=0 style='overflow: auto; white-space: nowrap; width: 40px'>can be scrolled to</p>",
        "<details><summary>more</summary><p style='width: 900px; color: #eee'>not shown yet</p></details>",
    ],
)
def test_what_has_a_cue_is_no_fault(page: Page, part: str) -> None:
    page.set_content(f"{SOUND}{part}")
    assert layout_faults(page) == []


def test_axe_runs(page: Page) -> None:
    page.set_content(f"{SOUND}<input type=text><img src='data:,'>")
    assert {fault.split()[0] for fault in accessibility_faults(page)} >= {"label", "image-alt"}
