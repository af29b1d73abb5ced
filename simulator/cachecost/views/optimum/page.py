"""The page of `optimize`: the answer, then the cost of every strategy against it, and how sure that is."""

from __future__ import annotations

from cachecost.analysis.optimum.optimum import Optimum
from cachecost.base.version import __version__
from cachecost.views.html.frame import Section, render_page
from cachecost.views.optimum.tables import plan_table
from cachecost.views.optimum.text import answer, facts


def optimum_page(source: str, optimum: Optimum, again: str) -> str:
    """The cheapest legal breakpoints, TTLs and keep-alives. `again` is the command that makes the page."""
    first, *more = answer(optimum)
    certainty = [f"{label}: {sentence}" if label else sentence for label, sentence in facts(optimum)]
    return render_page(
        "analysis.html",
        title=source,
        question="What is the least that these calls can cost, and with which breakpoints?",
        answer=first,
        sections=[
            Section("strategies", "Every strategy against this plan", more, plan_table(optimum)),
            Section("sure", "How sure", certainty),
        ],
        again=again,
        version=__version__,
    )
