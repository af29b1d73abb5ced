"""The assumptions that a scenario states: tried at other values, with the value at which the answer changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from cachecost.analysis.comparison.break_even import (
    CheapestClaim,
    Claim,
    DifferenceClaim,
    Number,
    cheapest_in,
    find_break_even,
    steps_between,
)
from cachecost.analysis.comparison.trials import Trials
from cachecost.analysis.comparison.variant_run import VariantRun
from cachecost.base.formatting import all_of, capitalized, dollars, quote, tokens
from cachecost.ledger.assumptions import Assumption, BreakEven, TriedValue
from cachecost.ledger.results import Comparison
from cachecost.scenario.assumed import AssumptionSpec

MOST_COSTS = 2
"""Strategies whose costs at both ends are given, if the assumption is about so few."""


def stated_assumptions(main: VariantRun, comparison: Comparison) -> list[Assumption]:
    """What the scenario says that its answer assumes. Raises CannotEvaluate for a value that cannot be simulated."""
    return [_assumption(main, comparison, spec) for spec in main.scenario.assumptions]


def _assumption(main: VariantRun, comparison: Comparison, spec: AssumptionSpec) -> Assumption:
    stated = Assumption(spec.name, spec.why, spec.source)
    if spec.set is None:
        return stated
    trials = Trials(main, comparison, spec)
    shown = trials.strategies or list(dict.fromkeys((comparison.best.strategy, comparison.first)))
    watched = dict.fromkeys((*trials.strategies, *main.scenario.question_about))
    claims: list[Claim] = [CheapestClaim(comparison.best.strategy)]
    known = (comparison.first, comparison.best.strategy)
    claims += [DifferenceClaim(name, comparison.first) for name in watched if name not in known]
    tried = [_tried(trials, value, shown, comparison.best.strategy) for value in spec.tried]
    stated = replace(stated, value=trials.as_written, tried=tuple(tried), impact=_impact(comparison, tried))
    if spec.range is None:
        return _with_values(stated, comparison, shown)
    found = list(_break_evens(trials, claims, spec))
    effect = " ".join([*_sentences(found), _ends(stated, comparison, shown, bool(found))])
    return replace(stated, changes=bool(found), break_evens=tuple(found), effect=effect)


def _impact(comparison: Comparison, tried: Sequence[TriedValue]) -> Decimal:
    """The largest change of what the cheapest strategy costs."""
    best = comparison.best
    written = comparison.effort(best)
    changes = (abs(value.costs[best.strategy] - written) for value in tried if best.strategy in value.costs)
    return max(changes, default=Decimal(0)) / written if written else Decimal(0)


def _tried(trials: Trials, value: Any, shown: Sequence[str], winner: str) -> TriedValue:
    comparison = trials.at(value)
    ledgers = {ledger.strategy: ledger for ledger in comparison.ledgers}
    questions = {name: ledgers[name].per_inquiry() for name in shown}
    return TriedValue(
        value,
        cheapest_in(comparison, winner),
        {name: comparison.effort(ledgers[name]) for name in shown},
        {name: amount for name, amount in questions.items() if amount is not None},
    )


def _break_evens(trials: Trials, claims: Sequence[Claim], spec: AssumptionSpec) -> Iterator[BreakEven]:
    """From the value as written towards each end of the range; from the lower end where that value is not within."""
    assert spec.range is not None
    low, high = spec.range
    written = _number(trials.as_written)
    starts = [written] if written is not None and low <= written <= high else []
    sides: list[tuple[Number, Number]] = [(starts[0], low), (starts[0], high)] if starts else [(low, high)]
    for claim in claims:
        for start, end in sides:
            if start != end and (found := find_break_even(trials.at, claim, steps_between(start, end, spec.precision))):
                yield found


def _number(value: Any) -> Number | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) else Decimal(str(value))


def _sentences(found: Sequence[BreakEven]) -> Iterator[str]:
    for one in found:
        rises = one.changes_at > one.holds_to
        to, beyond = ("up to", "from") if rises else ("down to", "at")
        onwards = "on" if rises else "and below"
        changed = f"{beyond} {show_number(one.changes_at)} {onwards}, {one.instead}"
        yield f"{one.claim} {to} {show_number(one.holds_to)}; {changed}."


def _ends(stated: Assumption, comparison: Comparison, shown: Sequence[str], changes: bool) -> str:
    """What the strategies cost at both ends of the range, and that the answer stays where it does."""
    low, high = stated.tried
    span = f"from {show_number(low.value)} to {show_number(high.value)}"
    lead = capitalized(span) if changes else f"{quote(low.best)} stays the cheapest {span}"
    return f"{lead}: {'; '.join(_costs(low, high, comparison, shown[:MOST_COSTS]))}."


def _costs(low: TriedValue, high: TriedValue, comparison: Comparison, shown: Sequence[str]) -> Iterator[str]:
    """What strategies cost at both ends; those that cost the same together."""
    names: dict[str, list[str]] = {}
    for name in shown:
        names.setdefault(_cost_words(name, low, high, comparison), []).append(quote(name))
    return (f"{all_of(who)} {'costs' if len(who) == 1 else 'cost'} {words}" for words, who in names.items())


def _cost_words(name: str, low: TriedValue, high: TriedValue, comparison: Comparison) -> str:
    whole = _span(_amount(low.costs[name], comparison), _amount(high.costs[name], comparison))
    if name not in low.questions or name not in high.questions:
        return whole
    return f"{_span(dollars(low.questions[name]), dollars(high.questions[name]))} a question, {whole} in all"


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _amount(effort: Decimal, comparison: Comparison) -> str:
    return dollars(effort) if comparison.is_priced else f"{tokens(int(effort))} tokens"


def _with_values(stated: Assumption, comparison: Comparison, shown: Sequence[str]) -> Assumption:
    """Of values that are no range: what is cheapest with each."""
    best = comparison.best.strategy
    name = shown[0]
    said = [
        f"With {value.value}, {quote(value.best)} {'stays' if value.best == best else 'is'} the cheapest"
        f" ({quote(name)}: {_amount(value.costs[name], comparison)})."
        for value in stated.tried
    ]
    return replace(stated, changes=any(value.best != best for value in stated.tried), effect=" ".join(said))


def show_number(value: Any) -> str:
    """A number of a scenario as a sentence has it: "21,000", "0.31"."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else f"{value:f}"
