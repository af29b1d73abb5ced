"""The figures of one strategy of a comparison, and how strategies are ranked by them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.base.formatting import change, dollar_range, tokens
from cachecost.ledger.conversation_shares import LessInput
from cachecost.ledger.results import ZERO, Cost, Ledger, most_of
from cachecost.ledger.rows import REFUSED
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import Usage

NUMBER = re.compile(r"(?<![\w.-])\d[\d,]*(?![\w-])")
"""A number that stands alone: no part of a name or of a path."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Calls that have no usage, for one reason: the provider's words, or what is not known."""

    reason: str
    kind: str
    calls: int

    @property
    def word(self) -> str:
        return "refused" if self.kind == REFUSED else "not evaluated"


@dataclass(frozen=True, slots=True)
class StrategyLine:
    """One strategy of a comparison.

    `total` (USD) is None if every call was refused, or no price is known; `vs_first` is a ratio (−0.32) of efforts,
    None for the first itself and where a refused call makes it not comparable; `question` is the dollars of one
    question, None if none was asked, one was refused, or no price is known.
    """

    name: str
    calls: int
    usage: Usage
    cost: Cost
    by_layer: dict[Layer, Decimal]
    total: Decimal | None
    vs_first: Decimal | None
    questions: int
    question_calls: int
    question_usage: Usage
    question_cost: Cost
    question: Decimal | None
    question_most: Decimal | None
    """As `most`, of one question."""
    refusals: tuple[Refusal, ...]
    """In the order they came."""
    notes: tuple[str, ...]
    token_source: str
    error_margin: float
    most: Decimal | None
    """USD if no best-effort hit came about: `total` is then the least. None: every hit is certain."""
    lower_bound: Decimal | None
    """USD below which no choice of breakpoints and TTLs could go for the same bytes; None: not known."""
    uncertain: Decimal
    """The dollars that rest on counted tokens: all but recorded output."""
    effort: Decimal
    """What strategies are ranked by: USD; tokens to compute where no price is known."""
    is_priced: bool
    less: LessInput | None = None
    """What it leaves out of the conversation; None: nothing."""
    assumes: str = ""
    """Assumptions of its own, other than those of the comparison, as NAME=VALUE."""
    described_in: str = ""
    """Where somebody describes it, as the scenario says."""
    is_apart: bool = False
    """Whether it is not compared with the others, for one of these reasons or because the scenario says so."""
    places: int | None = None
    """Digits after the point of dollars in the column of costs that the line is part of; None: it stands alone."""
    question_places: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether every call was refused or could not be evaluated."""
        return bool(self.refused) and self.refused == self.calls

    @property
    def cache_hit_rate(self) -> Decimal | None:
        """How much of the input was read; None where there was none."""
        return Decimal(self.usage.read) / self.usage.total_input if self.usage.total_input else None

    @property
    def answer(self) -> str:
        """`money`; where no price is known, the tokens that must be computed."""
        return self.money if self.is_priced or self.is_empty else f"{tokens(int(self.effort))} tokens of prefill"

    @property
    def refused(self) -> int:
        return sum(refusal.calls for refusal in self.refusals)

    @property
    def money(self) -> str:
        """`total` as it is shown: a range where hits are best effort."""
        return dollar_range(self.total, None if self.total is None else self.most, self.places)

    @property
    def question_money(self) -> str:
        """`question` as it is shown: a range where hits are best effort, tokens to compute where no price is known."""
        if not self.is_priced and self.questions and not self.refused:
            used = self.question_usage
            return tokens(round((used.total_input - used.read) / self.questions))
        most = None if self.question is None else self.question_most
        return dollar_range(self.question, most, self.question_places)

    @property
    def above_lower_bound(self) -> Decimal | None:
        """How far it is from the lower bound, as a ratio (0.12 is 12% above)."""
        return change(self.total, self.lower_bound)

    @property
    def error(self) -> Decimal:
        """± USD on `total` from the token counts."""
        return self.uncertain * Decimal(str(self.error_margin))

    @property
    def errors(self) -> list[Decimal]:
        """`error` by what is counted: each layer of the prompt, then output and what is in no layer."""
        layers = [self.by_layer.get(layer, ZERO) for layer in Layer]
        parts = [*layers, self.uncertain - sum(layers, ZERO)]
        return [part * Decimal(str(self.error_margin)) for part in parts]


def complete(lines: Sequence[StrategyLine]) -> list[StrategyLine]:
    """The lines without a refused call: those that can be compared."""
    return [line for line in lines if not line.refused]


def ranked(lines: Sequence[StrategyLine]) -> list[StrategyLine]:
    """The lines that are compared with one another: complete, and none apart. Where all are apart, all of them."""
    whole = complete(lines)
    return [line for line in whole if not line.is_apart] or whole


def best_and_next(lines: Sequence[StrategyLine]) -> tuple[StrategyLine, StrategyLine] | None:
    """The cheapest of the lines that are compared, and the cheapest that costs more; None where there is none."""
    order = sorted(ranked(lines), key=lambda line: line.effort)
    second = next((line for line in order if line.effort > order[0].effort), None)
    return None if second is None else (order[0], second)


UNSHARED = Decimal("0.5")
"""The part of an error of the counts that is taken not to be the same in both of two costs (assumed)."""


def error_of_difference(one: StrategyLine, other: StrategyLine) -> Decimal:
    """± USD on the difference of two lines, from the token counts; none where they are equal.

    Both count the same text in the same way, so within a layer an error scales the difference too. The layers hold
    text of other kinds, whose errors need not have the same sign: theirs add up. And strategies pay for the kinds
    within a layer in other proportions, so that a part of the smaller one's error is in the difference anyway.
    """
    if one.effort == other.effort:
        return ZERO
    by_layer = sum((abs(mine - theirs) for mine, theirs in zip(one.errors, other.errors, strict=True)), ZERO)
    return max(by_layer, UNSHARED * min(one.error, other.error))


def is_tied(one: StrategyLine, other: StrategyLine) -> bool:
    """Whether two lines cannot be told apart: their difference is within its error margin. Symmetric."""
    difference = abs(one.effort - other.effort)
    return not difference or (one.is_priced and other.is_priced and difference <= error_of_difference(one, other))


def shared_notes(lines: Sequence[StrategyLine]) -> list[tuple[str, list[str]]]:
    """Each note once, with the strategies that have it, in order of appearance."""
    found: dict[str, list[str]] = {}
    for line in lines:
        for note in dict.fromkeys(line.notes):
            found.setdefault(note, []).append(line.name)
    return list(found.items())


def strategy_line(ledger: Ledger, effort: Decimal, reference: Decimal | None) -> StrategyLine:
    cost, asked = ledger.cost, ledger.inquiries
    questions = len({row.inquiry for row in asked})
    refusals = _refusals(ledger)
    all_refused = bool(refusals) and ledger.errors == len(ledger.rows)
    return StrategyLine(
        name=ledger.strategy,
        calls=len(ledger.rows),
        usage=ledger.usage,
        cost=cost,
        by_layer=ledger.cost_by_layer,
        total=None if all_refused or not ledger.is_priced else cost.total,
        vs_first=None if refusals else change(effort, reference),
        questions=questions,
        question_calls=len(asked),
        question_usage=sum((row.usage for row in asked), Usage()),
        question_cost=sum((row.cost for row in asked), Cost()),
        question=None if any(row.error is not None for row in asked) else ledger.per_inquiry(),
        question_most=None if ledger.most is None or not questions else most_of(asked) / questions,
        refusals=refusals,
        notes=tuple(ledger.notes),
        most=ledger.most,
        lower_bound=ledger.lower_bound,
        token_source=ledger.token_source,
        error_margin=ledger.error_margin,
        uncertain=cost.total - sum((row.cost.output for row in ledger.rows if row.output_is_recorded), ZERO),
        effort=effort,
        is_priced=ledger.is_priced,
        assumes=ledger.assumes,
        described_in=ledger.described_in,
    )


def _refusals(ledger: Ledger) -> tuple[Refusal, ...]:
    """Why calls have no usage, and how many; reasons that differ only in a number count as one, the first."""
    first: dict[tuple[str, str], str] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for row in ledger.rows:
        if row.error is not None:
            key = (NUMBER.sub("0", row.error), row.error_type or REFUSED)
            first.setdefault(key, row.error)
            counts[key] += 1
    return tuple(Refusal(first[key], key[1], calls) for key, calls in counts.items())
