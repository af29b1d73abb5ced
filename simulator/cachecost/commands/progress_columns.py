"""What a progress bar says beside the bar: how much is done, of how much, and the time left."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from cachecost.base.formatting import count_text

if TYPE_CHECKING:
    from rich.progress import Task

BYTES = "bytes"
MEGABYTE = 1_000_000


def amount_text(done: float, total: float | None, unit: str) -> str:
    """`120 of 480 calls`, `1.5 of 3.0 MB`; without a total what is done. `unit` is a noun in the singular or none."""
    if not unit:
        return ""
    if unit == BYTES:
        of = "" if total is None else f" of {total / MEGABYTE:,.1f}"
        return f"{done / MEGABYTE:,.1f}{of} MB"
    return count_text(int(done), unit) if total is None else f"{done:,.0f} of {count_text(int(total), unit)}"


def time_text(left: float | None, elapsed: float | None) -> str:
    """The time left where it is known, else how long it has been."""
    if left is not None:
        return f"{timedelta(seconds=round(left))} left"
    return f"{timedelta(seconds=int(elapsed or 0))} so far"


@cache
def columns() -> tuple[Any, ...]:
    """The columns of a bar."""
    from rich.progress import BarColumn, ProgressColumn, TextColumn
    from rich.text import Text

    class AmountColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(amount_text(task.completed, task.total, task.fields["unit"]))

    class TimeColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(time_text(task.time_remaining if task.total else None, task.elapsed))

    return TextColumn("{task.description}", markup=False), BarColumn(), AmountColumn(), TimeColumn()
