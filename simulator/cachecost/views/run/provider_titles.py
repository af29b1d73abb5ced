"""What the variants of a run on several providers show, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.analysis.comparison.sentences import variant_name
from cachecost.analysis.comparison.summary import Summary
from cachecost.base.formatting import count_text, quote


def providers_title(summaries: Sequence[Summary]) -> str:
    """ "One question in each variant: “answer tool, auto” costs less than “structured output, no tools” in 9 of 20"."""
    main = summaries[0]
    first, best = main.first, main.best
    what = "One question" if main.has_questions else "The session"
    if first is None or best is None or first in main.best_lines:
        return f"{what} in each of {count_text(len(summaries), 'variant')}"
    pairs = [(summary.line(best.name), summary.line(first.name)) for summary in summaries]
    amounts = [
        (one.question, other.question) if main.has_questions else (one.total, other.total)
        for one, other in pairs
        if one is not None and other is not None
    ]
    known = [(one, other) for one, other in amounts if one is not None and other is not None]
    cheaper = sum(one < other for one, other in known)
    names = f"{quote(best.name)} costs less than {quote(first.name)}"
    return f"{what}: {names} in {cheaper:,} of {count_text(len(known), 'variant')}"


def provider_name(summary: Summary, main: Summary) -> str:
    """The name of a variant; the scenario as written has its host's."""
    comparison = summary.comparison
    return f"{comparison.host}, as written" if summary is main else variant_name(comparison)
