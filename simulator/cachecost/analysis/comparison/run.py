"""A scenario -> what each of its strategies costs, in each of its variants.

How much of the dollars is the price of long prompts: what lies above the price of the same tokens in short ones.

A scenario at other values of what it assumes: only what depends on them is simulated again.

The assumptions that a scenario states: tried at other values, with the value at which the answer changes.

Everything that an answer assumes: what every comparison does, and what its scenario states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from cachecost.analysis.comparison.ranking import (
    CheapestClaim,
    Claim,
    DifferenceClaim,
    Names,
    Number,
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
from cachecost.analysis.comparison.variant_run import VariantRun, seeds_sentence, seeds_won, verdict_of
from cachecost.analysis.optimum.lower_bound import lower_bound_of
from cachecost.base.errors import CannotEvaluate
from cachecost.base.formatting import all_of, capitalized, change_text, count_text, dollars, percent, quote, tokens
from cachecost.base.times import day_of
from cachecost.conversations.calls import Call
from cachecost.ledger.results import Assumption, BreakEven, Comparison, Ledger, RunResult, TriedValue
from cachecost.ledger.rows import CallRow
from cachecost.providers.prices import STANDARD
from cachecost.providers.rules import data_date
from cachecost.providers.usage import TOKEN_CLASSES, ZERO, Quote
from cachecost.scenario import Scenario
from cachecost.scenario.loading import get, numbered_paths, placed_of, scenario_at, value_as_written
from cachecost.scenario.models import AssumptionSpec, plain
from cachecost.simulation.setup import Progress, ReplaySetup, no_progress
from cachecost.strategies.agent import TOOL_CALL, Agent


def long_context_assumption(main: VariantRun, summary: Summary) -> Iterator[Assumption]:
    """The share of long-context prices, and what is cheapest without them; nothing where no call pays one."""
    ledgers = {ledger.strategy: ledger for ledger in summary.comparison.ledgers}
    extra = {name: surcharge(main, ledger.rows) for name, ledger in ledgers.items()}
    if not summary.is_priced or summary.best is None or not any(extra.values()):
        return
    above = sorted({limit for ledger in ledgers.values() for limit in _limits(main, ledger)})
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
    return sum((_row_surcharge(main, row) for row in rows if row.error is None), ZERO)


def _row_surcharge(main: VariantRun, row: CallRow) -> Decimal:
    prices = _quote(main, row)
    if prices is None or not prices.above:
        return ZERO
    long, short = prices.of(row.usage.total_input), prices.of(0)
    costs = row.cost.by_class()
    parts = ((costs[name], getattr(long, name), getattr(short, name)) for name in TOKEN_CLASSES)
    return sum((amount * (paid - base) / paid for amount, paid, base in parts if paid != base), ZERO)


def _quote(main: VariantRun, row: CallRow) -> Quote | None:
    day = main.setup.day or day_of(row.start)
    try:
        return main.setup.prices.quote(main.setup.host, row.model, day, STANDARD)
    except CannotEvaluate:
        return None


def _limits(main: VariantRun, ledger: Ledger) -> Iterator[int]:
    """The lengths of prompt above which some of the calls pay more."""
    for row in ledger.rows:
        prices = _quote(main, row)
        yield from (limit for limit in (prices.above if prices else ()) if limit < row.usage.total_input)


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


class Trials:
    """The comparison of a scenario at other values of one of its assumptions."""

    def __init__(self, main: VariantRun, comparison: Comparison, spec: AssumptionSpec) -> None:
        self._main, self._comparison, self._spec = main, comparison, spec
        self._ledgers: dict[tuple[Any, str], Ledger] = {}
        self._runs: dict[Any, VariantRun] = {}
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
        wanted = None if names is None else {*names, self._comparison.first}
        follow = self._by_host if any(".inquiry." in path for path in self._paths) else set()
        about = {*self.strategies, *self._main.scenario.question_about, self._comparison.first}
        ledgers = [
            ledger
            for ledger in self._comparison.ledgers
            if (ledger.ranked or not ledger.assumes or ledger.strategy in about)
            and (wanted is None or ledger.strategy in wanted)
            and ledger.strategy not in follow
        ]
        run = self._run(plain(value) if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else value)
        return replace(run.empty_comparison(), ledgers=list(self._at(run, value, ledgers)))

    def _run(self, value: Any) -> VariantRun:
        key = repr(value)
        if key not in self._runs:
            scenario = scenario_at(self._main.scenario, self._paths, value, self._main.folder)
            self._runs[key] = VariantRun("", scenario, self._main.folder, self._main)
        return self._runs[key]

    def _at(self, run: VariantRun, value: Any, ledgers: list[Ledger]) -> Iterator[Ledger]:
        local = self.strategies
        specs = {spec.name: spec for spec in run.scenario.strategies}
        for ledger in ledgers:
            key = (repr(value), ledger.strategy)
            if local and ledger.strategy not in local:
                yield ledger
                continue
            if key not in self._ledgers:
                self._ledgers[key] = run.ledger(specs[ledger.strategy], explains=False)
            yield self._ledgers[key]


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


SEEDS = 5
"""Seeds that a synthetic conversation is simulated with, its own among them."""


def seed_comparisons(main: VariantRun) -> list[Comparison]:
    """The scenario with other seeds; none where its conversation is not drawn at random."""
    spec = main.scenario.conversation.synthetic
    if spec is None or not spec.is_random:
        return []
    others = [seed for seed in range(1, SEEDS + 1) if seed != spec.seed][: SEEDS - 1]
    scenarios = [scenario_at(main.scenario, ["conversation.synthetic.seed"], seed, main.folder) for seed in others]
    return [
        VariantRun(f"seed {seed}", scenario, main.folder).comparison(explains=False)
        for seed, scenario in zip(others, scenarios, strict=True)
    ]


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


def comparison_when_shipped(main: VariantRun, comparisons: Sequence[Comparison]) -> Comparison | None:
    """The comparison with the rules and prices of the shipped data; None where one has another day than the first
    already, these rules and prices are used, or they lack the model.
    """
    days = {comparison.as_of for comparison in comparisons}
    if len(days) > 1 or data_date(main.scenario.host) in days:
        return None
    try:
        return VariantRun("", main.scenario.model_copy(update={"as_of": None}), main.folder, main).comparison(
            explains=False
        )
    except CannotEvaluate:
        return None


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
    name = f"What {join_names([line.name for line in leaving])} {_leave(leaving)} out is never missed"
    yield Assumption(name, "no call is repeated, no answer is worse", effect=" ".join(room))


def _leave(lines: Sequence[StrategyLine]) -> str:
    return "leaves" if len(lines) == 1 else "leave"


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
    others = [line for line in ranked(summary.lines) if line not in summary.equal_lines and line.is_priced]
    lines = [line for line in others if line.cost.output]
    if best is None or not lines:
        return ""
    least = min(lines, key=lambda line: _needed(line, best))
    shown = [line for line in lines if line.name in asked] or [least]
    return " ".join(_needed_words(line, best) for line in shown)


def _needed(line: StrategyLine, best: StrategyLine) -> Decimal:
    """The part of its output that a strategy must save to cost as little as the best."""
    return (line.effort - best.effort) / line.cost.output


def _needed_words(line: StrategyLine, best: StrategyLine) -> str:
    if (needed := _needed(line, best)) >= 1:
        return f"{quote(line.name)} costs more than {quote(best.name)} even without any output."
    return f"{quote(line.name)} costs as little as {quote(best.name)} with {percent(needed)} less output."


def run(
    scenario: Scenario,
    folder: Path,
    progress: Progress = no_progress,
    with_timelines: bool = False,
    explains_variants: bool = True,
) -> RunResult:
    """Simulate every strategy in every variant. Paths in the scenario start at `folder`.

    `with_timelines` adds what only the HTML report shows: the timelines of all calls, and what is avoidable in the
    first and the best strategy. Unless it `explains_variants`, the causes of their calls are unknown, which saves time.

    Raises CannotEvaluate for a model, rule, price or count that is not known, InputError for a bad recording.
    """
    variants = [VariantRun(name, variant, folder) for name, variant in scenario.all_variants]
    main = variants[0]
    comparisons = [main.comparison(progress, _lower_bound, with_timelines)]
    comparisons += [variant.comparison(progress, explains=explains_variants) for variant in variants[1:]]
    shipped = comparison_when_shipped(main, comparisons)
    seeds = seed_comparisons(main)
    return RunResult(
        scenario.name,
        scenario.question,
        main.about(),
        verdict_of(comparisons, scenario.question_about, scenario.conclusion, seeds),
        comparisons,
        assumptions_of(main, comparisons, seeds, shipped),
        [main.published_figure(published_figure) for published_figure in scenario.published_figures],
        main.versions(),
        seeds,
        main.explanations(comparisons[0]) if with_timelines else [],
    )


def _lower_bound(calls: Sequence[Call], setup: ReplaySetup) -> Decimal:
    return lower_bound_of(calls, setup).usd
