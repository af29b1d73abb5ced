"""`cachecost check`: budgets and baselines, for CI."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any

import click

from cachecost.base.errors import InputError
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.options import check_name, json_option
from cachecost.commands.project_defaults import current_defaults, is_from_file, scenario_defaults
from cachecost.commands.recorded_scenarios import command_recorder
from cachecost.commands.work_bar import WorkBar, work_bar
from cachecost.views.check.formats import FILE_FORMATS, render_format

SCENARIOS, REPORTS = Path("scenarios"), Path("reports")
VOLUME = re.compile("[1-9][0-9]{0,8}")
"""Sessions a day of one scenario."""
OUTPUT = click.Path(path_type=Path, dir_okay=False)


def _volumes(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, int]:
    """NAME=N words as sessions a day by scenario. Raises BadParameter."""
    volumes = {}
    for word in words:
        name, _, number = word.rpartition("=")
        if not name or not VOLUME.fullmatch(number):
            raise click.BadParameter(f"expected NAME=N, N from 1 to 999,999,999; got '{word}'", ctx, param)
        volumes[name] = int(number)
    return volumes


def _file_options(command: Callable[..., int]) -> Callable[..., int]:
    """An option for each file format."""
    for name, words in reversed(FILE_FORMATS.items()):
        command = click.option(f"--{name}", metavar="FILE", type=OUTPUT, help=words)(command)
    return command


@click.command()
@click.argument("scenarios", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--update", is_flag=True, help="Write the current costs as the new baselines.")
@click.option(
    "--reports", type=click.Path(path_type=Path), default=REPORTS, show_default=True, help="Folder of the baselines."
)
@click.option(
    "--sessions-per-day", type=click.IntRange(1), metavar="N", help="Also show monthly costs, at N sessions a day."
)
@click.option(
    "--volume",
    "volumes",
    multiple=True,
    metavar="NAME=N",
    callback=_volumes,
    help="Sessions a day of one scenario, by its name; repeatable.",
)
@json_option
@_file_options
@click.option("--github", is_flag=True, help="Also print GitHub workflow annotations.")
def check(
    scenarios: tuple[Path, ...],
    update: bool,
    reports: Path,
    sessions_per_day: int | None,
    volumes: Mapping[str, int],
    as_json: bool,
    github: bool,
    **files: Path | None,
) -> int:
    """Check the costs of scenarios against their budgets and baselines.

    Without SCENARIOS, those of the settings file are checked, else every scenarios/*.yaml. The exit code is 1 if a
    budget is exceeded, and 3 if there is no baseline or it cannot be compared.
    """
    from cachecost.budgets.check import check_scenarios
    from cachecost.views.check.json_output import check_object
    from cachecost.views.check.text import text_lines

    paths = scenarios or _usual_scenarios()
    if volumes and (not scenarios or not is_from_file("volumes")):
        _check_volumes(volumes, paths)
    today = date.today()  # noqa: DTZ011 - the user's own day
    record = command_recorder(compares=True).record
    with work_bar() as bar:
        progress = _ScenarioProgress(bar, len(paths)).of_scenario
        result = check_scenarios(paths, reports, update, progress, today, scenario_defaults(), record)
    for place in result.updated:
        print_diagnostic(f"{place} updated")
    report = check_object(result, sessions_per_day, volumes)
    _write_files(report, files)
    if as_json:
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        for line in text_lines(report):
            click.echo(line)
    if github:
        _annotate(report, err=as_json)
    return result.exit_code


def _usual_scenarios() -> tuple[Path, ...]:
    """The scenarios of the settings file, else those in the usual folder. Raises InputError, UsageError."""
    if (settings := current_defaults().settings) is not None:
        from cachecost.configuration.paths import scenario_files

        if named := scenario_files(settings):
            return named
    if not (found := tuple(sorted(SCENARIOS.glob("*.yaml")))):
        raise click.UsageError(f"expected SCENARIO.yaml …; there is none in {SCENARIOS}/")
    return found


def _check_volumes(volumes: Mapping[str, int], paths: Sequence[Path]) -> None:
    """Raises UsageError for a volume of a scenario that is not checked; damaged scenarios are reported later."""
    from cachecost.scenario import load

    names = []
    for path in paths:
        with suppress(InputError):
            names.append(load(path, defaults=scenario_defaults()).name)
    for name in volumes if len(names) == len(paths) else ():
        check_name("--volume", name, names)


class _ScenarioProgress:
    """Progress of scenarios that are checked one after the other; the calls of each are not known before."""

    def __init__(self, bar: WorkBar, scenarios: int) -> None:
        self._bar, self._scenarios, self._done = bar, scenarios, 0

    @contextmanager
    def of_scenario(self, name: str) -> Iterator[Callable[[str, int], None]]:
        if not self._done:
            self._bar.begin("checking", self._scenarios, "scenario")
        yield lambda what, calls: self._bar.set_done(self._done, f"checking {name}  {what}  {calls:,} calls")
        self._done += 1
        self._bar.set_done(self._done)


def _write_files(report: dict[str, Any], files: Mapping[str, Path | None]) -> None:
    """The formats that were asked for; a comment without content is no file. Raises InputError."""
    from cachecost.base.atomic_files import write_text

    for name, path in files.items():
        if path:
            write_text(path, render_format(name, report))


def _annotate(report: dict[str, Any], err: bool) -> None:
    from cachecost.views.check.github import annotation_lines
    from cachecost.views.streams import styled_stream

    stream = styled_stream(sys.stderr if err else sys.stdout)
    for line in annotation_lines(report):
        stream.write(f"{line}\n")
