"""`cachecost check`: budgets and baselines, for CI."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path

import click

from cachecost.base.atomic_files import write_text
from cachecost.base.errors import InputError
from cachecost.commands.catalogue import current_defaults, is_from_file, scenario_defaults
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.options import (
    NameChoice,
    WorkBar,
    check_name,
    json_option,
    option,
    print_json,
    set_option,
    work_bar,
)
from cachecost.commands.output_paths import CheckedCommand, PagePath
from cachecost.commands.workloads import command_recorder
from cachecost.views.check.formats import FILE_FORMATS, READ_SUFFIXES, render_format
from cachecost.views.streams import print_commands

SCENARIOS, REPORTS = Path("scenarios"), Path("reports")
VOLUME = re.compile("[1-9][0-9]{0,8}")
"""Sessions a day of one scenario."""


def parse_volumes(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> dict[str, int]:
    """NAME=N words as sessions a day by scenario. Raises BadParameter."""
    volumes = {}
    for word in words:
        name, _, number = word.rpartition("=")
        if not name or not VOLUME.fullmatch(number):
            raise click.BadParameter(f"expected NAME=N, N from 1 to 999,999,999; got '{word}'", ctx, param)
        volumes[name] = int(number)
    return volumes


def format_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add an option for each format of a file."""
    for name, words in reversed(FILE_FORMATS.items()):
        kind = PagePath(*READ_SUFFIXES.get(name, ()))
        command = click.option(f"--{name}", metavar="FILE", type=kind, help=words)(command)
    return command


def parse_rate(ctx: click.Context, param: click.Parameter, value: str | None) -> Decimal | None:
    """A share such as "90%" or "0.9"; above 1, percent without their sign."""
    if value is None:
        return None
    try:
        rate = Decimal(value.strip().removesuffix("%"))
        share = rate / 100 if "%" in value or rate > 1 else rate
    except InvalidOperation:  # no number, or none that can be compared
        share = Decimal(-1)
    if not 0 <= share <= 1:
        raise click.BadParameter(f"expected a share from 0% to 100%, such as 90%; got '{value}'")
    return share


@click.command(cls=CheckedCommand)
@click.argument("scenarios", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@set_option
@option("--update", "Write the current costs as the new baselines.", is_flag=True)
@option("--reports", "Folder of the baselines.", click.Path(path_type=Path), REPORTS)
@option("--sessions-per-day", "Also show monthly costs, at N sessions a day.", click.IntRange(1), metavar="N")
@option(
    "--volume volumes",
    "Sessions a day of one scenario, by its name; repeatable.",
    multiple=True,
    metavar="NAME=N",
    callback=parse_volumes,
)
@option("--fail-under", "Fail if the cache hit rate is below this, such as 90%.", metavar="RATE", callback=parse_rate)
@json_option
@format_options
@option("--github", "Also print GitHub workflow annotations.", is_flag=True)
@option("--badge", "Write a badge (SVG).", PagePath(), metavar="FILE")
@option("--badge-shows", "What the badge shows.", NameChoice(["hit-rate", "cost", "both"]), "hit-rate")
@option("--history", "Draw cost and cache hit rate by commit (SVG), from --update.", PagePath(), metavar="FILE")
def check(
    scenarios: tuple[Path, ...],
    sets: tuple[str, ...],
    update: bool,
    reports: Path,
    sessions_per_day: int | None,
    volumes: Mapping[str, int],
    fail_under: Decimal | None,
    as_json: bool,
    github: bool,
    badge: Path | None,
    badge_shows: str,
    history: Path | None,
    **files: Path | None,
) -> int:
    """Check the costs of scenarios against their budgets and baselines.

    Without SCENARIOS, those of the settings file are checked, else every scenarios/*.yaml. The exit code is 1 if a
    budget is exceeded, and 3 if there is no baseline or it cannot be compared.

    With --set, the scenario is a variant: its baseline is REPORTS/NAME@A.B=VALUE/baseline.json, also with --update.
    """
    from cachecost.budgets.check import CheckOptions, check_scenarios
    from cachecost.budgets.history import FILE_NAME as HISTORY_NAME
    from cachecost.commands import project_files
    from cachecost.views.check.json_output import check_object
    from cachecost.views.check.text import text_lines

    paths = scenarios or _usual_scenarios()
    if volumes and (not scenarios or not is_from_file("volumes")):
        _check_volumes(volumes, paths)
    today = date.today()  # noqa: DTZ011 - the user's own day
    record = command_recorder(compares=True).record
    with work_bar() as bar:
        options = CheckOptions(reports, update, today, sets, scenario_defaults(), record, fail_under)
        result = check_scenarios(paths, options, _ScenarioProgress(bar, len(paths)).of_scenario)
    accepted = reports / HISTORY_NAME
    if update and project_files.update_history(accepted, result, paths, today):
        result.updated.append(accepted)
    for place in result.updated:
        print_diagnostic(f"{place} updated")
    report = check_object(result, sessions_per_day, volumes, project_files.find_lines(result, paths, reports))
    for name, path in files.items():
        if path:
            write_text(path, render_format(name, report))  # a comment without content is an empty file
    if badge:
        from cachecost.views.check.badge import badge_svg

        write_text(badge, badge_svg(report, badge_shows))
    if history:
        project_files.write_history_chart(history, accepted)
    if as_json:
        print_json(report, indent=2)
    else:
        sys.stdout.writelines(f"{line}\n" for line in text_lines(report))
    if github:
        from cachecost.views.check.github import annotation_lines

        print_commands(annotation_lines(report), sys.stderr if as_json else sys.stdout)
    return result.exit_code


def _usual_scenarios() -> tuple[Path, ...]:
    """The scenarios of the settings file, else those in the usual folder. Raises InputError, UsageError."""
    if (settings := current_defaults().settings) is not None:
        from cachecost.configuration.project_settings import scenario_files

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
