"""Pages of `cachecost view` in a real browser: the server, a window that keeps all that it hears, and the views."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.demo_sessions import SESSION

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+/[\w-]{22}/)\S*  \(Ctrl-C stops it\)\n")
ENVIRONMENT = {"CACHECOST_STORE": "off", "CACHECOST_CACHE": "off", "CACHECOST_TOKENS": "tiktoken"}
PATIENCE_MS = 20_000.0
ROOT = Path(__file__).parents[1]


@contextmanager
def served(*words: object, cwd: Path = ROOT) -> Iterator[str]:
    """The address of `cachecost view WORDS`, in a process of its own."""
    command = [sys.executable, "-m", "cachecost", "view", *map(str, words), "--no-browser"]
    environment = {**os.environ, **ENVIRONMENT}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=cwd) as process:
        assert process.stderr
        said: list[str] = []
        try:
            for line in process.stderr:
                said.append(line)
                if found := ADDRESS.fullmatch(line):
                    yield found[1]
                    return
            raise AssertionError("".join(said))
        finally:
            process.kill()


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
        return [url for url in self.asked if not url.startswith((base, "data:"))]

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

    `words` are what a server of its own is started with behind `cachecost view`, below ROOT; without any, the demo's.
    """

    name: str
    place: str
    awaits: str
    act: Callable[[Page], object] = lambda page: None
    words: tuple[str, ...] = ()

    def open(self, window: Window, base: str) -> None:
        window.go(f"{base}{self.place}")
        window.page.wait_for_selector(self.awaits)
        self.act(window.page)


def _ask_what_if(page: Page) -> None:
    page.click(".what-if summary")
    page.select_option(".what-if select[name=ttl]", "1h")
    page.wait_for_selector(".result:not(.waiting) pre")


EXPENSIVE = f"#/session/{SESSION}/call/34"
"""The call of the demo's log after midnight."""
VIEWS = (
    View("sessions", "#/", ".sessions .body .line"),
    View("session", f"#/session/{SESSION}", ".moment"),
    View("agents", "#/session/03dae740-c3ff-4678-a409-24b8c211f61e", ".moment"),
    View("call", EXPENSIVE, ".call .blocks"),
    View("block", f"{EXPENSIVE}/block/5", ".block[open] .text"),
    View("what-if", f"#/session/{SESSION}", ".what-if", _ask_what_if),
)
"""What a server of the demo shows. A saved page, which has no server, is opened by its tests."""
