"""What `cachecost run` prints: the answer, the comparison, how sure it is, where to look."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import IO, Literal, cast

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cachecost.analysis.comparison.sentences import refusal_sentences, rules_sentence, token_sentences
from cachecost.analysis.comparison.summary import Summary, shared_notes, summarise
from cachecost.base.formatting import counted
from cachecost.base.inert import encodable
from cachecost.ledger.results import RunResult
from cachecost.views.run.bars import legend
from cachecost.views.run.text_tables import fitted_strategies, fitted_variants, strategy_table, variant_table
from cachecost.views.streams import inert_console, styled
from cachecost.views.tables.columns import INDENT, REFUSED, Fit, hidden_note

Colours = Literal["standard", "256", "truecolor", "windows"]
PIPE_WIDTH = 120
WIDEST_PROSE = 120


def print_run(result: RunResult, stream: IO[str], report: Path | None = None) -> None:
    """Print to `stream`: as wide as its terminal, 120 cells into a pipe; colours as it and NO_COLOR allow."""
    probe = inert_console(stream)
    width = probe.width if probe.is_terminal or os.environ.get("COLUMNS") else PIPE_WIDTH
    colours = None if probe.no_color or not probe.is_terminal else cast("Colours | None", probe.color_system)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    styled(stream).write(run_text(result, width=width, colours=colours, encoding=encoding, report=report))


def run_text(
    result: RunResult,
    *,
    width: int = PIPE_WIDTH,
    colours: Colours | None = None,
    encoding: str = "utf-8",
    report: Path | None = None,
) -> str:
    """The whole output, ending in a newline. ASCII takes the place of signs if `encoding` lacks one of them."""
    page = StringIO()
    console = inert_console(page, width=width, color_system=colours, force_terminal=bool(colours), legacy_windows=False)
    summaries = [summarise(comparison) for comparison in result.comparisons]
    tables = _tables(summaries, width)
    facts = _facts(summaries[0], min(width, WIDEST_PROSE), report is not None)
    for part in (*_parts(result, summaries, tables, width, bool(colours)), facts):
        console.print(part, highlight=False)
    if report is not None:
        console.print(Text(f"  report   {report}"), soft_wrap=True)
    if note := hidden_note(tables, "--json" if report is None else "the report"):
        console.print(_indented(Text(note), width))
    return encodable("".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines()), encoding)


def _tables(summaries: Sequence[Summary], width: int) -> list[Fit]:
    """The strategies, where there are any, and the variants, where there are any."""
    main = [fitted_strategies(summaries[0], width)] if summaries[0].lines else []
    return [*main, *([fitted_variants(summaries, width)] if len(summaries) > 1 else [])]


def _parts(
    result: RunResult, summaries: Sequence[Summary], tables: Sequence[Fit], width: int, coloured: bool
) -> list[RenderableType]:
    prose = min(width, WIDEST_PROSE)
    header = Text.assemble((result.scenario, "bold"), "   ", result.about)
    parts: list[RenderableType] = [_indented(header, prose, 0), Text()]
    if result.verdict:
        parts += [_indented(Text(result.verdict, "bold"), prose, 0), Text()]
    parts += [*_strategies(summaries[0], tables, width, coloured), Text()]
    if len(summaries) > 1:
        parts += [variant_table(tables[-1]), Text()]
    return parts


def _strategies(summary: Summary, tables: Sequence[Fit], width: int, coloured: bool) -> list[RenderableType]:
    if not summary.lines:
        return [Text("  no strategy to compare")]
    parts: list[RenderableType] = [strategy_table(summary, tables[0])]
    if coloured:
        parts.append(_indented(legend(summary.classes, summary.class_names), width))
    refusals = [Text(f"{REFUSED} {sentence}", "red") for sentence in refusal_sentences(summary)]
    return [*parts, *(_indented(text, min(width, WIDEST_PROSE)) for text in refusals)]


def _facts(summary: Summary, width: int, has_report: bool) -> RenderableType:
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(no_wrap=True, min_width=len("tokens"))
    grid.add_column()
    for label, sentence in _labelled(summary, has_report):
        grid.add_row(Text(label), Text(sentence))
    return _indented(grid, width)


def _labelled(summary: Summary, has_report: bool) -> list[tuple[str, str]]:
    facts = [("tokens" if not number else "", text) for number, text in enumerate(token_sentences(summary))]
    facts.append(("rules", rules_sentence(summary.comparison)))
    notes = shared_notes(summary.lines)
    if notes and not has_report:
        told = (f"{', '.join(names)}: {note}" for note, names in notes)
        facts += [("" if number else "notes", text) for number, text in enumerate(told)]
    elif notes:
        facts.append(("notes", f"{counted(len(notes), 'note')} on what strategies assume or cannot do, in the report"))
    return facts


def _indented(text: RenderableType, width: int, indent: int = INDENT) -> Padding:
    """`text` from column `indent` on, wrapped between words before cell `width`."""
    holder = Table.grid()
    holder.add_column(width=width - indent)
    holder.add_row(text)
    return Padding(holder, (0, 0, 0, indent))
