"""`cachecost replay`: the usage and dollars of each call of a recording."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

import click
import msgspec

from cachecost.commands.options import Ground, ground, ground_options
from cachecost.conversations.readers.request_log import RequestLog
from cachecost.ledger import CallRow
from cachecost.prompts.intake import Intake
from cachecost.replay import NOT_EVALUATED, Simulation, logged
from cachecost.tokens.factory import make_counter
from cachecost.views.json_rows import replay_row_json

COUNTERS = ("anchored", "tiktoken", "bytes", "ctok", "count_tokens")


@click.command()
@click.argument("log", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--format", "format_", default="auto", show_default=True, help="What the recording is.")
@click.option(
    "--strategy", "strategies", multiple=True, metavar="NAME", help="Re-plan under this strategy; repeatable."
)
@click.option("--tokens", type=click.Choice(COUNTERS), help="Where token counts come from.")
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
    rows = _rows_as_recorded(log, base, tokens or "tiktoken")
    failed = _print_json(rows) if as_json else _print_table(log, rows)
    return NOT_EVALUATED_CODE if failed else 0


NOT_EVALUATED_CODE = 3


def _rows_as_recorded(log: Path, base: Ground, tokens: str) -> Iterator[CallRow]:
    reader = RequestLog(log, Intake(keep_content=tokens != "bytes"))
    simulation = Simulation(base.rules, base.prices, lambda generation: make_counter(tokens, generation), base.host)
    yield from simulation.rows(map(logged, reader.calls()))
    if reader.unfinished:
        click.echo(f"{log}:{reader.unfinished} the last line is still being written; it is left out", err=True)


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
    from cachecost.ledger import Ledger
    from cachecost.views.replay_text import print_ledgers

    ledger = Ledger("as recorded", list(rows))
    print_ledgers(str(log), [ledger], sys.stdout)
    return any(row.error_type == NOT_EVALUATED for row in ledger.rows)
