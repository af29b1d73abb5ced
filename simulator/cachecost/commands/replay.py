"""`cachecost replay`: the usage and dollars of each call of a recording, and where another day gives other figures."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from cachecost.base.atomic_files import is_yaml
from cachecost.base.errors import CannotEvaluate, exit_code
from cachecost.base.formatting import count_text, inert_json
from cachecost.base.structs import replace
from cachecost.commands import options
from cachecost.commands.diagnostics import no_garbage_collection, print_diagnostic
from cachecost.commands.output_paths import CheckedCommand
from cachecost.conversations.calls import BillTotal, Call
from cachecost.conversations.input_files import KeepsContent
from cachecost.conversations.logs import Logs, read_logs, read_sessions
from cachecost.conversations.start_times import in_file_order
from cachecost.ledger.rows import NOT_EVALUATED, has_unevaluated
from cachecost.live.clock import today
from cachecost.providers.hosts import catalogue, host_of
from cachecost.providers.prices import STANDARD, PriceBook, last_day
from cachecost.providers.rules import data_date
from cachecost.providers.usage import TOKEN_CLASSES
from cachecost.simulation.engine import AS_RECORDED, Simulation
from cachecost.simulation.setup import ReplaySetup, ttl_names
from cachecost.tokens.factory import CALIBRATED
from cachecost.views.replay.call_rows import call_object

if TYPE_CHECKING:
    from cachecost.ledger.results import Ledger
    from cachecost.providers.rules import ModelRules
    from cachecost.simulation.engine import SimulatedCall
    from cachecost.strategies.spec import StrategySpec
    from cachecost.views.replay.tables import Billed

REPLAYING = "replaying"


class ModelDays:
    """The models that calls ran on, each with its host and the last day of its calls that is known."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._days: dict[tuple[str, str], date] = {}

    def add(self, call: Call) -> None:
        key = (host_of(call.host, self._host, call.request.model), call.request.model)
        if call.day is not None and call.day > self._days.get(key, date.min):
            self._days[key] = call.day

    def notes(self, setup: ReplaySetup, now: date) -> Iterator[str]:
        """Of each model that it was retired by the day of --as-of, or that its prices changed between then and now."""
        for (host, model), day in self._days.items():
            as_of = setup.day
            note = retirement_note(host, model, as_of) if as_of else price_note(setup.prices, host, model, day, now)
            if note:
                yield note


def print_dated_notes(models: ModelDays, setup: ReplaySetup) -> None:
    """Print the notes on these models to stderr."""
    for note in models.notes(setup, today()):
        print_diagnostic(note)


def retirement_note(host: str, name: str, as_of: date) -> str:
    """That the host had retired the model by then, and its last day; "" where it had not, or the model is unknown."""
    try:
        model = catalogue(host).model(name, as_of)
    except CannotEvaluate:
        return ""
    last = last_day(model)
    if last is None or as_of <= last:
        return ""
    return f"{model.name} is retired on {as_of}, so its last rules and prices hold; its last day: --as-of {last}"


def price_note(prices: PriceBook, host: str, name: str, day: date, now: date) -> str:
    """That the prices of a model changed between two days; "" where they are the same or one is unknown."""
    try:
        before, after = (prices.quote(host, name, when, STANDARD).of(0) for when in (day, now))
    except CannotEvaluate:
        return ""
    if all(getattr(before, token_class) == getattr(after, token_class) for token_class in TOKEN_CLASSES):
        return ""
    return f"{name}: the prices changed after {day}, the day of its last call; for those of today: --as-of {now}"


class ReplayJob(msgspec.Struct, frozen=True):
    """What to replay, and under which options. The bills of the calls that are read are added to `bill`."""

    logs: Logs
    strategies: tuple[str, ...]
    ranks: bool
    model: str | None
    tokens: str | None
    shared: options.SharedOptions
    bill: BillTotal
    bar: options.WorkBar
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
        ledgers = self.ledgers(with_lower_bound=False, with_timelines=False)
        return self.ranked_objects([ledger for ledger in ledgers if ledger.rows] if self._are_compared else ledgers)

    @property
    def _are_compared(self) -> bool:
        return self.ranks or len(set(self.strategies)) > 1

    def ranked_objects(self, ledgers: Iterable[Ledger]) -> Iterator[dict[str, Any]]:
        """The rows for JSON and CSV, all of one ledger before the next; of strategies that are compared with ranks."""
        if not self._are_compared:
            return (call_object(row) for ledger in ledgers for row in ledger.rows)
        from cachecost.views.replay.call_rows import ranked_objects

        return ranked_objects(list(ledgers))

    def ledgers(self, with_lower_bound: bool, with_timelines: bool) -> Iterator[Ledger]:
        """The ledger of each strategy, or of each capacity of a server to which the calls were sent as recorded, one
        after the other; else that of the calls as recorded."""
        if self.plans and not self.capacities:
            yield from self._strategy_ledgers(with_lower_bound, with_timelines)
        elif not self.capacities:
            yield _recorded_ledger(*self._recorded_calls(), with_timelines)
        else:
            calls = list(self._calls())
            self.bar.begin(REPLAYING, len(calls) * len(self.capacities), options.CALL)
            for capacity in self.capacities:
                setup = self.setup.with_assumptions({"capacity_tokens": capacity}).with_recorded(calls, self.tokens)
                name = f"{AS_RECORDED}, {capacity:,} tokens kept"
                yield _recorded_ledger(self.bar.count(calls), setup, with_timelines, name)

    def _calls(self, keep_content: KeepsContent | bool = True) -> Iterator[Call]:
        with self.bar.reading(self.logs.paths):
            for call in self.bill.add_all(read_logs(self.logs, keep_content)):
                self.model_days.add(call)
                yield call

    def _may_match_tokens(self, host: str | None, model: str, day: date | None) -> bool:
        """Whether a call's host may match inside blocks, for which their content is needed: not if it caches at
        breakpoints."""
        with suppress(CannotEvaluate):
            return self.setup.rules.rules(host_of(host, self.setup.host, model), model, day).is_automatic
        return True

    def _recorded_calls(self) -> tuple[Iterable[Call], ReplaySetup]:
        """The calls as recorded, and their setup. They are kept in memory only where their bills are needed first."""
        calls = self._calls(lru_cache(maxsize=1024)(self._may_match_tokens) if self.tokens == "bytes" else True)
        if self.tokens not in (None, CALIBRATED):
            return calls, self.setup.with_recorded([], self.tokens)
        kept = list(calls)
        from cachecost.simulation.workload import recorded_workload

        recorded = recorded_workload(self.logs.name, kept, self.setup.with_recorded(kept, self.tokens))
        self.bar.begin(REPLAYING, len(kept), options.CALL)
        return self.bar.count(recorded.calls), recorded.setup

    def _strategy_ledgers(self, with_lower_bound: bool, with_timelines: bool) -> Iterator[Ledger]:
        """One after the other; where all are ranked without a lower bound, which takes as long as a replay."""
        from cachecost.simulation.strategy_ledger import replay_strategy
        from cachecost.strategies.agent import Agent
        from cachecost.strategies.registry import find_strategy, names

        for name in self.strategies:
            try:
                if isinstance(spec := _load(name), str):
                    find_strategy(spec)
            except ValueError as error:
                raise click.UsageError(f"--strategy {error}") from None
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
        presets = {name: find_strategy(name) for name in names()} if self.ranks else {}
        if not any(conversation.inquiries for conversation in conversations):  # no strategies for side questions then
            presets = {
                name: preset
                for name, preset in presets.items()
                if not (isinstance(preset, Agent) and (preset.inquiry or preset.inquiry_by_host))
            }
        specs = [_load(name) for name in dict.fromkeys((*self.strategies, *presets))]
        progress = self.bar.replays(len(specs))
        for spec in specs:
            yield replay_strategy(spec, conversations, setup, progress, lower_bound, with_timelines, len(specs) > 1)


def _simulate(calls: Iterable[Call], setup: ReplaySetup, name: str = AS_RECORDED) -> Iterator[SimulatedCall]:
    simulation = Simulation(setup, name, preparer=setup.preparer())
    return in_file_order((call.number, simulation.simulate(call).at(call.number)) for call in calls)


def _recorded_ledger(
    calls: Iterable[Call], setup: ReplaySetup, with_timelines: bool, name: str = AS_RECORDED
) -> Ledger:
    """The ledger of the calls as they were sent, under this name. Its notes say which hits are not certain."""
    from cachecost.ledger.findings import margin
    from cachecost.ledger.results import Ledger

    ledger = Ledger(name, [])
    rules: dict[tuple[str, str], ModelRules] = {}
    for simulated in _simulate(calls, setup, name):
        ledger.rows.append(simulated.row)
        if simulated.rules:
            rules.setdefault((simulated.rules.host, simulated.rules.model), simulated.rules)
        if with_timelines:
            ledger.timelines.append(simulated.timeline)
    ledger.notes.extend(dict.fromkeys(filter(None, (each.range_in_words for each in rules.values()))))
    ttls = ttl_names(list(rules.values())[:1])
    return replace(
        ledger, token_source=setup.token_source, error_margin=margin(ledger.rows, setup.error_margin), ttls=ttls
    )


def _lower_bound(calls: Sequence[Call], setup: ReplaySetup) -> Decimal:
    from cachecost.analysis.optimum.lower_bound import lower_bound_of

    return lower_bound_of(calls, setup).usd


def _load(name: str) -> StrategySpec | str:
    """A strategy by name, or from a file. Raises InputError."""
    if not is_yaml(Path(name)):
        return name
    from cachecost.scenario.models import load_strategy

    return load_strategy(Path(name))


@click.command(cls=CheckedCommand)
@options.logs_options()
@options.option(
    "--strategy -s strategies",
    "Plan the conversations again under this strategy: NAME, NAME@1h for a 1h TTL, or a file with one in YAML, as"
    " written by `cachecost optimize --emit`. Repeatable.",
    multiple=True,
    metavar="NAME|FILE",
)
@options.option(
    "--all ranks", "Plan the conversations again under every built-in strategy, cheapest first.", is_flag=True
)
@options.option(
    "--model", "Model of all calls; needs --strategy or --all.  [default: the models in the log]", metavar="MODEL"
)
@options.option(
    "--capacity capacities",
    "Simulate a self-hosted server (--host vllm or sglang) whose cache holds this many tokens; repeatable.",
    click.IntRange(min=1),
    multiple=True,
    metavar="TOKENS",
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
    if capacities and catalogue(shared.one_host).is_priced:
        raise click.UsageError(
            f"--capacity: {shared.one_host} is not self-hosted; expected --host vllm or --host sglang"
        )
    if capacities and (strategies or ranks):
        raise click.UsageError(
            "--capacity: not with --strategy or --all; sweep a scenario instead: --grid rules.capacity_tokens=N1,N2"
        )
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
    from cachecost.analysis.explain.explaining import explain_workload
    from cachecost.providers.assumptions import show_assumption
    from cachecost.simulation.workload import read_workload, supported_calls
    from cachecost.views.replay.page import replay_page

    if not ledgers:
        raise CannotEvaluate(f"{job.logs.name} contains no call to show on a page")
    setup = job.shared.setup
    names = "".join(f" --strategy '{name}'" for name in job.strategies) + (" --all" if job.ranks else "")
    names += "".join(f" --capacity {capacity}" for capacity in job.capacities)
    own = {name: show_assumption(value) for name, value in setup.rules.own.assumptions.items()}
    explanations = []
    try:
        # the avoidable cost, where `explain` supports the caches of the calls, and they have prices
        if not job.plans and ledgers[0].is_priced:
            again = read_workload(Logs(job.logs.paths, job.logs.format_), job.shared.setup, job.tokens)
            workload, left_out = supported_calls(again, "explain")
            for note in left_out.notes("explain"):
                print_diagnostic(f"avoidable costs on the page: {note}")
            explanations.append(explain_workload(workload))
    except CannotEvaluate as error:
        print_diagnostic(f"the page does not show avoidable costs: {error}")
    page = replay_page(
        job.logs.name,
        ledgers,
        host_of(None, setup.host, ledgers[0].rows[0].model),
        setup.day,
        {**own, **job.shared.assumptions},
        setup.prices.versions,
        f"cachecost replay {job.logs.arguments}{names} --html {path}",
        _bill_totals(job.bill),
        explanations,
        bool(job.capacities) or setup.rules.is_bounded,
    )
    options.write_html(path, page)
