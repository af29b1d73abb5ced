"""`cachecost optimize`: the cheapest legal breakpoints, TTLs and keep-alives for some calls, and the lower bound."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cachecost.base.errors import ExitCode
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.options import (
    CALL,
    SharedOptions,
    WorkBar,
    csv_option,
    format_option,
    full_option,
    html_option,
    json_option,
    logs_argument,
    logs_from,
    report_skipped,
    scenario_among,
    scenario_options,
    shared_options,
    skip_option,
    tokens_option,
    work_bar,
    write_rows,
)
from cachecost.commands.output_paths import OutputPath, SectionedCommand
from cachecost.commands.workloads import load_recorded, only_supported
from cachecost.providers.assumptions import show_assumption
from cachecost.providers.hosts import AUTO_HOST

if TYPE_CHECKING:
    from cachecost.analysis.optimum.optimum import Optimum
    from cachecost.conversations.calls import Call
    from cachecost.conversations.logs import Logs
    from cachecost.scenario import Scenario
    from cachecost.simulation.workload import Workload
    from cachecost.views.optimum.plan_folder import PlanSource

COMMAND = "optimize"


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
@click.option(
    "--emit",
    type=OutputPath(),
    metavar="DIR",
    help="Also write the plan to a new or empty folder: the requests with its breakpoints, the cheapest rule that knows"
    " only the past as a strategy and as client code, and a README.",
)
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
    emit: Path | None,
    as_json: bool,
    shared: SharedOptions,
) -> int:
    """Find the cheapest legal breakpoints, TTLs, keep-alives and pre-warming for LOG or SCENARIO.yaml.

    Prints the answer; --full prints every strategy, and --emit DIR writes files to use it. The calls of a log are taken
    as they were sent, without their breakpoints; those of a scenario as its first strategy sends them. Several files,
    and all logs in folders, are one stream of calls in time order; repeated calls count once.
    """
    from cachecost.analysis.optimum.optimum import optimum_of
    from cachecost.views.optimum.text import optimum_object, print_brief, print_optimum

    read = logs_from(logs, format_)
    scenario = scenario_among(logs)
    if emit is not None:
        _check_emit(emit, read, scenario)
    with work_bar() as bar:
        if scenario:
            planned = _scenario_input(scenario, scenario_options(scenario, tokens, shared))
        else:
            planned = _log_input(read, tokens, shared, bar)
        workload = planned.workload
        bar.begin("rendering", len(workload.calls), CALL)
        calls = bar.count(workload.calls)
        optimum = optimum_of(calls, workload.setup, pings, search_progress(bar), workload.strategy)
    if html is not None:
        from cachecost.views.html.frame import write_page
        from cachecost.views.optimum.text import optimum_page

        write_page(html, optimum_page(read.name, optimum, f"cachecost optimize {read.arguments} --html {html}"))
        print_diagnostic(f"{html} written")
    if emit is not None:
        _emit(emit, optimum, planned)
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


def search_progress(bar: WorkBar) -> Callable[[str, int], None]:
    """Progress of the search: a phase for each kind of plans, of which there may turn out to be fewer."""
    phase = ""

    def name_plans(what: str, plans: int) -> None:
        nonlocal phase
        if what != phase:
            phase = what
            bar.begin(f"trying {what}", plans, "plan")
        bar.advance(1)

    return name_plans


def _log_input(logs: Logs, tokens: str | None, shared: SharedOptions, bar: WorkBar) -> PlanSource:
    from cachecost.analysis.bill.explanation import hold_losses
    from cachecost.conversations.logs import read_sessions
    from cachecost.simulation.workload import plan_workload, recorded_workload
    from cachecost.views.optimum.plan_folder import PlanSource

    with bar.reading(logs.paths):
        conversations, calls = read_sessions(logs)
    setup = shared.setup.with_recorded(calls, tokens)
    options = _replay_options(shared, tokens)
    if not calls:
        workload = plan_workload("none", conversations, setup)
        return PlanSource(workload, conversations, shared.setup, tokens, logs.arguments, options)
    recorded = recorded_workload(logs.name, calls, setup)
    supported = only_supported(recorded, COMMAND)
    if supported is not recorded:
        conversations = []  # those of the calls that were left out cannot be planned, so the log is not planned again
    workload, held = hold_losses(supported)
    if held:
        print_diagnostic(f"calls whose bill shows a loss that nothing explains, held in every plan: {len(held):,}")
    return PlanSource(workload, conversations, shared.setup, tokens, logs.arguments, options)


def _replay_options(shared: SharedOptions, tokens: str | None) -> str:
    """The options of a replay under the same rules and prices, with a blank before each."""
    words = [f"--rule {rule}" for rule in shared.rule]
    words += [f"--tokens {tokens}"] if tokens else []
    host = None if shared.host == AUTO_HOST else shared.host
    given = {"--rules": shared.rules_file, "--prices": shared.prices, "--as-of": shared.as_of, "--host": host}
    words += [f"{name} {value}" for name, value in given.items() if value is not None]
    return "".join(f" {word}" for word in words)


def _scenario_input(path: Path, shared: SharedOptions) -> PlanSource:
    """The calls that the scenario's first strategy makes, under the scenario's own setup."""
    from cachecost.scenario import load_conversations
    from cachecost.simulation.workload import plan_workload, scenario_setup
    from cachecost.views.optimum.plan_folder import PlanSource

    scenario = load_recorded(path)
    conversations, bills = load_conversations(scenario, path.parent, print_diagnostic)
    setup = scenario_setup(scenario, path.parent, bills, shared.assumptions, shared.setup.rules.own)
    rules = tuple(
        f"{name}={show_assumption(value)}" for name, value in {**scenario.rules, **shared.assumptions}.items()
    )
    prices = path.parent / scenario.prices if scenario.prices else None
    alike = SharedOptions(rules, shared.rules_file, prices, setup.day, scenario.host)
    first = next((spec for spec in scenario.strategies if spec.name == scenario.first), None)
    planned = plan_workload(first, conversations, setup) if first else _as_recorded(scenario, path, bills, shared)
    workload = only_supported(planned, COMMAND)
    bare = replace(setup, bills=(), counters={})
    return PlanSource(workload, (), bare, setup.tokens, str(path), _replay_options(alike, setup.tokens))


def _as_recorded(scenario: Scenario, path: Path, calls: Sequence[Call], shared: SharedOptions) -> Workload:
    from cachecost.simulation.workload import workload_as_recorded

    return workload_as_recorded(scenario, path.parent, calls, shared.assumptions, shared.setup.rules.own)


def _check_emit(folder: Path, logs: Logs, scenario: Path | None) -> None:
    """Raises InputError where --emit cannot write: before anything is computed."""
    from cachecost.views.optimum.plan_folder import check_folder

    check_folder(folder, [scenario] if scenario else _files_of(logs))


def _files_of(logs: Logs) -> list[Path]:
    """The files that are read; what there is to say about them is said when they are."""
    from cachecost.conversations.logs import Logs

    return [logs.single] if logs.single else [one.path for one in Logs(logs.paths, logs.format_).files()]


def _emit(folder: Path, optimum: Optimum, source: PlanSource) -> None:
    from cachecost.views.optimum.plan_folder import write_plan

    for note in write_plan(folder, optimum, source):
        print_diagnostic(note)
