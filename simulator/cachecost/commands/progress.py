"""Progress bars on stderr for work that takes over a second, on terminals only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cachecost.conversations.checked import WATCH

SECONDS_BEFORE_SHOWN = 1.0


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[str, int], None]]:
    """A function of (what is worked on, how much is done); shows after a second, on terminals only."""
    if not sys.stderr.isatty():
        yield lambda what, done: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    started = time.monotonic()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title)

    def step(what: str, done: int) -> None:
        if time.monotonic() - started > SECONDS_BEFORE_SHOWN:
            bar.start()
            bar.update(task, description=f"{title}  {what}  {done:,} calls")

    try:
        yield step
    finally:
        bar.stop()


@contextmanager
def reading_bar(title: str, paths: Sequence[Path]) -> Iterator[None]:
    """How much of the files has been read while the body runs; they may be folders."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=sum(map(_size, paths)))
    started = time.monotonic()

    def watch(size: int) -> None:
        bar.advance(task, size)
        if not bar.live.is_started and time.monotonic() - started > SECONDS_BEFORE_SHOWN:
            bar.start()

    token = WATCH.set(watch)
    try:
        yield
    finally:
        WATCH.reset(token)
        bar.stop()


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(map(_size, path.iterdir()))
    return path.stat().st_size if path.is_file() else 0


@contextmanager
def cells_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function of how many more cells are done; shows them and the time left, after a second, on terminals only."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=total)
    started = time.monotonic()

    def step(done: int) -> None:
        bar.advance(task, done)
        if not bar.live.is_started and time.monotonic() - started > SECONDS_BEFORE_SHOWN:
            bar.start()

    try:
        yield step
    finally:
        bar.stop()
