"""The answer of a run, in two or three sentences, with the same rounded numbers as the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cachecost.ledger import Comparison
from cachecost.numbers import UNKNOWN, compared
from cachecost.views.summary import Line, Summary, same_order, summarise

MANY = 4
"""Readings with another cheapest strategy that are told one by one."""


def verdict_of(comparisons: Sequence[Comparison]) -> str:
    """What to do, what it saves, and whether that holds under every other reading."""
    summaries = [summarise(comparison) for comparison in comparisons]
    return " ".join([*_answer(summaries[0]), *_doubt(summaries[0]), *_others(summaries)])


def _answer(summary: Summary) -> Iterator[str]:
    best, first = summary.best, summary.first
    if best is None:
        yield "Every strategy had calls that the provider refuses or that could not be evaluated."
    elif first is None or first.is_empty or best is first:
        yield f"“{best.name}” is the cheapest: {best.answer}."
    elif best.answer == first.answer and best.effort != first.effort:
        yield f"Nothing is cheaper than “{first.name}” by more than rounding: {first.answer}."
    elif best.effort == first.effort:
        yield f"All else than “{first.name}” costs as much or more: {first.answer}."
    else:
        yield from _comparison(best, first)


def _doubt(summary: Summary) -> Iterator[str]:
    if summary.best is not None and not summary.is_certain:
        yield "Hits are best effort here, and the ranges overlap: which one is the cheapest is not certain."


def _comparison(best: Line, first: Line) -> Iterator[str]:
    if best.question is not None and first.question is not None:
        costs = f"{best.question_money} through “{best.name}”, {first.question_money} through “{first.name}”"
        yield f"A question costs {costs}."
    instead = f"{best.answer} instead of {first.answer}"
    yield f"Over the whole conversation “{best.name}” costs {instead}: {compared(best.vs_first)}."


def _others(summaries: Sequence[Summary]) -> Iterator[str]:
    """How far the answer holds: who is cheapest under the other readings, and whether the rest keep their order."""
    main, *others = summaries
    if not others:
        return
    differing = [summary for summary in others if _best(summary) != _best(main)]
    if not differing:
        yield f"It stays the cheapest under {_all(len(others))}."
    if len(differing) > MANY:
        yield from _by_winner([summary for summary in others if summary not in differing], differing)
    else:
        yield from map(_winner, differing)
    reordered = [summary for summary in others if summary not in differing and not same_order(summary, main)]
    if reordered:
        yield f"The order of the rest changes with {', and with '.join(one.comparison.variant for one in reordered)}."


def _winner(summary: Summary) -> str:
    doubt = "" if summary.is_certain else ", at best"
    return f"With {summary.comparison.variant}, “{_best(summary)}” is{doubt}: {_money(summary)}."


def _by_winner(same: Sequence[Summary], differing: Sequence[Summary]) -> Iterator[str]:
    """Many readings, a sentence for each strategy that is the cheapest under some of them."""
    if same:
        yield f"It stays the cheapest with {_listed([summary.comparison.variant for summary in same])}."
    for name in dict.fromkeys(map(_best, differing)):
        won = [summary for summary in differing if _best(summary) == name]
        yield f"“{name}” is the cheapest with {_listed(list(map(_told, won)))}."


def _told(summary: Summary) -> str:
    doubt = "" if summary.is_certain else "at best "
    return f"{summary.comparison.variant} ({doubt}{_money(summary)})"


def _money(summary: Summary) -> str:
    return summary.best.answer if summary.best else UNKNOWN


def _listed(names: Sequence[str]) -> str:
    """ "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _best(summary: Summary) -> str:
    return summary.best.name if summary.best else "none"


def _all(count: int) -> str:
    return "the other reading" if count == 1 else f"all {count} other readings"
