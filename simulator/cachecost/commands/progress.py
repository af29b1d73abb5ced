"""Progress of sweeps on stderr: a bar on terminals after a second, elsewhere a line every half minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.work_bar import SECONDS_BEFORE_SHOWN

SECONDS_BETWEEN_LINES = 30.0


@contextmanager
def cells_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function of the number of newly finished cells; its first call gives the number finished by earlier runs.

    Shows cells and the time left: a bar on terminals after a second, elsewhere a line every half minute.
    """
    if not sys.stderr.isatty():
        yield _CellLines(title, total).step
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from cachecost.views.streams import inert_console

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=inert_console(sys.stderr), transient=True, refresh_per_second=2)
    started = time.monotonic()

    def step(done: int) -> None:
        if bar.task_ids:
            bar.advance(bar.task_ids[0], done)
        else:
            bar.add_task(title, total=total, completed=done)
        if not bar.live.is_started and time.monotonic() - started > SECONDS_BEFORE_SHOWN:
            bar.start()

    try:
        yield step
    finally:
        bar.stop()


class _CellLines:
    """Progress in a log: `small: 640 of 1,280 cells, 0:02:30 left`."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total = title, total
        self._done: int | None = None
        self._before = 0
        self._began = self._printed = time.monotonic()

    def step(self, done: int) -> None:
        if self._done is None:
            self._before = self._done = done
            return
        self._done += done
        now = time.monotonic()
        if now - self._printed >= SECONDS_BETWEEN_LINES and self._done < self._total:
            self._printed = now
            each = (now - self._began) / (self._done - self._before)
            left = timedelta(seconds=round(each * (self._total - self._done)))
            print_diagnostic(f"{self._title}: {self._done:,} of {self._total:,} cells, {left} left")
