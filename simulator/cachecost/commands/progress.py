"""A progress bar on stderr for work that takes over a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
