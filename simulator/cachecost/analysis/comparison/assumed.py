"""Everything that an answer assumes: what every comparison does, and what its scenario states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from cachecost.analysis.comparison.answer import seeds_sentence, seeds_won
from cachecost.analysis.comparison.long_context import long_context_assumption
from cachecost.analysis.comparison.sentences import MANY, cheapest_words, join_names, lead_words, tie_sentence
from cachecost.analysis.comparison.strategy_line import StrategyLine, best_and_next, complete, ranked
from cachecost.analysis.comparison.summary import Summary, summarise
from cachecost.analysis.comparison.trial_assumptions import stated_assumptions
from cachecost.analysis.comparison.variant_run import VariantRun
from cachecost.base.errors import CannotEvaluate
from cachecost.base.formatting import all_of, change_text, count_text, dollars, percent, quote
from cachecost.ledger.assumptions import Assumption
from cachecost.ledger.results import ZERO, Comparison
from cachecost.providers.rules import data_date
from cachecost.scenario.loading import scenario_at


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
    """What else the variants change."""
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
