"""Ends long work from outside: whoever starts it sets a check, and its loops ask it, a replay before each call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

WorkCheck = Callable[[], None]
"""Raises WorkStopped where the work is to end."""
_CHECK: ContextVar[WorkCheck | None] = ContextVar("work_check", default=None)


class WorkStopped(Exception):
    """The work is no longer wanted, or has taken too long. No CannotEvaluate: nothing in between may catch it."""


def current_work_check() -> WorkCheck | None:
    """What the work of this thread is to ask; loops get it once. None: it runs to its end."""
    return _CHECK.get()


@contextmanager
def checked_by(check: WorkCheck) -> Iterator[None]:
    """The work in this context asks `check`."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)
