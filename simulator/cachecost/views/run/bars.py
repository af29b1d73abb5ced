"""Bars of text: a strategy's dollars as blocks, coloured by token class where there is colour."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise

from rich.text import Text

from cachecost.analysis.comparison.strategy_line import StrategyLine
from cachecost.ledger.results import ZERO
from cachecost.views.charts.palette import CLASS_COLOURS

EIGHTHS = " ▏▎▍▌▋▊▉"
FULL = "█"


def dollar_bar(line: StrategyLine, largest: Decimal, width: int) -> Text:
    """The line's dollars as a part of `width` cells, to an eighth of a cell; something for every cent above zero."""
    if not line.total or not largest:
        return Text()
    eighths = max(1, int((line.total / largest * width * 8).to_integral_value(ROUND_HALF_UP)))
    text = Text(FULL * (eighths // 8) + EIGHTHS[eighths % 8].strip())
    for colour, (start, end) in zip(CLASS_COLOURS.values(), _segments(line, len(text)), strict=True):
        text.stylize(colour, start, end)
    return text


def legend(classes: Sequence[str], names: dict[str, str]) -> Text:
    """The token classes in their colours, to head a column of bars."""
    return Text(" ").join(Text(names[name], style=CLASS_COLOURS[name]) for name in classes)


def _segments(line: StrategyLine, cells: int) -> list[tuple[int, int]]:
    """Where each token class begins and ends, in whole cells; the ends are rounded, so they meet."""
    ends, so_far = [0], ZERO
    for name in CLASS_COLOURS:
        so_far += line.cost.by_class()[name]
        ends.append(int((so_far / line.cost.total * cells).to_integral_value(ROUND_HALF_UP)))
    return list(pairwise(ends))
