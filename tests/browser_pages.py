"""Pages of `cachecost view` in a real browser: the server, a window that keeps all that it hears, and the views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.demo_sessions import SESSION

from tools.pages import ROOT, running_view

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

PATIENCE_MS = 20_000.0


@contextmanager
def served(*words: object, cwd: Path = ROOT) -> Iterator[str]:
    """The address of `cachecost view WORDS`."""
    with running_view(*words, cwd=cwd) as server:
        yield server.address


@dataclass
class Window:
    """A page with all that it asked for and said. `said` are errors, dialogs and refusals of the policy."""

    page: Page
    asked: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("request", self._on_request)
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("popup", lambda popup: self.said.append(f"popup: {popup.url}"))

    def _on_request(self, request: Request) -> None:
        self.asked.append(request.url)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.said.append(f"{message.type}: {message.text}")

    def strangers(self, base: str) -> list[str]:
        """What was asked for elsewhere than below `base`."""
        return [url for url in self.asked if not url.startswith((base, "data:", "about:"))]

    def wait_until_shown(self) -> None:
        self.page.wait_for_selector("#main:not([aria-busy]) > *")

    def go(self, address: str) -> None:
        """Open an address, or another place of the page that is open."""
        self.page.goto(address)
        self.wait_until_shown()


@contextmanager
def opened_window(browser: Browser, width: int = 1280, height: int = 900, theme: str = "light") -> Iterator[Window]:
    """A window without a past."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    try:
        yield Window(context.new_page())
    finally:
        context.close()


@dataclass(frozen=True)
class View:
    """A view: the part of the address behind "#", what has to be there, and what is done then.

    `words` stand behind `cachecost view`, below the demo's folder: views with the same words have one server.
    """

    name: str
    place: str
    awaits: str
    act: Callable[[Page], object] = lambda page: None
    words: tuple[str, ...] = ("sessions",)

    def __str__(self) -> str:
        return self.name

    def open(self, window: Window, base: str) -> None:
        window.go(f"{base}{self.place}")
        window.page.wait_for_selector(self.awaits)
        self.act(window.page)


def _ask_what_if(page: Page) -> None:
    page.click(".what-if summary")
    page.select_option(".what-if select[name=ttl]", "1h")
    page.wait_for_selector(".result:not(.waiting) pre")


def _open_table(page: Page) -> None:
    page.click("details.data summary")
    page.wait_for_selector(".calls .body .line")


EXPENSIVE = f"#/session/{SESSION}/call/34"
"""The call of the demo's log after midnight."""
BESIDE = ("sessions/release-bot.jsonl", "fixed.jsonl", "--beside")
VIEWS = (
    View("sessions", "#/", ".sessions .body .line"),
    View("session", f"#/session/{SESSION}", ".moment"),
    View("agents", "#/session/03dae740-c3ff-4678-a409-24b8c211f61e", ".moment"),
    View("call", EXPENSIVE, ".call .blocks"),
    View("block", f"{EXPENSIVE}/block/5", ".block[open] .text"),
    View("what-if", f"#/session/{SESSION}", ".what-if", _ask_what_if),
    View("table", f"#/session/{SESSION}", ".moment", _open_table),
    View("run", "#/run", ".timeline .row canvas", words=(f"{ROOT}/reports/ttl",)),
    View(
        "compare",
        "#/compare",
        ".timeline .row + .row canvas",
        words=("sessions/release-bot.jsonl", "fixed.jsonl", "--beside"),
    ),
)
"""A saved page, which has no server, is opened by its tests."""
