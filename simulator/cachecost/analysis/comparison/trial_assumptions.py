"""The assumptions that a scenario states: tried at other values, with the value at which the answer changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
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
from cachecost.scenario.loading import placed_of
from cachecost.scenario.ways import get, numbered_paths
from cachecost.strategies.agent import Agent
from cachecost.strategies.inquiry import TOOL_CALL

MOST_COSTS = 2
"""Strategies whose costs at both ends are given, if the assumption is about so few."""


def stated_assumptions(main: VariantRun, comparison: Comparison) -> list[Assumption]:
    """What the scenario says that its answer assumes. Raises CannotEvaluate for a value that cannot be simulated."""
    scenario = main.scenario
    covered = {path for spec in scenario.assumptions if spec.set for path in numbered_paths(scenario, spec.set)}
    specs = [*scenario.assumptions, *_defaults(main, covered)]
    return [_assumption(main, comparison, spec) for spec in specs]


def _defaults(main: VariantRun, covered: Set[str]) -> Iterator[AssumptionSpec]:
    """Defaults that may decide what is cheapest, each with another value, unless the scenario states or tries them."""
    if any(conversation.inquiries for conversation in main.conversations):
        yield from _question_defaults(main, covered)
    source, placed = main.scenario.conversation, placed_of(main.scenario)
    options = SYNTHETIC_DEFAULTS if source.synthetic else RECORDING_DEFAULTS
    if source.synthetic and source.synthetic.turns == 1:
        options = options[1:]
    for path, name, value in options:
        way = tuple(path.split("."))
        if path not in covered and get(placed, way) is None and not any(each.startswith(path) for each in covered):
            yield AssumptionSpec(name=name, set=[path], values=[value], why="the default; the scenario states none")


SYNTHETIC_DEFAULTS = [
    ("conversation.synthetic.pauses.turn", "pause before a human message, seconds", 600),
    ("conversation.synthetic.pauses.loop", "seconds from a call to the next", 600),
    ("conversation.synthetic.tools", "tools that a call uses in parallel", 4),
]
RECORDING_DEFAULTS = [("conversation.pause_factor", "pauses before human messages, times those recorded", 3)]
THINKS, CHOSEN = "a question thinks as the main thread does", "questions of one batch follow one another"


def _question_defaults(main: VariantRun, covered: Set[str]) -> Iterator[AssumptionSpec]:
    """How questions are asked, of all strategies that leave it to the default."""
    asking = [
        (number, spec.inquiry or {}, agent.inquiry, agent.parameters(main.conversations[0].params))
        for number, spec in enumerate(main.scenario.strategies)
        if isinstance(agent := spec.resolve(), Agent) and agent.inquiry is not None
    ]
    thinking = [n for n, _, one, sent in asking if one.thinking is None and one.model is None and one.thinks(sent)]
    first = {n for n, given, one, _ in asking if one.has_tool and not one.retry_rate and "retry_rate" not in given}
    batches = Counter((c.name, q.batch) for c in main.conversations for q in c.inquiries)
    in_turn = [n for n, given, _, _ in asking if "order" not in given] if max(batches.values()) > 1 else []
    calls = [n for n, given, one, _ in asking if one.has_tool and "answer_tokens" not in given]
    for numbers, key, name, value, why in (
        (thinking, "thinking", THINKS, "off", "other thinking in the question rewrites the conversation"),
        (sorted(first), "retry_rate", "no answer of a tool is asked again", 0.25, "nobody has measured the rate"),
        (in_turn, "order", CHOSEN, "parallel", "the recording does not say whether they waited for each other"),
        (calls, "answer_tokens", f"an answer tool's call is {TOOL_CALL} tokens of output", 300, "assumed"),
        (thinking, "thinking_tokens", "thinking before an answer, tokens", 2_000, "assumed"),
    ):
        paths = [f"strategies.{number}.inquiry.{key}" for number in numbers]
        if paths and not covered & set(paths):
            yield AssumptionSpec(name=name, set=paths, values=[value], why=why)


def _assumption(main: VariantRun, comparison: Comparison, spec: AssumptionSpec) -> Assumption:
    stated = Assumption(spec.name, spec.why, spec.source)
    if spec.set is None:
        return stated
    trials = Trials(main, comparison, spec)
    shown = trials.strategies or list(dict.fromkeys((comparison.best.strategy, comparison.first)))
    about = [*(trials.strategies if spec in main.scenario.assumptions else ()), *main.scenario.question_about]
    claims: list[Claim] = [CheapestClaim(comparison.best.strategy)]
    known = (comparison.first, comparison.best.strategy)
    claims += [DifferenceClaim(name, comparison.first) for name in dict.fromkeys(about) if name not in known]
    tried = [_tried(trials, value, shown, comparison.best.strategy) for value in spec.tried]
    names = {comparison.best.strategy, *main.scenario.question_about}
    impact = _impact(comparison, trials, spec.tried, names)
    stated = replace(stated, value=trials.as_written, tried=tuple(tried), impact=impact)
    if spec.range is None:
        return _with_values(stated, spec, comparison, trials, claims)
    found = list(_break_evens(trials, claims, spec))
    effect = " ".join([*_sentences(found), _ends(stated, comparison, shown, bool(found))])
    return replace(stated, changes=bool(found), break_evens=tuple(found), effect=effect)


def _impact(comparison: Comparison, trials: Trials, tried: Sequence[Any], names: Set[str]) -> Decimal:
    """The largest change of what one of these strategies costs, as a ratio."""
    written = {ledger.strategy: comparison.effort(ledger) for ledger in comparison.ledgers if ledger.strategy in names}
    found = [trials.at(value) for value in tried]
    return max(
        (
            abs(each.effort(ledger) / before - 1)
            for each in found
            for ledger in each.ledgers
            if (before := written.get(ledger.strategy))
        ),
        default=Decimal(0),
    )


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


def _with_values(
    stated: Assumption, spec: AssumptionSpec, comparison: Comparison, trials: Trials, claims: Sequence[Claim]
) -> Assumption:
    """Of values that are no range: what each of them changes, and what is cheapest with it."""
    key = (spec.set or [""])[0].rpartition(".")[2]
    what = "pauses of" if key in ("turn", "loop") else key.replace("_", " ")
    changes, said = False, []
    for tried in stated.tried:
        at = trials.at(tried.value)
        changed = [claim for claim in claims if claim.answer(at) != claim.answer(comparison)]
        changes = changes or bool(changed)
        differing = [claim.sentence(claim.answer(at)) for claim in changed if isinstance(claim, DifferenceClaim)]
        name = next((claim.strategy for claim in changed if isinstance(claim, DifferenceClaim)), tried.best)
        verb = "stays" if tried.best == comparison.best.strategy else "is"
        words = all_of(differing) if differing else f"{quote(tried.best)} {verb} the cheapest"
        said.append(f"With {what} {show_value(tried.value)}, {words}: {_cost(name, at)}.")
    return replace(stated, changes=changes, effect=" ".join(said))


def _cost(name: str, comparison: Comparison) -> str:
    ledger = next(each for each in comparison.ledgers if each.strategy == name)
    whole, each = _amount(comparison.effort(ledger), comparison), ledger.per_inquiry()
    return f"{dollars(each)} a question, {whole} in all" if each else whole


def show_value(value: Any) -> str:
    return show_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def show_number(value: Any) -> str:
    """A number of a scenario as a sentence has it: "21,000", "0.31"."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else f"{value:f}"
