"""LOG arguments: files and folders, local or at URLs, how they are read, and the exit code where some could not be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from cachecost.base.errors import Fault
from cachecost.base.exit_codes import ExitCode
from cachecost.base.formatting import count_text
from cachecost.base.suffixes import is_yaml
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.conversations.input_files import input_path, is_url
from cachecost.conversations.logs import Logs

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

skip_option = click.option(
    "--skip", "may_skip", is_flag=True, help="Skip files that cannot be read; without it the exit code is 2."
)


class LogPath(click.Path):
    """A file or folder on a disk, or the URL of one, that exists."""

    def __init__(self, allow_dash: bool = False) -> None:
        super().__init__(path_type=Path, exists=True, allow_dash=allow_dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises NotInstalled and InputError for a URL, BadParameter for a path."""
        return input_path(value) if isinstance(value, str) and is_url(value) else super().convert(value, param, ctx)


def logs_argument(metavar: str = "LOG...", allow_dash: bool = False) -> Decorator:
    """Add the argument `logs`: one or more files or folders."""
    return click.argument("logs", metavar=metavar, nargs=-1, required=True, type=LogPath(allow_dash))


def logs_from(paths: Sequence[Path], format_: str = "auto") -> Logs:
    """The logs of a command; what there is to say about them goes to stderr."""
    return Logs(paths, format_, print_diagnostic)


def scenario_among(paths: Sequence[Path]) -> Path | None:
    """The scenario, where that is the argument. Raises UsageError for one among other paths."""
    scenarios = [path for path in paths if is_yaml(path) and not path.is_dir()]
    if scenarios and len(paths) > 1:
        raise click.UsageError(f"{scenarios[0]}: expected one SCENARIO.yaml alone, or logs; got {len(paths)} paths")
    return scenarios[0] if scenarios else None


def report_skipped(logs: Logs, may_skip: bool, code: int) -> int:
    """The exit code of a command that ended with `code`; says last how many files were skipped."""
    return code_with_skipped(logs.skipped, may_skip, code)


def code_with_skipped(skipped: Sequence[Fault], may_skip: bool, code: int) -> int:
    """As `report_skipped`, of the errors of the files that were skipped, in whole or in part."""
    if not skipped:
        return code
    files = count_text(len({fault.file for fault in skipped}), "file")
    print_diagnostic(f"{files} skipped{'' if may_skip else ': --skip accepts that'}")
    return code if may_skip else ExitCode.INVALID_INPUT
