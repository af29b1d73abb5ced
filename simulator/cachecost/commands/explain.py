"""`cachecost explain`: the avoidable cost, by cause."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cachecost.base.errors import Fault
from cachecost.commands import options
from cachecost.commands.diagnostics import no_garbage_collection, print_diagnostic
from cachecost.commands.output_paths import CheckedCommand
from cachecost.commands.workloads import load_recorded, only_supported, watched
from cachecost.conversations.logs import Logs

if TYPE_CHECKING:
    from cachecost.ledger.findings import Explanation
    from cachecost.simulation.workload import Workload
    from cachecost.views.timeline.picture import TimelineView

    Pictures = list[Sequence[TimelineView]]

COMMAND = "explain"


@click.command(cls=CheckedCommand)
@options.logs_options("LOG...|SCENARIO")
@options.option("--strategy", "Scenario only: explain this strategy.  [default: all]", metavar="NAME")
@options.tokens_option
@options.option(
    "--assumptions", "Repeat under every assumption about open rules; show which change the answer.", is_flag=True
)
@options.html_option("Also write the findings as an HTML page.")
@options.csv_option
@options.json_option_of("Print JSON Lines instead of text: one object per strategy, or one for a log.")
@options.shared_options
def explain(
    logs: options.CommandLogs,
    strategy: str | None,
    tokens: str | None,
    assumptions: bool,
    html: Path | None,
    csv_file: Path | None,
    as_json: bool,
    shared: options.SharedOptions,
) -> int:
    """Find the avoidable cost of LOG or SCENARIO.yaml: each cause, where it occurs and its dollars.

    LOG is a file, a folder, or the URL of one (s3://, gs://, az://, https://). Several files, and all logs in
    folders, are one stream of calls in time order; repeated calls count once.
    """
    from cachecost.views.explain.text import explanation_object, print_explanation

    timelines: list[Sequence[TimelineView]] = []
    pictures = timelines if html is not None else None
    with options.work_bar() as bar:
        if scenario := options.scenario_among(logs.paths):
            from cachecost.analysis.explain.explaining import explain_workload
            from cachecost.simulation.workload import scenario_workloads

            own = options.scenario_options(scenario, tokens, shared)
            names, explanations = [], []
            for workload in scenario_workloads(
                load_recorded(scenario), scenario.parent, own.assumptions, own.setup.rules.own
            ):
                names.append(workload.strategy)
                if strategy in (None, workload.strategy):
                    supported = only_supported(workload, COMMAND)
                    explanations.append(explain_workload(watched(supported, bar), assumptions))
                    _add_picture(pictures, supported, explanations[-1], own)
            if strategy is not None:
                options.check_name("--strategy", strategy, names)
        else:
            with no_garbage_collection():
                explanations, logs.skipped = _explain_logs(logs, tokens, shared, assumptions, bar, pictures)
    csv_rows: list[dict[str, Any]] = []
    for number, explanation in enumerate(explanations):
        as_object = explanation_object(explanation)
        csv_rows += [{"strategy": explanation.strategy, **row} for row in as_object["findings"]]
        if as_json:
            options.print_json(as_object)
        else:
            sys.stdout.write("\n" if number else "")
            print_explanation(explanation, sys.stdout, logs.arguments if number == len(explanations) - 1 else "")
    options.write_rows(csv_file, csv_rows)
    if html is not None:
        from cachecost.views.explain.text import explain_page

        again = f"cachecost explain {logs.arguments} --html {html}"
        options.write_html(html, explain_page(logs.name, explanations, again, timelines))
    return logs.exit_code()


def _explain_logs(
    logs: Logs,
    tokens: str | None,
    shared: options.SharedOptions,
    assumptions: bool,
    bar: options.WorkBar,
    pictures: Pictures | None,
) -> tuple[list[Explanation], list[Fault]]:
    """An explanation of the transcripts among the logs, and one of the others; the errors of files that were skipped.
    Raises InputError where nothing can be read; CannotEvaluate."""
    from cachecost.analysis.bill.explanation import explain_account, explain_recording
    from cachecost.analysis.bill.found_sessions import account_of_found, prices_under
    from cachecost.commands.sessions import read_session_files
    from cachecost.simulation.workload import read_workload

    found = read_session_files(logs.paths, logs.format_, bar)
    explanations = []
    others, found.logs = found.logs, []
    if found.sessions:
        account = account_of_found(found, shared.setup, logs.format_)
        explanations.append(explain_account(account))
        if pictures is not None:
            from cachecost.views.explain.timelines import account_timelines

            pictures.append(account_timelines(len(pictures), account))
    if others or not found.sessions:
        paths = others if found.sessions or found.skipped else logs.paths
        rest = Logs(paths, logs.format_, print_diagnostic, may_skip_all=bool(found.sessions))
        with bar.reading(paths):
            traffic = only_supported(read_workload(rest, shared.setup, tokens), COMMAND)
        explanations.append(explain_recording(watched(traffic, bar), prices_under(shared.setup), assumptions))
        _add_picture(pictures, traffic, explanations[-1], shared)
        found.skipped += rest.skipped
    return explanations, found.skipped


def _add_picture(
    pictures: Pictures | None, traffic: Workload, explanation: Explanation, shared: options.SharedOptions
) -> None:
    """Add the prompt timeline of a workload, from one more replay, if there are to be any."""
    if pictures is None:
        return
    from cachecost.analysis.bill.found_sessions import prices_under
    from cachecost.views.explain.timelines import workload_timeline

    made = list(map(traffic.simulation().simulate, traffic.calls))
    pictures.append(workload_timeline(len(pictures), explanation, traffic.calls, made, prices_under(shared.setup)))
