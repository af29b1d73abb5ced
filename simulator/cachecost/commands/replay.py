"""`cachecost replay`: the usage and dollars of each call of a recording."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

import click
import msgspec

from cachecost.commands.options import Ground, ground, ground_options, switch_pairs
from cachecost.commands.progress import reading_bar
from cachecost.conversations.bills import Bill
from cachecost.conversations.model import Conversation
from cachecost.conversations.readers.detect import CALLS, CONVERSATIONS, detect, read_calls
from cachecost.conversations.readers.request_log import LoggedCall
from cachecost.faults import CannotEvaluate
from cachecost.ledger import CallRow, Ledger
from cachecost.replay import NOT_EVALUATED, Simulation, logged
from cachecost.tokens.factory import make_counter
from cachecost.views.json_rows import replay_row_json

ANCHORED, FILLER = "anchored", "tiktoken"
"""Bills where there are any, and what fills the gaps between them: it is the same on every machine."""
COUNTERS = (ANCHORED, "tiktoken", "bytes", "ctok", "count_tokens")


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
@click.option(
    "--tokens", type=click.Choice(COUNTERS), help="Where token counts come from.  [default: anchored, else tiktoken]"
)
@click.option("--json", "as_json", is_flag=True, help="JSON Lines, one a call.")
@ground_options
def replay(
    log: Path,
    format_: str,
    strategies: tuple[str, ...],
    tokens: str | None,
    as_json: bool,
    rule: tuple[str, ...],
    prices: Path | None,
    as_of: date | None,
    host: str,
) -> int:
    """Predict the usage and the dollars of each call of LOG.

    As recorded when no strategy is named, else re-planned under each.
    """
    base = ground(rule, prices, as_of, host)
    bill = Bill(base.prices, base.host)
    with reading_bar("reading", [log]):
        if strategies:
            ledgers = _planned(log, format_, strategies, base, switch_pairs(rule), tokens, bill)
            rows: Iterable[CallRow] = (row for ledger in ledgers for row in ledger.rows)
        else:
            rows = _rows_as_recorded(log, format_, base, tokens, bill)
        failed = _print_json(rows) if as_json else _print_table(log, rows, bill)
    return NOT_EVALUATED_CODE if failed else 0


NOT_EVALUATED_CODE = 3


def _rows_as_recorded(log: Path, format_: str, base: Ground, tokens: str | None, bill: Bill) -> Iterator[CallRow]:
    calls: Iterable[LoggedCall] = bill.adding(read_calls(log, format_, _say, keep_content=tokens != "bytes"))
    if tokens in (None, ANCHORED):
        calls = list(calls)
        tokens = ANCHORED if any(call.billed for call in calls) else FILLER
    counter = FILLER if tokens == ANCHORED else tokens
    simulation = Simulation(base.rules, base.prices, lambda generation: make_counter(counter, generation), base.host)
    if tokens == ANCHORED:
        for number, call in enumerate(calls, 1):
            if call.billed:
                simulation.learn(number, logged(call), call.billed)
    return simulation.rows(map(logged, calls))


def _planned(
    log: Path,
    format_: str,
    strategies: tuple[str, ...],
    base: Ground,
    rules: dict[str, str],
    tokens: str | None,
    bill: Bill,
) -> Iterator[Ledger]:
    """A recording as each strategy would have sent it: its conversation, or those that its calls are."""
    from cachecost.terms import Terms

    _check_names(strategies)
    talks, bills = _talks(log, format_, bill)
    filler = FILLER if tokens in (None, ANCHORED) else tokens
    anchors = bills if tokens in (None, ANCHORED) else []
    terms = Terms(None, base.rules.as_of, base.prices, base.host, filler, rules, bills=anchors)
    return (terms.ledger(name, talks) for name in strategies)


def _talks(log: Path, format_: str, bill: Bill) -> tuple[list[Conversation], list[LoggedCall]]:
    """The conversations of a recording, and the calls that they were found in, if it holds calls."""
    from cachecost.conversations.sessions import conversations_of

    name, _ = detect(log, format_)
    if name in CALLS:
        calls = list(bill.adding(read_calls(log, format_, _say)))
        return conversations_of(calls, lambda words: _say(f"{log}: {words}")), calls
    conversation = CONVERSATIONS[name].read(log, _say)
    if conversation.model is None:
        raise CannotEvaluate(f"{log} names no model, so nothing can be planned for it")
    return [conversation], []


def _check_names(strategies: tuple[str, ...]) -> None:
    from cachecost.strategies.registry import find

    for name in strategies:
        try:
            find(name)
        except ValueError as error:
            raise click.UsageError(f"--strategy {error}") from None


def _say(words: str) -> None:
    click.echo(words, err=True)


def _print_json(rows: Iterable[CallRow]) -> bool:
    """Write each row as it comes; tell whether any could not be evaluated."""
    failed = False
    write = sys.stdout.buffer.write
    encode = msgspec.json.Encoder().encode
    for row in rows:
        write(encode(replay_row_json(row)) + b"\n")
        failed = failed or row.error_type == NOT_EVALUATED
    sys.stdout.buffer.flush()
    return failed


def _print_table(log: Path, rows: Iterable[CallRow], bill: Bill) -> bool:
    from cachecost.views.replay_text import Billed, print_ledgers

    ledgers: dict[str, list[CallRow]] = {}
    for row in rows:
        ledgers.setdefault(row.strategy, []).append(row)
    billed = Billed(bill.calls, bill.usage, bill.dollars) if bill.usage.total_input else None
    for why, calls in sorted(bill.unpriced.items()):
        _say(f"not in the bill's dollars: {calls} calls, because {why}")
    print_ledgers(str(log), [Ledger(name, made) for name, made in ledgers.items()], sys.stdout, billed)
    return any(row.error_type == NOT_EVALUATED for made in ledgers.values() for row in made)
