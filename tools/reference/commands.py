"""The page of commands: what click knows of each, with the shared options described once."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from functools import cache

import click

from cachecost.base.errors import MEANINGS
from cachecost.cli import cachecost
from cachecost.commands.options import shared_options
from cachecost.commands.output_paths import SHARED_HEADING, SharedOption
from tools.reference.markdown import code, prose, table

HEAD = """# Commands

Results go to stdout, diagnostics to stderr; with `--json`, stdout holds nothing but JSON.
[Shell completion](../how-to/install.md#shell-completion) is built in.

"""
SHARED_ANCHOR = SHARED_HEADING.lower().replace(" ", "-")
COMMON_HEADING = "Options of several commands"
COMMON_ANCHOR = COMMON_HEADING.lower().replace(" ", "-")
COMMON = 3
"""An option that so many commands have alike is described once."""
ABOUT_SHARED = "Every command that simulates has these options; its section links here."


def page() -> str:
    """The page: the exit codes, the shared options, then command by command."""
    exit_codes = table(("exit code", "means"), ((str(int(each)), prose(text)) for each, text in MEANINGS.items()))
    shared = table(("option", "what"), _records(_shared(click.command()(shared_options(lambda shared: shared)))))
    sections = [section for name, command in _subcommands(cachecost) for section in _sections(name, command)]
    common = f"## {COMMON_HEADING}\n\n{table(('option', 'what'), sorted(common_options()))}"
    return "\n".join([HEAD + exit_codes, f"## {SHARED_HEADING}\n\n{ABOUT_SHARED}\n\n{shared}", common, *sections])


@cache
def common_options() -> frozenset[tuple[str, str]]:
    """The rows of options that several commands have alike, name, words and all."""
    own = (
        _records([option for option in _options(command) if option not in _shared(command)])
        for _, command in _everything(cachecost, "")
    )
    counts = Counter(row for rows in own for row in rows)
    return frozenset(row for row, count in counts.items() if count >= COMMON)


def documented() -> Iterator[tuple[str, str]]:
    """Every (command, option) there is, `("recording cut", "--calls")`."""
    for name, command in _everything(cachecost, ""):
        for option in _options(command):
            yield from ((name, flag) for flag in (*option.opts, *option.secondary_opts))


def _everything(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in _subcommands(group):
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from _everything(command, f"{before}{name} ")


def _subcommands(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            yield name, command


def _sections(name: str, command: click.Command, level: int = 2) -> Iterator[str]:
    yield _section(name, command, level)
    if isinstance(command, click.Group):
        for sub, inner in _subcommands(command):
            yield from _sections(f"{name} {sub}", inner, level + 1)


def _section(name: str, command: click.Command, level: int) -> str:
    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    shared = _shared(command)
    own = [option for option in _options(command) if option not in shared]
    parts = [f"{'#' * level} cachecost {name}", f"```text\ncachecost {name} {usage}\n```", _help(command)]
    rows = list(_records(own))
    described = [row for row in rows if row not in common_options()]
    common = [
        code(flag) for name, what in rows if (name, what) in common_options() for flag in name.strip("`").split()[:1]
    ]
    parts += [table(("option", "what"), described).strip()] if described else []
    further = [f"{', '.join(common)} ([as elsewhere](#{COMMON_ANCHOR}))"] if common else []
    further += [f"{_listed(shared)} ([rules and prices](#{SHARED_ANCHOR}))"] if shared else []
    parts += [f"Also {'; '.join(further)}."] if further else []
    return "\n\n".join(parts) + "\n"


def _help(command: click.Command) -> str:
    text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    return "\n\n".join(" ".join(prose(part).split()) for part in text.split("\n\n"))


def _options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option) and not param.hidden]


def _records(options: list[click.Option]) -> Iterator[tuple[str, str]]:
    context = click.Context(cachecost)
    for option in options:
        record = option.get_help_record(context)
        if record is not None:
            yield code(record[0].partition(" [")[0]), prose(record[1]) + _choices(option)


def _choices(option: click.Option) -> str:
    """The choices after the help text, because a bar would end the cell; "" where the help lists them itself."""
    if not isinstance(option.type, click.Choice) or option.metavar:
        return ""
    return f" One of {', '.join(code(str(each)) for each in option.type.choices)}."


def _shared(command: click.Command) -> list[click.Option]:
    return [option for option in _options(command) if isinstance(option, SharedOption)]


def _listed(options: list[click.Option]) -> str:
    return ", ".join(code(option.opts[0]) for option in options)
