"""The strategies of a comparison in their order of cost, and how sure that order is: ranks and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, groupby

from cachecost.analysis.comparison.summary import (
    StrategyLine,
    Summary,
    doubt_sentences,
    is_tied,
    join_names,
    lead_words,
    margin_words,
    ranked,
    who_is_cheapest,
)
from cachecost.base.formatting import capitalized, change, percent, quote, range_text, rough_dollars, tokens


@dataclass(frozen=True, slots=True)
class Rank:
    """The places that a strategy can have among those compared, from 1: several where others are indistinguishable."""

    first: int
    last: int

    def __str__(self) -> str:
        """ "1", or "2–3"."""
        return range_text(str(self.first), str(self.last))


def find_ranks(summary: Summary) -> dict[str, Rank]:
    """The rank of each strategy that is compared, the cheapest first; none of one that is apart or had a refused call.

    It comes after every strategy that is cheaper by more than the error margin of the difference (or, without such a
    margin, at all), and before every one that is more expensive by more than that.
    """
    order = _in_order(summary)
    first, last = [1] * len(order), [len(order)] * len(order)
    for low, high in combinations(range(len(order)), 2):
        if not is_tied(order[low], order[high]):
            first[high] += 1
            last[low] -= 1
    return {line.name: Rank(*places) for line, *places in zip(order, first, last, strict=True)}


def rank_fields(summary: Summary) -> dict[str, dict[str, int | None]]:
    """The ranks for JSON and CSV, by strategy: `rank_from` and `rank_to`, both None for one without a rank."""
    ranks = find_ranks(summary)
    return {
        line.name: {
            "rank_from": rank.first if (rank := ranks.get(line.name)) else None,
            "rank_to": rank.last if rank else None,
        }
        for line in summary.lines
    }


def rank_sentences(summary: Summary) -> list[str]:
    """Which strategy is the cheapest, by how much, what is indistinguishable from it, and which cost the same.

    Empty where there is nothing to compare.
    """
    if len(summary.lines) < 2:
        return []
    best, order, winners = summary.best, _in_order(summary), summary.best_lines
    if best is None:
        return [f"{capitalized(who_is_cheapest(()))}."]
    if len(order) == 1:
        return [f"{quote(best.name)} is the only strategy that can be compared: {best.answer}."]
    following = next((line for line in order if line not in winners), None)
    lead = ""
    if following:
        less = following.effort - best.effort
        share = percent(-(change(best.effort, following.effort) or 0))
        lead = f", {tokens(int(less))} ({share}) less than {quote(following.name)}"
        if summary.is_priced:
            margin = ", ".join(filter(None, (share, margin_words(best, following))))
            lead = f", {rough_dollars(less)} ({margin}) less than {quote(following.name)}"
    names = join_names([line.name for line in winners])
    is_equal = len(summary.equal_lines) == len(winners)
    if len(winners) == 1:
        sentences = [f"{quote(best.name)} is the cheapest: {best.answer}{lead}."]
    elif is_equal:
        sentences = [f"{names} tie as the cheapest: {best.answer} each{lead}."]
    else:
        widest = max(winners, key=lambda line: line.effort)
        over = f" over {quote(widest.name)}" if len(winners) > 2 else ""
        sentences = [f"{names} are indistinguishable: {quote(best.name)} has {lead_words(best, widest)}{over}{lead}."]
    # Those that cost the same to the last digit, apart from the cheapest where the answer says it.
    groups = [list(group) for _, group in groupby(order, key=lambda line: line.effort)][1 if is_equal else 0 :]
    ties = [f"{join_names([one.name for one in group])} at {group[0].answer}" for group in groups if len(group) > 1]
    if ties:
        sentences.append(f"Equal to the last digit: {'; '.join(ties)}.")
    return [*sentences, *doubt_sentences(summary)]


def _in_order(summary: Summary) -> list[StrategyLine]:
    """The lines that are compared, the cheapest first, equals in their own order."""
    return sorted(ranked(summary.lines), key=lambda line: line.effort)


def order_words(line: StrategyLine, other: StrategyLine) -> str:
    """ "less than", "more than", or "the same as" of what cannot be told apart."""
    if is_tied(line, other):
        return "the same as" if line.effort == other.effort else "the same within the error as"
    return "less than" if line.effort < other.effort else "more than"
