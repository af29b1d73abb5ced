"""`cachecost replay`: the usage and dollars of each call of a recording."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

import click
import msgspec

from cachecost.commands.options import Ground, ground, ground_options, switch_pairs
from cachecost.conversations.readers.detect import read_calls, read_conversation
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
    "--strategy", "strategies", multiple=True, metavar="NAME", help="Re-plan under this strategy; repeatable."
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
    if strategies:
        ledgers = _planned(log, format_, strategies, base, switch_pairs(rule), tokens)
        rows: Iterable[CallRow] = (row for ledger in ledgers for row in ledger.rows)
    else:
        rows = _rows_as_recorded(log, format_, base, tokens)
    failed = _print_json(rows) if as_json else _print_table(log, rows)
    return NOT_EVALUATED_CODE if failed else 0


NOT_EVALUATED_CODE = 3


def _rows_as_recorded(log: Path, format_: str, base: Ground, tokens: str | None) -> Iterator[CallRow]:
    calls: Iterable[LoggedCall] = read_calls(log, format_, _say, keep_content=tokens != "bytes")
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
    log: Path, format_: str, strategies: tuple[str, ...], base: Ground, rules: dict[str, str], tokens: str | None
) -> Iterator[Ledger]:
    """A conversation as each strategy would have sent it. Raises InputError for a log of requests."""
    from cachecost.strategies.registry import find
    from cachecost.terms import Terms

    for name in strategies:
        try:
            find(name)
        except ValueError as error:
            raise click.UsageError(f"--strategy {error}") from None
    conversation = read_conversation(log, format_, _say)
    if conversation.model is None:
        raise CannotEvaluate(f"{log} names no model, so nothing can be planned for it")
    terms = Terms(conversation.model, base.rules.as_of, base.prices, base.host, tokens or FILLER, rules)
    return (terms.ledger(name, conversation) for name in strategies)


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


def _print_table(log: Path, rows: Iterable[CallRow]) -> bool:
    from cachecost.views.replay_text import print_ledgers

    ledgers: dict[str, list[CallRow]] = {}
    for row in rows:
        ledgers.setdefault(row.strategy, []).append(row)
    print_ledgers(str(log), [Ledger(name, made) for name, made in ledgers.items()], sys.stdout)
    return any(row.error_type == NOT_EVALUATED for made in ledgers.values() for row in made)
