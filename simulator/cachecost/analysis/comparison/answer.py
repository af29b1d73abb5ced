"""The answer of a run, in two or three sentences, with the same rounded numbers as the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cachecost.analysis.comparison.sentences import MANY, join_names, who_is_cheapest
from cachecost.analysis.comparison.summary import Line, Summary, complete, same_order, summarise
from cachecost.base.formatting import UNKNOWN, all_of, change_text, quote
from cachecost.ledger.results import Comparison


def verdict_of(comparisons: Sequence[Comparison]) -> str:
    """What to do, what it saves, and whether that holds in every other variant."""
    summaries = [summarise(comparison) for comparison in comparisons]
    return " ".join([*_answer(summaries[0]), *_doubt(summaries[0]), *_others(summaries)])


def _answer(summary: Summary) -> Iterator[str]:
    best, first = summary.best, summary.first
    if best is None:
        yield "Every strategy had calls that the provider refuses or that could not be evaluated."
    elif len(summary.best_lines) > 1 and len(summary.best_lines) == len(complete(summary.lines)):
        yield f"{_every(len(summary.best_lines))} strategies cost the same: {best.answer}."
    elif first is None or first.is_empty or first in summary.best_lines:
        yield from _cheapest(summary, best)
    elif best.answer == first.answer:
        yield f"Nothing is cheaper than “{first.name}” by more than rounding: {first.answer}."
    else:
        yield from _comparison(best, first)
        yield from _equals(summary, best)


def _cheapest(summary: Summary, best: Line) -> Iterator[str]:
    """The cheapest, or those that tie; differences that rounding hides are mentioned, too."""
    tied = summary.winners
    if len(tied) > 1:
        yield f"{join_names(tied)} tie as the cheapest: {best.answer} each."
        return
    yield f"{quote(best.name)} is the cheapest: {best.answer}."
    near = [line.name for line in complete(summary.lines) if line is not best and line.answer == best.answer]
    if near:
        yield f"{join_names(near)} {'costs' if len(near) == 1 else 'cost'} more by less than rounding."


def _equals(summary: Summary, best: Line) -> Iterator[str]:
    others = [name for name in summary.winners if name != best.name]
    if others:
        yield f"{join_names(others)} {'costs' if len(others) == 1 else 'cost'} the same."


def _every(count: int) -> str:
    return "Both" if count == 2 else f"All {count}"


def _doubt(summary: Summary) -> Iterator[str]:
    if summary.best is not None and not summary.is_certain:
        yield "Hits are best effort here, and the ranges overlap: which one is the cheapest is not certain."


def _comparison(best: Line, first: Line) -> Iterator[str]:
    if best.question is not None and first.question is not None:
        costs = f"{best.question_money} through “{best.name}”, {first.question_money} through “{first.name}”"
        yield f"A question costs {costs}."
    instead = f"{best.answer} instead of {first.answer}"
    yield f"Over the whole conversation “{best.name}” costs {instead}: {change_text(best.vs_first)}."


def _others(summaries: Sequence[Summary]) -> Iterator[str]:
    """How far the answer holds: who is cheapest in the other variants, and whether the rest keep their order."""
    main, *others = summaries
    if not others:
        return
    differing = [summary for summary in others if summary.winners != main.winners]
    stays = "They stay tied" if len(main.winners) > 1 else "It stays the cheapest"
    if not differing:
        yield f"{stays} in {_all(len(others))}."
    if len(differing) > MANY:
        yield from _by_winner(stays, [summary for summary in others if summary not in differing], differing)
    else:
        yield from map(_winner, differing)
    reordered = [summary for summary in others if summary not in differing and not same_order(summary, main)]
    if reordered:
        yield f"The order of the rest changes with {', and with '.join(one.comparison.variant for one in reordered)}."


def _winner(summary: Summary) -> str:
    doubt = "" if summary.is_certain else ", at best"
    return f"With {summary.comparison.variant}, {who_is_cheapest(summary.winners)}{doubt}: {_money(summary)}."


def _by_winner(stays: str, same: Sequence[Summary], differing: Sequence[Summary]) -> Iterator[str]:
    """Many variants: a sentence for each strategy that is the cheapest in some of them."""
    if same:
        yield f"{stays} with {all_of([summary.comparison.variant for summary in same])}."
    for winners in dict.fromkeys(summary.winners for summary in differing):
        won = [summary for summary in differing if summary.winners == winners]
        yield f"{who_is_cheapest(winners)} with {all_of(list(map(_variant_words, won)))}."


def _variant_words(summary: Summary) -> str:
    doubt = "" if summary.is_certain else "at best "
    return f"{summary.comparison.variant} ({doubt}{_money(summary)})"


def _money(summary: Summary) -> str:
    return summary.best.answer if summary.best else UNKNOWN


def _all(count: int) -> str:
    return "the other variant" if count == 1 else f"all {count} other variants"
