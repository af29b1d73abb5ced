"""`cachecost explain`: what was avoidable, why, and what it cost."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cachecost.base.exit_codes import ExitCode
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.help import SectionedCommand
from cachecost.commands.options import (
    Ground,
    check_scenario,
    csv_option,
    format_option,
    ground_options,
    tokens_option,
    write_rows,
)
from cachecost.commands.progress import reading_bar

if TYPE_CHECKING:
    from cachecost.replay.workload import Traffic

SCENARIOS = (".yaml", ".yml")


@click.command(cls=SectionedCommand)
@click.argument("source", metavar="LOG|SCENARIO", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@format_option
@click.option("--strategy", metavar="NAME", help="Scenario only: explain this strategy.  [default: all]")
@tokens_option
@click.option(
    "--readings", is_flag=True, help="Repeat under every assumption about open rules; show which change the answer."
)
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write the findings as an HTML page."
)
@csv_option
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON Lines instead of text: one object per strategy, or one for a log.",
)
@ground_options
def explain(
    source: Path,
    format_: str,
    strategy: str | None,
    tokens: str | None,
    readings: bool,
    html: Path | None,
    csv_file: Path | None,
    as_json: bool,
    base: Ground,
) -> int:
    """Find the avoidable cost of LOG or SCENARIO.yaml: each cause, where it occurs and its dollars."""
    from cachecost.analysis.explain.explaining import explain_workload
    from cachecost.views.explain.json_output import explanation_object
    from cachecost.views.explain.text import print_explanation

    if source.suffix in SCENARIOS:
        check_scenario(source, tokens, base)
        found = list(_planned(source, strategy, base))
    else:
        from cachecost.replay.workload import recorded

        with reading_bar("reading", [source]):
            found = [recorded(source, base.rules, base.prices, base.host, tokens, format_, print_diagnostic)]
    page = []
    csv_rows: list[dict[str, Any]] = []
    for number, traffic in enumerate(found):
        told = explain_workload(traffic, readings)
        page.append(told)
        as_object = explanation_object(told)
        csv_rows += [{"strategy": told.strategy, **row} for row in as_object["findings"]]
        if as_json:
            sys.stdout.write(json.dumps(as_object, ensure_ascii=False) + "\n")
        else:
            sys.stdout.write("\n" if number else "")
            print_explanation(told, sys.stdout)
    write_rows(csv_file, csv_rows)
    if html is not None:
        from cachecost.views.explain.page import explain_page
        from cachecost.views.html.frame import write_page

        write_page(html, explain_page(str(source), page, f"cachecost explain {source} --html {html}"))
        print_diagnostic(f"{html} written")
    return ExitCode.OK


def _planned(source: Path, strategy: str | None, base: Ground) -> Iterator[Traffic]:
    """What each strategy of a scenario sends, or the one that is named. Raises UsageError."""
    from cachecost.base.errors import nearest
    from cachecost.replay.workload import of_scenario
    from cachecost.scenario import load

    scenario = load(source)
    known = []
    for traffic in of_scenario(scenario, source.parent, base.readings, base.rules.own):
        known.append(traffic.strategy)
        if strategy in (None, traffic.strategy):
            yield traffic
    if strategy is not None and strategy not in known:
        names = ", ".join(known)
        raise click.UsageError(f"--strategy: expected one of {names}; got '{strategy}'{nearest(strategy, known)}")
