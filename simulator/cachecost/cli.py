"""The command line: commands are imported when they are called, faults become exit codes in one place."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from cachecost import __version__
from cachecost.faults import CannotEvaluate, InputError
from cachecost.inert import inert
from cachecost.views.streams import inert_streams

FINE, BROKEN, INVALID, NOT_EVALUATED, OUR_FAULT, INTERRUPTED = 0, 1, 2, 3, 70, 130

WHOLE = 400
"""Characters of a command's first sentence: more than any has."""
COMMANDS = {
    "run": "run:run",
    "replay": "replay:replay",
    "explain": "explain:explain",
    "whatif": "whatif:whatif",
    "optimize": "optimize:optimize",
    "lint": "lint:lint",
    "validate": "validate:validate",
    "check": "check:check",
    "sweep": "sweep:sweep",
    "init": "init:init",
    "import": "importing:import_",
    "recording": "recording:recording",
    "serve": "serve:serve",
    "record": "record:record",
    "live": "live:live",
    "strategies": "listings:strategies",
    "models": "listings:models",
    "rules": "listings:rules",
}


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
        """Each command with its whole first sentence, wrapped."""
        commands = ((name, self.get_command(ctx, name)) for name in COMMANDS)
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(WHOLE)) for name, command in commands if command])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        from cachecost.faults import nearest

        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"no such command '{args[0]}'{nearest(args[0], COMMANDS)}; commands are {', '.join(COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="cachecost")
def cachecost() -> None:
    """What does LLM prompt caching cost, and what would it cost another way?

    Replays recorded or synthetic conversations against a simulated prefix cache. Results go to stdout, words to
    stderr. Exit codes: 0 fine, 1 a budget is broken, 2 invalid input, 3 could not be evaluated, 70 a fault of ours.
    """


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the `cachecost` command; never returns."""
    sys.exit(exit_code(lambda: cachecost.main(args=argv, prog_name="cachecost", standalone_mode=False)))


def exit_code(command: Callable[[], Any]) -> int:
    """Run `command` and turn whatever it raises into words on stderr and an exit code (docs/output-formats.md)."""
    with inert_streams():
        return _exit_code(command)


def _exit_code(command: Callable[[], Any]) -> int:
    try:
        code = command() or FINE
        sys.stdout.flush()
        return code
    except InputError as error:
        code = NOT_EVALUATED if isinstance(error, CannotEvaluate) else INVALID
        return _say(f"{error}\n{_count(len(error.faults))}; nothing was run.", code)
    except CannotEvaluate as error:
        return _say(inert(str(error)), NOT_EVALUATED)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return INVALID
    except BrokenPipeError:
        return _closed()
    except ImportError as error:
        return _not_found(error)
    except OSError as error:
        return _say(f"{error.filename or 'file'}: {error.strerror or error}", INVALID)
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted", INTERRUPTED)
    except Exception as error:
        return _our_fault(error)


def _count(faults: int) -> str:
    return "1 fault" if faults == 1 else f"{faults} faults"


def _say(text: str, code: int) -> int:
    click.echo(text, err=True)
    return code


def _closed() -> int:
    """The reader of our output went away (`| head`): not an error, but Python must not flush again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FINE


def _not_found(error: ImportError) -> int:
    from cachecost.extras import not_found

    words = not_found(error)
    return _say(words, NOT_EVALUATED) if words else _our_fault(error)


def _our_fault(error: Exception) -> int:
    import traceback

    if os.environ.get("CACHECOST_DEBUG"):
        traceback.print_exc()
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}; set CACHECOST_DEBUG=1 for the whole story"
    return _say(f"a fault of ours: {type(error).__name__}: {inert(str(error))} (at {where})", OUR_FAULT)
