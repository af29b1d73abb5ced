"""The types of output paths, and the help of commands, which lists shared options last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
SHARED_HEADING = "Rules and prices"


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


class SharedOption(click.Option):
    """An option that all simulating commands share."""


class CheckedCommand(click.Command):
    """A command that does not begin if it would write over what it reads. Its help lists shared options last."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raises InputError with each output that is not free."""
        named = [(one, ctx.params.get(str(one.name))) for one in self.params]
        outputs = [(one, path) for one, path in named if isinstance(one.type, OutputPath) and path is not None]
        if outputs:
            inputs: list[Path] = []
            for value in (value for one, value in named if not isinstance(one.type, OutputPath)):
                for one in value if isinstance(value, tuple) else (value,):
                    # a text may name a path: `recording:FILE`, a strategy's file
                    texts = {one, one.partition(":")[2]} - {""} if isinstance(one, str) else set()
                    inputs += filter(_exists, [one] if isinstance(one, Path) else map(Path, texts))
            faults = list(_conflicts(outputs, inputs))
            for (first, path), (second, other) in combinations(outputs, 2):
                # one name also where a disk does not tell small letters from capitals
                is_alike = realpath(path).casefold() == realpath(other).casefold()
                if is_alike or (_exists(other) and _is_same(path, other)):
                    faults.append(
                        Fault(f"{_name(second)} {other}:", f"is the place of {_name(first)} too: {OTHER_PLACE}")
                    )
            if faults:
                raise InputError(faults)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the two sections, without empty ones."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        own = [option for option in options if not isinstance(option, SharedOption)]
        shared = [option for option in options if isinstance(option, SharedOption)]
        for heading, section in (("Options", own), (SHARED_HEADING, shared)):
            if records := [record for option in section if (record := option.get_help_record(ctx))]:
                with formatter.section(heading):
                    formatter.write_dl(records)


class CheckedGroup(click.Group):
    """A group of such commands."""

    command_class = CheckedCommand


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no name that a file can have
        return False


def _conflicts(outputs: Sequence[tuple[click.Parameter, Path]], inputs: Sequence[Path]) -> Iterator[Fault]:
    """Outputs at places where something is that may not be written over."""
    for param, path in outputs:
        if not path.exists():
            continue
        kind, suffix, why = param.type, path.suffix.lower(), ""
        is_folder_of_recordings = isinstance(kind, RecordingPath) and path.is_dir()
        if any(_is_same(path, one) for one in inputs) and not is_folder_of_recordings:
            why = "would overwrite what this command reads"
        elif path.is_dir() and not is_folder_of_recordings:
            held = next((one for one in inputs if one.is_file() and _is_same(path, one.parent)), None)
            why = f"is the folder of {held.name}, which this command reads" if held else ""
        elif isinstance(kind, PagePath) and not path.is_file():
            why = "expected a file; got a device or a pipe"
        elif isinstance(kind, PagePath):
            is_input = suffix in INPUT_SUFFIXES and suffix not in kind.suffixes
            why = "would overwrite a file of another kind" if is_input or path.name == BASELINE else ""
        if why:
            yield Fault(f"{_name(param)} {path}:", f"{why}: {OTHER_PLACE}")


def _is_same(path: Path, other: Path) -> bool:
    """Whether two paths are one file or folder: by name, by a link, or by another spelling of the disk's."""
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return False


def _name(param: click.Parameter) -> str:
    return max(param.opts, key=len)
