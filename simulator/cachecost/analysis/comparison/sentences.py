"""Sentences that the terminal, the report and the charts share, so that all say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from cachecost.analysis.comparison.strategy_line import (
    Refusal,
    StrategyLine,
    complete,
    error_of_difference,
    is_tied,
    ranked,
)
from cachecost.analysis.comparison.summary import Summary, same_order
from cachecost.base.formatting import (
    UNKNOWN,
    all_of,
    change_text,
    count_text,
    dollar_places,
    dollars,
    percent,
    quote,
    rough_dollars,
    times,
)
from cachecost.ledger.results import Comparison

AS_WRITTEN = "as written"
MANY = 4
"""Names, and variants with another cheapest strategy, that are listed one by one."""


@dataclass(frozen=True, slots=True)
class VariantRow:
    """A variant of the scenario in a line: the cheapest strategy, its saving, and whether the order stays."""

    variant: str
    first: str
    best: str
    cost: str
    saving: str
    order: str


def join_names(names: Sequence[str]) -> str:
    """The names in quotes, or their number if they are many."""
    return all_of(list(map(quote, names))) if len(names) <= MANY else f"{len(names)} strategies"


def who_is_cheapest(winners: Sequence[str]) -> str:
    """ "“a” is the cheapest", "“a” and “b” tie as the cheapest"."""
    if not winners:
        return "no strategy ran without a refused call"
    return f"{join_names(winners)} {'tie as' if len(winners) > 1 else 'is'} the cheapest"


def cheapest_words(summary: Summary) -> str:
    """As `who_is_cheapest`; a lead within the error margin is no lead."""
    if len(summary.best_lines) == len(summary.equal_lines):
        return who_is_cheapest(summary.winners)
    return f"{join_names(summary.winners)} are the cheapest, within the error margin of each other"


def lead_words(best: StrategyLine, line: StrategyLine) -> str:
    """How far `best` leads, and how far that may be wrong: "a lead of $0.79 against ±$0.81"."""
    margin = error_of_difference(best, line)
    return f"a lead of {rough_dollars(line.effort - best.effort)} against ±{rough_dollars(margin)}"


def margin_words(one: StrategyLine, other: StrategyLine) -> str:
    """The error margin of the difference of two lines: "±$0.03"; "" where it has none."""
    margin = error_of_difference(one, other)
    return f"±{rough_dollars(margin)}" if margin else ""


def doubt_sentences(summary: Summary) -> list[str]:
    """That it is not certain what is the cheapest, where hits are best effort."""
    if summary.best is None or summary.is_certain:
        return []
    return ["Hits are best effort here, and the ranges overlap: which one is the cheapest is not certain."]


def tie_sentence(summary: Summary, best: StrategyLine, also: StrategyLine | None = None) -> str:
    """The strategies that `best` leads by less than the error margin, `also` among them; "" where there is none."""
    near = [line for line in summary.best_lines if line not in summary.equal_lines]
    if not near:
        return ""
    named = also if also in near else max(near, key=lambda line: line.effort)
    if len(summary.best_lines) == 2:
        costs = f"{quote(best.name)} ({best.answer}) and {quote(named.name)} ({named.answer})"
        return f"{costs} are within the error margin: {lead_words(best, named)}."
    tied = f"{join_names(summary.winners)} are within the error margin of each other"
    return f"{tied}: {quote(best.name)} has {lead_words(best, named)} over {quote(named.name)}."


def variant_rows(summaries: Sequence[Summary]) -> list[VariantRow]:
    """The scenario as written and every variant of it, in their order."""
    shown = [line for summary in summaries for line in (summary.first, summary.best) if line is not None]
    places = dollar_places(amount for line in shown for amount in (line.total, line.most))
    return [_variant_row(summary, summaries[0], places) for summary in summaries]


MOST_COLUMNS = 8
"""Variants that stand side by side in a table of costs; more stand below one another."""


def variant_name(comparison: Comparison) -> str:
    return comparison.variant or AS_WRITTEN


def assumptions_set(comparison: Comparison) -> str:
    """The assumptions that are not at their default, as NAME=VALUE; "" without any."""
    return ", ".join(f"{name}={value}" for name, value in sorted(comparison.rules.items()))


def rules_sentence(comparison: Comparison) -> str:
    """Which rules and prices were used, and which assumptions are not at their default."""
    changed = assumptions_set(comparison)
    tail = f"{changed}; all other assumptions at their default" if changed else "all assumptions at their default"
    return f"{comparison.host}, {comparison.model}, as of {comparison.as_of.isoformat()}; {tail}"


def token_sentences(summary: Summary) -> list[str]:
    """Where the token counts come from, and what their error margin is in dollars: one sentence a source."""
    groups: dict[str, list[StrategyLine]] = {}
    for line in complete(summary.lines):
        groups.setdefault(line.token_source, []).append(line)
    return [_token_sentence(source, lines) for source, lines in groups.items()]


def refusal_sentences(summary: Summary) -> list[str]:
    """Each refused strategy, how many of its calls, and the reason in the provider's words."""
    return [_refusal(line, refusal) for line in summary.lines for refusal in line.refusals]


def bold_words(summary: Summary) -> str:
    """What bold type means in the table of strategies."""
    if len(summary.best_lines) == len(summary.equal_lines):
        return "the cheapest strategy is bold."
    return "the cheapest strategies are bold: their differences are within the error margin."


def dollars_title(summary: Summary) -> str:
    """What the picture of dollars by token class shows."""
    best, first = summary.best, summary.first
    if best is None:
        return "Every strategy had calls that the provider refuses"
    if len(summary.lines) == 1:
        return f"{_quote_name(best)} costs {best.answer}"
    if len({line.effort for line in ranked(summary.lines)}) == 1 and best.effort and not summary.apart:
        return f"All strategies cost the same: {best.answer}"
    within = "" if len(summary.best_lines) == len(summary.equal_lines) else " within the error margin"
    cheapest = f"Cheapest{within}: {join_names(summary.winners)}, {best.answer}"
    if first in summary.best_lines or first is None or best.vs_first is None:
        return cheapest
    return f"{cheapest}, {change_text(best.vs_first)} than {_quote_name(first)}"


def cumulative_title(summary: Summary) -> str:
    """What the picture of growing dollars shows: how far the strategies are apart at the end."""
    order = sorted(ranked(summary.lines), key=lambda line: line.cost.total)
    if len(order) < 2:
        return "Dollars spent, call after call"
    low, high = order[0], order[-1]
    if low.cost.total == high.cost.total:
        return f"All strategies cost the same: {high.money} after {count_text(high.calls, 'call')}"
    factor = f", {times(high.cost.total / low.cost.total)} as much as {_quote_name(low)}" if low.cost.total else ""
    return f"{_quote_name(high)}: {high.money} after {count_text(high.calls, 'call')}{factor}"


def question_title(summary: Summary) -> str:
    """What the picture of one question shows: the cheapest and the most expensive strategy."""
    known = [(line.question, line) for line in ranked(summary.lines) if line.question is not None]
    if not known:
        return "What one question costs"
    (low, cheap), (high, expensive) = min(known, key=_dollars_of), max(known, key=_dollars_of)
    least, most = (dollars(amount, cheap.question_places) for amount in (low, high))
    if low == high:
        return f"One question costs {least}"
    return f"One question costs {least} ({_quote_name(cheap)}) to {most} ({_quote_name(expensive)})"


def _quote_name(line: StrategyLine) -> str:
    return quote(line.name)


def _dollars_of(known: tuple[Decimal, StrategyLine]) -> Decimal:
    return known[0]


def _variant_row(summary: Summary, main: Summary, places: int) -> VariantRow:
    """`places`: digits after the point of dollars in both columns."""
    best, first = (line and replace(line, places=places) for line in (summary.best, summary.first))
    return VariantRow(
        variant=variant_name(summary.comparison),
        first=first.answer if first else UNKNOWN,
        best=" = ".join(summary.winners) or UNKNOWN,
        cost=best.answer if best else UNKNOWN,
        saving=UNKNOWN if best is None or summary.first in summary.equal_lines else percent(best.vs_first, signed=True),
        order="" if summary is main else _order(summary, main),
    )


def _order(summary: Summary, main: Summary) -> str:
    """Whether the strategies keep their order of cost; another cheapest one in the same order costs the same."""
    if not same_order(summary, main):
        return "differs"
    return "same" if summary.winners == main.winners else "ties"


def _token_sentence(source: str, lines: Sequence[StrategyLine]) -> str:
    margins = {line.error_margin for line in lines}
    if not any(margins):
        return f"{source or 'counted'}, exact"
    within = f"{source}: token counts {'up to ' if len(margins) > 1 else ''}±{percent(max(margins))}"
    order = sorted(ranked(lines), key=lambda line: line.effort)
    second = next((line for line in order if not is_tied(line, order[0])), None)
    if second is None or not all(line.is_priced for line in lines):
        return within if len(order) < 2 else f"{within}: no lead is outside the margin"
    margin, lead = error_of_difference(order[0], second), second.effort - order[0].effort
    return (
        f"{within}: the {rough_dollars(lead)} lead over {quote(second.name)} is outside the margin"
        f" (±{rough_dollars(margin)})"
    )


def _refusal(line: StrategyLine, refusal: Refusal) -> str:
    return f"{line.name}: {refusal.calls:,} of {count_text(line.calls, 'call')} {refusal.word}: {refusal.reason}"
