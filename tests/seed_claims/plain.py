"""Plain arithmetic for the claims: prices of the day, what a call costs, and calls that each read the one before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

MILLION = 10**6


class Rates(NamedTuple):
    """USD per million tokens."""

    input: Decimal
    output: Decimal
    read: Decimal
    write: Decimal
    hour: Decimal


def claude(price: str, output: str) -> Rates:
    """Reads at a tenth of the input price, writes at 1.25 (5 minutes) and 2 times (one hour)."""
    base = Decimal(price)
    return Rates(base, Decimal(output), base / 10, base * 5 / 4, base * 2)


OPUS, SONNET = claude("5", "25"), claude("3", "15")


class Sent(NamedTuple):
    """A call: tokens of the prompt, of these read, of these neither read nor written, and tokens of the answer."""

    total: int
    read: int = 0
    output: int = 0
    fresh: int = 0


def usd(rates: Rates, calls: Iterable[Sent]) -> Decimal:
    tokens = [
        call.read * rates.read
        + (call.total - call.read - call.fresh) * rates.write
        + call.fresh * rates.input
        + call.output * rates.output
        for call in calls
    ]
    return sum(tokens, Decimal(0)) / MILLION


def chain(steps: Iterable[tuple[int, int]]) -> list[Sent]:
    """Calls that read all that the one before sent; each step is (tokens added to the prompt, tokens answered)."""
    calls: list[Sent] = []
    for added, output in steps:
        before = calls[-1].total if calls else 0
        calls.append(Sent(before + added, before, output))
    return calls


def uncached(calls: Iterable[Sent]) -> list[Sent]:
    return [call._replace(read=0, fresh=call.total) for call in calls]


def line_through(points: Sequence[tuple[int, int, str]]) -> tuple[Fraction, ...]:
    """Base, slope over unread and slope over read tokens by least squares: the normal equations, solved exactly."""
    rows = [(Fraction(1), Fraction(unread), Fraction(read), Fraction(seconds)) for unread, read, seconds in points]
    table = [[sum((row[i] * row[j] for row in rows), Fraction(0)) for j in range(4)] for i in range(3)]
    for pivot in range(3):
        table[pivot] = [value / table[pivot][pivot] for value in table[pivot]]
        for other in range(3):
            if other != pivot:
                factor = table[other][pivot]
                table[other] = [a - factor * b for a, b in zip(table[other], table[pivot], strict=True)]
    return tuple(row[3] for row in table)


PUBLISHED = [
    (10_000, 0, "1.6"),
    (0, 10_000, "1.1"),
    (100_000, 0, "11.5"),
    (0, 100_000, "2.4"),
    (187_371, 0, "20.37"),
    (17, 187_354, "2.92"),
]
BASE_S, UNREAD_S, READ_S = line_through(PUBLISHED)
