"""What `cachecost validate` prints: the score, by project, model and feature, then every call that differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from rich.console import Console

from cachecost.base.formatting import count_text, dollars, percent, short_session
from cachecost.ledger.results import Fidelity
from cachecost.views.fidelity.hosts import has_other_hosts
from cachecost.views.fidelity.scores import GROUPS, Score, score
from cachecost.views.fidelity.tables import assumption_table, host_table, short_score_table
from cachecost.views.streams import REPORT_WIDTH, report_console
from cachecost.views.tables.fitting import fit_table, hidden_note
from cachecost.views.tables.table import Table
from cachecost.views.tables.text import render_table

MOST_MISMATCHES = 20


def print_fidelity(fidelity: Fidelity, stream: IO[str]) -> None:
    """Print to `stream`; rich respects NO_COLOR, pipes and the width."""
    console = report_console(stream, REPORT_WIDTH)
    _print_headlines(console, fidelity)
    tables = [fit_table(table, console.width) for table in _tables(fidelity)]
    for table in tables:
        console.print()
        console.print(render_table(table))
    _print_mismatches(console, fidelity)
    for where, why in fidelity.not_judged[:MOST_MISMATCHES]:
        console.print(f"  not judged: {where} {why}", markup=False, soft_wrap=True)
    console.print(f"  tokens   {fidelity.token_source}", markup=False)
    if note := hidden_note(tables, "--html F"):
        console.print(f"  {note}", markup=False, soft_wrap=True)


def _tables(fidelity: Fidelity) -> Iterator[Table]:
    yield from (short_score_table(fidelity, group) for group in GROUPS)
    if has_other_hosts(fidelity):
        yield host_table(fidelity, recorded_only=True)
    if fidelity.readings:
        yield assumption_table(fidelity)


def score_lines(whole: Score) -> list[str]:
    """The score in sentences: hits, cold starts, what cannot be known, tokens, dollars."""
    wrote = f"{whole.cold_written:,} billed a write"
    late = f"; {_late_words(whole.late)} probably visibility lag" if whole.late else ""
    warm = f"; {count_text(whole.warm, 'warm start')}" if whole.warm else ""
    known, not_known = whole.known, whole.not_known
    apart = f"; {dollars(not_known.billed)} more billed for the unknown" if whole.unknown else ""
    return [
        f"hits       {whole.exact_hits:,} of {whole.hits:,} exact",
        f"cold       {whole.exact_cold:,} of {whole.cold:,} exact (reads only; {wrote}){late}",
        f"unknown    {whole.unknown:,} read what the recording cannot have written or kept alive{warm}",
        f"tokens     {percent(whole.median)} off at the median, {percent(whole.p95)} at the 95th percentile",
        f"dollars    {dollars(known.predicted)} predicted, {dollars(known.billed)} billed (input side){apart}",
        *([f"ranges     {whole.ranges_in_words} hold"] if whole.ranges else []),
    ]


def _late_words(late: int) -> str:
    return "1 miss is" if late == 1 else f"{late:,} misses are"


def _print_headlines(console: Console, fidelity: Fidelity) -> None:
    """Requests and transcripts apart: of a transcript only usages are known, and no sum may mix the two."""
    calls = f"{count_text(len(fidelity.requests), 'recorded call')} judged, none with its own bill in its sizes"
    steps = f"{count_text(len(fidelity.transcripts), 'step')} of transcripts judged by their usages alone"
    parts = ((calls, fidelity.requests), (steps, fidelity.transcripts))
    for words, judgements in parts:
        if judgements or not fidelity.judgements:
            console.print(f"{words}\n", markup=False)
            for line in score_lines(score("all", judgements)):
                console.print(f"  {line}", markup=False)
            console.print()
        if not fidelity.judgements:
            return


def _print_mismatches(console: Console, fidelity: Fidelity) -> None:
    wrong = sorted(fidelity.mismatches, key=lambda one: one.kind == "unknown")
    if wrong:
        console.print()
    for one in wrong[:MOST_MISMATCHES]:
        where = f"{one.source}:{one.line}" + (f" session {short_session(one.session)}" if one.session else "")
        console.print(f"  {one.kind:8} {where} {one.model}: {one.reason}", markup=False, soft_wrap=True)
    if len(wrong) > MOST_MISMATCHES:
        console.print(f"  … and {len(wrong) - MOST_MISMATCHES:,} more (--json has all)", markup=False)
