"""A claim of a source document beside the figure that was computed for it, and how figures are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from tools.reference.markdown import prose, table

Figure = Decimal | int
HEAD = ("claim", "exactly", "computed by", "verdict")
VERDICTS = ("right under a condition", "right", "wrong")
MILLION = 10**6


@dataclass(frozen=True, slots=True)
class Claim:
    """`says` is the claim in our own words, `exactly` the computed figure in a sentence, `how` the scenario or formula.

    `figures` are the computed numbers by name, unrounded: what tests recompute. `verdict` begins with one of VERDICTS.
    """

    key: str
    says: str
    exactly: str
    how: str
    verdict: str
    figures: Mapping[str, Figure]

    @property
    def kind(self) -> str:
        """Which of VERDICTS its verdict begins with. Raises StopIteration."""
        return next(kind for kind in VERDICTS if self.verdict.startswith(kind))


@dataclass(frozen=True, slots=True)
class Document:
    """A source document with its claims. `source` says where it stands and from when it is; `left_out` which of its
    claims no number decides."""

    title: str
    source: str
    claims: Sequence[Claim]
    left_out: str

    def text(self) -> str:
        """The document's section: a heading, the source and the table of its claims."""
        rows = (
            (prose(claim.says), prose(claim.exactly), prose(claim.how), prose(claim.verdict)) for claim in self.claims
        )
        text = f"## {self.title}\n\n{prose(self.source)}\n\n{table(HEAD, rows)}"
        return f"{text}\nNo number decides: {prose(self.left_out)}.\n"


def usd(amount: Decimal) -> str:
    """Dollars: cents from a dollar on, else three significant digits; nothing is `$0`."""
    if not amount:
        return "$0"
    places = 2 if abs(amount) >= 1 else 2 - amount.adjusted()
    return f"{'−' if amount < 0 else ''}${abs(amount):.{places}f}"


def share(part: Decimal, digits: int = 1) -> str:
    """A share as a percentage with a true minus."""
    return f"{part * 100:.{digits}f}%".replace("-", "−")


def tokens(count: int) -> str:
    return f"{count:,}"


def off_by(claimed: Decimal, exact: Decimal) -> str:
    """How far a claimed figure is from the exact one: `5% too high`."""
    distance = claimed / exact - 1
    if abs(distance) < Decimal("0.01"):
        return "right within 1%"
    return f"{abs(distance) * 100:.0f}% too {'high' if distance > 0 else 'low'}"


def rounded(claimed: Decimal, exact: Decimal) -> str:
    """The verdict on a figure that was published rounded: right where the exact one rounds to it, or is 1% away."""
    step = Decimal(1).scaleb(int(claimed.as_tuple().exponent))
    if abs(claimed - exact) <= step / 2:
        return "right, rounded"
    if abs(claimed - exact) <= exact / 100:
        return "right within 1%"
    return f"wrong: {off_by(claimed, exact)}"
