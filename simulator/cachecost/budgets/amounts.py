"""Dollars and shares in messages, with enough digits to show on which side of a limit they are."""

from __future__ import annotations

from datetime import date
from decimal import Decimal, localcontext
from itertools import count

from cachecost.base.formatting import dollars, exact_dollars, percent

EXACT_DIGITS = 200
"""Enough for any sum of dollars: nothing is rounded before it is compared."""


def exact_share(part: Decimal | int, whole: Decimal | int) -> Decimal:
    """`part / whole`, with more digits than any sum of dollars has; as it is where `whole` is 1."""
    with localcontext(prec=EXACT_DIGITS):
        return Decimal(part) if whole == 1 else (Decimal(part) / Decimal(whole)).normalize()


def against(total: Decimal, before: Decimal, change: Decimal | None, limit: Decimal, day: date | None) -> str:
    """ "$26.02, 8 % more than the baseline of 2026-11-20 ($24.10)"."""
    told, before_told = apart(total, before)
    baseline = f"the baseline of {day}" if day else "the baseline"
    if change is None:
        return f"{told}, up from $0 in {baseline}"
    if not change:
        return f"{told}, the same as {baseline}"
    word = "more" if change > 0 else "less"
    return f"{told}, {percent_apart(abs(change), limit)} {word} than {baseline} ({before_told})"


def apart(one: Decimal, other: Decimal) -> tuple[str, str]:
    """Both amounts, to the last digit where rounding would make them look equal."""
    write = exact_dollars if one != other and dollars(one) == dollars(other) else dollars
    return write(one), write(other)


def percent_apart(share: Decimal, limit: Decimal) -> str:
    """`share` as percent, with as many places as it takes to stand on its side of `limit`."""
    if share == limit or percent(share) != percent(limit):
        return percent(share)
    with localcontext(prec=EXACT_DIGITS):
        rounded = ((share * 100).quantize(Decimal(1).scaleb(-places)) for places in count(1))
        return f"{next(told for told in rounded if (told - limit * 100) * (share - limit) > 0)}%"
