"""How views write numbers: rounded once, the same everywhere.

"–" is unknown, "$0.00" is zero, and nothing that is not zero is printed as zero, nor what is not
100 % as 100 %. Halves are rounded up. A number in a sentence is the same text as in the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, ROUND_UP, Decimal

UNKNOWN = "–"
MINUS = "−"
TENTH_OF_A_DOLLAR = Decimal("0.1")
HUNDRED = Decimal(100)

TOKEN_STEPS = (
    (1_000, 1, 0, ""),
    (9_950, 1_000, 1, "k"),
    (999_500, 1_000, 0, "k"),
    (9_995_000, 10**6, 2, "M"),
    (99_950_000, 10**6, 1, "M"),
    (999_500_000, 10**6, 0, "M"),
)
"""Below which count, in which unit, with how many places. Limits are where rounding moves to the next."""


def exact(amount: Decimal) -> str:
    """All digits, never an exponent, no zeros at the end: "0.59375". For machines."""
    text = f"{amount:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def dollars(amount: Decimal | None) -> str:
    """Dollars to the cent; under ten cents three significant digits: "$24.10", "$0.0475", "$0.02"."""
    if amount is None:
        return UNKNOWN
    size = abs(amount)
    places = 2 if size >= TENTH_OF_A_DOLLAR or not size else 2 - size.adjusted()
    return _sign(amount) + "$" + _two_places_at_least(_rounded(size, places))


def dollar_range(least: Decimal | None, most: Decimal | None) -> str:
    """Dollars that are known to lie between two amounts: "$1.20–3.40"; one amount where both are written the same."""
    low, high = dollars(least), dollars(most)
    return low if most is None or low == high else f"{low}–{high.removeprefix('$')}"


def rough_dollars(amount: Decimal) -> str:
    """Dollars of an error band: to the cent, under ten cents two significant digits: "$0.40", "$0.087"."""
    places = 2 if amount >= TENTH_OF_A_DOLLAR or not amount else 1 - amount.adjusted()
    return "$" + _two_places_at_least(_rounded(amount, places))


def exact_dollars(amount: Decimal) -> str:
    """Every digit of an amount: "$0.59375", "$0.95"."""
    return _sign(amount) + "$" + _two_places_at_least(abs(amount))


def dollar_change(amount: Decimal | None) -> str:
    """Dollars with their sign: "+$0.40", "−$11.10", "$0.00"."""
    return ("+" if amount is not None and amount > 0 else "") + dollars(amount)


def tokens(count: int | None) -> str:
    """Tokens to two or three digits: "950", "1.2k", "310k", "4.90M", "14.1M", "1.41B"."""
    if count is None:
        return UNKNOWN
    for limit, unit, places, suffix in TOKEN_STEPS:
        if count < limit:
            return f"{_rounded(Decimal(count) / unit, places):f}{suffix}"
    return f"{_rounded(Decimal(count) / 10**9, 2):,f}B"


def percent(ratio: Decimal | float | None, *, signed: bool = False) -> str:
    """A ratio as whole percents, one place under 10 %, one digit under 1 %: "32 %", "3.1 %", "0.04 %".

    `signed` writes "+8 %"; a minus is always written. Between 99 and 101 % it rounds away from 100.
    """
    if ratio is None:
        return UNKNOWN
    share = Decimal(str(ratio)) * 100
    plus = "+" if signed and share > 0 else ""
    return f"{plus}{_sign(share)}{_without_end_zeros(_rounded_percent(abs(share)))} %"


def compared(ratio: Decimal | None) -> str:
    """A change in words: "32 % less", "8 % more", "the same"."""
    if ratio is None:
        return "not comparable"
    return f"{percent(abs(ratio))} {'less' if ratio < 0 else 'more'}" if ratio else "the same"


def times(ratio: Decimal) -> str:
    """How many times as much: "2.8 ×", "15 ×"."""
    return f"{_without_end_zeros(_rounded(ratio, 1 if ratio < 10 else 0))} ×"


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 call", "1,204 calls"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def change(new: Decimal | None, old: Decimal | None) -> Decimal | None:
    """`new` against `old` as a ratio (−0.32 is 32 % less); None where either is unknown or `old` is zero."""
    if new is None or not old:
        return None
    return new / old - 1


def point_aligned(cells: Sequence[str]) -> list[str]:
    """The cells with blanks at their ends so that, set flush right, the decimal points of dollars stand in one line."""
    tails = [len(cell) - cell.find(".") if "$" in cell else 0 for cell in cells]
    longest = max(tails, default=0)
    return [cell + " " * (longest - tail if tail else 0) for cell, tail in zip(cells, tails, strict=True)]


def _sign(amount: Decimal) -> str:
    return MINUS if amount < 0 else ""


def _rounded(size: Decimal, places: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    return size.quantize(Decimal(1).scaleb(-places), rounding)


def _rounded_percent(share: Decimal) -> Decimal:
    if 99 < share < 101 and share != HUNDRED:
        return _rounded(share, 1, ROUND_DOWN if share < HUNDRED else ROUND_UP)
    if share >= Decimal("9.95"):
        return _rounded(share, 0)
    return _rounded(share, 1 if share >= 1 or not share else -share.adjusted())


def _without_end_zeros(size: Decimal) -> str:
    text = f"{size:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _two_places_at_least(size: Decimal) -> str:
    whole, _, places = f"{size:,f}".partition(".")
    return f"{whole}.{places.rstrip('0').ljust(2, '0')}"
