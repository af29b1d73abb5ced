"""The tables of the report; each from a summary, with the numbers of `numbers`."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from cachecost.analysis.comparison.sentences import MOST_COLUMNS, variant_name, variant_rows
from cachecost.analysis.comparison.summary import CLASS_FIELDS, Line, Summary
from cachecost.base.formatting import UNKNOWN, change, dollars, exact_dollars, percent, tokens
from cachecost.ledger.results import ZERO, Claim, Ledger
from cachecost.prompts.blocks import Layer
from cachecost.views.tables.columns import strategy_columns, vs_first
from cachecost.views.tables.markdown import escaped, strong, table

DUST = Decimal("1e-12")
"""Dollars that dividing an amount among layers may leave over."""


def strategy_table(summary: Summary) -> str:
    """All columns of all strategies, the cheapest one bold."""
    columns = strategy_columns(summary)
    rows = [
        _row(line.name, [column.cells[number].strip() for column in columns], bold=line in summary.tied)
        for number, line in enumerate(summary.lines)
    ]
    return table(["strategy", *(escaped(column.header) for column in columns)], rows)


def question_table(summary: Summary) -> str:
    """What one question is made of in each arm: mean tokens by class, dollars, against the first arm."""
    asking = [line for line in summary.lines if line.questions]
    cheapest = min((line.question for line in asking if line.question is not None), default=None)
    rows = [
        _row(line.name, _question_cells(line, summary), bold=line.question is not None and line.question == cheapest)
        for line in asking
    ]
    classes = [summary.class_names[name] for name in summary.classes]
    return table(["strategy", "questions", "calls", *classes, "a question", escaped(summary.against)], rows)


def layer_table(summary: Summary) -> str:
    """Dollars of input by layer of the prompt, and of output; they add up to the cost."""
    other = ["not in a layer"] if any(abs(_outside_layers(line)) > DUST for line in summary.lines) else []
    rows = [_row(line.name, _layer_cells(line, with_rest=bool(other))) for line in summary.lines]
    return table(["strategy", *(layer.value for layer in Layer), *other, "output", "cost"], rows)


def cause_table(summary: Summary) -> str:
    """Dollars of writes and uncached input by the cause of their call, dearest cause first; empty if there are none."""
    found = {ledger.strategy: _by_cause(ledger) for ledger in summary.comparison.ledgers}
    sums: dict[str, Decimal] = {}
    for causes in found.values():
        for cause, (amount, _) in causes.items():
            sums[cause] = sums.get(cause, ZERO) + amount
    order = sorted((cause for cause in sums if sums[cause]), key=lambda cause: (-sums[cause], cause))
    rows = [_row(name, [_cause_cell(causes.get(cause)) for cause in order]) for name, causes in found.items()]
    return table(["strategy", *(cause.replace("_", " ") for cause in order)], rows) if order else ""


def variant_table(summaries: Sequence[Summary]) -> str:
    """One row a variant: what it assumes, who is cheapest there, whether the order of the strategies stays."""
    rows = []
    for row, summary in zip(variant_rows(summaries), summaries, strict=True):
        comparison = summary.comparison
        switches = ", ".join(f"`{name}={value}`" for name, value in sorted(comparison.rules.items()))
        facts = [comparison.as_of.isoformat(), escaped(comparison.model), switches or "defaults"]
        rows.append([escaped(row.variant), *facts, escaped(row.best), row.cost, row.saving, row.order])
    headers = ["variant", "as of", "model", "switches", "cheapest", "cost", escaped(summaries[0].against), "order"]
    return table(headers, rows, names=5)


def variant_costs(summaries: Sequence[Summary]) -> str:
    """What each strategy costs in each variant, and against the first strategy there."""
    names = list(dict.fromkeys(line.name for summary in summaries for line in summary.lines))
    variants = [variant_name(summary.comparison) for summary in summaries]
    if len(variants) > MOST_COLUMNS:
        costs = [[_variant_cell(summary, name) for name in names] for summary in summaries]
        below = [_row(variant, cells) for variant, cells in zip(variants, costs, strict=True)]
        return table(["variant", *map(escaped, names)], below)
    rows = [_row(name, [_variant_cell(summary, name) for summary in summaries]) for name in names]
    return table(["strategy", *map(escaped, variants)], rows)


def claim_table(claims: Sequence[Claim]) -> str:
    """Figures somebody published, beside what they are to the last digit."""
    rows = [[escaped(claim.source), escaped(claim.says), escaped(claim.how), _exactly(claim)] for claim in claims]
    return table(["source", "says", "how", "exactly"], rows, names=3)


def _row(name: str, cells: Sequence[str], *, bold: bool = False) -> list[str]:
    row = [escaped(name), *cells]
    return strong(row) if bold else row


def _question_cells(line: Line, summary: Summary) -> list[str]:
    counts = [f"{line.questions:,}", f"{line.question_calls:,}"]
    if line.question is None and (line.is_priced or any(line.refusals)):
        return [*counts, *([UNKNOWN] * (len(summary.classes) + 2))]
    means = [getattr(line.question_usage, CLASS_FIELDS[name]) / line.questions for name in summary.classes]
    base = summary.first.question if summary.first and line is not summary.first else None
    saving = percent(change(line.question, base), signed=True)
    return [*counts, *(tokens(round(mean)) for mean in means), line.question_money, saving]


def _outside_layers(line: Line) -> Decimal:
    return line.cost.total - line.cost.output - sum(line.by_layer.values(), ZERO)


def _layer_cells(line: Line, *, with_rest: bool) -> list[str]:
    rest = [_outside_layers(line)] if with_rest else []
    amounts = [*(line.by_layer.get(layer, ZERO) for layer in Layer), *rest, line.cost.output]
    return [dollars(None if line.total is None else amount) for amount in (*amounts, line.cost.total)]


def _by_cause(ledger: Ledger) -> dict[str, tuple[Decimal, int]]:
    found: dict[str, tuple[Decimal, int]] = {}
    for row in ledger.rows:
        if row.cause is not None:
            amount, count = found.get(row.cause, (ZERO, 0))
            spent = row.cost.write_5m + row.cost.write_1h + row.cost.input
            found[row.cause] = (amount + spent, count + 1)
    return found


def _cause_cell(found: tuple[Decimal, int] | None) -> str:
    return f"{dollars(found[0])} ({found[1]:,})" if found else ""


def _variant_cell(summary: Summary, name: str) -> str:
    line = summary.line(name)
    if line is None or line.is_empty:
        return UNKNOWN
    against = vs_first(line)
    cost = line.answer if against == UNKNOWN else f"{line.answer} ({against})"
    return f"**{cost}**" if line in summary.tied else cost


def _exactly(claim: Claim) -> str:
    """Dollars in full, or a share to a tenth of a percent."""
    return f"{claim.exact * 100:.1f}%".replace("-", "−") if claim.is_share else exact_dollars(claim.exact)
