"""What to change, in text and JSON: the changes with the largest savings, and what they save together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from cachecost.analysis.bill.advice import Advice
from cachecost.base.formatting import dollar_column, dollars, exact


def advice_lines(advice: Sequence[Advice], together: Decimal) -> Iterator[str]:
    """A heading, and two lines a change: what it would have saved, and how to make it."""
    if not advice:
        return
    yield "What would have saved most (each alone, everything else as it was):"
    amounts = dollar_column([one.saved for one in advice])
    width = max(map(len, amounts))
    for amount, one in zip(amounts, advice, strict=True):
        yield f"  {amount.rjust(width)}  {one.change}"
        yield f"  {' ' * width}  → {how_words(one)}"
    if len(advice) > 1:
        yield f"  Together they would have saved {dollars(together)}."
    if names := [one.name for one in advice if one.setting]:
        yield f"  --apply {'|'.join(names)}: shows the change of Claude Code's settings, writes it when you confirm."


def how_words(one: Advice) -> str:
    """How to make a change, what the client must be for it, and what its price takes for granted."""
    assumption = f"assumes that {one.assumption}" if one.assumption else ""
    return "; ".join(filter(None, (one.how, one.needs, assumption)))


def advice_object(one: Advice) -> dict[str, Any]:
    """A change as JSON; `setting` is the key in the settings file, `variable` the environment variable."""
    return {
        "change": one.change,
        "how": one.how,
        "saved_usd": exact(one.saved),
        "setting": one.setting.key or None if one.setting else None,
        "variable": one.setting.variable or None if one.setting else None,
        "value": one.value,
        "needs": one.needs,
        "assumption": one.assumption,
    }
