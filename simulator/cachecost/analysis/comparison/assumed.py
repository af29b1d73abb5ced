"""Everything that an answer assumes: what every comparison does, and what its scenario states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal

from cachecost.analysis.comparison.long_context import long_context_assumption
from cachecost.analysis.comparison.sentences import cheapest_words, join_names, tie_sentence, token_sentences
from cachecost.analysis.comparison.summary import Line, Summary, complete, ranked, summarise
from cachecost.analysis.comparison.trial_assumptions import stated_assumptions
from cachecost.analysis.comparison.variant_run import VariantRun
from cachecost.base.errors import CannotEvaluate
from cachecost.base.formatting import change_text, count_text, dollars, percent, quote
from cachecost.ledger.assumptions import Assumption
from cachecost.ledger.results import Comparison
from cachecost.providers.rules import data_date


def assumptions_of(main: VariantRun, comparisons: Sequence[Comparison]) -> list[Assumption]:
    """What the answer assumes; what would change it first, then what would not, then what was not tried.

    Raises CannotEvaluate for a value that cannot be simulated.
    """
    summaries = [summarise(comparison) for comparison in comparisons]
    found = [
        *stated_assumptions(main, comparisons[0]),
        *_token_counts(summaries[0]),
        *_day(main, summaries),
        *long_context_assumption(main, summaries[0]),
        *_never_missed(summaries[0]),
        *_output(main, summaries[0]),
        *map(Assumption, main.assumptions()),
    ]
    return sorted(found, key=lambda assumption: (not assumption.changes, assumption.changes is None))


def _token_counts(summary: Summary) -> Iterator[Assumption]:
    best = summary.best
    if best is None or not any(line.error_margin for line in complete(summary.lines)):
        return
    name = f"Token counts: {'; '.join(token_sentences(summary))}"
    tie = tie_sentence(summary, best)
    stays = f"{join_names(summary.winners)} {'stays' if len(summary.winners) == 1 else 'stay'} the cheapest within it."
    yield Assumption(name, changes=bool(tie), effect=tie or stays)


def _day(main: VariantRun, summaries: Sequence[Summary]) -> Iterator[Assumption]:
    """Rules and prices of another day: that of the shipped data, where no variant has another."""
    day = summaries[0].comparison.as_of
    name = f"Rules and prices of {day}"
    others = [summary for summary in summaries[1:] if summary.comparison.as_of != day] or _on_shipped_day(main, day)
    if not others:
        return
    changes = any(set(summary.winners) != set(summaries[0].winners) for summary in others)
    effect = " ".join(_on_day(summary, summaries[0]) for summary in others)
    yield Assumption(name, changes=changes, effect=effect)


def _on_shipped_day(main: VariantRun, day: date) -> list[Summary]:
    """The comparison with the rules and prices of the shipped data; none where they are used, or lack the model."""
    shipped = data_date(main.scenario.host)
    if day == shipped:
        return []
    try:
        run = VariantRun("", main.scenario.model_copy(update={"as_of": None}), main.folder, main)
        return [summarise(run.comparison())]
    except CannotEvaluate:
        return []


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


def _never_missed(summary: Summary) -> Iterator[Assumption]:
    """What strategies leave out that are compared all the same: how much missing it may cost."""
    first = summary.first
    leaving = [line for line in ranked(summary.lines) if line.less is not None and line is not first]
    if first is None or not leaving:
        return
    room = [
        f"{quote(line.name)} may lose {dollars(first.effort - line.effort)} that way until it costs as much as"
        f" {quote(first.name)}: {count_text(int((first.effort - line.effort) / _per_call(line)), 'call')} at its mean."
        for line in leaving
        if line.effort < first.effort and line.is_priced and line.effort
    ]
    name = f"What {join_names([line.name for line in leaving])} {_leave(leaving)} out is never missed"
    yield Assumption(name, "no call is repeated, no answer is worse", effect=" ".join(room))


def _leave(lines: Sequence[Line]) -> str:
    return "leaves" if len(lines) == 1 else "leave"


def _per_call(line: Line) -> Decimal:
    return line.effort / line.calls


def _output(main: VariantRun, summary: Summary) -> Iterator[Assumption]:
    """The answers of every strategy are as long: how much shorter they would have to be for another one to win."""
    whence = "that the scenario states" if main.scenario.conversation.synthetic else "of the recording"
    yield Assumption(
        f"The answers are those {whence}, equally long in every strategy",
        effect=_shorter(summary) if summary.best else "",
    )


def _shorter(summary: Summary) -> str:
    """The strategy that needs the least saving of output to become the cheapest."""
    best = summary.best
    assert best is not None
    needed = {
        line.name: (line.effort - best.effort) / line.cost.output
        for line in ranked(summary.lines)
        if line not in summary.equal_lines and line.is_priced and line.cost.output
    }
    name = min(needed, key=lambda name: needed[name], default=None)
    if name is None or needed[name] >= 1:
        return "No saving of output makes another strategy the cheapest." if needed else ""
    return f"With {percent(needed[name])} less output, {quote(name)} would cost as little as {quote(best.name)}."
