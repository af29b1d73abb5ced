"""What `cachecost optimize` prints for people: what to do, the cost of every strategy, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from io import StringIO
from typing import IO

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cachecost.analysis.optimum.optimum import Optimum
from cachecost.base.formatting import change, change_text, count_text, dollars, percent, rough_dollars, tokens
from cachecost.views.optimum.sentences import plan_words
from cachecost.views.optimum.tables import short_plan_table
from cachecost.views.streams import REPORT_WIDTH, inert_console, stream_look, styled_stream
from cachecost.views.tables.fitting import INDENT, fit_table, hidden_note
from cachecost.views.tables.text import render_table


def print_optimum(optimum: Optimum, title: str, stream: IO[str]) -> None:
    """Print to `stream`; 120 cells into a pipe."""
    width, _ = stream_look(stream)
    prose = min(width, REPORT_WIDTH)
    page = StringIO()
    console = inert_console(page, width=width, highlight=False)
    calls = count_text(len(optimum.plan) - len(optimum.extras), "call")
    console.print(Text.assemble((title, "bold"), f"   {calls}"), soft_wrap=True)
    console.print()
    for sentence in answer(optimum):
        console.print(Text(sentence, "bold"), width=prose)
    console.print()
    fitted = fit_table(short_plan_table(optimum), width)
    console.print(render_table(fitted))
    console.print()
    console.print(_facts(optimum, prose))
    if note := hidden_note([fitted], "--csv F"):
        console.print(Padding(Text(note), (0, 0, 0, INDENT)))
    styled_stream(stream).write("".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines()))


def answer(optimum: Optimum) -> Iterator[str]:
    """What to do, and what it is worth."""
    yield plan_words(optimum.plan)
    before = optimum.recorded_usd if optimum.recorded_usd is not None else optimum.best_preset.usd
    name = optimum.first if optimum.recorded_usd is not None else optimum.best_preset.name
    less = change_text(change(optimum.usd, before))
    yield f"That costs {dollars(optimum.usd)} instead of {dollars(before)} ({name}): {less}. {_proof(optimum)}"


def _proof(optimum: Optimum) -> str:
    gap = change(optimum.usd, optimum.lower_bound_usd)
    if optimum.is_optimal:
        return "This plan is provably optimal."
    if gap is not None and gap <= 0:
        return "It is at the lower bound, but not under every assumption."
    return f"No legal plan costs less than {dollars(optimum.lower_bound_usd)}; this one is {percent(gap)} above that."


def _facts(optimum: Optimum, width: int) -> Padding:
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for label, sentence in facts(optimum):
        grid.add_row(Text(label), Text(sentence))
    holder = Table.grid()
    holder.add_column(width=width - 2)
    holder.add_row(grid)
    return Padding(holder, (0, 0, 0, 2))


def facts(optimum: Optimum) -> Iterator[tuple[str, str]]:
    """How sure it is, and what else changes: (label, sentence)."""
    error_margin = Decimal(str(optimum.error_margin))
    about = (
        f": ±{percent(error_margin)} → ±{rough_dollars(optimum.usd * error_margin)} on each figure"
        if error_margin
        else ""
    )
    yield "tokens", f"{optimum.token_source}{about}"
    yield "rules", _rules(optimum)
    for name, load in optimum.loads.items():
        yield (
            "prefill" if name == "plan" else "",
            f"{name}: {percent(load.mean_share)} of a prompt is not read (95th percentile {percent(load.p95_share)}); "
            f"at most {tokens(load.peak_per_minute)} input tokens a minute count against a rate limit",
        )
    yield "seconds", _seconds(optimum)
    if optimum.refused:
        yield "left out", f"{len(optimum.refused):,} calls that failed, are refused, or could not be evaluated"
    if optimum.answers_usd:
        yield "answers", f"{dollars(optimum.answers_usd)} of each figure is output, the same in every plan"


def _rules(optimum: Optimum) -> str:
    if not optimum.depends_on:
        return "no compared preset is cheaper than this plan under any other assumption"
    worse = [reading for reading in optimum.assumptions if not reading.is_cheaper]
    costs = "; ".join(
        f"with {one.switch}={one.value} it costs {dollars(one.plan_usd)}, a preset {dollars(one.preset_usd)}"
        for one in worse
    )
    return f"the plan depends on assumptions, so it is not called optimal: {costs}"


def _seconds(optimum: Optimum) -> str:
    fit = optimum.fit
    if fit is None:
        return "not supported by the data: the recording has no times to the first token"
    if not fit.is_supported:
        return f"not supported by the data ({fit.calls} calls with a time, r² {fit.r2:.2f})"
    saved = optimum.loads[optimum.first].unread_tokens - optimum.loads["plan"].unread_tokens
    return (
        f"first token after {fit.base_s:.2f} s + {fit.per_token_s * 1000:.3f} s per 1,000 unread tokens "
        f"(r² {fit.r2:.2f}, {fit.calls} calls): {saved * fit.per_token_s:+.1f} s saved in all"
    )
