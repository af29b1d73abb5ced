"""The answer of a run, in two or three sentences, with the same rounded numbers as the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from cachecost.analysis.comparison.apart import apart_verdict
from cachecost.analysis.comparison.sentences import MANY, cheapest_words, doubt_sentences, join_names, tie_sentence
from cachecost.analysis.comparison.strategy_line import StrategyLine, ranked
from cachecost.analysis.comparison.summary import Summary, same_order, summarise
from cachecost.base.formatting import UNKNOWN, all_of, change, change_text, percent, quote
from cachecost.ledger.results import Comparison

Elsewhere = tuple[Summary, str]
"""The comparison of a variant, and its name."""
MOST_SHARES = 2
"""Variants whose own saving is given; of more, the least and the most."""


def verdict_of(
    comparisons: Sequence[Comparison], question_about: Sequence[str] = (), shipped: Comparison | None = None
) -> str:
    """The costs that the question asks about, what is cheapest, and whether that holds in every other variant.

    `shipped` is the comparison with the rules and prices of the shipped data, where no variant has another day.
    """
    summaries = [summarise(comparison) for comparison in comparisons]
    main = summaries[0]
    asked = asked_about(main, question_about)
    elsewhere = [(summary, summary.comparison.variant) for summary in summaries[1:]]
    if shipped is not None:
        elsewhere.append((summarise(shipped), f"rules and prices of {shipped.as_of}"))
    parts = [
        asked,
        *_answer(main, elsewhere, bool(asked)),
        *doubt_sentences(main),
        *_others(summaries),
        *apart_verdict(main),
    ]
    return " ".join(part for part in parts if part)


def asked_about(summary: Summary, names: Sequence[str]) -> str:
    """What the strategies that the question is about cost, against the compared one; "" without any."""
    lines = [line for name in names if (line := summary.line(name)) is not None and line.total is not None]
    base = summary.first
    if not lines:
        return ""
    by_question = all(line.question is not None for line in [*lines, *([base] if base else [])])
    lines = [line for line in lines if by_question or line is not summary.best]
    shown = [base, *(line for line in lines if line is not base)] if base is not None and lines else lines
    costs = [_asked_cost(line, base, by_question) for line in shown if line is not None]
    return f"{'A question' if by_question else 'The conversation'} costs {all_of(costs)}." if costs else ""


def _asked_cost(line: StrategyLine, base: StrategyLine | None, by_question: bool) -> str:
    money = line.question_money if by_question else line.answer
    against = change(line.question, base.question) if by_question and base else line.vs_first
    versus = f" ({change_text(against)})" if line is not base and against is not None else ""
    apart = ", which sees less" if line.is_apart else ""
    return f"{money} {'through' if by_question else 'with'} {quote(line.name)}{versus}{apart}"


def _answer(summary: Summary, elsewhere: Sequence[Elsewhere], is_asked: bool) -> Iterator[str]:
    """What is cheapest; without the cost of a question where that `is_asked` and answered already."""
    best, first = summary.best, summary.first
    if best is None:
        yield "Every strategy had calls that the provider refuses or that could not be evaluated."
    elif len(summary.equal_lines) > 1 and len(summary.equal_lines) == len(ranked(summary.lines)):
        yield f"{_every(len(summary.equal_lines))} strategies cost the same: {best.answer}."
    elif first is None or first.is_empty or first in summary.equal_lines:
        yield from _cheapest(summary, best)
    elif first in summary.best_lines:
        yield f"Nothing is cheaper than {quote(first.name)} by more than the error margin: {first.answer}."
        yield tie_sentence(summary, best, first)
    elif best.answer == first.answer:
        yield f"Nothing is cheaper than {quote(first.name)} by more than rounding: {first.answer}."
    else:
        yield from _comparison(elsewhere, best, first, is_asked)
        yield from _equals(summary, best)
        yield tie_sentence(summary, best)


def _cheapest(summary: Summary, best: StrategyLine) -> Iterator[str]:
    """The cheapest, or those that tie; differences that rounding hides are mentioned, too."""
    tied = [line.name for line in summary.equal_lines]
    if len(tied) > 1:
        yield f"{join_names(tied)} tie as the cheapest: {best.answer} each."
    elif tie := tie_sentence(summary, best):
        yield tie
    else:
        yield f"{quote(best.name)} is the cheapest: {best.answer}."
        near = [line.name for line in ranked(summary.lines) if line is not best and line.answer == best.answer]
        if near:
            yield f"{join_names(near)} {'costs' if len(near) == 1 else 'cost'} more by less than rounding."


def _equals(summary: Summary, best: StrategyLine) -> Iterator[str]:
    others = [line.name for line in summary.equal_lines if line is not best]
    if others:
        yield f"{join_names(others)} {'costs' if len(others) == 1 else 'cost'} the same."


def _every(count: int) -> str:
    return "Both" if count == 2 else f"All {count}"


def _comparison(
    elsewhere: Sequence[Elsewhere], best: StrategyLine, first: StrategyLine, is_asked: bool
) -> Iterator[str]:
    if not is_asked and best.question is not None and first.question is not None:
        costs = f"{best.question_money} through “{best.name}”, {first.question_money} through “{first.name}”"
        yield f"A question costs {costs}."
    instead = f"{best.answer} instead of {first.answer}"
    shares = _shares(elsewhere, best)
    yield f"Over the whole conversation “{best.name}” costs {instead}: {change_text(best.vs_first)}{shares}."


def _shares(elsewhere: Sequence[Elsewhere], best: StrategyLine) -> str:
    """The same saving where it has another figure, as " (43% less with …)"; "" where it is the same everywhere."""
    here = change_text(best.vs_first)
    there = [(summary.line(best.name), variant) for summary, variant in elsewhere]
    found = [
        (change_text(line.vs_first), line.vs_first, variant)
        for line, variant in there
        if line is not None and line.vs_first is not None and change_text(line.vs_first) != here
    ]
    if len(found) > MOST_SHARES:
        return f" ({_share_span([ratio for _, ratio, _ in found])} in other variants)"
    shares = {words: [variant for same, _, variant in found if same == words] for words, _, _ in found}
    clauses = [f"{words} {all_of([f'with {variant}' for variant in variants])}" for words, variants in shares.items()]
    return f" ({', '.join(clauses)})" if clauses else ""


def _share_span(ratios: Sequence[Decimal]) -> str:
    """ "56% to 75% less", or "12% less to 6% more"."""
    low, high = min(ratios), max(ratios)
    if low < 0 > high:
        return f"{percent(abs(high))} to {change_text(low)}"
    return f"{percent(low) if low > 0 else change_text(low)} to {change_text(high)}"


def _others(summaries: Sequence[Summary]) -> Iterator[str]:
    """How far the answer holds: who is cheapest in the other variants, and whether the rest keep their order."""
    main, *others = summaries
    if not others:
        return
    differing = [summary for summary in others if set(summary.winners) != set(main.winners)]
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
    return f"With {summary.comparison.variant}, {cheapest_words(summary)}{doubt}: {_money(summary)}."


def _by_winner(stays: str, same: Sequence[Summary], differing: Sequence[Summary]) -> Iterator[str]:
    """Many variants: a sentence for each strategy that is the cheapest in some of them."""
    if same:
        yield f"{stays} with {all_of([summary.comparison.variant for summary in same])}."
    for who in dict.fromkeys(map(cheapest_words, differing)):
        won = [summary for summary in differing if cheapest_words(summary) == who]
        yield f"{who} with {all_of(list(map(_variant_words, won)))}."


def _variant_words(summary: Summary) -> str:
    doubt = "" if summary.is_certain else "at best "
    return f"{summary.comparison.variant} ({doubt}{_money(summary)})"


def _money(summary: Summary) -> str:
    return summary.best.answer if summary.best else UNKNOWN


def _all(count: int) -> str:
    return {1: "the other variant", 2: "both other variants"}.get(count, f"all {count} other variants")
