"""What one question costs under each strategy in each variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from cachecost.analysis.comparison.sentences import MOST_COLUMNS, variant_name
from cachecost.analysis.comparison.strategy_line import ranked
from cachecost.analysis.comparison.summary import Summary
from cachecost.base.formatting import UNKNOWN, change, percent
from cachecost.views.tables.table import Table, build_table

TITLE = "Cost of one question in each variant"


def question_variants(summaries: Sequence[Summary]) -> Table | None:
    """A cell for each strategy and variant, the cheapest of a variant bold; None without variants or questions.

    Many variants are rows, few are columns.
    """
    if len(summaries) < 2 or not summaries[0].has_questions:
        return None
    names = list(dict.fromkeys(line.name for summary in summaries for line in summary.lines))
    variants = [variant_name(summary.comparison) for summary in summaries]
    cells = [[_cell(summary, name) for name in names] for summary in summaries]
    best = [_best(summary) for summary in summaries]
    if len(variants) > MOST_COLUMNS:
        rows = [[variant, *row] for variant, row in zip(variants, cells, strict=True)]
        bold = [[name in winners for winners in best] for name in names]
        return _with_bold(build_table(TITLE, ["variant", *names], rows, wraps=True), bold)
    rows = [[name, *(column[number] for column in cells)] for number, name in enumerate(names)]
    bold = [[name in winners for name in names] for winners in best]
    return _with_bold(build_table(TITLE, ["strategy", *variants], rows), bold)


def _with_bold(table: Table, bold: Sequence[Sequence[bool]]) -> Table:
    """`bold` says of each column but the first which of its cells are."""
    rows = [frozenset[int](), *(frozenset(n for n, is_bold in enumerate(column) if is_bold) for column in bold)]
    columns = [replace(column, bold=numbers) for column, numbers in zip(table.columns, rows, strict=True)]
    return replace(table, columns=columns)


def _best(summary: Summary) -> set[str]:
    """The strategies whose questions cost least, of those that are compared."""
    costs = {line.name: line.question for line in ranked(summary.lines) if line.question is not None}
    least = min(costs.values(), default=Decimal(0))
    return {name for name, cost in costs.items() if cost == least}


def _cell(summary: Summary, name: str) -> str:
    line, first = summary.line(name), summary.first
    if line is None or not line.questions:
        return UNKNOWN
    against = None if first is None or first is line else change(line.question, first.question)
    return line.question_money if against is None else f"{line.question_money} ({percent(against, signed=True)})"
