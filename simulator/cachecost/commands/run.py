"""`cachecost run`: every strategy of a scenario, compared, with a report."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from cachecost.base.errors import ExitCode, exit_code
from cachecost.commands.catalogue import current_defaults
from cachecost.commands.options import json_option, option, set_option, work_bar
from cachecost.commands.output_paths import CheckedCommand, OutputPath
from cachecost.commands.workloads import load_with_strategies
from cachecost.ledger.rows import has_unevaluated

REPORTS = Path("reports")
"""Folder of the reports, unless the settings file names another."""


@click.command(cls=CheckedCommand)
@click.argument("scenario", required=False, type=click.Path(path_type=Path))
@set_option
@option("--out", "Folder for the report.  [default: reports/NAME, with --set reports/NAME@A.B=VALUE]", OutputPath())
@option("--no-report", "Do not write the report.", is_flag=True)
@json_option
@option("--explain-defaults", "Print every key of a scenario with its default, and exit.", is_flag=True)
def run(
    scenario: Path | None,
    sets: tuple[str, ...],
    out: Path | None,
    no_report: bool,
    as_json: bool,
    explain_defaults: bool,
) -> int:
    """Simulate every strategy of SCENARIO.yaml, compare their costs and write a report."""
    from cachecost.analysis.comparison import run as running
    from cachecost.configuration.project_settings import reports_folder
    from cachecost.scenario import explain_defaults as defaults
    from cachecost.scenario.loading import name_with_sets
    from cachecost.views.run.files import PAGE
    from cachecost.views.run.report import print_run, run_json, write_report

    if explain_defaults:
        click.echo(defaults(), nl=False)
        return ExitCode.OK
    if scenario is None:
        raise click.UsageError("expected SCENARIO.yaml")
    loaded = load_with_strategies(scenario, sets, "run compares strategies", runs_command=True)
    with work_bar() as bar:
        replays = sum(len(variant.strategies) for _, variant in loaded.all_variants)
        result = running.run(loaded, scenario.parent, bar.replays(replays), not no_report, explains_variants=False)
        bar.begin("writing the report")
        settings = current_defaults().settings
        reports = (reports_folder(settings) if settings else None) or REPORTS
        folder = out or reports / name_with_sets(loaded.name, sets)
        words = ["cachecost", "run", str(scenario), *(word for text in sets for word in ("--set", text))]
        report = None if no_report else write_report(result, folder, shlex.join(words))
    if as_json:
        sys.stdout.write(run_json(result))
    else:
        print_run(result, sys.stdout, report and report.with_name(PAGE))
    ledgers = (ledger for comparison in result.comparisons for ledger in comparison.ledgers)
    return exit_code(not_evaluated=has_unevaluated(row for ledger in ledgers for row in ledger.rows))
