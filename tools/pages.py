"""Pages of `cachecost view` in the system's Chromium: what its tests, its benchmark and its pictures have in common."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
)
ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+/[\w-]{22}/)\S*  \(Ctrl-C stops it\)\n")
ENVIRONMENT = {"CACHECOST_STORE": "off", "CACHECOST_TOKENS": "tiktoken"}
"""Nothing is remembered from run to run; the same tokenizer on every machine."""
ROOT = Path(__file__).parents[1]


def find_chromium() -> str | None:
    """The path of the system's Chromium."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def running_browser(path: str, *flags: str) -> Iterator[Browser]:
    """The browser at `path`, without a screen. No `asyncio.run` works in this thread as long as it is open."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags])
        try:
            yield opened
        finally:
            opened.close()


@dataclass(frozen=True, slots=True)
class ViewServer:
    """A running `cachecost view`: the address of its page, which ends with a slash, and its process."""

    address: str
    pid: int


@contextmanager
def running_view(*words: object, cwd: Path = ROOT) -> Iterator[ViewServer]:
    """`cachecost view WORDS` in a process of its own. Raises RuntimeError with what it said if it ends."""
    command = [sys.executable, "-m", "cachecost", "view", *map(str, words), "--no-browser"]
    environment = {**os.environ, **ENVIRONMENT}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=cwd) as process:
        try:
            yield ViewServer(_address(process), process.pid)
        finally:
            process.kill()


def _address(process: subprocess.Popen[str]) -> str:
    said = []
    for line in process.stderr or ():
        if found := ADDRESS.fullmatch(line):
            return found[1]
        said.append(line)
    raise RuntimeError("".join(said))


@contextmanager
def running_views(folder: Path) -> Iterator[Callable[[tuple[str, ...]], str]]:
    """A function that gives the address of `cachecost view WORDS` in `folder`, started when it is first asked for."""
    with ExitStack() as servers:
        yield cache(lambda words: servers.enter_context(running_view(*words, cwd=folder)).address)
