"""`cachecost whatif`: the cost of alternative ways to send a recording."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cachecost.commands import options
from cachecost.commands.diagnostics import no_garbage_collection
from cachecost.commands.output_paths import CheckedCommand
from cachecost.commands.replay import ModelDays, print_dated_notes
from cachecost.commands.workloads import only_supported
from cachecost.live.clock import today


@click.command(cls=CheckedCommand)
@options.logs_options()
@options.option("--jointly", "Also replay these alternatives combined; names as in the table.", metavar="A,B,…")
@options.option(
    "--action actions",
    "Price a change in mid-session; repeatable: model=MODEL, effort=low, tool_choice=any, tools+=NAME,"
    " tools-=NAME, format=json.",
    multiple=True,
    metavar="ACTION",
)
@options.option("--at", "With --action: change after this call, from 1.  [default: the last]", int, metavar="CALL")
@options.option(
    "--assumptions",
    "Repeat under other assumptions about open rules, even for a long LOG.  [default: only up to 500 calls]",
    is_flag=True,
)
@options.tokens_option
@options.full_option
@options.csv_option
@options.json_option
@options.shared_options
def whatif(
    logs: options.CommandLogs,
    jointly: str | None,
    actions: tuple[str, ...],
    at: int | None,
    assumptions: bool,
    tokens: str | None,
    full: bool,
    csv_file: Path | None,
    as_json: bool,
    shared: options.SharedOptions,
) -> int:
    """Price alternative ways to send LOG: TTLs, keep-alives, breakpoints, models, hosts, batches and compaction.

    Prints the best alternatives, among them the fix of each cause that `explain` finds; --full prints all. Each
    alternative is replayed, and its saving is the difference to a replay of LOG as it was sent. If LOG does not contain
    what an alternative needs, the answer is "not supported by the data". Models that are retired on the day of LOG or
    today are no alternatives; with --as-of that day alone decides.
    Several files, and all logs in folders, are one stream of calls in time order; repeated calls count once.
    """
    from cachecost.analysis.whatif.report import what_if
    from cachecost.simulation.workload import read_workload
    from cachecost.views.whatif import print_brief, print_whatif, whatif_object

    names = [name.strip() for name in (jointly or "").split(",") if name.strip()]
    with options.work_bar() as bar, no_garbage_collection():
        with bar.reading(logs.paths):
            workload = only_supported(read_workload(logs, shared.setup, tokens), "whatif")
        steps, day = bar.replays(), None if shared.as_of else today()
        alternatives = what_if(workload, names, actions, at, assumptions or None, steps, steps.expect, day)
    if not as_json:
        models = ModelDays(shared.host)
        for call in workload.calls:
            models.add(call)
        print_dated_notes(models, workload.setup)
    as_object = whatif_object(alternatives)
    options.write_rows(csv_file, as_object["alternatives"])
    if as_json:
        options.print_json(as_object)
    elif full:
        print_whatif(alternatives, sys.stdout)
    else:
        print_brief(alternatives, logs.arguments, sys.stdout)
    return logs.exit_code()
