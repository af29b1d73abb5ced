"""The command line: imports commands on use."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Any

import click

from cachecost.base.digests import allow_file
from cachecost.base.errors import MEANINGS
from cachecost.base.version import __version__
from cachecost.commands.catalogue import COMMAND_GROUPS, apply_project_defaults, load_command, with_places
from cachecost.commands.diagnostics import (
    end_at_once,
    exit_code,
    no_end,
    open_unnamed_file,
    raise_on_sigterm,
    stop_raising,
)

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
        return load_command(COMMANDS[cmd_name])

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
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None:
            apply_project_defaults(ctx, name, command, rest)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error about an option that the settings file sets names the place."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise with_places(error, ctx.obj.places if ctx.obj else {}) from None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="cachecost", help="Show the version and exit.")
def cachecost() -> None:
    """Show what LLM prompt caching costs, why, and what it would cost with other settings.

    To begin: `cachecost bill` reads the sessions of the coding agents on this machine; without any, `cachecost demo`.
    Other commands replay recorded or synthetic conversations against a simulated prompt cache. Results go to stdout,
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
