"""`cachecost optimize`: the cheapest legal breakpoints, TTLs and keep-alives for some calls, and the lower bound."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cachecost.base.structs import replace
from cachecost.commands import options
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.output_paths import CheckedCommand, OutputPath
from cachecost.commands.workloads import load_recorded, only_supported
from cachecost.conversations.logs import Logs
from cachecost.providers.assumptions import show_assumption
from cachecost.providers.hosts import AUTO_HOST
from cachecost.simulation.workload import Workload

if TYPE_CHECKING:
    from cachecost.views.optimum.plan_folder import PlanSource

COMMAND = "optimize"


@click.command(cls=CheckedCommand)
@options.logs_options("LOG...|SCENARIO")
@options.option("--pings/--no-pings", "Allow extra calls: keep-alives and pre-warming.", default=True)
@options.tokens_option
@options.full_option
@options.html_option("Also write the result as an HTML page.")
@options.csv_option
@options.option(
    "--emit",
    "Also write the plan to a new or empty folder: the requests with its breakpoints, the cheapest rule that knows"
    " only the past as a strategy and as client code, and a README.",
    OutputPath(),
    metavar="DIR",
)
@options.json_option
@options.shared_options
def optimize(
    logs: options.CommandLogs,
    pings: bool,
    tokens: str | None,
    full: bool,
    html: Path | None,
    csv_file: Path | None,
    emit: Path | None,
    as_json: bool,
    shared: options.SharedOptions,
) -> int:
    """Find the cheapest legal breakpoints, TTLs, keep-alives and pre-warming for LOG or SCENARIO.yaml.

    Prints the answer; --full prints every strategy, and --emit DIR writes files to use it. The calls of a log are taken
    as they were sent, without their breakpoints; those of a scenario as its first strategy sends them. Several files,
    and all logs in folders, are one stream of calls in time order; repeated calls count once.
    """
    from cachecost.analysis.optimum.optimum import optimum_of
    from cachecost.views.optimum.text import optimum_object, print_brief, print_optimum

    scenario = options.scenario_among(logs.paths)
    if emit is not None:
        from cachecost.views.optimum.plan_folder import check_folder

        # what there is to say about the files is said when they are read
        files = [one.path for one in Logs(logs.paths, logs.format_).files()] if logs.single is None else [logs.single]
        check_folder(emit, [scenario] if scenario else files)
    with options.work_bar() as bar:
        planned: PlanSource | Workload
        if scenario:
            planned = _scenario_input(scenario, options.scenario_options(scenario, tokens, shared))
        else:
            planned = _log_input(logs, tokens, shared, bar)
        if isinstance(planned, Workload):
            return _print_content(planned, logs, as_json, has_files=bool(emit or html or csv_file))
        workload = planned.workload
        bar.begin("rendering", len(workload.calls), options.CALL)
        calls = bar.count(workload.calls)
        optimum = optimum_of(calls, workload.setup, pings, search_progress(bar), workload.strategy)
    if html is not None:
        from cachecost.views.optimum.text import optimum_page

        options.write_html(html, optimum_page(logs.name, optimum, f"cachecost optimize {logs.arguments} --html {html}"))
    if emit is not None:
        from cachecost.views.optimum.plan_folder import write_plan

        for note in write_plan(emit, optimum, planned):
            print_diagnostic(note)
    as_object = optimum_object(optimum)
    options.write_rows(
        csv_file, ({"strategy": name, "cost_usd": cost} for name, cost in as_object["strategies"].items())
    )
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(as_object), indent=2) + b"\n")
        sys.stdout.buffer.flush()
    elif full:
        print_optimum(optimum, logs.name, sys.stdout)
    else:
        print_brief(optimum, logs.name, logs.arguments, sys.stdout, scenario is not None)
    return logs.exit_code()


def search_progress(bar: options.WorkBar) -> Callable[[str, int], None]:
    """Progress of the search: a phase for each kind of plans, of which there may turn out to be fewer."""
    phase = ""

    def name_plans(what: str, plans: int) -> None:
        nonlocal phase
        if what != phase:
            phase = what
            bar.begin(f"trying {what}", plans, "plan")
        bar.advance(1)

    return name_plans


def _print_content(traffic: Workload, logs: options.CommandLogs, as_json: bool, has_files: bool) -> int:
    """Print the cheapest content of calls whose caches find by themselves what was sent before. Raises UsageError."""
    if has_files:
        raise click.UsageError("--emit, --html, --csv: not for calls to caches that take no breakpoints")
    from cachecost.analysis.whatif.content_plan import plan_content
    from cachecost.views.optimum.content import content_object, print_content

    plan = plan_content(traffic)
    if plan.held_losses:
        print_diagnostic(
            f"calls whose bill shows a loss that nothing explains, held in every plan: {plan.held_losses:,}"
        )
    if as_json:
        options.print_json(content_object(plan))
    else:
        print_content(plan, logs.name, logs.arguments, sys.stdout)
    return logs.exit_code()


def _log_input(
    logs: Logs, tokens: str | None, shared: options.SharedOptions, bar: options.WorkBar
) -> PlanSource | Workload:
    """What is to be planned; the calls alone where none of their caches looks back from breakpoints."""
    from cachecost.analysis.bill.explanation import hold_losses
    from cachecost.conversations.logs import read_sessions
    from cachecost.simulation.workload import plan_workload, recorded_workload
    from cachecost.views.optimum.plan_folder import PlanSource

    with bar.reading(logs.paths):
        conversations, calls = read_sessions(logs)
    setup = shared.setup.with_recorded(calls, tokens)
    typed = _replay_options(shared, tokens)
    if not calls:
        workload = plan_workload("none", conversations, setup)
        return PlanSource(workload, conversations, shared.setup, tokens, logs.arguments, typed)
    recorded = recorded_workload(logs.name, calls, setup)
    if recorded.finds_without_lookback:
        return recorded
    supported = only_supported(recorded, COMMAND)
    if supported is not recorded:
        conversations = []  # those of the calls that were left out cannot be planned, so the log is not planned again
    workload, held = hold_losses(supported)
    if held:
        print_diagnostic(f"calls whose bill shows a loss that nothing explains, held in every plan: {len(held):,}")
    return PlanSource(workload, conversations, shared.setup, tokens, logs.arguments, typed)


def _replay_options(shared: options.SharedOptions, tokens: str | None) -> str:
    """The options of a replay under the same rules and prices, with a blank before each."""
    words = [f"--rule {rule}" for rule in shared.rule]
    words += [f"--tokens {tokens}"] if tokens else []
    host = None if shared.host == AUTO_HOST else shared.host
    given = {"--rules": shared.rules_file, "--prices": shared.prices, "--as-of": shared.as_of, "--host": host}
    words += [f"{name} {value}" for name, value in given.items() if value is not None]
    return "".join(f" {word}" for word in words)


def _scenario_input(path: Path, shared: options.SharedOptions) -> PlanSource:
    """The calls that the scenario's first strategy makes, under the scenario's own setup."""
    from cachecost.scenario import load_conversations
    from cachecost.simulation.workload import plan_workload, scenario_setup, workload_as_recorded
    from cachecost.views.optimum.plan_folder import PlanSource

    scenario = load_recorded(path)
    conversations, bills = load_conversations(scenario, path.parent, print_diagnostic)
    setup = scenario_setup(scenario, path.parent, bills, shared.assumptions, shared.setup.rules.own)
    rules = tuple(
        f"{name}={show_assumption(value)}" for name, value in {**scenario.rules, **shared.assumptions}.items()
    )
    prices = path.parent / scenario.prices if scenario.prices else None
    alike = options.SharedOptions(rules, shared.rules_file, prices, setup.day, scenario.host)
    first = next((spec for spec in scenario.strategies if spec.name == scenario.first), None)
    if first:
        planned = plan_workload(first, conversations, setup)
    else:
        planned = workload_as_recorded(scenario, path.parent, bills, shared.assumptions, shared.setup.rules.own)
    workload = only_supported(planned, COMMAND)
    bare = replace(setup, bills=(), counters={})
    return PlanSource(workload, (), bare, setup.tokens, str(path), _replay_options(alike, setup.tokens))
