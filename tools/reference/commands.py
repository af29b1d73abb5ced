"""The page of commands: what click knows of each, with the options that stand on every one told once."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from cachecost.cli import cachecost
from cachecost.commands.options import ground_options
from tools.reference.markdown import code, prose, table

HEAD = """# Commands

Results go to stdout, words to stderr; `--json` prints nothing else on stdout.

| exit code | means |
| --- | --- |
| 0 | fine |
| 1 | a budget is broken, or a check failed |
| 2 | usage, or input that is not valid: all faults at once, each with its place |
| 3 | could not be evaluated: an unknown model, price or rule; a live call failed |
| 70 | a fault of ours |
| 130 | interrupted |
"""
GROUND = "Options of every simulation"
GROUND_ANCHOR = "options-of-every-simulation"
ABOUT_GROUND = "They stand on every command whose section links here."


def page() -> str:
    """The page: the options of every simulation, then command by command."""
    shared = table(("option", "what"), _records(_ground()))
    sections = [section for name, command in _subcommands(cachecost) for section in _sections(name, command)]
    return "\n".join([HEAD, f"## {GROUND}\n\n{ABOUT_GROUND}\n\n{shared}", *sections])


def documented() -> Iterator[tuple[str, str]]:
    """Every (command, option) there is, `("recording diff", "--json")`."""
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
    own = [option for option in _options(command) if not _is_ground(option)]
    parts = [f"{'#' * level} cachecost {name}", f"```text\ncachecost {name} {usage}\n```", _help(command)]
    parts += [table(("option", "what"), _records(own))] if own else []
    parts += [f"And the [options of every simulation](#{GROUND_ANCHOR})."] if len(own) < len(_options(command)) else []
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
    """What may be chosen, said behind the help: a bar in a cell would end it."""
    if not isinstance(option.type, click.Choice):
        return ""
    return f" One of {', '.join(code(str(each)) for each in option.type.choices)}."


def _ground() -> list[click.Option]:
    return _options(click.command()(ground_options(lambda base: base)))


def _is_ground(option: click.Option) -> bool:
    return any(option.opts == other.opts and option.help == other.help for other in _ground())
