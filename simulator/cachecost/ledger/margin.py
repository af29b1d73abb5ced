"""The error margin of dollars: the relative error of token counts, on what no bill determines (rule 18)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from math import fsum

from cachecost.ledger.layers import Spans
from cachecost.ledger.rows import ZERO, CallRow
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import PrefixSizes
from cachecost.providers.prices import Prices
from cachecost.providers.quotes import PER_TOKEN


def estimated_usd(prompt: Prompt, spans: Spans, sizes: PrefixSizes, prices: Prices) -> Decimal:
    """USD of one pass that depend on token counts, where bills determine the size of the prompt.

    The price changes where a span ends. If an end is `n` tokens from the nearest length known from a bill, only those
    `n` tokens were counted, and they may be on the wrong side of the end.
    """
    moved, after = ZERO, None
    for start, end, price in (
        (spans.written_5m, spans.total, prices.input),
        (spans.written_1h, spans.written_5m, prices.write_5m),
        (spans.read, spans.written_1h, prices.write_1h),
        (0, spans.read, prices.read),
    ):
        if end <= start:
            continue
        tokens = sizes.doubt_of_total(prompt) if after is None else sizes.doubt(end)
        if tokens:
            moved += tokens * (price if after is None else abs(price - after))
        after = price
    return moved.scaleb(PER_TOKEN) if moved else ZERO


def margin(rows: Sequence[CallRow], general: float) -> float:
    """The relative error of the dollars of `rows`: that of their token counts, on what no bill determines.

    Each row has the margin of its own content; `general` (0.03 is ±3%) is that of a row without one. Output of recorded
    length is certain.
    """
    return _weighted(rows, general, _open_usd)


def count_margin(rows: Sequence[CallRow], general: float) -> float:
    """The relative error of the token counts of `rows`, whatever bills determine: each row by the dollars that rest on
    its counts."""
    return _weighted(rows, general, _counted_usd)


def _weighted(rows: Sequence[CallRow], general: float, share: Callable[[CallRow], Decimal]) -> float:
    """The dollars of `share` times the margin of each row, over those that rest on counts; `general` where none do."""
    counted = sum(map(_counted_usd, rows), ZERO)
    if not counted:
        return general if all(row.estimated_usd is None for row in rows) else 0.0
    margins = {general if row.error_margin is None else row.error_margin for row in rows}
    if len(margins) == 1:
        return margins.pop() * float(sum(map(share, rows), ZERO) / counted)
    dollars = (float(share(row)) * (general if row.error_margin is None else row.error_margin) for row in rows)
    return fsum(dollars) / float(counted)  # `sum` of floats has other last digits before Python 3.12


def open_usd(rows: Iterable[CallRow]) -> Decimal:
    """USD that rest on token counts, since no bill determines them."""
    return sum(map(_open_usd, rows), ZERO)


def _open_usd(row: CallRow) -> Decimal:
    counted = _counted_usd(row)
    return counted if row.estimated_usd is None else min(row.estimated_usd, counted)


def _counted_usd(row: CallRow) -> Decimal:
    """USD of a call that rest on token counts without bills: everything but output of recorded length."""
    return row.cost.total - (row.cost.output if row.output_is_recorded else ZERO)
