"""What `cachecost run` prints: the answer, the comparison, how sure it is, where to look."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import IO

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cachecost.analysis.comparison.answer import seeds_sentence
from cachecost.analysis.comparison.apart import apart_sentences
from cachecost.analysis.comparison.assumption_texts import brief_sentence, summary_sentence
from cachecost.analysis.comparison.sentences import refusal_sentences, rules_sentence, token_sentences
from cachecost.analysis.comparison.strategy_line import shared_notes
from cachecost.analysis.comparison.summary import Summary, summarise
from cachecost.base.formatting import count_text
from cachecost.base.inert import encodable
from cachecost.ledger.assumptions import Assumption
from cachecost.ledger.results import ZERO, Comparison, RunResult
from cachecost.views.charts.palette import ERROR_STYLE
from cachecost.views.run.bars import dollar_bar, legend
from cachecost.views.run.tables import strategy_table, terminal_variant_table
from cachecost.views.streams import REPORT_WIDTH, Colours, inert_console, stream_look, styled_stream
from cachecost.views.tables.fitting import GAP, INDENT, FittedTable, fit_table, hidden_note
from cachecost.views.tables.lower_bounds import lower_bound_sentence
from cachecost.views.tables.table import REFUSED
from cachecost.views.tables.text import render_table

NARROWEST_BAR, WIDEST_BAR = 6, 24
MOST_ASSUMED = 2
"""Assumptions in the terminal, at most."""


def print_run(result: RunResult, stream: IO[str], report: Path | None = None) -> None:
    """Print to `stream`: as wide as its terminal, 120 cells into a pipe; colours as it and NO_COLOR allow."""
    width, colours = stream_look(stream)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    styled_stream(stream).write(run_text(result, width=width, colours=colours, encoding=encoding, report=report))


def run_text(
    result: RunResult,
    *,
    width: int = REPORT_WIDTH,
    colours: Colours | None = None,
    encoding: str = "utf-8",
    report: Path | None = None,
) -> str:
    """The whole output, ending in a newline. ASCII takes the place of signs if `encoding` lacks one of them."""
    page = StringIO()
    console = inert_console(page, width=width, color_system=colours, force_terminal=bool(colours), legacy_windows=False)
    summaries = [summarise(comparison) for comparison in result.comparisons]
    tables = _tables(summaries, width)
    facts = _facts(result, summaries[0], min(width, REPORT_WIDTH), report is not None)
    for part in (*_parts(result, summaries, tables, width, bool(colours)), facts):
        console.print(part, highlight=False)
    if report is not None:
        console.print(Text(f"  report   {report}"), soft_wrap=True)
    if note := hidden_note(tables, "--json" if report is None else "the report"):
        console.print(_indent(Text(note), width))
    return encodable("".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines()), encoding)


def _tables(summaries: Sequence[Summary], width: int) -> list[FittedTable]:
    """The strategies, where there are any, and the variants, where there are any."""
    tables = [strategy_table(summaries[0])] if summaries[0].lines else []
    tables += [terminal_variant_table(summaries)] if len(summaries) > 1 else []
    return [fit_table(table, width) for table in tables]


def _parts(
    result: RunResult, summaries: Sequence[Summary], tables: Sequence[FittedTable], width: int, coloured: bool
) -> list[RenderableType]:
    prose = min(width, REPORT_WIDTH)
    header = Text.assemble((result.scenario, "bold"), "   ", result.about)
    parts: list[RenderableType] = [_indent(header, prose, 0), Text()]
    if result.verdict:
        parts += [_indent(Text(result.verdict, "bold"), prose, 0), Text()]
    parts += [*_strategies(summaries[0], tables, width, coloured), Text()]
    if len(summaries) > 1:
        parts += [render_table(tables[-1]), Text()]
    return parts


def _strategies(summary: Summary, tables: Sequence[FittedTable], width: int, coloured: bool) -> list[RenderableType]:
    if not summary.lines:
        return [Text("  no strategy to compare")]
    parts: list[RenderableType] = [_strategy_table(summary, tables[0])]
    if coloured:
        parts.append(_indent(legend(summary.classes, summary.class_names), width))
    remarks = [Text(sentence) for sentence in apart_sentences(summary)]
    remarks += [Text(sentence) for sentence in [lower_bound_sentence(summary.comparison.ledgers)] if sentence]
    remarks += [Text(f"{REFUSED} {sentence}", ERROR_STYLE) for sentence in refusal_sentences(summary)]
    return [*parts, *(_indent(text, min(width, REPORT_WIDTH)) for text in remarks)]


def _strategy_table(summary: Summary, fitted: FittedTable) -> Padding:
    """One row a strategy, with a bar of its dollars where there is room."""
    room = min(fitted.room - GAP, WIDEST_BAR)
    largest = max((line.cost.total for line in summary.lines), default=ZERO)
    bars = [dollar_bar(line, largest, room) for line in summary.lines]
    return render_table(fitted, bars=bars if room >= NARROWEST_BAR else None)


def _facts(result: RunResult, summary: Summary, width: int, has_report: bool) -> RenderableType:
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(no_wrap=True, min_width=len("tokens"))
    grid.add_column()
    for label, words in _labelled_facts(summary, result.seeds, result.assumptions, has_report):
        grid.add_row(Text(label), Text(words))
    return _indent(grid, width)


def _assumed(assumptions: Sequence[Assumption]) -> list[str]:
    """How many assumptions there are, and those that could change most."""
    shown = [brief_sentence(one) for one in assumptions[:MOST_ASSUMED] if one.changes is not None]
    return [summary_sentence(assumptions), *shown] if assumptions else []


def _labelled_facts(
    summary: Summary, seeds: Sequence[Comparison], assumptions: Sequence[Assumption], has_report: bool
) -> list[tuple[str, str]]:
    facts = [("tokens" if not number else "", text) for number, text in enumerate(token_sentences(summary))]
    facts += [("seeds", text) for text in [seeds_sentence(summary, seeds)] if text]
    facts.append(("rules", rules_sentence(summary.comparison)))
    facts += [("assumes" if not number else "", text) for number, text in enumerate(_assumed(assumptions))]
    notes = shared_notes(summary.lines)
    if notes and not has_report:
        noted = (f"{', '.join(names)}: {note}" for note, names in notes)
        facts += [("" if number else "notes", text) for number, text in enumerate(noted)]
    elif notes:
        facts.append(
            ("notes", f"{count_text(len(notes), 'note')} on what strategies assume or cannot do: see the report")
        )
    return facts


def _indent(text: RenderableType, width: int, indent: int = INDENT) -> Padding:
    """`text` from column `indent` on, wrapped between words before cell `width`."""
    holder = Table.grid()
    holder.add_column(width=width - indent)
    holder.add_row(text)
    return Padding(holder, (0, 0, 0, indent))
