"""Notes on the day whose rules and prices hold: where another one would give other figures, with its --as-of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cachecost.base.atomic_files import is_yaml
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import value
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.options import CALL, SharedOptions, WorkBar
from cachecost.conversations.calls import BillTotal, Call, Call
from cachecost.conversations.logs import Logs, read_logs, read_sessions
from cachecost.conversations.start_times import in_file_order
from cachecost.live.clock import today
from cachecost.providers.hosts import catalogue, host_of
from cachecost.providers.prices import STANDARD, PriceBook
from cachecost.providers.served_models import last_day
from cachecost.providers.usage import TOKEN_CLASSES
from cachecost.simulation.engine import AS_RECORDED, Simulation
from cachecost.simulation.setup import ReplaySetup, ttl_names
from cachecost.tokens.factory import CALIBRATED
from cachecost.views.replay.call_rows import call_object

if TYPE_CHECKING:
    from cachecost.conversations.model import Conversation
    from cachecost.ledger.results import Ledger
    from cachecost.providers.rules import ModelRules
    from cachecost.simulation.engine import SimulatedCall
    from cachecost.strategies.spec import StrategySpec


AnyCall = TypeVar("AnyCall", bound=Call)


class ModelDays:
    """The models that calls ran on, each with its host and the last day of its calls that is known."""

    def __init__(self, host: str) -> None:
        """`host` is that of the calls that name none."""
        self._host = host
        self._days: dict[tuple[str, str], date] = {}

    def add(self, call: Call) -> None:
        key = (host_of(call.host, self._host, call.request.model), call.request.model)
        if call.day is not None and call.day > self._days.get(key, date.min):
            self._days[key] = call.day

    def of_calls(self, calls: Iterable[AnyCall]) -> Iterator[AnyCall]:
        """The calls, which are added as they pass."""
        for call in calls:
            self.add(call)
            yield call

    def notes(self, setup: ReplaySetup, now: date) -> Iterator[str]:
        """For each model: that it was retired by the day of --as-of, or that its prices changed between then and now.

        `now` is today.
        """
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
        before, after = (_amounts(prices, host, name, when) for when in (day, now))
    except CannotEvaluate:
        return ""
    if before == after:
        return ""
    return f"{name}: the prices changed after {day}, the day of its last call; for those of today: --as-of {now}"


def _amounts(prices: PriceBook, host: str, name: str, day: date) -> list[object]:
    found = prices.quote(host, name, day, STANDARD).of(0)
    return [getattr(found, token_class) for token_class in TOKEN_CLASSES]


REPLAYING = "replaying"


@value
class ReplayJob:
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
        ledgers = self.ledgers(with_lower_bound=False, with_timelines=False)
        return self.ranked_objects([ledger for ledger in ledgers if ledger.rows] if self._are_compared else ledgers)

    @property
    def _are_compared(self) -> bool:
        """Whether there are several strategies."""
        return self.ranks or len(set(self.strategies)) > 1

    def ranked_objects(self, ledgers: Iterable[Ledger]) -> Iterator[dict[str, Any]]:
        """The rows for JSON and CSV, all of one ledger before the next; of strategies that are compared with ranks."""
        if not self._are_compared:
            return (call_object(row) for ledger in ledgers for row in ledger.rows)
        from cachecost.views.replay.call_rows import ranked_objects

        return ranked_objects(list(ledgers))

    def ledgers(self, with_lower_bound: bool, with_timelines: bool) -> Iterator[Ledger]:
        """The ledger of each strategy or capacity, or that of the calls as recorded."""
        if self.capacities:
            return self._at_capacities(with_timelines)
        if self.plans:
            return self._of_strategies(with_lower_bound, with_timelines)
        return iter([_recorded_ledger(*self._recorded_calls(), with_timelines)])

    def _calls(self, keep_content: bool = True) -> Iterator[Call]:
        with self.bar.reading(self.logs.paths):
            yield from self.model_days.of_calls(self.bill.add_all(read_logs(self.logs, keep_content)))

    def _recorded_calls(self) -> tuple[Iterable[Call], ReplaySetup]:
        """The calls as recorded, and their setup. They are kept in memory only where their bills are needed first."""
        calls = self._calls(keep_content=self.tokens != "bytes")
        if self.tokens not in (None, CALIBRATED):
            return calls, self.setup.with_recorded([], self.tokens)
        kept = list(calls)
        from cachecost.simulation.workload import recorded_workload

        recorded = recorded_workload(self.logs.name, kept, self.setup.with_recorded(kept, self.tokens))
        self.bar.begin(REPLAYING, len(kept), CALL)
        return self.bar.count(recorded.calls), recorded.setup

    def _at_capacities(self, with_timelines: bool) -> Iterator[Ledger]:
        """The calls as they were sent, to a server that keeps this many tokens, one capacity after the other."""
        calls = list(self._calls())
        self.bar.begin(REPLAYING, len(calls) * len(self.capacities), CALL)
        for capacity in self.capacities:
            setup = self.setup.with_assumptions({"capacity_tokens": capacity}).with_recorded(calls, self.tokens)
            yield _recorded_ledger(
                self.bar.count(calls), setup, with_timelines, f"{AS_RECORDED}, {capacity:,} tokens kept"
            )

    def _of_strategies(self, with_lower_bound: bool, with_timelines: bool) -> Iterator[Ledger]:
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
            yield replay_strategy(spec, conversations, setup, progress, lower_bound, with_timelines, len(specs) > 1)

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
