"""How commands speak to stderr, use memory, and end: exceptions become texts on stderr and an exit code.

On Ctrl-C and SIGTERM a command unwinds, removes what is not whole, and ends without freeing its memory first.
"""

from __future__ import annotations

import gc
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, NoReturn, cast

import click

from cachecost.base.errors import CannotEvaluate, CommandFailed, ExitCode, InputError
from cachecost.base.formatting import count_text, inert
from cachecost.views.streams import inert_streams

signal: Any = import_module("_signal" if "_signal" in sys.builtin_module_names else "signal")
"""Without the enums of `signal`, which take 6 ms to make."""
INTERRUPTED = "interrupted"
STOPS = (signal.SIGINT, signal.SIGTERM)


def print_diagnostic(text: str) -> None:
    click.echo(text, err=True)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Turn the garbage collector off: a command that keeps all its objects to the end would find nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def open_unnamed_file() -> BinaryIO:
    """A file for the content of blocks where it takes much memory (base/digests.py). It is gone with the process."""
    from tempfile import TemporaryFile

    return cast("BinaryIO", TemporaryFile(buffering=0))


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
    """End the process: by SIGTERM if that stopped it, else with exit code 130. A refused question does not. To free the
    objects of a large log takes seconds, so nothing is freed. Rows that are printed already are kept."""
    from cachecost.base.atomic_files import remove_unfinished

    if not isinstance(stop, KeyboardInterrupt):
        return
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)
    remove_unfinished()
    print_diagnostic(INTERRUPTED)
    with suppress(OSError, ValueError, AttributeError):  # no blocking to set on Windows before Python 3.12
        if stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode):
            os.set_blocking(sys.stdout.fileno(), False)
        sys.stdout.flush()
    if isinstance(stop, Terminated):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
    os._exit(ExitCode.INTERRUPTED)


def exit_code(command: Callable[[], Any], end: Callable[[BaseException], None] = no_end) -> int:
    """Run `command`, report errors on stderr, and return the exit code (docs/reference/output-formats.md). `end` is
    called with an interruption first: it may report it and end the process."""
    with inert_streams():
        try:
            code: int = command() or ExitCode.OK
            sys.stdout.flush()
            return code
        except click.exceptions.Exit as stop:
            return stop.exit_code
        except click.ClickException as error:
            error.show()
            return ExitCode.INVALID_INPUT
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return ExitCode.OK
        except (KeyboardInterrupt, click.Abort) as stop:
            end(stop.__cause__ or stop)
            print_diagnostic(INTERRUPTED)
            return ExitCode.INTERRUPTED
        except Exception as error:
            text, code = _error_text(error)
            print_diagnostic(text)
            return code


def _error_text(error: Exception) -> tuple[str, ExitCode]:
    """What stderr says of an error, and the exit code."""
    if isinstance(error, InputError):
        code = ExitCode.NOT_EVALUATED if isinstance(error, CannotEvaluate) else ExitCode.INVALID_INPUT
        number = count_text(len(error.faults), "error")  # none where all were reported as skipped files
        return f"{error}\n{number}; nothing was run." if error.faults else "nothing was run.", code
    if isinstance(error, CannotEvaluate):
        text = str(error) if isinstance(error, CommandFailed) else inert(str(error))
        return text, ExitCode.NOT_EVALUATED
    if isinstance(error, ImportError):
        from cachecost.base.extras import not_found

        if missing := not_found(error):
            return missing, ExitCode.NOT_EVALUATED
    elif isinstance(error, OSError):
        return f"{error.filename or 'file'}: {error.strerror or error}", ExitCode.INVALID_INPUT
    import traceback

    if os.environ.get("CACHECOST_DEBUG"):
        traceback.print_exc()
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}; set CACHECOST_DEBUG=1 for the traceback"
    return f"internal error: {type(error).__name__}: {inert(str(error))} (at {where})", ExitCode.INTERNAL_ERROR
