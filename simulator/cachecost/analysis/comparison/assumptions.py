"""Everything that an answer assumes, each in a sentence by what becomes of the answer: what every comparison assumes,
what its scenario states, tried at other values, and how much of the dollars is the price of long prompts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from cachecost.analysis.comparison.summary import (
    MANY,
    Summary,
    best_and_next,
    cheapest_words,
    complete,
    is_tied,
    join_names,
    lead_words,
    order_words,
    ranked,
    strategy_line,
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
from cachecost.base.structs import replace
from cachecost.base.times import day_of
from cachecost.ledger.results import Assumption, BreakEven, Comparison, Ledger, TriedValue
from cachecost.ledger.rows import CallRow
from cachecost.providers.prices import STANDARD
from cachecost.providers.usage import TOKEN_CLASSES, ZERO, Quote
from cachecost.scenario.loading import get, numbered_paths, placed_of, scenario_at, value_as_written
from cachecost.scenario.models import AssumptionSpec, plain
from cachecost.strategies.agent import TOOL_CALL, Agent

Number = int | Decimal
Names = frozenset[str]
ComparisonAt = Callable[[Number, Names | None], Comparison]
"""The comparison at a value; of these strategies alone where they are named, as each of them takes time."""


def cheapest_in(comparison: Comparison, winner: str) -> str:
    """The cheapest strategy: `winner` where its lead or lag is within the error margin."""
    best = comparison.best
    ledger = next((each for each in comparison.ledgers if each.strategy == winner), None)
    if ledger is None or best is ledger or ledger.errors or winner in comparison.apart:
        return best.strategy
    lines = [strategy_line(each, comparison.effort(each), None) for each in (best, ledger)]
    return winner if is_tied(*lines) else best.strategy


@dataclass(frozen=True, slots=True)
class Claim:
    """What an answer says of a comparison: which strategy is the cheapest, `strategy` as long as it is within the error
    margin of the cheapest; with `first` whether `strategy` costs less than that, by more than the error margin.
    """

    strategy: str
    first: str | None = None

    def answer(self, comparison: Comparison) -> str:
        """What the comparison says, as a name or a few words."""
        if self.first is None:
            return cheapest_in(comparison, self.strategy)
        ledgers = {ledger.strategy: ledger for ledger in comparison.ledgers}
        pair = [ledgers[name] for name in (self.strategy, self.first)]
        line, other = (strategy_line(ledger, comparison.effort(ledger), None) for ledger in pair)
        return "less than" if order_words(line, other) == "less than" else "no less than"

    def strategies(self, answers: Iterable[str]) -> Names:
        """The strategies between which these answers decide."""
        return frozenset(answers if self.first is None else (self.strategy, self.first))

    def sentence(self, answer: str) -> str:
        """The claim with this answer: "“a” is the cheapest"."""
        if self.first is None:
            return f"{quote(answer)} is the cheapest"
        return f"{quote(self.strategy)} costs {answer} {quote(self.first)}"


def steps_between(start: Number, end: Number, step: Number) -> Sequence[Number]:
    """The values from `start` to `end`: both of them, and between them the multiples of `step`; upwards or down."""
    low, high = sorted((start, end))
    first = int((Decimal(low) / step).to_integral_value(ROUND_FLOOR)) + 1
    last = int((Decimal(high) / step).to_integral_value(ROUND_CEILING)) - 1
    values = [low, *(number * step for number in range(first, last + 1)), *([high] if high != low else [])]
    return values if start <= end else values[::-1]


def find_break_even(at: ComparisonAt, claim: Claim, values: Sequence[Number]) -> BreakEven | None:
    """Where the answer at the first value ends, by bisection; None where the last value has the same answer.

    Between two values, only the strategies are simulated that decide. Where another one turns out to be in question at
    the value that was found, the search goes on before it.
    """
    start, end = (claim.answer(at(value, None)) for value in (values[0], values[-1]))
    if start == end:
        return None
    names, high = claim.strategies((start, end)), len(values) - 1
    while True:
        low, answer = 0, claim.answer(at(values[0], names))
        while high - low > 1:
            middle = (low + high) // 2
            holds = claim.answer(at(values[middle], names)) == answer
            low, high = (middle, high) if holds else (low, middle)
        found = claim.answer(at(values[low], None))
        if found == start:
            break
        names, high = names | claim.strategies((found,)), low
    instead = claim.answer(at(values[high], None))
    return BreakEven(claim.sentence(start), claim.sentence(instead), values[low], values[high])


class Trials:
    """The comparison of a scenario at other values of one of its assumptions."""

    def __init__(self, main: VariantRun, comparison: Comparison, spec: AssumptionSpec) -> None:
        self._main, self._comparison = main, comparison
        self._ledgers: dict[tuple[Any, str], Ledger] = {}
        self._runs: dict[str, VariantRun] = {}
        self._paths = numbered_paths(main.scenario, spec.set or ())
        self._by_host = {
            one.name for one in main.scenario.strategies if getattr(one.resolve(), "inquiry_by_host", None) is not None
        }
        """They ask as another strategy does, so the value of an option of questions cannot be set for them."""

    @property
    def as_written(self) -> Any:
        """The value in the scenario; None where its paths have several or an unknown one."""
        found = [value_as_written(self._main.scenario, path) for path in self._paths]
        return found[0] if found and all(value == found[0] for value in found) else None

    @property
    def strategies(self) -> list[str]:
        """The strategies that alone depend on the value; none where all do."""
        numbers = {int(path.split(".")[1]) for path in self._paths if path.startswith("strategies.")}
        is_local = all(path.startswith("strategies.") for path in self._paths)
        return [self._main.scenario.strategies[number].name for number in sorted(numbers)] if is_local else []

    def at(self, value: Number | Any, names: Names | None = None) -> Comparison:
        """The comparison at a value: of all strategies, or of those named and the compared one; never those
        that assume other rules and are compared apart, unless the assumption or the question is about them."""
        scenario, first, local = self._main.scenario, self._comparison.first, self.strategies
        follow = self._by_host if any(".inquiry." in path for path in self._paths) else set()
        about = {*local, *scenario.question_about, first}
        number = plain(value) if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else value
        if repr(number) not in self._runs:
            changed = scenario_at(scenario, self._paths, number, self._main.folder)
            self._runs[repr(number)] = VariantRun("", changed, self._main.folder, self._main)
        run = self._runs[repr(number)]
        specs = {spec.name: spec for spec in run.scenario.strategies}
        ledgers = list[Ledger]()
        for ledger in self._comparison.ledgers:
            name = ledger.strategy
            is_apart = ledger.assumes and not ledger.ranked and name not in about
            if is_apart or name in follow or not (names is None or name in names or name == first):
                continue
            if not local or name in local:
                key = repr(value), name
                if key not in self._ledgers:
                    self._ledgers[key] = run.ledger(specs[name], explains=False)
                ledger = self._ledgers[key]
            ledgers.append(ledger)
        return replace(run.empty_comparison(), ledgers=ledgers)


SENTENCE_END = re.compile(r"(?<=[.])\s+(?=[A-Z“])")
MOST_ASSUMED = 5
"""Assumptions next to the verdict, at most."""


def assumption_groups(assumptions: Sequence[Assumption]) -> list[tuple[str, list[str]]]:
    """The assumptions by whether they would change the answer, each in a sentence; no group is empty."""
    groups = [("Would change the answer", True), ("Would not change it", False), ("Not tried", None)]
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
    first, best = summary.first, summary.best
    if not summary.is_priced or best is None or not any(extra.values()):
        return
    paid = ((row, _quote(main, row)) for ledger in ledgers.values() for row in ledger.rows)
    limits = ((limit, row) for row, prices in paid if prices for limit in prices.above)
    above = sorted({limit for limit, row in limits if limit < row.usage.total_input})
    shares = []
    for name in dict.fromkeys(line.name for line in (first, best) if line is not None):
        total, asked, each = ledgers[name].cost.total, ledgers[name].inquiries, ledgers[name].per_inquiry()
        share = f"{percent(extra[name] / total if total else ZERO)} of the {dollars(total)} of {quote(name)}"
        if each:
            of_questions = surcharge(main, asked) / ledgers[name].cost_of(asked)
            share += f" ({percent(of_questions)} of the {dollars(each)} of a question)"
        shares.append(share)
    without = min(ranked(summary.lines), key=lambda line: line.effort - extra[line.name])
    cost = dollars(without.effort - extra[without.name])
    if first is not None and first is not without:
        cost += f" instead of {dollars(first.effort - extra[first.name])}"
    stays = "stays" if without.name in summary.winners else "is"
    yield Assumption(
        f"Prompts of more than {' or '.join(map(tokens, above))} tokens have the long-context price of that day",
        changes=stays == "is",
        effect=f"It is {all_of(shares)}. Without it, {quote(without.name)} {stays} the cheapest: {cost}.",
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


MOST_COSTS = 2
"""Strategies whose costs at both ends are given, if the assumption is about so few."""


def stated_assumptions(main: VariantRun, comparison: Comparison) -> list[Assumption]:
    """What the scenario says that its answer assumes, and defaults that may decide what is cheapest, with another value
    each, unless the scenario states or tries them. Raises CannotEvaluate for a value that cannot be simulated."""
    scenario = main.scenario
    covered = {path for spec in scenario.assumptions if spec.set for path in numbered_paths(scenario, spec.set)}
    specs = list(scenario.assumptions)
    if any(conversation.inquiries for conversation in main.conversations):
        specs += _question_defaults(main, covered)
    source, placed = scenario.conversation, placed_of(scenario)
    options = SYNTHETIC_DEFAULTS if source.synthetic else RECORDING_DEFAULTS
    if source.synthetic and source.synthetic.turns == 1:
        options = options[1:]
    for path, name, value in options:
        is_stated = get(placed, tuple(path.split("."))) is not None
        if path not in covered and not is_stated and not any(each.startswith(path) for each in covered):
            specs.append(
                AssumptionSpec(name=name, set=[path], values=[value], why="the default; the scenario states none")
            )
    return [_try_assumption(main, comparison, spec) for spec in specs]


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


def _try_assumption(main: VariantRun, comparison: Comparison, spec: AssumptionSpec) -> Assumption:
    stated = Assumption(spec.name, spec.why, spec.source)
    if spec.set is None:
        return stated
    trials, best, about = Trials(main, comparison, spec), comparison.best.strategy, main.scenario.question_about
    shown = trials.strategies or list(dict.fromkeys((best, comparison.first)))
    written = {
        one.strategy: comparison.effort(one)
        for one in comparison.ledgers
        if one.strategy == best or one.strategy in about
    }
    tried, impact = list[TriedValue](), Decimal(0)
    for value in spec.tried:
        at = trials.at(value)
        ledgers = {ledger.strategy: ledger for ledger in at.ledgers}
        questions = {name: amount for name in shown if (amount := ledgers[name].per_inquiry()) is not None}
        efforts = {name: at.effort(ledgers[name]) for name in shown}
        tried.append(TriedValue(value, cheapest_in(at, best), efforts, questions))
        changes = [abs(at.effort(one) / usd - 1) for name, one in ledgers.items() if (usd := written.get(name))]
        impact = max([impact, *changes])
    stated = replace(stated, value=trials.as_written, tried=tuple(tried), impact=impact)
    asked = [*(trials.strategies if spec in main.scenario.assumptions else ()), *about]
    claims = [Claim(best)]
    claims += [Claim(name, comparison.first) for name in dict.fromkeys(asked) if name not in (comparison.first, best)]
    if spec.range is None:
        return _judge_values(stated, spec, comparison, trials, claims)
    return _judge_range(stated, spec, comparison, trials, claims, shown[:MOST_COSTS])


def _judge_range(
    stated: Assumption,
    spec: AssumptionSpec,
    comparison: Comparison,
    trials: Trials,
    claims: Sequence[Claim],
    shown: Sequence[str],
) -> Assumption:
    """Where the claims end: from the value as written towards each end of the range, or from its lower end."""
    assert spec.range is not None
    (low, high), written = spec.range, trials.as_written
    sides: list[tuple[Number, Number]] = [(low, high)]
    if isinstance(written, int | float) and not isinstance(written, bool):
        start: Number = written if isinstance(written, int) else Decimal(str(written))
        if low <= start <= high:
            sides = [(start, low), (start, high)]
    found, sentences = list[BreakEven](), list[str]()
    for claim in claims:
        for begin, end in sides:
            values = steps_between(begin, end, spec.precision) if begin != end else ()
            if values and (one := find_break_even(trials.at, claim, values)):
                found.append(one)
                to, beyond, onwards = ("down to", "at", "and below")
                if one.changes_at > one.holds_to:
                    to, beyond, onwards = ("up to", "from", "on")
                changed = f"{beyond} {show_number(one.changes_at)} {onwards}, {one.instead}"
                sentences.append(f"{one.claim} {to} {show_number(one.holds_to)}; {changed}.")
    least, most = stated.tried
    span = f"from {show_number(least.value)} to {show_number(most.value)}"
    lead = capitalized(span) if found else f"{quote(least.best)} stays the cheapest {span}"
    names: dict[str, list[str]] = {}  # what strategies cost at both ends; those that cost the same together
    for name in shown:
        words = range_text(_amount(least.costs[name], comparison), _amount(most.costs[name], comparison), " to ")
        if name in least.questions and name in most.questions:
            asked = range_text(dollars(least.questions[name]), dollars(most.questions[name]), " to ")
            words = f"{asked} a question, {words} in all"
        names.setdefault(words, []).append(quote(name))
    costs = [f"{all_of(who)} {'costs' if len(who) == 1 else 'cost'} {words}" for words, who in names.items()]
    effect = " ".join([*sentences, f"{lead}: {'; '.join(costs)}."])
    return replace(stated, changes=bool(found), break_evens=tuple(found), effect=effect)


def _judge_values(
    stated: Assumption, spec: AssumptionSpec, comparison: Comparison, trials: Trials, claims: Sequence[Claim]
) -> Assumption:
    key = (spec.set or [""])[0].rpartition(".")[2]
    what = "pauses of" if key in ("turn", "loop") else key.replace("_", " ")
    changes, sentences = False, list[str]()
    for tried in stated.tried:
        at = trials.at(tried.value)
        changed = [claim for claim in claims if claim.answer(at) != claim.answer(comparison)]
        changes = changes or bool(changed)
        differing = [claim for claim in changed if claim.first]
        verb = "stays" if tried.best == comparison.best.strategy else "is"
        words = f"{quote(tried.best)} {verb} the cheapest"
        if differing:
            words = all_of([claim.sentence(claim.answer(at)) for claim in differing])
        name = differing[0].strategy if differing else tried.best
        ledger = next(each for each in at.ledgers if each.strategy == name)
        cost, each = _amount(at.effort(ledger), at), ledger.per_inquiry()
        cost = f"{dollars(each)} a question, {cost} in all" if each else cost
        sentences.append(f"With {what} {show_value(tried.value)}, {words}: {cost}.")
    return replace(stated, changes=changes, effect=" ".join(sentences))


def _amount(effort: Decimal, comparison: Comparison) -> str:
    return dollars(effort) if comparison.is_priced else f"{tokens(int(effort))} tokens"


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
    summary, best = summaries[0], summaries[0].best
    found = stated_assumptions(main, comparisons[0])
    synthetic = main.scenario.conversation.synthetic
    if seeds and best is not None and synthetic is not None:  # the numbers that were drawn for the conversation
        won, tried = seeds_won(summary, seeds)
        costs = [line.effort for each in seeds if (line := summarise(each).line(best.name)) is not None]
        impact = max(abs(cost - best.effort) for cost in costs) / best.effort if costs and best.effort else ZERO
        effect = seeds_sentence(summary, seeds)
        name = "Seed of the synthetic conversation"
        found.append(Assumption(name, value=synthetic.seed, changes=won < tried, effect=effect, impact=impact))
    found += [
        *_token_counts(summary),
        *_variants(summaries, shipped),
        *long_context_assumption(main, summary),
        *_never_missed(summary, main.scenario.question_about),
        _equal_output(main, summary),
        *map(Assumption, main.assumptions()),
    ]
    return sorted(found, key=lambda one: (not one.changes, one.changes is None, -one.impact))


def _token_counts(summary: Summary) -> Iterator[Assumption]:
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


def _variants(summaries: Sequence[Summary], shipped: Comparison | None) -> Iterator[Assumption]:
    main, day = summaries[0], summaries[0].comparison.as_of
    others = [one for one in summaries[1:] if one.comparison.as_of != day]
    others += [summarise(shipped)] if shipped is not None else []
    sentences = list[str]()
    for one in others:
        first, best = one.first, one.best
        variant = f" ({one.comparison.variant})" if one.comparison.variant else ""
        if best is None:
            sentences.append(f"On {one.comparison.as_of} every strategy has calls that are refused.")
            continue
        stays = "stays" if set(one.winners) == set(main.winners) else "is"
        words = cheapest_words(one).replace(" is the ", f" {stays} the ", 1)
        against = "" if first is None or first is best else f" instead of {first.answer}, {change_text(best.vs_first)}"
        sentences.append(f"On {one.comparison.as_of}{variant}, {words}: {best.answer}{against}.")
    if others:
        changes = not all(set(main.winners) <= set(one.winners) for one in others)
        yield Assumption(f"Rules and prices of {day}", changes=changes, effect=" ".join(sentences))
    same_day = [one for one in summaries[1:] if one.comparison.as_of == day]
    if same_day:
        differing = [quote(one.comparison.variant) for one in same_day if not set(main.winners) <= set(one.winners)]
        where = all_of(differing) if 0 < len(differing) <= MANY else f"{len(differing)} of {len(same_day)} variants"
        another = f"Another strategy is the cheapest with {where}." if differing else ""
        name = "The scenario as written, not one of its variants of the same day"
        yield Assumption(name, changes=bool(differing), effect=another or "The cheapest is the same in all.")


def _never_missed(summary: Summary, asked: Sequence[str]) -> Iterator[Assumption]:
    """What strategies leave out that are compared all the same: how many more calls they may make for the same cost."""
    first = summary.first
    leaving = [line for line in ranked(summary.lines) if line.less is not None and line is not first]
    if first is None or not leaving:
        return
    sentences = list[str]()
    for line in leaving:
        is_shown = line is summary.best or line.name in asked
        if is_shown and line.is_priced and line.calls and 0 < line.effort < first.effort:
            lead = first.effort - line.effort
            calls = count_text(int(lead / (line.effort / line.calls)), "more call")
            after = f"after {calls} at its mean cost ({dollars(lead)})"
            sentences.append(f"{quote(line.name)} costs as much as {quote(first.name)} {after}.")
    leave = "leaves" if len(leaving) == 1 else "leave"
    name = f"What {join_names([line.name for line in leaving])} {leave} out is never missed"
    yield Assumption(name, "no call is repeated, no answer is worse", effect=" ".join(sentences))


def _equal_output(main: VariantRun, summary: Summary) -> Assumption:
    """Of the strategies that the question is about, else of the one that needs to save the least."""
    source = "that the scenario states" if main.scenario.conversation.synthetic else "of the recording"
    name, best = f"The answers are those {source}, equally long in every strategy", summary.best
    if best is None:
        return Assumption(name)
    others = [line for line in ranked(summary.lines) if line not in summary.equal_lines and line.is_priced]
    less = {line.name: (line.effort - best.effort) / line.cost.output for line in others if line.cost.output}
    shown = [name for name in less if name in main.scenario.question_about] or sorted(less, key=less.__getitem__)[:1]
    sentences = [
        f"{quote(one)} costs more than {quote(best.name)} even without any output."
        if less[one] >= 1
        else f"{quote(one)} costs as little as {quote(best.name)} with {percent(less[one])} less output."
        for one in shown
    ]
    return Assumption(name, effect=" ".join(sentences))
