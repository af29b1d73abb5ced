"""How a command ends: exceptions become words on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cachecost.base.errors import CannotEvaluate, CommandFailed, InputError
from cachecost.base.exit_codes import ExitCode
from cachecost.base.formatting import count_text
from cachecost.base.inert import inert
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.interruption import INTERRUPTED, no_end
from cachecost.views.streams import inert_streams


def exit_code(command: Callable[[], Any], end: Callable[[BaseException], None] = no_end) -> int:
    """Run `command`, report errors on stderr, and return the exit code (docs/reference/output-formats.md).

    `end` is called with an interruption first: it may report it and end the process.
    """
    with inert_streams():
        return _exit_code(command, end)


def _exit_code(command: Callable[[], Any], end: Callable[[BaseException], None]) -> int:
    try:
        code = command() or ExitCode.OK
        sys.stdout.flush()
        return code
    except InputError as error:
        return _report_input(error)
    except CannotEvaluate as error:
        text = str(error) if isinstance(error, CommandFailed) else inert(str(error))
        return _report(text, ExitCode.NOT_EVALUATED)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return ExitCode.INVALID_INPUT
    except BrokenPipeError:
        return _close_stdout()
    except ImportError as error:
        return _report_import(error)
    except OSError as error:
        return _report(f"{error.filename or 'file'}: {error.strerror or error}", ExitCode.INVALID_INPUT)
    except (KeyboardInterrupt, click.Abort) as stop:
        end(stop.__cause__ or stop)
        return _report(INTERRUPTED, ExitCode.INTERRUPTED)
    except Exception as error:
        return _report_internal(error)


def _report(text: str, code: ExitCode) -> ExitCode:
    print_diagnostic(text)
    return code


def _report_input(error: InputError) -> ExitCode:
    """Report every error with its place, then their number. Without one, all were reported as skipped files."""
    code = ExitCode.NOT_EVALUATED if isinstance(error, CannotEvaluate) else ExitCode.INVALID_INPUT
    if not error.faults:
        return _report("nothing was run.", code)
    return _report(f"{error}\n{count_text(len(error.faults), 'error')}; nothing was run.", code)


def _close_stdout() -> ExitCode:
    """The reader of stdout has closed it (`| head`): not an error, but Python must not flush again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.OK


def _report_import(error: ImportError) -> ExitCode:
    from cachecost.base.extras import not_found

    text = not_found(error)
    return _report(text, ExitCode.NOT_EVALUATED) if text else _report_internal(error)


def _report_internal(error: Exception) -> ExitCode:
    import traceback

    if os.environ.get("CACHECOST_DEBUG"):
        traceback.print_exc()
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}; set CACHECOST_DEBUG=1 for the traceback"
    text = f"internal error: {type(error).__name__}: {inert(str(error))} (at {where})"
    return _report(text, ExitCode.INTERNAL_ERROR)
