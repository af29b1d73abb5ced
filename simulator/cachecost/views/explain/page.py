"""The page of `explain`: the answer, then a section a strategy, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.base.formatting import dollars
from cachecost.base.version import __version__
from cachecost.ledger.findings import Explanation
from cachecost.views.explain.tables import findings_table, group_findings
from cachecost.views.explain.text import closing, headline
from cachecost.views.html.frame import Section, render_page
from cachecost.views.timeline.picture import TimelineView, timeline_key

SIMULATED = "simulated"


def explain_page(
    source: str, explanations: Sequence[Explanation], again: str, timelines: Sequence[Sequence[TimelineView]] = ()
) -> str:
    """The avoidable cost of each strategy of a scenario, or of a log. `again` is the command that makes the page.

    `timelines` are those of each explanation.
    """
    shown = [*timelines, *[()] * (len(explanations) - len(timelines))]
    sections = [
        _section(number, explanation, views)
        for number, (explanation, views) in enumerate(zip(explanations, shown, strict=True), 1)
    ]
    return render_page(
        "analysis.html",
        title=source,
        question="Which cost was avoidable, and why?",
        answer=sections[0].sentences.pop(0) if len(sections) == 1 else _comparison(explanations),
        sections=sections,
        key=timeline_key([view for views in timelines for view in views]),
        again=again,
        version=__version__,
    )


def _section(number: int, explanation: Explanation, timelines: Sequence[TimelineView]) -> Section:
    groups = group_findings(explanation)
    sentences = [" ".join(line.split()) for line in headline(explanation, groups)]
    after = [" ".join(line.split()) for line in closing(explanation) if line]
    table = findings_table(explanation) if groups else None
    return Section(f"part-{number}", explanation.strategy or SIMULATED, sentences, table, after, timelines)


def _comparison(explanations: Sequence[Explanation]) -> str:
    """The strategies with the least and with the most avoidable cost."""
    ranked = sorted(explanations, key=lambda explanation: explanation.avoidable)
    low, high = ranked[0], ranked[-1]
    return (
        f"Avoidable cost is lowest with “{low.strategy}” ({dollars(low.avoidable)}) "
        f"and highest with “{high.strategy}” ({dollars(high.avoidable)})."
    )
