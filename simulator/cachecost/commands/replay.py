"""`cachecost replay`: the usage and dollars of each call of a recording."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cachecost.commands.options import Ground, ground_options
from cachecost.commands.progress import reading_bar
from cachecost.conversations.bills import Bill
from cachecost.conversations.readers.detect import read_calls
from cachecost.conversations.readers.request_log import LoggedCall
from cachecost.faults import CannotEvaluate
from cachecost.providers.rules import data_date
from cachecost.rows import CallRow
from cachecost.simulation import AS_RECORDED, NOT_EVALUATED, Simulation, logged
from cachecost.tokens.factory import make_counter
from cachecost.views.json_rows import replay_row_json

if TYPE_CHECKING:
    from cachecost.conversations.model import Conversation
    from cachecost.simulation import Call
    from cachecost.terms import Terms

ANCHORED, FILLER = "anchored", "tiktoken"
"""Bills where there are any, and what fills the gaps between them: it is the same on every machine."""
Rows = tuple[str, Iterable[CallRow], Decimal | None]
"""A strategy's name, its rows as they come, and its floor in USD."""
COUNTERS = (ANCHORED, "tiktoken", "bytes", "ctok", "count_tokens")


NOT_EVALUATED_CODE = 3


@click.command()
@click.argument("log", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--format", "format_", default="auto", show_default=True, help="What the recording is.")
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME",
    help="Re-plan under this strategy (NAME, or NAME@1h for that TTL); repeatable.",
)
@click.option("--all", "ranks", is_flag=True, help="Re-plan under every built-in strategy, the cheapest first.")
@click.option("--model", metavar="MODEL", help="Re-plan as if all ran on this model.")
@click.option(
    "--tokens", type=click.Choice(COUNTERS), help="Where token counts come from.  [default: anchored, else tiktoken]"
)
@click.option("--json", "as_json", is_flag=True, help="JSON Lines, one a call.")
@ground_options
def replay(
    log: Path,
    format_: str,
    strategies: tuple[str, ...],
    ranks: bool,
    model: str | None,
    tokens: str | None,
    as_json: bool,
    base: Ground,
) -> int:
    """Predict the usage and the dollars of each call of LOG.

    As recorded when no strategy is named, else re-planned under each.
    """
    if model and not strategies and not ranks:
        raise click.UsageError("--model needs --strategy or --all: as recorded, each call ran on its own model")
    bill = Bill(base.prices, base.host)
    if model and base.rules.as_of is None:
        day = data_date(base.host)
        _say(f"{model}: rules and prices of {day}; --as-of DATE for another day")
        base = base.on(day)
    asked = _Asked(log, format_, strategies, ranks, model, tokens, base, bill)
    with reading_bar("reading", [log]):
        gc.disable()  # what a replay keeps, it keeps to its end: looking for garbage again and again finds none
        ledgers = asked.planned(with_floor=not as_json) if strategies or ranks else asked.as_recorded()
        failed = _print_json(ledgers) if as_json else _print_table(log, ledgers, asked.bill, ranks)
    return NOT_EVALUATED_CODE if failed else 0


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be replayed, on what ground; the bills that are met on the way are added to `bill`."""

    log: Path
    format_: str
    strategies: tuple[str, ...]
    ranks: bool
    model: str | None
    tokens: str | None
    ground: Ground
    bill: Bill

    @property
    def may_anchor(self) -> bool:
        return self.tokens in (None, ANCHORED)

    @property
    def counter(self) -> str:
        """What counts the tokens that no bill tells."""
        return FILLER if self.tokens in (None, ANCHORED) else self.tokens

    def calls(self, keep_content: bool = True) -> Iterator[LoggedCall]:
        return self.bill.adding(read_calls(self.log, self.format_, _say, keep_content))

    def as_recorded(self) -> Iterator[Rows]:
        """The row of each call, sized by all bills of the recording where it has any."""
        calls: Iterable[LoggedCall] = self.calls(keep_content=self.tokens != "bytes")
        base = self.ground
        simulation = Simulation(base.rules, base.prices, lambda name: make_counter(self.counter, name), base.host)
        if self.may_anchor:
            calls = list(calls)
            simulation.learn_all(calls)
        yield AS_RECORDED, simulation.rows(map(logged, calls)), None

    def planned(self, with_floor: bool) -> Iterator[Rows]:
        """The rows of each strategy, all of one before the next: the recording as it would have sent it.

        Where all are ranked there is no floor: it is the same for most, and takes as long as a replay.
        """
        from cachecost.terms import Terms

        _check_names(self.strategies)
        talks, bills = self._talks()
        if not talks:
            raise CannotEvaluate(f"{self.log} holds no conversation that could be planned anew")
        if self.model is None and not any(talk.model for talk in talks):
            raise CannotEvaluate(f"{self.log} names no model, so nothing can be planned for it: say --model")
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
        )
        floor = _floor if with_floor and not self.ranks else None
        for name in self._names(talks):
            ledger = terms.ledger(name, talks, floor_of=floor)
            yield ledger.strategy, ledger.rows, ledger.floor

    def _names(self, talks: Sequence[Conversation]) -> list[str]:
        """The strategies to plan; of all, ways to ask are left out where nothing is asked."""
        from cachecost.strategies.agent import Agent
        from cachecost.strategies.registry import find, names

        found = {name: find(name) for name in names()} if self.ranks else {}
        asks = any(talk.inquiries for talk in talks)
        fitting = [name for name, one in found.items() if asks or not (isinstance(one, Agent) and one.asking)]
        return list(dict.fromkeys((*self.strategies, *fitting)))

    def _talks(self) -> tuple[list[Conversation], list[LoggedCall]]:
        from cachecost.conversations.sessions import read_talks

        talks, calls = read_talks(self.log, self.format_, _say)
        for call in calls:
            self.bill.add(call)
        return talks, calls


def _floor(calls: Sequence[Call], terms: Terms) -> Decimal:
    from cachecost.analysis.optimum.floor import floor_of

    return floor_of(calls, terms).usd


def _check_names(strategies: tuple[str, ...]) -> None:
    from cachecost.strategies.registry import find

    for name in strategies:
        try:
            find(name)
        except ValueError as error:
            raise click.UsageError(f"--strategy {error}") from None


def _say(words: str) -> None:
    click.echo(words, err=True)


def _print_json(ledgers: Iterable[Rows]) -> bool:
    """Write each row as it comes; tell whether any could not be evaluated."""
    failed = False
    write = sys.stdout.buffer.write
    encode = msgspec.json.Encoder().encode
    for row in (row for _, rows, _ in ledgers for row in rows):
        write(encode(replay_row_json(row)) + b"\n")
        failed = failed or row.error_type == NOT_EVALUATED
    sys.stdout.buffer.flush()
    return failed


def _print_table(log: Path, ledgers: Iterable[Rows], bill: Bill, ranks: bool) -> bool:
    from cachecost.ledger import Ledger
    from cachecost.views.replay_text import Billed, print_ledgers

    found = (Ledger(name, list(rows), floor=floor) for name, rows, floor in ledgers)
    made = [ledger for ledger in found if ledger.rows]
    billed = Billed(bill.calls, bill.usage, bill.dollars) if bill.usage.total_input else None
    for why, calls in sorted(bill.unpriced.items()):
        _say(f"not in the bill's dollars: {calls} calls, because {why}")
    print_ledgers(str(log), made, sys.stdout, billed, ranks)
    return any(row.error_type == NOT_EVALUATED for ledger in made for row in ledger.rows)
