"""The types of output paths, and the help of commands, which lists shared options last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from os.path import realpath
from pathlib import Path
from typing import Any

import click

from cachecost.base.errors import Fault, InputError

INPUT_SUFFIXES = frozenset((".jsonl", ".ndjson", ".json", ".har", ".yaml", ".yml", ".toml", ".gz", ".zst", ".db"))
"""Names of logs, scenarios, settings, rules and prices: a command also reads some that no option names."""
BASELINE = "baseline.json"
OTHER_PLACE = "choose another place"


class OutputPath(click.Path):
    """What a command writes: a file, or a folder for several."""

    def __init__(self, dir_okay: bool = True) -> None:
        super().__init__(path_type=Path, dir_okay=dir_okay)


class RecordingPath(OutputPath):
    """Where recordings go: who writes them knows each file's name, and compares that with the logs."""


class PagePath(OutputPath):
    """A page, table or picture, which takes the place of an older one; `suffixes` are input suffixes it may have."""

    def __init__(self, *suffixes: str) -> None:
        super().__init__(dir_okay=False)
        self.suffixes = suffixes


class CheckedCommand(click.Command):
    """A command that does not begin if it would write over what it reads."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raises InputError with each output that is not free."""
        if outputs := _outputs(self.params, ctx):
            inputs = [one for one in _inputs(self.params, ctx) if _exists(one)]
            if faults := [*_faults(outputs, inputs), *_shared(outputs)]:
                raise InputError(faults)
        return super().invoke(ctx)


class CheckedGroup(click.Group):
    """A group of such commands."""

    command_class = CheckedCommand


Output = tuple[click.Parameter, Path]


def _outputs(params: Sequence[click.Parameter], ctx: click.Context) -> list[Output]:
    named = ((param, ctx.params.get(str(param.name))) for param in params if isinstance(param.type, OutputPath))
    return [(param, path) for param, path in named if path is not None]


def _inputs(params: Sequence[click.Parameter], ctx: click.Context) -> Iterator[Path]:
    """What other parameters name: paths, and texts that may be one, such as `recording:FILE` and a strategy's file."""
    for param in params:
        value = None if isinstance(param.type, OutputPath) else ctx.params.get(str(param.name))
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Path):
                yield one
            elif isinstance(one, str):
                yield from map(Path, {one, one.partition(":")[2]} - {""})


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no name that a file can have
        return False


def _faults(outputs: Iterable[Output], inputs: Sequence[Path]) -> Iterator[Fault]:
    for param, path in outputs:
        if path.exists() and (why := _conflict(param.type, path, inputs)):
            yield Fault(f"{_name(param)} {path}:", f"{why}: {OTHER_PLACE}")


def _conflict(kind: object, path: Path, inputs: Sequence[Path]) -> str:
    """Why nothing may be written at a path that exists; "" where it may."""
    if any(_is_same(path, one) for one in inputs) and not (isinstance(kind, RecordingPath) and path.is_dir()):
        return "would overwrite what this command reads"
    if path.is_dir() and not isinstance(kind, RecordingPath):
        held = next((one for one in inputs if one.is_file() and _is_same(path, one.parent)), None)
        return f"is the folder of {held.name}, which this command reads" if held else ""
    return _page_conflict(kind, path) if isinstance(kind, PagePath) else ""


def _page_conflict(kind: PagePath, path: Path) -> str:
    if not path.is_file():
        return "expected a file; got a device or a pipe"
    is_input = path.suffix.lower() in INPUT_SUFFIXES and path.suffix.lower() not in kind.suffixes
    return "would overwrite a file of another kind" if is_input or path.name == BASELINE else ""


def _shared(outputs: Sequence[Output]) -> Iterator[Fault]:
    """Two outputs with one name, also where a disk does not tell small letters from capitals."""
    for (first, path), (second, other) in combinations(outputs, 2):
        if realpath(path).casefold() == realpath(other).casefold() or (_exists(other) and _is_same(path, other)):
            yield Fault(f"{_name(second)} {other}:", f"is the place of {_name(first)} too: {OTHER_PLACE}")


def _is_same(path: Path, other: Path) -> bool:
    """Whether two paths are one file or folder: by name, by a link, or by another spelling of the disk's."""
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return False


def _name(param: click.Parameter) -> str:
    return max(param.opts, key=len)


SHARED_HEADING = "Rules and prices"


class SharedOption(click.Option):
    """An option that all simulating commands share."""


class SectionedCommand(CheckedCommand):
    """A command whose help lists shared options after its own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the two sections, without empty ones."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        own = [option for option in options if not isinstance(option, SharedOption)]
        shared = [option for option in options if isinstance(option, SharedOption)]
        for heading, section in (("Options", own), (SHARED_HEADING, shared)):
            if records := [record for option in section if (record := option.get_help_record(ctx))]:
                with formatter.section(heading):
                    formatter.write_dl(records)
