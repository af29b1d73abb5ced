"""`cachecost replay`: the usage and dollars of each call of a recording."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.base.exit_codes import ExitCode
from cachecost.base.formatting import counted
from cachecost.base.structs import value
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.help import SectionedCommand
from cachecost.commands.options import Ground, csv_option, format_option, ground_options, tokens_option, write_rows
from cachecost.commands.progress import reading_bar
from cachecost.conversations.bills import BillTotal
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.conversations.readers.detect import read_calls
from cachecost.conversations.time_order import in_file_order
from cachecost.ledger.rows import CallRow
from cachecost.providers.rules import data_date
from cachecost.replay.simulation import AS_RECORDED, NOT_EVALUATED, Simulation
from cachecost.tokens.factory import ANCHORED, counter_name, make_counter
from cachecost.views.replay.call_rows import call_object

if TYPE_CHECKING:
    from cachecost.conversations.model import Conversation
    from cachecost.ledger.findings import Explanation
    from cachecost.ledger.results import Ledger
    from cachecost.prompts.counting import TokenCounter
    from cachecost.replay.setup import Terms
    from cachecost.replay.simulation import Simulated
    from cachecost.views.replay.tables import Billed


@click.command(cls=SectionedCommand)
@click.argument("log", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@format_option
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME",
    help="Plan the conversations again under this strategy (NAME, or NAME@1h for a 1h TTL); repeatable.",
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
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write an HTML page that shows every prompt."
)
@csv_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON Lines instead of text, one object per call.")
@ground_options
def replay(
    log: Path,
    format_: str,
    strategies: tuple[str, ...],
    ranks: bool,
    model: str | None,
    capacities: tuple[int, ...],
    tokens: str | None,
    html: Path | None,
    csv_file: Path | None,
    as_json: bool,
    base: Ground,
) -> int:
    """Predict the usage and cost of each call of LOG.

    Without --strategy and --all, the calls are simulated as they were sent. With one of them, the conversations of LOG
    are planned again under each strategy.
    """
    if model and not strategies and not ranks:
        raise click.UsageError("--model: expected --strategy or --all too; without them each call keeps its own model")
    if capacities:
        _check_capacities(base.host, bool(strategies) or ranks)
    bill = BillTotal(base.prices, base.host)
    if model and base.rules.as_of is None:
        day = data_date(base.host)
        print_diagnostic(f"{model}: rules and prices of {day}; --as-of DATE for another day")
        base = base.on(day)
    asked = _Asked(log, format_, strategies, ranks, model, tokens, base, bill, capacities)
    with reading_bar("reading", [log]), _no_garbage():
        if as_json and html is None and csv_file is None:
            failed = _print_json(asked.rows())
        else:
            made = [one for one in asked.ledgers(with_floor=not as_json, pictured=html is not None) if one.rows]
            write_rows(csv_file, (call_object(row) for one in made for row in one.rows))
            if html is not None:
                _write_page(asked, made, html)
            failed = _print_json(row for one in made for row in one.rows) if as_json else _print_table(asked, made)
    return ExitCode.NOT_EVALUATED if failed else ExitCode.OK


@contextmanager
def _no_garbage() -> Iterator[None]:
    """What a replay keeps, it keeps to its end: looking for garbage again and again finds none."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@value
class _Asked:
    """What is to be replayed, on what ground; the bills that are met on the way are added to `bill`."""

    log: Path
    format_: str
    strategies: tuple[str, ...]
    ranks: bool
    model: str | None
    tokens: str | None
    ground: Ground
    bill: BillTotal
    capacities: tuple[int, ...] = ()

    @property
    def may_anchor(self) -> bool:
        return self.tokens in (None, ANCHORED)

    @property
    def counter(self) -> str:
        """What counts the tokens that no bill tells."""
        return counter_name(self.tokens, bool(self.bill.usage.total_input))

    def calls(self, keep_content: bool = True) -> Iterator[RecordedCall]:
        return self.bill.add_all(read_calls(self.log, self.format_, print_diagnostic, keep_content))

    @property
    def plans(self) -> bool:
        """Whether the recording is told anew, under one strategy or more."""
        return bool(self.strategies) or self.ranks

    def rows(self) -> Iterator[CallRow]:
        """The rows as they come, all of one strategy before the next."""
        if not self.plans and not self.capacities:
            return (each.row for each in self.simulated({}))
        return (row for ledger in self.ledgers(with_floor=False, pictured=False) for row in ledger.rows)

    def ledgers(self, with_floor: bool, pictured: bool) -> Iterator[Ledger]:
        """The ledger of each strategy, or that of the calls as recorded; `pictured` with what the page shows."""
        if self.capacities:
            return self.at_capacities(pictured)
        return self.planned(with_floor, pictured) if self.plans else iter([self.as_recorded(pictured)])

    def at_capacities(self, pictured: bool) -> Iterator[Ledger]:
        """The calls as they were sent, to a server that keeps so many tokens, one size after the other."""
        calls = list(self.calls())
        for kept in self.capacities:
            with_room = replace(self, ground=self.ground.reading("capacity_tokens", kept))
            yield with_room.as_recorded(pictured, f"{AS_RECORDED}, {kept:,} tokens kept", calls)

    def as_recorded(
        self, pictured: bool, name: str = AS_RECORDED, calls: Sequence[RecordedCall] | None = None
    ) -> Ledger:
        """The calls as they were sent, under this name; those of the log where none are given."""
        counters: dict[str, TokenCounter] = {}
        from cachecost.ledger.margin import margin
        from cachecost.ledger.results import Ledger
        from cachecost.replay.setup import lifetimes_of

        made, rules = Ledger(name, []), None
        for each in self.simulated(counters, name, calls):
            made.rows.append(each.row)
            rules = rules or each.rules
            if pictured:
                made.strips.append(each.strip)
        counters_named = "; ".join(dict.fromkeys(counter.source for counter in counters.values()))
        has_bills = self.may_anchor and self.bill.usage.total_input
        source = f"the recording's bills, then {counters_named}" if has_bills else counters_named
        band = margin(made.rows, max((each.band for each in counters.values()), default=0.0))
        return replace(made, token_source=source, band=band, lifetimes=lifetimes_of([rules] if rules else []))

    def simulated(
        self, counters: dict[str, TokenCounter], name: str = AS_RECORDED, given: Sequence[RecordedCall] | None = None
    ) -> Iterator[Simulated]:
        """Each call as recorded, sized by all bills of the recording where it has any; `counters` are filled."""
        calls: Iterable[RecordedCall] = given or self.calls(keep_content=self.tokens != "bytes")
        base = self.ground

        def counter(generation: str) -> TokenCounter:
            return counters.setdefault(generation, make_counter(self.counter, generation))

        simulation = Simulation(base.rules, base.prices, counter, base.host, name, may_lack_prices=True)
        if self.may_anchor:
            calls = list(calls)
            simulation.learn_all(calls)
        return in_file_order((call.number, simulation.simulated(call).at(call.number)) for call in calls)

    def planned(self, with_floor: bool, pictured: bool) -> Iterator[Ledger]:
        """The ledger of each strategy, one after the other: the recording as it would have sent it.

        Where all are ranked there is no floor: it is the same for most, and takes as long as a replay.
        """
        from cachecost.replay.setup import Terms

        _check_names(self.strategies)
        talks, bills = self._talks()
        if not talks:
            raise CannotEvaluate(f"{self.log} contains no conversation that can be planned again")
        if self.model is None and not any(talk.model for talk in talks):
            raise CannotEvaluate(f"{self.log} names no model; name one with --model")
        base, anchors = self.ground, bills if self.may_anchor else []
        terms = Terms(
            self.model,
            base.rules.as_of,
            base.prices,
            base.host,
            self.counter,
            base.readings,
            bills=anchors,
            own=base.rules.own,
            may_lack_prices=True,
            counts_answers=False,
            starts_warm=True,
        )
        floor = _floor if with_floor and not self.ranks else None
        for name in self._names(talks):
            yield terms.ledger(name, talks, floor_of=floor, pictured=pictured)

    def _names(self, talks: Sequence[Conversation]) -> list[str]:
        """The strategies to plan; of all, ways to ask are left out where nothing is asked."""
        from cachecost.strategies.agent import Agent
        from cachecost.strategies.registry import find_strategy, names

        found = {name: find_strategy(name) for name in names()} if self.ranks else {}
        asks = any(talk.inquiries for talk in talks)
        fitting = [
            name
            for name, one in found.items()
            if asks or not (isinstance(one, Agent) and (one.inquiry or one.inquiry_by_host))
        ]
        return list(dict.fromkeys((*self.strategies, *fitting)))

    def _talks(self) -> tuple[list[Conversation], list[RecordedCall]]:
        from cachecost.conversations.sessions import read_talks

        talks, calls = read_talks(self.log, self.format_, print_diagnostic)
        for call in calls:
            self.bill.add(call)
        return talks, calls


def _floor(calls: Sequence[Call], terms: Terms) -> Decimal:
    from cachecost.analysis.optimum.lower_bound import floor_of

    return floor_of(calls, terms).usd


def _check_capacities(host: str, plans: bool) -> None:
    """Raises UsageError where no capacity can be said."""
    from cachecost.providers.rulefile import catalogue

    if catalogue(host).is_priced:
        raise click.UsageError(f"--capacity: {host} is not self-hosted; expected --host vllm or --host sglang")
    if plans:
        raise click.UsageError(
            "--capacity: not with --strategy or --all; sweep a scenario instead: --grid rules.capacity_tokens=N1,N2"
        )


def _check_names(strategies: tuple[str, ...]) -> None:
    from cachecost.strategies.registry import find_strategy

    for name in strategies:
        try:
            find_strategy(name)
        except ValueError as error:
            raise click.UsageError(f"--strategy {error}") from None


def _print_json(rows: Iterable[CallRow]) -> bool:
    """Write each row as it comes; tell whether any could not be evaluated."""
    failed = False
    write = sys.stdout.buffer.write
    encode = msgspec.json.Encoder().encode
    for row in rows:
        write(encode(call_object(row)) + b"\n")
        failed = failed or row.error_type == NOT_EVALUATED
    sys.stdout.buffer.flush()
    return failed


def _billed(bill: BillTotal) -> Billed | None:
    from cachecost.views.replay.tables import Billed

    is_priced = sum(bill.unpriced.values()) < bill.calls
    return Billed(bill.calls, bill.usage, bill.dollars) if bill.usage.total_input and is_priced else None


def _print_table(asked: _Asked, made: Sequence[Ledger]) -> bool:
    from cachecost.views.replay.text import print_ledgers

    for why, number in sorted(asked.bill.unpriced.items()):
        print_diagnostic(f"{counted(number, 'call')} not in the billed dollars: {why}")
    with_causes, calls = not asked.capacities, asked.bill.calls
    print_ledgers(str(asked.log), made, sys.stdout, _billed(asked.bill), asked.ranks, with_causes, calls)
    return any(row.error_type == NOT_EVALUATED for ledger in made for row in ledger.rows)


def _write_page(asked: _Asked, made: Sequence[Ledger], path: Path) -> None:
    """The page of all ledgers, with what is avoidable in the calls as they were sent. Raises CannotEvaluate."""
    from cachecost.providers.assumptions import shown
    from cachecost.views.html.frame import write_page
    from cachecost.views.replay.page import replay_page

    if not made:
        raise CannotEvaluate(f"{asked.log} contains no call to show on a page")
    base = asked.ground
    names = "".join(f" --strategy '{name}'" for name in asked.strategies) + (" --all" if asked.ranks else "")
    names += "".join(f" --capacity {kept}" for kept in asked.capacities)
    again = f"cachecost replay {asked.log}{names} --html {path}"
    readings = {**{name: shown(value) for name, value in base.rules.own.switches.items()}, **base.readings}
    explanations = [] if asked.plans else list(_explanations(asked))
    day, versions = base.rules.as_of, base.prices.versions
    page = replay_page(
        str(asked.log),
        made,
        base.host,
        day,
        readings,
        versions,
        again,
        _billed(asked.bill),
        explanations,
        bool(asked.capacities) or base.rules.is_bounded,
    )
    write_page(path, page)
    print_diagnostic(f"{path} written")


def _explanations(asked: _Asked) -> Iterator[Explanation]:
    """What is avoidable in the calls as they were sent, where `explain` knows their caches."""
    from cachecost.analysis.explain.explaining import explain_workload
    from cachecost.replay.workload import recorded

    base = asked.ground
    try:
        yield explain_workload(recorded(asked.log, base.rules, base.prices, base.host, asked.tokens, asked.format_))
    except CannotEvaluate as error:
        print_diagnostic(f"the page does not show avoidable costs: {error}")
