"""Ctrl-C and SIGTERM: a command unwinds, removes what is not whole, and ends without freeing its memory first."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

from cachecost.base.exit_codes import ExitCode
from cachecost.commands.diagnostics import print_diagnostic

signal: Any = import_module("_signal" if "_signal" in sys.builtin_module_names else "signal")
"""Without the enums of `signal`, which take 6 ms to make."""
INTERRUPTED = "interrupted"
STOPS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM: what a command does on Ctrl-C, it does then, too."""


def raise_on_sigterm() -> None:
    """Raise Terminated on SIGTERM, unless whoever started this process has it ignored."""
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _raise_terminated)


def _raise_terminated(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def stop_raising() -> None:
    """Let a signal end the process without a traceback: the command is done, only its memory is not freed yet."""
    for number in STOPS:
        if signal.getsignal(number) in (signal.default_int_handler, _raise_terminated):
            signal.signal(number, signal.SIG_DFL)


def no_end(stop: BaseException) -> None:
    """The process goes on."""


def end_at_once(stop: BaseException) -> None:
    """End the process: by SIGTERM if that stopped it, else with exit code 130. A refused question does not.

    To free the objects of a large log takes seconds, so nothing is freed. Rows that are printed already are kept.
    """
    from cachecost.base.atomic_files import remove_unfinished

    if not isinstance(stop, KeyboardInterrupt):
        return
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)
    remove_unfinished()
    print_diagnostic(INTERRUPTED)
    _flush_stdout()
    if isinstance(stop, Terminated):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
    os._exit(ExitCode.INTERRUPTED)


def _flush_stdout() -> None:
    """Write what stdout still holds, without waiting for the reader of a pipe."""
    with suppress(OSError, ValueError, AttributeError):  # no blocking to set on Windows before Python 3.12
        if stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode):
            os.set_blocking(sys.stdout.fileno(), False)
        sys.stdout.flush()
