"""A deadline for the streams of commands that a client waits for: one that nobody writes or reads would hold it up.

The time in which a session is read, between stdin and stdout, is not counted. Nothing happens until `begin_deadline`.
"""

from __future__ import annotations

import os
import signal

DEADLINE_S = 1.0


def begin_deadline() -> None:
    """From here on reading stdin, and later writing, ends the process with 0 after DEADLINE_S."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _end)
        resume_deadline()


def pause_deadline() -> None:
    _set_alarm(0.0)


def resume_deadline() -> None:
    _set_alarm(DEADLINE_S)


def _end(number: int, frame: object) -> None:
    os._exit(0)


def _set_alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is _end:
        signal.setitimer(signal.ITIMER_REAL, seconds)
