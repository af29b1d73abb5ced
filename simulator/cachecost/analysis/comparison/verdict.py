"""The answer of a run: at most 40 words and two figures, with the same rounded numbers as the tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cachecost.analysis.comparison.summary import (
    Summary,
    doubt_sentences,
    is_tied,
    join_names,
    order_words,
    ranked,
    summarise,
)
from cachecost.base.formatting import UNKNOWN, all_of, capitalized, dollars, quote, tokens
from cachecost.ledger.results import Comparison
from cachecost.scenario.models import FIGURE, ConclusionSpec, fits_verdict

NUMERALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def numeral(count: int) -> str:
    return NUMERALS[count] if count < len(NUMERALS) else f"{count:,}"


def verdict_of(
    comparisons: Sequence[Comparison],
    question_about: Sequence[str] = (),
    conclusions: Sequence[ConclusionSpec] = (),
    seeds: Sequence[Comparison] = (),
) -> str:
    """The first conclusion that holds, else what is the cheapest; then whatever else there is room for.

    `seeds` are the same comparison of conversations with other seeds.
    """
    summaries = [summarise(comparison) for comparison in comparisons]
    main = summaries[0]
    by_variant = {one.comparison.variant: one for one in reversed(summaries)}

    def figure(match: re.Match[str]) -> str:
        line = main.line(match[2])
        if line is None:
            return UNKNOWN
        return line.question_money if match[1] == "question" else line.answer

    def is_true(variant: str, one: str, sign: str, other: str) -> bool:
        summary = by_variant.get(variant)
        left, right = (summary.line(name) if summary else None for name in (one, other))
        if left is None or right is None or left.refused or right.refused:
            return False
        return ("=" if is_tied(left, right) else "<" if left.effort < right.effort else ">") in sign

    holding = (one for one in conclusions if all(claim is not None and is_true(*claim) for claim in one.claims))
    concluded = next((FIGURE.sub(figure, one.say) for one in holding), "")
    text = concluded or " ".join(_cheapest(main))
    more = [*doubt_sentences(main)] if concluded else [*doubt_sentences(main), *_others(summaries, question_about)]
    if seeds and main.best is not None:
        won, tried = seeds_won(main, seeds)
        win = "It wins" if len(main.best_lines) == 1 else "They win"
        more.insert(0, f"{win} in {'all' if won == tried else f'{numeral(won)} of'} {numeral(tried)} seeds.")
    for sentence in more:
        longer = f"{text} {sentence}"
        if fits_verdict(longer):
            text = longer
    return text


def _others(summaries: Sequence[Summary], question_about: Sequence[str]) -> Iterator[str]:
    main, *others = summaries
    first = main.first
    for name in question_about:
        line = main.line(name)
        if first is None or line is None or line is first or line.refused or line in main.best_lines:
            continue
        yield f"{quote(name)} costs {order_words(line, first)} {quote(first.name)}."
    if not others or main.best is None:
        return
    differing = [summary for summary in others if not set(main.winners) <= set(summary.winners)]
    if not differing:
        yield f"{'It stays' if len(main.winners) == 1 else 'They stay'} the cheapest in every variant."
    else:
        counted = f"{capitalized(numeral(len(differing)))} of {numeral(len(others))} variants"
        has = "has" if len(differing) == 1 else "have"
        yield f"{'The variant' if len(others) == 1 else counted} {has} other winners."


def _cheapest(summary: Summary) -> Iterator[str]:
    best, first = summary.best, summary.first
    if best is None:
        yield "Every strategy had calls that the provider refuses or that could not be evaluated."
        return
    if len(summary.best_lines) == len(ranked(summary.lines)) > 1:
        every = "Both" if len(summary.best_lines) == 2 else f"All {numeral(len(summary.best_lines))}"
        yield f"{every} strategies cost the same{_within(summary)}: {best.answer}."
    elif first in summary.best_lines and first is not best and first is not None:
        yield f"Nothing costs less than {quote(first.name)}: {first.answer}."
    elif first is None or first.is_empty or first is best:
        yield f"{quote(best.name)} is the cheapest: {best.answer}."
    elif best.question is not None and first.question is not None:
        costs = f"{best.question_money} through {quote(best.name)} instead of {first.question_money}"
        yield f"A question costs {costs} through {quote(first.name)}."
    else:
        yield f"{quote(best.name)} costs {best.answer} instead of {first.answer} with {quote(first.name)}."
    shown = first if first in summary.best_lines else best
    others = [line.name for line in summary.best_lines if line is not shown]
    if others and len(summary.best_lines) < len(ranked(summary.lines)):
        yield f"{capitalized(join_names(others))} {'costs' if len(others) == 1 else 'cost'} the same{_within(summary)}."


def _within(summary: Summary) -> str:
    """ " within the error" where costs are not equal."""
    return "" if len(summary.equal_lines) == len(summary.best_lines) else " within the error"


def seeds_sentence(main: Summary, seeds: Sequence[Comparison]) -> str:
    """What the cheapest strategy costs with other seeds: "“a” costs $3.66 to $8.31"; "" where there are none."""
    if not seeds or main.best is None:
        return ""
    spans = list[str]()
    for line in (line for line in (main.first, main.best) if line is not None):
        found = [each.effort(ledger) for each in seeds for ledger in each.ledgers if ledger.strategy == line.name]
        ends = min([line.effort, *found]), max([line.effort, *found])
        least, most = (dollars(one) if main.is_priced else f"{tokens(int(one))} tokens of prefill" for one in ends)
        spans.append(f"{quote(line.name)} costs {least} to {most}")
    won, tried = seeds_won(main, seeds)
    wins = f"{quote(main.best.name)} is the cheapest in {'all' if won == tried else f'{won} of'} {tried}"
    return f"With {tried} seeds {all_of(list(dict.fromkeys(spans)))}; {wins}."


def seeds_won(main: Summary, seeds: Sequence[Comparison]) -> tuple[int, int]:
    """In how many conversations the cheapest strategy is the cheapest, within the error; and how many there are."""
    found = [summarise(comparison) for comparison in seeds]
    return 1 + sum(set(main.winners) <= set(summary.winners) for summary in found), 1 + len(found)
