"""`cachecost replay`: the usage and dollars of each call of a recording."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from cachecost.base.errors import CannotEvaluate, exit_code
from cachecost.base.formatting import count_text, inert_json
from cachecost.commands import options
from cachecost.commands.diagnostics import no_garbage_collection, print_diagnostic
from cachecost.commands.output_paths import SectionedCommand
from cachecost.commands.replay_job import ModelDays, ReplayJob, print_dated_notes, retirement_note
from cachecost.conversations.calls import BillTotal
from cachecost.conversations.logs import Logs
from cachecost.ledger.rows import NOT_EVALUATED, has_unevaluated
from cachecost.providers.hosts import host_of
from cachecost.providers.rules import data_date

if TYPE_CHECKING:
    from cachecost.ledger.findings import Explanation
    from cachecost.ledger.results import Ledger
    from cachecost.views.replay.tables import Billed


@click.command(cls=SectionedCommand)
@options.logs_options()
@click.option(
    "--strategy",
    "-s",
    "strategies",
    multiple=True,
    metavar="NAME|FILE",
    help="Plan the conversations again under this strategy: NAME, NAME@1h for a 1h TTL, or a file with one in YAML, as"
    " written by `cachecost optimize --emit`. Repeatable.",
)
@click.option(
    "--all", "ranks", is_flag=True, help="Plan the conversations again under every built-in strategy, cheapest first."
)
@click.option(
    "--model", metavar="MODEL", help="Model of all calls; needs --strategy or --all.  [default: the models in the log]"
)
@click.option(
    "--capacity",
    "capacities",
    multiple=True,
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="Simulate a self-hosted server (--host vllm or sglang) whose cache holds this many tokens; repeatable.",
)
@options.tokens_option
@options.html_option("Also write an HTML page that shows every prompt.")
@options.csv_option
@options.json_option_of("Print JSON Lines instead of text, one object per call.")
@options.shared_options
def replay(
    logs: options.CommandLogs,
    strategies: tuple[str, ...],
    ranks: bool,
    model: str | None,
    capacities: tuple[int, ...],
    tokens: str | None,
    html: Path | None,
    csv_file: Path | None,
    as_json: bool,
    shared: options.SharedOptions,
) -> int:
    """Predict the usage and cost of each call of LOG.

    Without --strategy and --all, the calls are simulated as they were sent. With one of them, the conversations of LOG
    are planned again under each strategy.

    LOG is a file, a folder, or the URL of one (s3://, gs://, az://, https://). Several files, and all logs in
    folders, are one stream of calls in time order; a call that several files hold counts once. Requests share a
    cache where they begin with the same content, whichever file they are in.
    """
    if model and not strategies and not ranks:
        raise click.UsageError("--model: expected --strategy or --all too; without them each call keeps its own model")
    if capacities:
        _check_capacities(shared.one_host, bool(strategies) or ranks)
    bill = BillTotal(shared.setup.prices, shared.host)
    if model and shared.as_of is None:
        host = host_of(None, shared.host, model)
        day = data_date(host)
        day_note = f"{model}: rules and prices of {day}; --as-of DATE for another day"
        print_diagnostic(retirement_note(host, model, day) or day_note)
        shared = replace(shared, as_of=day)
    streams = as_json and html is None and csv_file is None
    with no_garbage_collection():
        with options.work_bar() as bar:
            days = ModelDays(shared.host)
            job = ReplayJob(logs, strategies, ranks, model, tokens, shared, bill, bar, days, capacities)
            if streams:
                failed = _print_json(job.objects(), bar)
            else:
                found = job.ledgers(not as_json, with_timelines=html is not None)
                ledgers = [ledger for ledger in found if ledger.rows]
                bar.begin("writing")
                options.write_rows(csv_file, job.ranked_objects(ledgers))
                if html is not None:
                    _write_page(job, ledgers, html)
        if not streams:
            failed = _print_json(job.ranked_objects(ledgers)) if as_json else _print_table(job, ledgers)
    return logs.exit_code(exit_code(not_evaluated=failed))


def _check_capacities(host: str, plans: bool) -> None:
    """Raises UsageError where --capacity does not apply."""
    from cachecost.providers.hosts import catalogue

    if catalogue(host).is_priced:
        raise click.UsageError(f"--capacity: {host} is not self-hosted; expected --host vllm or --host sglang")
    if plans:
        raise click.UsageError(
            "--capacity: not with --strategy or --all; sweep a scenario instead: --grid rules.capacity_tokens=N1,N2"
        )


def _print_json(rows: Iterable[Mapping[str, Any]], bar: options.WorkBar | None = None) -> bool:
    """Write each row as it comes, to a terminal at once instead of `bar`; return whether any could not be evaluated."""
    failed = False
    write, flush = sys.stdout.buffer.write, sys.stdout.buffer.flush
    is_watched = sys.stdout.isatty()
    encode = msgspec.json.Encoder().encode
    for row in rows:
        if is_watched and bar:
            bar.end()
        write(inert_json(encode(row)) + b"\n")
        if is_watched:
            flush()
        failed = failed or ("error" in row and row["error"]["type"] == NOT_EVALUATED)
    sys.stdout.buffer.flush()
    return failed


def _bill_totals(bill: BillTotal) -> Billed | None:
    from cachecost.views.replay.tables import Billed

    is_priced = sum(bill.unpriced.values()) < bill.calls
    return Billed(bill.calls, bill.usage, bill.dollars) if bill.usage.total_input and is_priced else None


def _print_table(job: ReplayJob, ledgers: Sequence[Ledger]) -> bool:
    """Print the table; return whether any call could not be evaluated."""
    from cachecost.views.bill.words import charged_words
    from cachecost.views.replay.tables import print_ledgers

    for why, number in sorted(job.bill.unpriced.items()):
        print_diagnostic(f"{count_text(number, 'call')} not in the billed dollars: {why}")
    if charged := charged_words(job.bill):
        print_diagnostic(charged)
    if job.model is None:
        print_dated_notes(job.model_days, job.setup)
    are_strategies, calls = not job.capacities, job.bill.calls
    print_ledgers(job.logs.name, ledgers, sys.stdout, _bill_totals(job.bill), job.ranks, are_strategies, calls)
    return has_unevaluated(row for ledger in ledgers for row in ledger.rows)


def _write_page(job: ReplayJob, ledgers: Sequence[Ledger], path: Path) -> None:
    """The page of all ledgers, with the avoidable cost of the calls as they were sent. Raises CannotEvaluate."""
    from cachecost.providers.assumptions import show_assumption
    from cachecost.views.replay.page import replay_page

    if not ledgers:
        raise CannotEvaluate(f"{job.logs.name} contains no call to show on a page")
    setup = job.shared.setup
    names = "".join(f" --strategy '{name}'" for name in job.strategies) + (" --all" if job.ranks else "")
    names += "".join(f" --capacity {capacity}" for capacity in job.capacities)
    own = {name: show_assumption(value) for name, value in setup.rules.own.assumptions.items()}
    page = replay_page(
        job.logs.name,
        ledgers,
        host_of(None, setup.host, ledgers[0].rows[0].model),
        setup.day,
        {**own, **job.shared.assumptions},
        setup.prices.versions,
        f"cachecost replay {job.logs.arguments}{names} --html {path}",
        _bill_totals(job.bill),
        [] if job.plans else _explanations(job),
        bool(job.capacities) or setup.rules.is_bounded,
    )
    options.write_html(path, page)


def _explanations(job: ReplayJob) -> list[Explanation]:
    """The avoidable cost of the calls as they were sent, where `explain` supports their caches."""
    from cachecost.analysis.explain.explaining import explain_workload
    from cachecost.simulation.workload import read_workload, supported_calls

    try:
        again = Logs(job.logs.paths, job.logs.format_)
        workload, left_out = supported_calls(read_workload(again, job.shared.setup, job.tokens), "explain")
        for note in left_out.notes("explain"):
            print_diagnostic(f"avoidable costs on the page: {note}")
        return [explain_workload(workload)]
    except CannotEvaluate as error:
        print_diagnostic(f"the page does not show avoidable costs: {error}")
        return []
