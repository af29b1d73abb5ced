"""The command line: imports commands on use, and turns exceptions into exit codes."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.base.exit_codes import MEANINGS, ExitCode
from cachecost.base.inert import inert
from cachecost.base.kept_bytes import allow_file
from cachecost.base.version import __version__
from cachecost.commands.catalogue import COMMAND_GROUPS
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.interruption import INTERRUPTED, end_at_once, no_end, raise_on_sigterm, stop_raising
from cachecost.commands.memory import open_unnamed_file
from cachecost.views.streams import inert_streams

COLLECTION_THRESHOLDS = 100_000, 50, 100
"""Replays make many objects and no cycles: the collector need look less often than by default."""
COMMANDS = {name: row.place for group in COMMAND_GROUPS.values() for name, row in group.items()}


class LazyGroup(click.Group):
    """A group whose commands are modules of `cachecost.commands`, loaded on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(f"cachecost.commands.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by group, each with the first sentence of its help."""
        width = max(map(len, COMMANDS))
        for heading, rows in COMMAND_GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), row.summary) for name, row in rows.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The exit codes."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in MEANINGS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        from cachecost.base.errors import nearest

        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"no such command '{args[0]}'{nearest(args[0], COMMANDS)}; commands are {', '.join(COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="cachecost", help="Show the version and exit.")
def cachecost() -> None:
    """Simulate what LLM prompt caching costs, and what it would cost with other settings.

    cachecost replays recorded or synthetic conversations against a simulated prompt cache. Results go to stdout,
    diagnostics to stderr. For the options of a command: cachecost COMMAND --help.
    """


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the `cachecost` command; never returns. With `argv` the caller's signals stay as they are."""
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    allow_file(open_unnamed_file)
    is_own_process = argv is None
    if is_own_process:
        raise_on_sigterm()
    end = end_at_once if is_own_process else no_end
    code = exit_code(lambda: cachecost.main(args=argv, prog_name="cachecost", standalone_mode=False), end)
    if is_own_process:
        stop_raising()
    sys.exit(code)


def exit_code(command: Callable[[], Any], end: Callable[[BaseException], None] = no_end) -> int:
    """Run `command`, report errors on stderr, and return the exit code (docs/output-formats.md).

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
        return _report(inert(str(error)), ExitCode.NOT_EVALUATED)
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
    """Report every error with its place, then their number."""
    number = len(error.faults)
    count = "1 error" if number == 1 else f"{number} errors"
    code = ExitCode.NOT_EVALUATED if isinstance(error, CannotEvaluate) else ExitCode.INVALID_INPUT
    return _report(f"{error}\n{count}; nothing was run.", code)


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
