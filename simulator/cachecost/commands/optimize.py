"""`cachecost optimize`: the cheapest legal breakpoints, TTLs and keep-alives for some calls, and the lower bound."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cachecost.base.exit_codes import ExitCode
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.help import SectionedCommand
from cachecost.commands.log_arguments import logs_argument, logs_from, report_skipped, scenario_among, skip_option
from cachecost.commands.options import (
    SharedOptions,
    check_scenario,
    csv_option,
    format_option,
    full_option,
    html_option,
    json_option,
    shared_options,
    tokens_option,
    write_rows,
)
from cachecost.commands.progress import progress_bar, reading_bar

if TYPE_CHECKING:
    from cachecost.conversations.logs import Logs
    from cachecost.simulation.workload import Workload


@click.command(cls=SectionedCommand)
@logs_argument("LOG...|SCENARIO")
@format_option
@skip_option
@click.option(
    "--pings/--no-pings", default=True, show_default=True, help="Allow extra calls: keep-alives and pre-warming."
)
@tokens_option
@full_option
@html_option("Also write the result as an HTML page.")
@csv_option
@json_option
@shared_options
def optimize(
    logs: tuple[Path, ...],
    format_: str,
    may_skip: bool,
    pings: bool,
    tokens: str | None,
    full: bool,
    html: Path | None,
    csv_file: Path | None,
    as_json: bool,
    shared: SharedOptions,
) -> int:
    """Find the cheapest legal breakpoints, TTLs, keep-alives and pre-warming for LOG or SCENARIO.yaml.

    The calls of a log are taken as they were sent, without their breakpoints; those of a scenario as its first strategy
    sends them. Several files, and all logs in folders, are one stream of calls in time order; repeated calls count
    once.
    """
    from cachecost.analysis.bill.held_losses import hold_losses
    from cachecost.analysis.optimum.optimum import optimum_of
    from cachecost.simulation.engine import AS_RECORDED
    from cachecost.views.optimum.brief import print_brief
    from cachecost.views.optimum.json_output import optimum_object
    from cachecost.views.optimum.text import print_optimum

    read = logs_from(logs, format_)
    if scenario := scenario_among(logs):
        check_scenario(scenario, tokens, shared)
        workload = _scenario_workload(scenario, shared)
    else:
        workload = _log_workload(read, tokens, shared)
        if workload.strategy == AS_RECORDED:
            workload, held = hold_losses(workload)
            if held:
                print_diagnostic(f"calls whose bill shows a loss that nothing explains, held in every plan: {held:,}")
    with progress_bar(Path(read.name).name) as progress:
        optimum = optimum_of(workload.calls, workload.setup, pings, progress, workload.strategy)
    if html is not None:
        from cachecost.views.html.frame import write_page
        from cachecost.views.optimum.page import optimum_page

        write_page(html, optimum_page(read.name, optimum, f"cachecost optimize {read.arguments} --html {html}"))
        print_diagnostic(f"{html} written")
    as_object = optimum_object(optimum)
    write_rows(csv_file, ({"strategy": name, "cost_usd": cost} for name, cost in as_object["strategies"].items()))
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(as_object), indent=2) + b"\n")
        sys.stdout.buffer.flush()
    elif full:
        print_optimum(optimum, read.name, sys.stdout)
    else:
        print_brief(optimum, read.name, read.arguments, sys.stdout, scenario is not None)
    return report_skipped(read, may_skip, ExitCode.OK)


def _log_workload(logs: Logs, tokens: str | None, shared: SharedOptions) -> Workload:
    """The recorded calls; a recording without calls is a conversation, planned without breakpoints."""
    from cachecost.conversations.logs import read_sessions
    from cachecost.simulation.workload import plan_workload, recorded_workload

    with reading_bar("reading", logs.paths):
        conversations, calls = read_sessions(logs)
    setup = shared.setup.with_recorded(calls, tokens)
    return recorded_workload(logs.name, calls, setup) if calls else plan_workload("none", conversations, setup)


def _scenario_workload(path: Path, shared: SharedOptions) -> Workload:
    """The calls that the scenario's first strategy makes, under the scenario's own setup."""
    from cachecost.scenario import load, load_conversations
    from cachecost.simulation.workload import plan_workload, scenario_setup

    scenario = load(path, [])
    conversations, bills = load_conversations(scenario, path.parent, print_diagnostic)
    setup = scenario_setup(scenario, path.parent, bills, shared.assumptions, shared.setup.rules.own)
    first = next(spec for spec in scenario.strategies if spec.name == scenario.first)
    return plan_workload(first, conversations, setup)
