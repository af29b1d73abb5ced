"""The figures of every strategy of a comparison, added up once, how strategies are ranked by them, which are compared
apart, and the sentences that the terminal, the report and the charts share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import combinations, groupby
from operator import itemgetter

from cachecost.base.formatting import (
    UNKNOWN,
    all_of,
    capitalized,
    change,
    change_text,
    count_text,
    dollar_places,
    dollar_range,
    dollars,
    percent,
    quote,
    range_text,
    rough_dollars,
    times,
    tokens,
)
from cachecost.base.structs import replace
from cachecost.ledger.results import Comparison, Ledger, most_of
from cachecost.ledger.rows import QUESTIONS, REFUSED, SMALL, CallRow, Cost, LessInput
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import ZERO, Usage

NUMBER = re.compile(r"(?<![\w.-])\d[\d,]*(?![\w-])")
"""A number that stands alone: no part of a name or of a path."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Calls that have no usage, for one reason: the provider's words, or what is not known."""

    reason: str
    kind: str
    calls: int

    @property
    def word(self) -> str:
        return "refused" if self.kind == REFUSED else "not evaluated"


@dataclass(frozen=True, slots=True)
class StrategyLine:
    """One strategy of a comparison.

    `total` (USD) is None if every call was refused, or no price is known; `vs_first` is a ratio (−0.32) of efforts,
    None for the first itself and where a refused call makes it not comparable; `question` is the dollars of one
    question, None if none was asked, one was refused, or no price is known.
    """

    name: str
    calls: int
    usage: Usage
    cost: Cost
    by_layer: dict[Layer, Decimal]
    total: Decimal | None
    vs_first: Decimal | None
    questions: int
    question_calls: int
    question_usage: Usage
    question_cost: Cost
    question: Decimal | None
    question_most: Decimal | None
    """As `most`, of one question."""
    refusals: tuple[Refusal, ...]
    """In the order they came."""
    notes: tuple[str, ...]
    token_source: str
    error_margin: float
    most: Decimal | None
    """USD if no best-effort hit came about: `total` is then the least. None: every hit is certain."""
    lower_bound: Decimal | None
    """USD below which no choice of breakpoints and TTLs could go for the same bytes; None: not known."""
    uncertain: Decimal
    """The dollars that rest on counted tokens: all but recorded output."""
    effort: Decimal
    """What strategies are ranked by: USD; tokens to compute where no price is known."""
    is_priced: bool
    less: LessInput | None = None
    """What it leaves out of the conversation; None: nothing."""
    assumes: str = ""
    """Assumptions of its own, other than those of the comparison, as NAME=VALUE."""
    described_in: str = ""
    """Where somebody describes it, as the scenario says."""
    is_apart: bool = False
    """Whether it is not compared with the others, for one of these reasons or because the scenario says so."""
    places: int | None = None
    """Digits after the point of dollars in the column of costs that the line is part of; None: it stands alone."""
    question_places: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether every call was refused or could not be evaluated."""
        return bool(self.refused) and self.refused == self.calls

    @property
    def cache_hit_rate(self) -> Decimal | None:
        """How much of the input was read; None where there was none."""
        return Decimal(self.usage.read) / self.usage.total_input if self.usage.total_input else None

    @property
    def answer(self) -> str:
        """`money`; where no price is known, the tokens that must be computed."""
        return self.money if self.is_priced or self.is_empty else f"{tokens(int(self.effort))} tokens of prefill"

    @property
    def refused(self) -> int:
        return sum(refusal.calls for refusal in self.refusals)

    @property
    def money(self) -> str:
        """`total` as it is shown: a range where hits are best effort."""
        return dollar_range(self.total, None if self.total is None else self.most, self.places)

    @property
    def question_money(self) -> str:
        """`question` as it is shown: a range where hits are best effort, tokens to compute where no price is known."""
        if not self.is_priced and self.questions and not self.refused:
            used = self.question_usage
            return tokens(round((used.unread) / self.questions))
        most = None if self.question is None else self.question_most
        return dollar_range(self.question, most, self.question_places)

    @property
    def above_lower_bound(self) -> Decimal | None:
        """How far it is from the lower bound, as a ratio (0.12 is 12% above)."""
        return change(self.total, self.lower_bound)

    @property
    def error(self) -> Decimal:
        """± USD on `total` from the token counts."""
        return self.uncertain * Decimal(str(self.error_margin))

    @property
    def errors(self) -> list[Decimal]:
        """`error` by what is counted: each layer of the prompt, then output and what is in no layer."""
        layers = [self.by_layer.get(layer, ZERO) for layer in Layer]
        parts = [*layers, self.uncertain - sum(layers, ZERO)]
        return [part * Decimal(str(self.error_margin)) for part in parts]


def complete(lines: Sequence[StrategyLine]) -> list[StrategyLine]:
    """The lines without a refused call: those that can be compared."""
    return [line for line in lines if not line.refused]


def ranked(lines: Sequence[StrategyLine]) -> list[StrategyLine]:
    """The lines that are compared with one another: complete, and none apart. Where all are apart, all of them."""
    whole = complete(lines)
    return [line for line in whole if not line.is_apart] or whole


def best_and_next(lines: Sequence[StrategyLine]) -> tuple[StrategyLine, StrategyLine] | None:
    """The cheapest of the lines that are compared, and the cheapest that costs more; None where there is none."""
    order = sorted(ranked(lines), key=lambda line: line.effort)
    second = next((line for line in order if line.effort > order[0].effort), None)
    return None if second is None else (order[0], second)


UNSHARED = Decimal("0.5")
"""The part of an error of the counts that is taken not to be the same in both of two costs (assumed)."""


def error_of_difference(one: StrategyLine, other: StrategyLine) -> Decimal:
    """± USD on the difference of two lines, from the token counts; none where they are equal.

    Both count the same text in the same way, so within a layer an error scales the difference too. The layers hold
    text of other kinds, whose errors need not have the same sign: theirs add up. And strategies pay for the kinds
    within a layer in other proportions, so that a part of the smaller one's error is in the difference anyway.
    """
    if one.effort == other.effort:
        return ZERO
    by_layer = sum((abs(mine - theirs) for mine, theirs in zip(one.errors, other.errors, strict=True)), ZERO)
    return max(by_layer, UNSHARED * min(one.error, other.error))


def is_tied(one: StrategyLine, other: StrategyLine) -> bool:
    """Whether two lines cannot be told apart: their difference is within its error margin. Symmetric."""
    difference = abs(one.effort - other.effort)
    return not difference or (one.is_priced and other.is_priced and difference <= error_of_difference(one, other))


def shared_notes(lines: Sequence[StrategyLine]) -> list[tuple[str, list[str]]]:
    """Each note once, with the strategies that have it, in order of appearance."""
    found: dict[str, list[str]] = {}
    for line in lines:
        for note in dict.fromkeys(line.notes):
            found.setdefault(note, []).append(line.name)
    return list(found.items())


def count_refusals(rows: Iterable[CallRow]) -> tuple[Refusal, ...]:
    """Why calls have no usage. Reasons that differ only in a number count as one, the first."""
    first: dict[tuple[str, str], str] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row.error is not None:
            key = (NUMBER.sub("0", row.error), row.error_type or REFUSED)
            first.setdefault(key, row.error)
            counts[key] += 1
    return tuple(Refusal(first[key], key[1], calls) for key, calls in counts.items())


def strategy_line(ledger: Ledger, effort: Decimal, reference: Decimal | None) -> StrategyLine:
    cost, asked = ledger.cost, ledger.inquiries
    questions = len({row.inquiry for row in asked})
    refusals = count_refusals(ledger.rows)
    all_refused = bool(refusals) and ledger.errors == len(ledger.rows)
    return StrategyLine(
        name=ledger.strategy,
        calls=len(ledger.rows),
        usage=ledger.usage,
        cost=cost,
        by_layer=ledger.cost_by_layer,
        total=None if all_refused or not ledger.is_priced else cost.total,
        vs_first=None if refusals else change(effort, reference),
        questions=questions,
        question_calls=len(asked),
        question_usage=sum((row.usage for row in asked), Usage()),
        question_cost=sum((row.cost for row in asked), Cost()),
        question=None if any(row.error is not None for row in asked) else ledger.per_inquiry(),
        question_most=None if ledger.most is None or not questions else most_of(asked) / questions,
        refusals=refusals,
        notes=tuple(ledger.notes),
        most=ledger.most,
        lower_bound=ledger.lower_bound,
        token_source=ledger.token_source,
        error_margin=ledger.error_margin,
        uncertain=cost.total - sum((row.cost.output for row in ledger.rows if row.output_is_recorded), ZERO),
        effort=effort,
        is_priced=ledger.is_priced,
        assumes=ledger.assumes,
        described_in=ledger.described_in,
    )


TTL_NAMES = ("5m", "1h")
AGAINST_FIRST = "vs first"
"""The head of the column that compares with the first strategy."""
CLASS_NAMES = {"read": "read", "write_5m": "write 5m", "write_1h": "write 1h", "input": "uncached", "output": "output"}
PREFILL_NAMES = {"read": "prefill saved", "input": "prefill to do", "output": "output"}
"""The same where no price is known: what your own server computes, and what it need not."""
CLASS_FIELDS = {name: {"input": "input_tokens", "output": "output_tokens"}.get(name, name) for name in CLASS_NAMES}
"""Token class to the field of Usage that counts it."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A comparison as its lines, in the scenario's order; those that are compared apart come last."""

    comparison: Comparison
    lines: tuple[StrategyLine, ...]
    first: StrategyLine | None
    best: StrategyLine | None
    """The cheapest of the lines that are compared, of equals the first; None if there is none."""

    @property
    def best_lines(self) -> tuple[StrategyLine, ...]:
        """The lines that tie with `best`, itself first: its lead over them is within the error margin of their
        difference. Empty if there is none.
        """
        best = self.best
        if best is None:
            return ()
        others = [line for line in ranked(self.lines) if line is not best and is_tied(best, line)]
        return (best, *others)

    @property
    def equal_lines(self) -> tuple[StrategyLine, ...]:
        """The lines that cost exactly as little as `best`, itself among them; empty if there is none."""
        return tuple(line for line in self.best_lines if self.best is not None and line.effort == self.best.effort)

    @property
    def winners(self) -> tuple[str, ...]:
        """The names of `best_lines`."""
        return tuple(line.name for line in self.best_lines)

    @property
    def against(self) -> str:
        """The head of the column that compares: "vs first", or "vs NAME" where `compare_to` is not the first."""
        name, ledgers = self.comparison.first, self.comparison.ledgers
        return AGAINST_FIRST if not ledgers or name == ledgers[0].strategy else f"vs {name}"

    @property
    def is_priced(self) -> bool:
        """Whether there are dollars to tell. Where not, lines are ranked by the tokens that must be computed."""
        return self.comparison.is_priced

    @property
    def has_questions(self) -> bool:
        return any(line.questions for line in self.lines)

    @property
    def apart(self) -> tuple[StrategyLine, ...]:
        """The lines that are not compared with the others."""
        return tuple(line for line in self.lines if line.is_apart)

    @property
    def class_names(self) -> dict[str, str]:
        """What the token classes are called, with the host's own words for its TTLs."""
        short, long = next((ledger.ttls for ledger in self.comparison.ledgers), TTL_NAMES)
        names = {**CLASS_NAMES, "write_5m": f"write {short}", "write_1h": f"write {long}"}
        return names if self.is_priced else {**names, **PREFILL_NAMES}

    @property
    def classes(self) -> list[str]:
        """Token classes that occur; write_1h is left out where it is always zero. Without a price all writes
        are left out: they are part of what is computed."""
        if not self.is_priced:
            return list(PREFILL_NAMES)
        return [name for name in CLASS_NAMES if name != "write_1h" or any(line.usage.write_1h for line in self.lines)]

    @property
    def shown_classes(self) -> dict[str, str]:
        """The classes that occur, with their names."""
        return {name: self.class_names[name] for name in self.classes}

    def line(self, name: str) -> StrategyLine | None:
        return next((line for line in self.lines if line.name == name), None)


def summarise(comparison: Comparison) -> Summary:
    """Add up a comparison; every row is looked at a fixed number of times."""
    base = next((ledger for ledger in comparison.ledgers if ledger.strategy == comparison.first), None)
    reference = comparison.effort(base) if base and not base.errors else None
    less, apart = comparison.less, comparison.apart
    found = (
        (ledger, strategy_line(ledger, comparison.effort(ledger), None if ledger is base else reference))
        for ledger in comparison.ledgers
    )
    lines = [replace(line, less=less.get(ledger.strategy), is_apart=ledger.strategy in apart) for ledger, line in found]
    costs = dollar_places(amount for line in lines for amount in (line.total, line.most))
    questions = dollar_places(amount for line in lines for amount in (line.question, line.question_most))
    in_columns = (replace(line, places=costs, question_places=questions) for line in lines)
    ordered = tuple(sorted(in_columns, key=lambda line: line.is_apart))
    first = next((line for line in ordered if line.name == comparison.first), None)
    best = min(ranked(ordered), key=lambda line: line.effort, default=None)
    return Summary(comparison, ordered, first, best)


def summarise_ledgers(ledgers: Sequence[Ledger]) -> Summary:
    """Add up strategies that are compared outside of a scenario, with the first; the summary names no host and day."""
    return summarise(Comparison("", "", "", date.min, {}, list(ledgers), ledgers[0].strategy))


def same_order(one: Summary, other: Summary) -> bool:
    """Whether no two strategies that are compared in both change places by more than the error margin."""
    there = {line.name: line for line in ranked(other.lines)}
    here = sorted((line for line in ranked(one.lines) if line.name in there), key=lambda line: line.effort)
    return not any(
        there[high.name].effort < there[low.name].effort
        and not is_tied(low, high)
        and not is_tied(there[low.name], there[high.name])
        for low, high in combinations(here, 2)
    )


APART = "†"
"""After the name of a strategy that is compared apart."""


def shown_name(line: StrategyLine) -> str:
    """The name as tables have it."""
    return f"{line.name} {APART}" if line.is_apart else line.name


def apart_sentences(summary: Summary) -> list[str]:
    """Why strategies are compared apart, and which are not though they see less: a sentence each."""
    kept = [line for line in summary.lines if not line.is_apart and (line.less is not None or line.assumes)]
    sentences = [f"{APART} compared apart, never the cheapest: {_reasons(summary.apart)}"] if summary.apart else []
    if kept:
        sentences.append(f"compared all the same, as the scenario says: {_reasons(kept)}")
    return sentences


def _reasons(lines: Sequence[StrategyLine]) -> str:
    """ "“a” (sends less: …); “b” and “c” (assume …)"."""
    names: dict[str, list[str]] = {}
    for line in lines:
        names.setdefault(reason(line), []).append(quote(line.name))
    return "; ".join(f"{all_of(who)} ({why})" if why else all_of(who) for why, who in names.items())


def reason(line: StrategyLine) -> str:
    """Why a strategy is not like the others; "" where only the scenario says so."""
    less, parts = line.less, list[str]()
    if less is not None:
        calls = count_text(less.calls, QUESTIONS) if less.what == QUESTIONS else f"{less.calls:,} calls"
        sent = f"{tokens(less.tokens)} of {tokens(less.compared_tokens)} tokens of conversation"
        small = f", {less.small:,} of them under {SMALL:,}" if less.small else ""
        if less.unasked:
            parts.append(f"{less.unasked:,} of {calls} are not asked")
        elif less.calls:
            parts.append(f"{calls} send a mean of {sent}{small}")
        parts.append(less.words)
    return "; ".join(filter(None, [*parts, f"assumes {line.assumes}" if line.assumes else ""]))


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
    """That it is not certain what is the cheapest, where best-effort hits that do not happen may change it."""
    best = summary.best
    others = [line for line in ranked(summary.lines) if line is not best]
    if best is None or best.most is None or all(best.most <= line.effort for line in others):
        return []
    return ["Hits are best effort here, and the ranges overlap: which one is the cheapest is not certain."]


def tie_sentence(summary: Summary, best: StrategyLine) -> str:
    """The strategies that `best` leads by less than the error margin; "" where there is none."""
    near = [line for line in summary.best_lines if line not in summary.equal_lines]
    if not near:
        return ""
    named = max(near, key=lambda line: line.effort)
    if len(summary.best_lines) == 2:
        costs = f"{quote(best.name)} ({best.answer}) and {quote(named.name)} ({named.answer})"
        return f"{costs} are within the error margin: {lead_words(best, named)}."
    tied = f"{join_names(summary.winners)} are within the error margin of each other"
    return f"{tied}: {quote(best.name)} has {lead_words(best, named)} over {quote(named.name)}."


def variant_rows(summaries: Sequence[Summary]) -> list[VariantRow]:
    """The scenario as written and every variant of it, in their order."""
    shown = [line for summary in summaries for line in (summary.first, summary.best) if line is not None]
    places = dollar_places(amount for line in shown for amount in (line.total, line.most))
    rows, main = list[VariantRow](), summaries[0]
    for summary in summaries:
        best, first = (line and replace(line, places=places) for line in (summary.best, summary.first))
        saving = UNKNOWN
        if best is not None and summary.first not in summary.equal_lines:
            saving = percent(best.vs_first, signed=True)
        order = ""
        if summary is not main and not same_order(summary, main):
            order = "differs"
        elif summary is not main:  # another cheapest one in the same order costs the same
            order = "same" if summary.winners == main.winners else "ties"
        rows.append(
            VariantRow(
                variant=variant_name(summary.comparison),
                first=first.answer if first else UNKNOWN,
                best=" = ".join(summary.winners) or UNKNOWN,
                cost=best.answer if best else UNKNOWN,
                saving=saving,
                order=order,
            )
        )
    return rows


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
    sentences = list[str]()
    for source, lines in groups.items():
        margins = {line.error_margin for line in lines}
        words = f"{source}: token counts {'up to ' if len(margins) > 1 else ''}±{percent(max(margins))}"
        order = sorted(ranked(lines), key=lambda line: line.effort)
        second = next((line for line in order if not is_tied(line, order[0])), None)
        if not any(margins):
            words = f"{source or 'counted'}, exact"
        elif second is not None and all(line.is_priced for line in lines):
            lead, margin = second.effort - order[0].effort, error_of_difference(order[0], second)
            words += f": the {rough_dollars(lead)} lead over {quote(second.name)} is outside the margin"
            words += f" (±{rough_dollars(margin)})"
        elif len(order) > 1:
            words += ": no lead is outside the margin"
        sentences.append(words)
    return sentences


def refusal_sentences(summary: Summary) -> list[str]:
    """Each refused strategy, how many of its calls, and the reason in the provider's words."""
    return [
        f"{line.name}: {refusal.calls:,} of {count_text(line.calls, 'call')} {refusal.word}: {refusal.reason}"
        for line in summary.lines
        for refusal in line.refusals
    ]


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
        return f"{quote(best.name)} costs {best.answer}"
    if len({line.effort for line in ranked(summary.lines)}) == 1 and best.effort and not summary.apart:
        return f"All strategies cost the same: {best.answer}"
    within = "" if len(summary.best_lines) == len(summary.equal_lines) else " within the error margin"
    cheapest = f"Cheapest{within}: {join_names(summary.winners)}, {best.answer}"
    if first in summary.best_lines or first is None or best.vs_first is None:
        return cheapest
    return f"{cheapest}, {change_text(best.vs_first)} than {quote(first.name)}"


def cumulative_title(summary: Summary) -> str:
    """What the picture of growing dollars shows: how far the strategies are apart at the end."""
    order = sorted(ranked(summary.lines), key=lambda line: line.cost.total)
    if len(order) < 2:
        return "Dollars spent, call after call"
    low, high = order[0], order[-1]
    if low.cost.total == high.cost.total:
        return f"All strategies cost the same: {high.money} after {count_text(high.calls, 'call')}"
    factor = f", {times(high.cost.total / low.cost.total)} as much as {quote(low.name)}" if low.cost.total else ""
    return f"{quote(high.name)}: {high.money} after {count_text(high.calls, 'call')}{factor}"


def question_title(summary: Summary) -> str:
    """What the picture of one question shows: the cheapest and the most expensive strategy."""
    known = [(line.question, line) for line in ranked(summary.lines) if line.question is not None]
    if not known:
        return "What one question costs"
    (low, cheap), (high, expensive) = (pick(known, key=itemgetter(0)) for pick in (min, max))
    least, most = (dollars(amount, cheap.question_places) for amount in (low, high))
    if low == high:
        return f"One question costs {least}"
    return f"One question costs {least} ({quote(cheap.name)}) to {most} ({quote(expensive.name)})"


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
    return sorted(ranked(summary.lines), key=lambda line: line.effort)


def order_words(line: StrategyLine, other: StrategyLine) -> str:
    """ "less than", "more than", or "the same as" of what cannot be told apart."""
    if is_tied(line, other):
        return "the same as" if line.effort == other.effort else "the same within the error as"
    return "less than" if line.effort < other.effort else "more than"
