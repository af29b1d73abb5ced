"""Draws the views of `cachecost view` into docs/pictures/view/, with the film-strip, and the picture of README.

`make pictures` calls it.

What is shown is the demo of the tests, whose bytes never change. Each view is drawn as it fits a window, in both themes
at 1280 and at 390 pixels.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from base64 import b64encode
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image
from tests.demo_sessions import SESSION, write_demo, write_fixed

from tools.pages import ENVIRONMENT, ROOT, find_chromium, running_browser, running_views

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

AddressOf = Callable[[tuple[str, ...]], str]
FOLDER = ROOT / "docs" / "pictures" / "view"
SIZES = {1280: 800, 390: 760}
"""Widths of the window, and how high it is."""
THEMES = ("light", "dark")
QUALITY = 55
MOST_BYTES = 2_000_000
"""All pictures together."""
EXPENSIVE = f"#/session/{SESSION}/call/34"
AGENTS = "#/session/03dae740-c3ff-4678-a409-24b8c211f61e"
BESIDE = ("sessions/release-bot.jsonl", "fixed.jsonl", "--beside")
REPORT = ROOT / "reports" / "ttl"
WIDE_STRIP, HIGH_STRIP = 440, 580
STRIP_STYLE = """
    body { margin: 0; padding: 14px; display: flex; gap: 14px; background: #fff; font: 600 17px/1.35 sans-serif; }
    figure { margin: 0; } figcaption { color: #222; padding: 0 2px 8px; height: 46px; }
    img { display: block; width: 440px; border: 1px solid #bbb; border-radius: 8px; }
"""
WIDE_BILL, HIGH_BILL = 900, 700
LEFT_OUT = "nav:not(.moments), .crumb, .facts, .switch, .buttons, .moment:nth-child(n + 4)"
"""README shows of a session its cost, its three most expensive moments and its timeline."""


@dataclass(frozen=True)
class Picture:
    """A view to draw: the place in the page, what has to be there, what is done then, and what is scrolled to."""

    name: str
    place: str
    awaits: str
    act: Callable[[Page], object] = lambda page: None
    top: str = ""
    words: tuple[str, ...] = ("sessions",)
    """What stands behind `cachecost view`."""


def _zoom(page: Page) -> None:
    """The calls around midnight, with the simulated row below."""
    page.check(".switch input")
    page.focus(".plot")
    for key in ("n", "n", "n", "n", "+"):
        page.keyboard.press(key)
    page.wait_for_selector(".row + .row")


def _ask_what_if(page: Page) -> None:
    page.click(".what-if summary")
    page.select_option(".what-if select[name=ttl]", "1h")
    page.wait_for_selector(".result:not(.waiting) pre")


def _fold_out(page: Page) -> None:
    page.wait_for_selector(".block[open] .text")


def _select_expensive(page: Page) -> None:
    for _ in range(4):
        page.keyboard.press("n")


PICTURES = (
    Picture("sessions", "#/", ".sessions .body .line"),
    Picture("session", f"#/session/{SESSION}", ".moment"),
    Picture("zoomed", f"#/session/{SESSION}", ".moment", _zoom, ".switch"),
    Picture("agents", AGENTS, ".moment"),
    Picture("call", EXPENSIVE, ".call .difference", top=".panel-box"),
    Picture("block", f"{EXPENSIVE}/block/5", ".call .difference", _fold_out, ".blocks"),
    Picture("what-if", f"#/session/{SESSION}", ".what-if", _ask_what_if, ".what-if"),
    Picture("digests", f"{AGENTS}/call/81", ".call .blocks", top=".panel-box"),
    Picture("run", "#/run", ".timeline .row canvas", words=("report",)),
    Picture("compare", "#/compare", ".timeline .row + .row canvas", words=BESIDE),
)
FRAMES = (
    ("1  The list: which session paid to write again what had been cached", PICTURES[0]),
    ("2  Its timeline: the tall red column is the expensive moment", Picture("", f"#/session/{SESSION}", ".moment",
     _select_expensive, ".switch")),
    ("3  The call: one character of the system prompt changed at midnight", PICTURES[4]),
)  # fmt: skip


@contextmanager
def window(browser: Browser, width: int, height: int, theme: str, scale: float = 1.0) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        device_scale_factor=scale,
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    yield context.new_page()
    context.close()


def shot(page: Page, address_of: AddressOf, picture: Picture) -> bytes:
    """What the window shows, as PNG."""
    page.goto("about:blank")
    page.goto(f"{address_of(picture.words)}{picture.place}")
    page.wait_for_selector(picture.awaits)
    picture.act(page)
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    page.evaluate("top => document.querySelector(top)?.scrollIntoView({block: 'start'})", picture.top or "body")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.screenshot()


def save(png: bytes, path: Path, quality: int = QUALITY) -> int:
    """Write a screenshot small; its size in bytes."""
    Image.open(io.BytesIO(png)).convert("RGB").save(path, "WEBP", quality=quality, method=6)
    return path.stat().st_size


def draw_views(browser: Browser, address_of: AddressOf) -> int:
    size = 0
    for width, height in SIZES.items():
        for theme in THEMES:
            with window(browser, width, height, theme) as page:
                for picture in PICTURES:
                    path = FOLDER / f"{picture.name}-{width}-{theme}.webp"
                    size += save(shot(page, address_of, picture), path)
    return size


def draw_strip(browser: Browser, address_of: AddressOf) -> int:
    """Three frames beside each other, each with a line above it."""
    with window(browser, WIDE_STRIP, HIGH_STRIP, "light", 1.5) as page:
        shots = [(words, shot(page, address_of, picture)) for words, picture in FRAMES]
    figures = "".join(
        f"<figure><figcaption>{words}</figcaption><img src='data:image/png;base64,{b64encode(png).decode()}'></figure>"
        for words, png in shots
    )
    with window(browser, 3 * (WIDE_STRIP + 2) + 4 * 14, HIGH_STRIP + 84, "light", 1.5) as page:
        page.set_content(f"<!doctype html><style>{STRIP_STYLE}</style>{figures}")
        page.wait_for_function("[...document.images].every(image => image.complete)")
        return save(page.screenshot(), FOLDER / "film-strip.webp", 70)


def draw_bill(browser: Browser, address_of: AddressOf) -> int:
    """The bill of a session as README shows it, in both themes."""
    size = 0
    for theme in THEMES:
        with window(browser, WIDE_BILL, HIGH_BILL, theme, 2) as page:
            shot(page, address_of, PICTURES[1])
            page.eval_on_selector_all(LEFT_OUT, "found => found.forEach(one => { one.style.display = 'none'; })")
            height = page.evaluate("document.querySelector('.plot').getBoundingClientRect().bottom")
            png = page.screenshot(clip={"x": 0, "y": 0, "width": WIDE_BILL, "height": height + 8})
            size += save(png, FOLDER / f"bill-{theme}.webp")
    return size


def main() -> None:
    chromium = find_chromium()
    if chromium is None:
        sys.exit("no Chromium here: sh .ci/browser installs one where it can")
    os.environ.update(ENVIRONMENT)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        write_demo(Path(folder))
        write_fixed(Path(folder))
        (Path(folder) / "report").symlink_to(REPORT)
        with running_views(Path(folder)) as address_of, running_browser(chromium) as browser:
            size = sum(draw(browser, address_of) for draw in (draw_views, draw_strip, draw_bill))
    if size > MOST_BYTES:
        sys.exit(f"{size:,} bytes of pictures: at most {MOST_BYTES:,} are wanted; lower QUALITY")
    sys.stdout.write(f"{FOLDER.relative_to(ROOT)}: {size:,} bytes of pictures\n")


if __name__ == "__main__":
    main()
