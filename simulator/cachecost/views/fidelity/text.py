"""What `cachecost validate` prints: the score, by project, model and feature, then every call that differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from rich.console import Console
from rich.table import Table

from cachecost.base.formatting import counted, dollars, percent
from cachecost.ledger.results import Fidelity
from cachecost.views.fidelity.hosts import HEADERS, host_cells, host_scores, says_hosts
from cachecost.views.fidelity.markdown import score_cells
from cachecost.views.fidelity.scores import GROUPS, Score, score, scores
from cachecost.views.streams import inert_console

MOST_MISMATCHES = MOST_ROWS = 20
LONGEST_NAME = 40
PIPE_WIDTH = 120


def print_fidelity(fidelity: Fidelity, stream: IO[str]) -> None:
    """Print to `stream`; rich respects NO_COLOR, pipes and the width."""
    console = inert_console(stream, highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    _headlines(console, fidelity)
    for name, key in GROUPS.items():
        console.print(_table(name, scores(fidelity, key)))
    if says_hosts(fidelity):
        console.print(_hosts(fidelity))
    if fidelity.readings:
        console.print(_readings(fidelity))
    _mismatches(console, fidelity)
    for where, why in fidelity.not_judged[:MOST_MISMATCHES]:
        console.print(f"  not judged: {where} {why}", markup=False, soft_wrap=True)
    console.print(f"  tokens   {fidelity.token_source}", markup=False)


def headline(whole: Score) -> list[str]:
    """The score in sentences: hits, cold starts, what cannot be known, tokens, dollars."""
    late = f"; {whole.late:,} misses are probably visibility lag" if whole.late else ""
    warm = f"; {counted(whole.warm, 'warm start')}" if whole.warm else ""
    known, not_known = whole.known, whole.not_known
    apart = f"; {dollars(not_known.billed)} more billed for the unknown" if whole.unknown else ""
    return [
        f"hits       {whole.exact_hits:,} of {whole.hits:,} exact{late}",
        f"cold       {whole.exact_cold:,} of {whole.cold:,} exact (reads only; {whole.cold_written:,} billed a write)",
        f"unknown    {whole.unknown:,} read what the recording cannot have written or kept alive{warm}",
        f"tokens     {percent(whole.median)} off at the median, {percent(whole.p95)} at the 95th percentile",
        f"dollars    {dollars(known.predicted)} predicted, {dollars(known.billed)} billed (input side){apart}",
        *([f"ranges     {whole.held:,} of {whole.ranges:,} hold"] if whole.ranges else []),
    ]


def _headlines(console: Console, fidelity: Fidelity) -> None:
    """Requests and transcripts apart: of a transcript only usages are known, and no sum may mix the two."""
    calls = f"{counted(len(fidelity.requests), 'recorded call')} judged, none with its own bill in its sizes"
    steps = f"{counted(len(fidelity.transcripts), 'step')} of transcripts judged by their usages alone"
    parts = ((calls, fidelity.requests), (steps, fidelity.transcripts))
    for words, judgements in parts:
        if judgements or not fidelity.judgements:
            console.print(f"{words}\n", markup=False)
            for line in headline(score("all", judgements)):
                console.print(f"  {line}", markup=False)
            console.print()
        if not fidelity.judgements:
            return


def _table(name: str, rows: Sequence[Score]) -> Table:
    table = Table(box=None, header_style="bold", title=" ", title_justify="left")
    table.add_column(f"by {name}", no_wrap=True, overflow="ellipsis", max_width=LONGEST_NAME)
    for column in ("calls", "hits exact", "cold exact", "unknown", "median", "95th", "billed", "off by"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows[:MOST_ROWS]:
        table.add_row(*score_cells(row)[:-1])
    if len(rows) > MOST_ROWS:
        table.add_row(f"… and {len(rows) - MOST_ROWS:,} more")
    return table


def _hosts(fidelity: Fidelity) -> Table:
    table = Table(box=None, header_style="bold", title=" ", title_justify="left")
    table.add_column("by host", no_wrap=True)
    for header in HEADERS:
        table.add_column(header, justify="left" if header in HEADERS[:2] else "right")
    for row in host_scores(fidelity):
        if row.score.calls:
            table.add_row(*host_cells(row))
    return table


def _readings(fidelity: Fidelity) -> Table:
    table = Table(box=None, header_style="bold", title=" ", title_justify="left")
    table.add_column("by reading of the rules", no_wrap=True)
    table.add_column("reading")
    table.add_column("exact", justify="right")
    for each in fidelity.readings:
        table.add_row(each.switch, each.reading, f"{each.exact:,} of {each.knowable:,}")
    return table


def _mismatches(console: Console, fidelity: Fidelity) -> None:
    wrong = sorted(fidelity.mismatches, key=lambda one: one.kind == "unknown")
    if wrong:
        console.print()
    for one in wrong[:MOST_MISMATCHES]:
        where = f"{one.source}:{one.line}"
        console.print(f"  {one.kind:8} {where} {one.model}: {one.reason}", markup=False, soft_wrap=True)
    if len(wrong) > MOST_MISMATCHES:
        console.print(f"  … and {len(wrong) - MOST_MISMATCHES:,} more (--json has all)", markup=False)
