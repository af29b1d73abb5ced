"""The report in a real browser: light, dark, on a phone, on paper; no console error, the same figures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from html_page import Page, opened, probed
from test_html_page import arms, pictured_arms, same_figures

WIDTHS = """(view, root) => ({
  page: [root.scrollWidth, root.clientWidth],
  wide: [...view.document.querySelectorAll("body *")].filter((one) => !one.closest(".scroll, svg") &&
    one.getBoundingClientRect().right > root.clientWidth + 1).map((one) => one.outerHTML.slice(0, 80)),
})"""
LOOKS = """(view, root) => {
  const style = (one) => view.getComputedStyle(view.document.querySelector(one));
  return [style("body").backgroundColor, style("body").color, style(".s-read").fill];
}"""
KEYS = """(view, root) => {
  const strip = view.document.querySelector(".strip"), picture = strip.querySelector("svg");
  const said = () => strip.querySelector("output").textContent.split("\\n")[0].split(" · ")[0];
  const press = (key) => picture.dispatchEvent(new view.KeyboardEvent("keydown", { key, bubbles: true }));
  const told = [said()];
  for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "End", "ArrowRight", "Home"]) {
    press(key);
    told.push(said());
  }
  return [picture.tabIndex, ...told];
}"""
FOLDED = """(view, root) => {
  const folded = () => view.document.querySelectorAll("details.strip-of[open]").length;
  const before = folded();
  view.location.hash = "#strip-3";
  view.dispatchEvent(new view.Event("hashchange"));
  const after = folded();
  view.dispatchEvent(new view.Event("beforeprint"));
  return [before, after, folded()];
}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(arms()[0], encoding="utf-8")
    return path


def test_a_browser_shows_what_result_json_says_and_complains_of_nothing(page: Path) -> None:
    dom, logged = opened(page, "--dump-dom")
    assert "CONSOLE" not in logged, logged
    shown = Page(dom)
    same_figures(shown, pictured_arms())
    assert not {link[1:] for link in shown.links if link.startswith("#")} - set(shown.ids)


@pytest.mark.parametrize("width", [390, pytest.param(1200, marks=pytest.mark.slow)])
def test_nothing_is_wider_than_the_window(tmp_path: Path, width: int) -> None:
    parsed = json.loads(probed(arms()[0], tmp_path, WIDTHS, width))
    assert parsed == {"page": [width, width], "wide": []}


LIGHT = (1, "rgb(255, 255, 255)", "rgb(31, 41, 51)", "rgb(201, 216, 227)")
DARK = (0, "rgb(20, 25, 31)", "rgb(230, 234, 238)", "rgb(63, 83, 100)")


@pytest.mark.parametrize(
    ("scheme", "paper", "ink", "read"), [LIGHT, pytest.param(*DARK, marks=pytest.mark.slow)], ids=["light", "dark"]
)
def test_light_and_dark(tmp_path: Path, page: Path, scheme: int, paper: str, ink: str, read: str) -> None:
    asked = f"--blink-settings=preferredColorScheme={scheme}"
    parsed = json.loads(probed(arms()[0], tmp_path, LOOKS, 1200, asked))
    assert parsed == [paper, ink, read]
    picture = tmp_path / "page.png"
    opened(page, asked, f"--screenshot={picture}", "--window-size=1200,2400")
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 50_000


def test_arrows_walk_through_the_calls(tmp_path: Path) -> None:
    hint = "Point at a column, or focus the picture and press ← and →."
    calls = ["call 1", "call 2", "call 1", "call 1", "call 60", "call 60", "call 1"]
    assert json.loads(probed(arms()[0], tmp_path, KEYS)) == [0, hint, *calls]


def test_a_link_opens_what_is_folded_and_paper_shows_all(tmp_path: Path) -> None:
    assert json.loads(probed(arms()[0], tmp_path, FOLDED)) == [0, 1, 10]


def test_it_prints(tmp_path: Path, page: Path) -> None:
    opened(page, f"--print-to-pdf={tmp_path / 'page.pdf'}")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    shutil.rmtree(page.parent / "profile")
