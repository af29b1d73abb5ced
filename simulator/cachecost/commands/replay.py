"""`cachecost replay`: the usage and dollars of each call of a recording."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.base.exit_codes import exit_code
from cachecost.base.formatting import count_text
from cachecost.base.inert import inert_json
from cachecost.base.structs import value
from cachecost.commands.dated_notes import ModelDays, print_dated_notes, retirement_note
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.help import SectionedCommand
from cachecost.commands.log_arguments import logs_argument, logs_from, report_skipped, skip_option
from cachecost.commands.memory import no_garbage_collection
from cachecost.commands.options import (
    SharedOptions,
    csv_option,
    format_option,
    html_option,
    is_scenario,
    json_option_of,
    shared_options,
    tokens_option,
    write_rows,
)
from cachecost.commands.work_bar import CALL, WorkBar, work_bar
from cachecost.conversations.bills import BillTotal
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.conversations.logs import Logs, read_logs, read_sessions
from cachecost.conversations.time_order import in_file_order
from cachecost.ledger.rows import CallRow
from cachecost.providers.rules import data_date
from cachecost.simulation.call_preparer import NOT_EVALUATED
from cachecost.simulation.engine import AS_RECORDED, Simulation
from cachecost.simulation.setup import ReplaySetup, ttl_names
from cachecost.tokens.factory import CALIBRATED
from cachecost.views.replay.call_rows import call_object

if TYPE_CHECKING:
    from cachecost.conversations.calls import RecordedCall
    from cachecost.conversations.model import Conversation
    from cachecost.ledger.findings import Explanation
    from cachecost.ledger.results import Ledger
    from cachecost.simulation.engine import SimulatedCall
    from cachecost.strategies.spec import StrategySpec
    from cachecost.views.replay.tables import Billed

REPLAYING = "replaying"


@click.command(cls=SectionedCommand)
@logs_argument()
@format_option
@skip_option
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
    "--model",
    metavar="MODEL",
    help="Model of all calls; needs --strategy or --all.  [default: the models in the log]",
)
@click.option(
    "--capacity",
    "capacities",
    multiple=True,
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="Simulate a self-hosted server (--host vllm or sglang) whose cache holds this many tokens; repeatable.",
)
@tokens_option
@html_option("Also write an HTML page that shows every prompt.")
@csv_option
@json_option_of("Print JSON Lines instead of text, one object per call.")
@shared_options
def replay(
    logs: tuple[Path, ...],
    format_: str,
    may_skip: bool,
    strategies: tuple[str, ...],
    ranks: bool,
    model: str | None,
    capacities: tuple[int, ...],
    tokens: str | None,
    html: Path | None,
    csv_file: Path | None,
    as_json: bool,
    shared: SharedOptions,
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
        _check_capacities(shared.host, bool(strategies) or ranks)
    bill = BillTotal(shared.setup.prices, shared.host)
    if model and shared.as_of is None:
        day = data_date(shared.host)
        of_the_day = f"{model}: rules and prices of {day}; --as-of DATE for another day"
        note = retirement_note(shared.host, model, day) or of_the_day
        print_diagnostic(note)
        shared = replace(shared, as_of=day)
    read = logs_from(logs, format_)
    streams = as_json and html is None and csv_file is None
    with no_garbage_collection():
        with work_bar() as bar:
            days = ModelDays(shared.host)
            job = _ReplayJob(read, strategies, ranks, model, tokens, shared, bill, bar, days, capacities)
            if streams:
                failed = _print_json(job.objects(), bar)
            else:
                is_pictured = html is not None
                ledgers = [ledger for ledger in job.ledgers(not as_json, is_pictured) if ledger.rows]
                bar.begin("writing")
                write_rows(csv_file, job.ranked_objects(ledgers))
                if html is not None:
                    _write_page(job, ledgers, html)
        if not streams:
            failed = _print_json(job.ranked_objects(ledgers)) if as_json else _print_table(job, ledgers)
    return report_skipped(read, may_skip, exit_code(not_evaluated=failed))


@value
class _ReplayJob:
    """What to replay, and under which options. The bills of the calls that are read are added to `bill`."""

    logs: Logs
    strategies: tuple[str, ...]
    ranks: bool
    model: str | None
    tokens: str | None
    shared: SharedOptions
    bill: BillTotal
    bar: WorkBar
    model_days: ModelDays
    capacities: tuple[int, ...] = ()

    @property
    def setup(self) -> ReplaySetup:
        return replace(self.shared.setup, starts_warm=True, may_lack_prices=True)

    @property
    def plans(self) -> bool:
        """Whether the conversations are planned again, under one strategy or more."""
        return bool(self.strategies) or self.ranks

    def objects(self) -> Iterator[dict[str, Any]]:
        """The rows for JSON as they come; of several strategies when all are there, since they have ranks."""
        if not self.plans and not self.capacities:
            return (call_object(simulated.row) for simulated in _simulate(*self._recorded_calls()))
        ledgers = self.ledgers(with_lower_bound=False, pictured=False)
        return self.ranked_objects([ledger for ledger in ledgers if ledger.rows] if self._are_compared else ledgers)

    @property
    def _are_compared(self) -> bool:
        """Whether there are several strategies."""
        return self.ranks or len(set(self.strategies)) > 1

    def ranked_objects(self, ledgers: Iterable[Ledger]) -> Iterator[dict[str, Any]]:
        """The rows for JSON and CSV, all of one ledger before the next; of strategies that are compared with ranks."""
        if not self._are_compared:
            return (call_object(row) for ledger in ledgers for row in ledger.rows)
        from cachecost.views.replay.ranked_rows import ranked_objects

        return ranked_objects(list(ledgers))

    def ledgers(self, with_lower_bound: bool, pictured: bool) -> Iterator[Ledger]:
        """The ledger of each strategy or capacity, or that of the calls as recorded; `pictured` with timelines."""
        if self.capacities:
            return self._at_capacities(pictured)
        if self.plans:
            return self._of_strategies(with_lower_bound, pictured)
        return iter([_recorded_ledger(*self._recorded_calls(), pictured)])

    def _calls(self, keep_content: bool = True) -> Iterator[RecordedCall]:
        with self.bar.reading(self.logs.paths):
            yield from self.model_days.of_calls(self.bill.add_all(read_logs(self.logs, keep_content)))

    def _recorded_calls(self) -> tuple[Iterable[RecordedCall], ReplaySetup]:
        """The calls as recorded, and their setup. They are kept in memory only where their bills are needed first."""
        calls = self._calls(keep_content=self.tokens != "bytes")
        if self.tokens not in (None, CALIBRATED):
            return calls, self.setup.with_recorded([], self.tokens)
        kept = list(calls)
        self.bar.begin(REPLAYING, len(kept), CALL)
        return self.bar.count(kept), self.setup.with_recorded(kept, self.tokens)

    def _at_capacities(self, pictured: bool) -> Iterator[Ledger]:
        """The calls as they were sent, to a server that keeps this many tokens, one capacity after the other."""
        calls = list(self._calls())
        self.bar.begin(REPLAYING, len(calls) * len(self.capacities), CALL)
        for capacity in self.capacities:
            setup = self.setup.with_assumptions({"capacity_tokens": capacity}).with_recorded(calls, self.tokens)
            yield _recorded_ledger(self.bar.count(calls), setup, pictured, f"{AS_RECORDED}, {capacity:,} tokens kept")

    def _of_strategies(self, with_lower_bound: bool, pictured: bool) -> Iterator[Ledger]:
        """The ledger of each strategy, one after the other.

        Where all are ranked there is no lower bound: it is the same for most, and takes as long as a replay.
        """
        from cachecost.simulation.strategy_ledger import replay_strategy

        _check_names(self.strategies)
        with self.bar.reading(self.logs.paths):
            conversations, calls = read_sessions(self.logs)
        for call in calls:
            self.bill.add(call)
            self.model_days.add(call)
        if not any(conversation.replies for conversation in conversations):
            raise CannotEvaluate(f"{self.logs.name} contains no conversation that can be planned again")
        if self.model is None and not any(conversation.model for conversation in conversations):
            raise CannotEvaluate(f"{self.logs.name} names no model; name one with --model")
        setup = replace(self.setup.with_recorded(calls, self.tokens), model=self.model, counts_answers=False)
        lower_bound = _lower_bound if with_lower_bound and not self.ranks else None
        specs = self._specs(conversations)
        progress = self.bar.replays(len(specs))
        for spec in specs:
            yield replay_strategy(spec, conversations, setup, progress, lower_bound, pictured, len(specs) > 1)

    def _specs(self, conversations: Sequence[Conversation]) -> list[StrategySpec | str]:
        """The strategies to plan; --all leaves out strategies for side questions where the log has none."""
        from cachecost.strategies.agent import Agent
        from cachecost.strategies.registry import find_strategy, names

        presets = {name: find_strategy(name) for name in names()} if self.ranks else {}
        has_questions = any(conversation.inquiries for conversation in conversations)
        fitting = [
            name
            for name, preset in presets.items()
            if has_questions or not (isinstance(preset, Agent) and (preset.inquiry or preset.inquiry_by_host))
        ]
        return [_load(name) for name in dict.fromkeys((*self.strategies, *fitting))]


def _simulate(calls: Iterable[RecordedCall], setup: ReplaySetup, name: str = AS_RECORDED) -> Iterator[SimulatedCall]:
    """Each call as it was sent, in the order of the file."""
    simulation = Simulation(setup, name, preparer=setup.preparer())
    return in_file_order((call.number, simulation.simulate(call).at(call.number)) for call in calls)


def _recorded_ledger(
    calls: Iterable[RecordedCall], setup: ReplaySetup, pictured: bool, name: str = AS_RECORDED
) -> Ledger:
    """The ledger of the calls as they were sent, under this name."""
    from cachecost.ledger.margin import margin
    from cachecost.ledger.results import Ledger

    ledger, rules = Ledger(name, []), None
    for simulated in _simulate(calls, setup, name):
        ledger.rows.append(simulated.row)
        rules = rules or simulated.rules
        if pictured:
            ledger.strips.append(simulated.strip)
    ttls = ttl_names([rules] if rules else [])
    return replace(
        ledger, token_source=setup.token_source, error_margin=margin(ledger.rows, setup.error_margin), ttls=ttls
    )


def _lower_bound(calls: Sequence[Call], setup: ReplaySetup) -> Decimal:
    from cachecost.analysis.optimum.lower_bound import lower_bound_of

    return lower_bound_of(calls, setup).usd


def _check_capacities(host: str, plans: bool) -> None:
    """Raises UsageError where --capacity does not apply."""
    from cachecost.providers.rulefile import catalogue

    if catalogue(host).is_priced:
        raise click.UsageError(f"--capacity: {host} is not self-hosted; expected --host vllm or --host sglang")
    if plans:
        raise click.UsageError(
            "--capacity: not with --strategy or --all; sweep a scenario instead: --grid rules.capacity_tokens=N1,N2"
        )


def _load(name: str) -> StrategySpec | str:
    """A strategy by name, or from a file. Raises InputError."""
    if not is_scenario(Path(name)):
        return name
    from cachecost.scenario.strategy_file import load_strategy

    return load_strategy(Path(name))


def _check_names(strategies: tuple[str, ...]) -> None:
    """Raises UsageError for an unknown name, InputError for a file that is not a strategy."""
    from cachecost.strategies.registry import find_strategy

    for name in strategies:
        try:
            spec = _load(name)
            if isinstance(spec, str):
                find_strategy(spec)
        except ValueError as error:
            raise click.UsageError(f"--strategy {error}") from None


def has_unevaluated(rows: Iterable[CallRow]) -> bool:
    """Whether any call could not be evaluated."""
    return any(row.error_type == NOT_EVALUATED for row in rows)


def _print_json(rows: Iterable[Mapping[str, Any]], bar: WorkBar | None = None) -> bool:
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


def _print_table(job: _ReplayJob, ledgers: Sequence[Ledger]) -> bool:
    """Print the table; return whether any call could not be evaluated."""
    from cachecost.views.replay.text import print_ledgers

    for why, number in sorted(job.bill.unpriced.items()):
        print_diagnostic(f"{count_text(number, 'call')} not in the billed dollars: {why}")
    if job.model is None:
        print_dated_notes(job.model_days, job.setup)
    are_strategies, calls = not job.capacities, job.bill.calls
    print_ledgers(job.logs.name, ledgers, sys.stdout, _bill_totals(job.bill), job.ranks, are_strategies, calls)
    return has_unevaluated(row for ledger in ledgers for row in ledger.rows)


def _write_page(job: _ReplayJob, ledgers: Sequence[Ledger], path: Path) -> None:
    """The page of all ledgers, with the avoidable cost of the calls as they were sent. Raises CannotEvaluate."""
    from cachecost.providers.assumptions import show_assumption
    from cachecost.views.html.frame import write_page
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
        setup.host,
        setup.day,
        {**own, **job.shared.assumptions},
        setup.prices.versions,
        f"cachecost replay {job.logs.arguments}{names} --html {path}",
        _bill_totals(job.bill),
        [] if job.plans else list(_explanations(job)),
        bool(job.capacities) or setup.rules.is_bounded,
    )
    write_page(path, page)
    print_diagnostic(f"{path} written")


def _explanations(job: _ReplayJob) -> Iterator[Explanation]:
    """The avoidable cost of the calls as they were sent, where `explain` supports their caches."""
    from cachecost.analysis.explain.explaining import explain_workload
    from cachecost.simulation.workload import read_workload

    try:
        again = Logs(job.logs.paths, job.logs.format_)
        yield explain_workload(read_workload(again, job.shared.setup, job.tokens))
    except CannotEvaluate as error:
        print_diagnostic(f"the page does not show avoidable costs: {error}")
