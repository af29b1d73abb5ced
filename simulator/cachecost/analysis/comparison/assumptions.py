"""Everything that an answer assumes: what every comparison does, and what its scenario states, tried at other values.

Each in a sentence, by what becomes of the answer; and how much of the dollars is the price of long prompts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from decimal import Decimal
from typing import Any

from cachecost.analysis.comparison.break_even import (
    CheapestClaim,
    Claim,
    DifferenceClaim,
    Number,
    Trials,
    cheapest_in,
    find_break_even,
    steps_between,
)
from cachecost.analysis.comparison.summary import (
    MANY,
    StrategyLine,
    Summary,
    best_and_next,
    cheapest_words,
    complete,
    join_names,
    lead_words,
    ranked,
    summarise,
    tie_sentence,
)
from cachecost.analysis.comparison.variant_run import VariantRun
from cachecost.analysis.comparison.verdict import seeds_sentence, seeds_won
from cachecost.base.errors import CannotEvaluate
from cachecost.base.formatting import (
    all_of,
    capitalized,
    change_text,
    count_text,
    dollars,
    percent,
    quote,
    range_text,
    tokens,
)
from cachecost.base.times import day_of
from cachecost.ledger.results import Assumption, BreakEven, Comparison, Ledger, TriedValue
from cachecost.ledger.rows import CallRow
from cachecost.providers.prices import STANDARD
from cachecost.providers.usage import TOKEN_CLASSES, ZERO, Quote
from cachecost.scenario.loading import get, numbered_paths, placed_of
from cachecost.scenario.models import (
    AssumptionSpec,
)
from cachecost.strategies.agent import TOOL_CALL, Agent

SENTENCE_END = re.compile(r"(?<=[.])\s+(?=[A-Z“])")
MOST_ASSUMED = 5
"""Assumptions next to the verdict, at most."""
CHANGE, HOLD, UNTRIED = "Would change the answer", "Would not change it", "Not tried"


def assumption_groups(assumptions: Sequence[Assumption]) -> list[tuple[str, list[str]]]:
    """The assumptions by whether they would change the answer, each in a sentence; no group is empty."""
    groups = [(CHANGE, True), (HOLD, False), (UNTRIED, None)]
    found = [(title, [sentence(one) for one in assumptions if one.changes is changes]) for title, changes in groups]
    return [(title, sentences) for title, sentences in found if sentences]


def sentence(assumption: Assumption) -> str:
    """ "Retry rate of the answer tool: 0.05 (not measured; RFD 033). “a” stays the cheapest …"."""
    value = "" if assumption.value is None else f": {show_value(assumption.value)}"
    reasons = "; ".join(part for part in (assumption.why, assumption.source) if part)
    name = assumption.name.removesuffix(".")
    stated = f"{capitalized(name)}{value}{f' ({reasons})' if reasons else ''}."
    return f"{stated} {assumption.effect}" if assumption.effect else stated


def show_value(value: Any) -> str:
    return show_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def show_number(value: Any) -> str:
    """A number of a scenario as a sentence has it: "21,000", "0.31"."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else f"{value:f}"


def brief_sentence(assumption: Assumption) -> str:
    """The assumption and what becomes of the answer, in one sentence."""
    value = "" if assumption.value is None else f" ({show_value(assumption.value)})"
    effect = SENTENCE_END.split(assumption.effect)[0].removesuffix(".")
    stated = f"{capitalized(assumption.name.removesuffix('.'))}{value}"
    effect = effect[:1].lower() + effect[1:]
    return f"{stated}: {effect}." if effect else f"{stated}."


def first_assumptions(assumptions: Sequence[Assumption]) -> list[str]:
    """Those that could change most, in a sentence each: what was tried before what was not."""
    return [brief_sentence(one) for one in assumptions[:MOST_ASSUMED]]


def summary_sentence(assumptions: Sequence[Assumption]) -> str:
    """How many assumptions there are, how many were varied, and whether the winner stays; "" without any."""
    if not assumptions:
        return ""
    tried = [one for one in assumptions if one.changes is not None]
    changing = sum(bool(one.changes) for one in tried)
    were = "were" if len(tried) > 1 else "was"
    counted = f"{len(tried) or 'None'} of {count_text(len(assumptions), 'assumption')} {were} varied"
    return f"{counted}{f'; {changing} would change the answer' if changing else '; the winner stays' if tried else ''}."


def long_context_assumption(main: VariantRun, summary: Summary) -> Iterator[Assumption]:
    """The share of long-context prices, and what is cheapest without them; nothing where no call pays one."""
    ledgers = {ledger.strategy: ledger for ledger in summary.comparison.ledgers}
    extra = {name: surcharge(main, ledger.rows) for name, ledger in ledgers.items()}
    if not summary.is_priced or summary.best is None or not any(extra.values()):
        return
    paid = ((row, _quote(main, row)) for ledger in ledgers.values() for row in ledger.rows)
    limits = ((limit, row) for row, prices in paid if prices for limit in prices.above)
    above = sorted({limit for limit, row in limits if limit < row.usage.total_input})
    lines = [line for line in (summary.first, summary.best) if line is not None]
    shares = [_share(main, ledgers[name], extra[name]) for name in dict.fromkeys(line.name for line in lines)]
    without = min(ranked(summary.lines), key=lambda line: line.effort - extra[line.name])
    stays = "stays" if without.name in summary.winners else "is"
    yield Assumption(
        f"Prompts of more than {' or '.join(map(tokens, above))} tokens have the long-context price of that day",
        changes=stays == "is",
        effect=f"It is {all_of(shares)}. Without it, {quote(without.name)} {stays} the cheapest:"
        f" {_without(without, summary.first, extra)}.",
    )


def surcharge(main: VariantRun, rows: Iterable[CallRow]) -> Decimal:
    """USD of calls above what their tokens would cost at the price of short prompts."""
    found = ZERO
    for row in rows:
        prices = _quote(main, row) if row.error is None else None
        if prices is not None and prices.above:
            long, short = prices.of(row.usage.total_input), prices.of(0)
            costs = row.cost.by_class()
            parts = ((costs[name], getattr(long, name), getattr(short, name)) for name in TOKEN_CLASSES)
            found += sum((amount * (paid - base) / paid for amount, paid, base in parts if paid != base), ZERO)
    return found


def _quote(main: VariantRun, row: CallRow) -> Quote | None:
    day = main.setup.day or day_of(row.start)
    try:
        return main.setup.prices.quote(main.setup.host, row.model, day, STANDARD)
    except CannotEvaluate:
        return None


def _share(main: VariantRun, ledger: Ledger, extra: Decimal) -> str:
    """ "40% of the $157.50 of “a” (42% of the $2.44 of a question)"."""
    total, asked = ledger.cost.total, ledger.inquiries
    share = f"{percent(extra / total if total else ZERO)} of the {dollars(total)} of {quote(ledger.strategy)}"
    each = ledger.per_inquiry()
    if not each:
        return share
    of_questions = surcharge(main, asked) / ledger.cost_of(asked)
    return f"{share} ({percent(of_questions)} of the {dollars(each)} of a question)"


def _without(best: StrategyLine, first: StrategyLine | None, extra: dict[str, Decimal]) -> str:
    cost = dollars(best.effort - extra[best.name])
    return cost if first is None or first is best else f"{cost} instead of {dollars(first.effort - extra[first.name])}"


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
    changes = bool(found)
    low, high = stated.tried
    span = f"from {show_number(low.value)} to {show_number(high.value)}"
    lead = capitalized(span) if changes else f"{quote(low.best)} stays the cheapest {span}"
    effect = " ".join([*_sentences(found), f"{lead}: {'; '.join(_costs(low, high, comparison, shown[:MOST_COSTS]))}."])
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


def _costs(low: TriedValue, high: TriedValue, comparison: Comparison, shown: Sequence[str]) -> Iterator[str]:
    """What strategies cost at both ends; those that cost the same together."""
    names: dict[str, list[str]] = {}
    for name in shown:
        words = range_text(_amount(low.costs[name], comparison), _amount(high.costs[name], comparison), " to ")
        if name in low.questions and name in high.questions:
            a_question = range_text(dollars(low.questions[name]), dollars(high.questions[name]), " to ")
            words = f"{a_question} a question, {words} in all"
        names.setdefault(words, []).append(quote(name))
    return (f"{all_of(who)} {'costs' if len(who) == 1 else 'cost'} {words}" for words, who in names.items())


def _amount(effort: Decimal, comparison: Comparison) -> str:
    return dollars(effort) if comparison.is_priced else f"{tokens(int(effort))} tokens"


def _with_values(
    stated: Assumption, spec: AssumptionSpec, comparison: Comparison, trials: Trials, claims: Sequence[Claim]
) -> Assumption:
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


def assumptions_of(
    main: VariantRun,
    comparisons: Sequence[Comparison],
    seeds: Sequence[Comparison] = (),
    shipped: Comparison | None = None,
) -> list[Assumption]:
    """What the answer assumes; what would change it first, then what would not, then what was not tried, each group by
    how much it could change.

    `shipped` is the comparison with the rules and prices of the shipped data, where no variant has another day.
    Raises CannotEvaluate for a value that cannot be simulated.
    """
    summaries = [summarise(comparison) for comparison in comparisons]
    found = [
        *stated_assumptions(main, comparisons[0]),
        *_other_seeds(main, summaries[0], seeds),
        *_token_counts(summaries[0]),
        *_day(summaries, shipped),
        *_variants(summaries),
        *long_context_assumption(main, summaries[0]),
        *_never_missed(summaries[0], main.scenario.question_about),
        *_output(main, summaries[0]),
        *map(Assumption, main.assumptions()),
    ]
    return sorted(found, key=lambda one: (not one.changes, one.changes is None, -one.impact))


def _other_seeds(main: VariantRun, summary: Summary, seeds: Sequence[Comparison]) -> Iterator[Assumption]:
    """The numbers that were drawn for the conversation."""
    best, synthetic = summary.best, main.scenario.conversation.synthetic
    if not seeds or best is None or synthetic is None:
        return
    won, tried = seeds_won(summary, seeds)
    costs = [line.effort for each in seeds if (line := summarise(each).line(best.name)) is not None]
    impact = max(abs(cost - best.effort) for cost in costs) / best.effort if costs and best.effort else ZERO
    name, effect = "Seed of the synthetic conversation", seeds_sentence(summary, seeds)
    yield Assumption(name, value=synthetic.seed, changes=won < tried, effect=effect, impact=impact)


def _token_counts(summary: Summary) -> Iterator[Assumption]:
    """Whether the error margin of the counts is wider than the lead."""
    best = summary.best
    margin = max((line.error_margin for line in complete(summary.lines)), default=0.0)
    if best is None or not margin or not best.is_priced:
        return
    found = best_and_next(summary.lines)
    stays = f"{join_names(summary.winners)} {'stays' if len(summary.winners) == 1 else 'stay'} the cheapest"
    lead = f": {lead_words(*found)}" if found is not None else ""
    tie = tie_sentence(summary, best)
    yield Assumption(
        f"Token counts are right within ±{percent(margin)}", changes=bool(tie), effect=tie or f"{stays}{lead}."
    )


def _day(summaries: Sequence[Summary], shipped: Comparison | None) -> Iterator[Assumption]:
    """Rules and prices of another day."""
    day = summaries[0].comparison.as_of
    others = [summary for summary in summaries[1:] if summary.comparison.as_of != day]
    others += [summarise(shipped)] if shipped is not None else []
    if others:
        changes = not all(_keeps(summary, summaries[0]) for summary in others)
        effect = " ".join(_on_day(summary, summaries[0]) for summary in others)
        yield Assumption(f"Rules and prices of {day}", changes=changes, effect=effect)


def _variants(summaries: Sequence[Summary]) -> Iterator[Assumption]:
    others = [one for one in summaries[1:] if one.comparison.as_of == summaries[0].comparison.as_of]
    if not others:
        return
    differing = [quote(one.comparison.variant) for one in others if not _keeps(one, summaries[0])]
    where = all_of(differing) if 0 < len(differing) <= MANY else f"{len(differing)} of {len(others)} variants"
    another = f"Another strategy is the cheapest with {where}." if differing else ""
    name = "The scenario as written, not one of its variants of the same day"
    yield Assumption(name, changes=bool(differing), effect=another or "The cheapest is the same in all.")


def _keeps(summary: Summary, main: Summary) -> bool:
    """Whether what is the cheapest stays it."""
    return set(main.winners) <= set(summary.winners)


def _on_day(summary: Summary, main: Summary) -> str:
    """ "On 2026-11-21 “a” stays the cheapest: $32.76 instead of $57.46, 43% less."."""
    best, first, day = summary.best, summary.first, summary.comparison.as_of
    if best is None:
        return f"On {day} every strategy has calls that are refused."
    stays = "stays" if set(summary.winners) == set(main.winners) else "is"
    words = cheapest_words(summary).replace(" is the ", f" {stays} the ", 1)
    with_variant = f" ({summary.comparison.variant})" if summary.comparison.variant else ""
    against = "" if first is None or first is best else f" instead of {first.answer}, {change_text(best.vs_first)}"
    return f"On {day}{with_variant}, {words}: {best.answer}{against}."


def _never_missed(summary: Summary, asked: Sequence[str]) -> Iterator[Assumption]:
    """What strategies leave out that are compared all the same: how much missing it may cost."""
    first = summary.first
    leaving = [line for line in ranked(summary.lines) if line.less is not None and line is not first]
    if first is None or not leaving:
        return
    shown = [line for line in leaving if line is summary.best or line.name in asked]
    room = [_room(line, first) for line in shown if line.is_priced and line.calls and 0 < line.effort < first.effort]
    leave = "leaves" if len(leaving) == 1 else "leave"
    name = f"What {join_names([line.name for line in leaving])} {leave} out is never missed"
    yield Assumption(name, "no call is repeated, no answer is worse", effect=" ".join(room))


def _room(line: StrategyLine, first: StrategyLine) -> str:
    """How many more calls a strategy may make until it costs as much as the compared one."""
    lead = first.effort - line.effort
    calls = count_text(int(lead / (line.effort / line.calls)), "more call")
    return f"{quote(line.name)} costs as much as {quote(first.name)} after {calls} at its mean cost ({dollars(lead)})."


def _output(main: VariantRun, summary: Summary) -> Iterator[Assumption]:
    """The answers of every strategy are as long: how much shorter they would have to be for another one to win."""
    whence = "that the scenario states" if main.scenario.conversation.synthetic else "of the recording"
    name = f"The answers are those {whence}, equally long in every strategy"
    yield Assumption(name, effect=_shorter(summary, main.scenario.question_about))


def _shorter(summary: Summary, asked: Sequence[str]) -> str:
    """How much less output the strategies need that the question is about, else the one that needs the least."""
    best = summary.best
    if best is None:
        return ""
    others = (line for line in ranked(summary.lines) if line not in summary.equal_lines and line.is_priced)
    needed = {line.name: (line.effort - best.effort) / line.cost.output for line in others if line.cost.output}
    shown = [name for name in needed if name in asked] or sorted(needed, key=needed.__getitem__)[:1]
    return " ".join(
        f"{quote(name)} costs more than {quote(best.name)} even without any output."
        if needed[name] >= 1
        else f"{quote(name)} costs as little as {quote(best.name)} with {percent(needed[name])} less output."
        for name in shown
    )
