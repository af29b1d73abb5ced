"""Progress of a command on stderr, on terminals only: one bar for all its phases, shown after a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, TypeVar

from cachecost.commands.progress_columns import BYTES, columns
from cachecost.conversations.input_files import WATCH

if TYPE_CHECKING:
    from rich.progress import Progress

Item = TypeVar("Item")
SECONDS_BEFORE_SHOWN = 1.0
SECONDS_BETWEEN_UPDATES = 0.1
CALL = "call"


class WorkBar:
    """The bar of a command; without `display` it shows nothing.

    A phase whose end is not known, or that goes on after all that was expected is done, shows what is done and for how
    long: never a full bar.
    """

    def __init__(self, display: Progress | None = None) -> None:
        self._display = display
        self._timer = Timer(SECONDS_BEFORE_SHOWN, display.start) if display else None
        self._task = display.add_task("working", total=None, unit="") if display else None
        self._done, self._next = 0, 0.0
        self._total: int | None = None

    @property
    def is_shown(self) -> bool:
        """Whether there is a terminal to show it on."""
        return self._display is not None

    def show_later(self) -> None:
        """Show the bar after a second."""
        if self._timer:
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        """Remove the bar; nothing is shown any more."""
        if self._display and self._timer:
            self._timer.cancel()
            self._timer.join()
            self._display.stop()
            self._display = None

    def begin(self, what: str, total: int | None = None, unit: str = "") -> None:
        """Go on to the next phase, of `total` units (None: nobody knows)."""
        if self._display and self._task is not None:
            self._done, self._total, self._next = 0, total, 0.0
            self._display.tasks[0].total = total or None
            self._display.reset(self._task, description=what, unit=unit)

    def advance(self, done: int) -> None:
        """So many more units are done."""
        self.set_done(self._done + done)

    def expect(self, left: int) -> None:
        """So many units of the phase are still to come."""
        self.set_done(self._done, total=self._done + left)

    def set_done(self, done: int, what: str | None = None, total: int | None = None) -> None:
        """So many units of the phase are done; `what` and `total` where these have changed."""
        self._done, self._total = done, total or self._total
        now = time.monotonic()
        if self._display and self._task is not None and now >= self._next:
            self._next = now + SECONDS_BETWEEN_UPDATES
            self._display.tasks[0].total = self._total if self._total and done < self._total else None
            self._display.update(self._task, completed=done, description=what)

    def count(self, items: Iterable[Item]) -> Iterable[Item]:
        """The items; each is a unit of the phase."""
        return self._count(items) if self._display else items

    def _count(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            yield item
            self.advance(1)

    @contextmanager
    def reading(self, paths: Sequence[Path], what: str = "reading") -> Iterator[Iterable[Path]]:
        """A phase that ends when the files and folders are read; yields the paths, one after the other.

        Files that need not be read count when the next path is taken.
        """
        if self._display is None:
            yield paths
            return
        sizes = list(map(_size, paths))
        if any(sizes):
            self.begin(what, sum(sizes), BYTES)
        token = WATCH.set(self.advance)
        try:
            yield self._passed(paths, sizes)
        finally:
            WATCH.reset(token)
            self.begin("working")

    def _passed(self, paths: Sequence[Path], sizes: Sequence[int]) -> Iterator[Path]:
        before = 0
        for path, size in zip(paths, sizes, strict=True):
            yield path
            before += size
            self.set_done(before)

    def replays(self, number: int | None = None) -> Callable[[str, int], None]:
        """A phase of `number` replays of about equally many calls (None: nobody knows how many).

        Returns a function of the name of a replay and the number of its calls that are done.
        """
        return self.replay_steps(number).step

    def replay_steps(self, number: int | None = None) -> ReplaySteps:
        """As `replays`, where the number becomes known later."""
        self.begin("replaying", None, CALL)
        return ReplaySteps(self, number)


class ReplaySteps:
    """Adds up the calls of replays that come one after the other; the first tells how many calls each has."""

    def __init__(self, bar: WorkBar, number: int | None) -> None:
        self._bar, self._number = bar, number
        self._last = ("", 0)
        self._before = 0
        self._ended = 0

    def expect(self, left: int) -> None:
        """So many replays come after those that are done."""
        self._number = self._ended + bool(self._last[1]) + left

    def step(self, what: str, calls: int) -> None:
        name, done = self._last
        if done and (what != name or calls <= done):
            self._before += done
            self._ended += 1
        self._last = what, calls
        each = self._before / self._ended if self._ended else None
        total = round(each * self._number) if each and self._number else None
        self._bar.set_done(self._before + calls, f"replaying {what}", total)


@contextmanager
def work_bar() -> Iterator[WorkBar]:
    """The bar of a command. What is printed to stdout while it is there must not go to the same terminal."""
    if not sys.stderr.isatty():
        yield WorkBar()
        return
    from rich.progress import Progress

    from cachecost.views.streams import inert_console

    console = inert_console(sys.stderr)
    display = Progress(*columns(), console=console, transient=True, redirect_stdout=False, refresh_per_second=5)
    bar = WorkBar(display)
    try:
        bar.show_later()
        yield bar
    finally:
        bar.end()


@contextmanager
def reading_bar(paths: Sequence[Path], what: str = "reading") -> Iterator[None]:
    """The bar of a command that does all its work while it reads the files or folders."""
    with work_bar() as bar, bar.reading(paths, what):
        yield


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(map(_size, path.iterdir()))
    return path.stat().st_size if path.is_file() else 0
