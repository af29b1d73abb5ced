"""The pictures of a report as bytes: SVG for the report, one PNG for the README."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from cachecost.analysis.comparison.summary import Summary
from cachecost.views.charts.style import png, svg
from cachecost.views.run.bar_charts import dollars_figure, question_figure
from cachecost.views.run.files import CUMULATIVE, DOLLARS, PROVIDERS, QUESTION, README_PICTURE
from cachecost.views.run.line_charts import cumulative_figure
from cachecost.views.run.provider_chart import compares_providers, providers_figure


def figures(summary: Summary, variants: Sequence[Summary] = ()) -> dict[str, Figure]:
    """Every picture that this comparison has, by its file name: where no price is known, that of its tokens alone.

    `variants` are all of the run, this one first; where they are several hosts, one picture has them all.
    """
    if not summary.lines:
        return {}
    drawn = {DOLLARS: dollars_figure(summary)}
    if summary.is_priced and any(line.cost.total for line in summary.lines):
        drawn[CUMULATIVE] = cumulative_figure(summary)
    if any(line.question is not None for line in summary.lines):
        drawn[QUESTION] = question_figure(summary)
    if compares_providers(variants):
        drawn[PROVIDERS] = providers_figure(variants)
    return drawn


def chart_files(summary: Summary, variants: Sequence[Summary] = ()) -> dict[str, bytes]:
    """File name to content: all pictures as SVG, the one that answers the question as PNG too."""
    drawn = figures(summary, variants)
    files = {name: svg(figure) for name, figure in drawn.items()}
    answer = PROVIDERS if PROVIDERS in drawn else DOLLARS
    if answer in drawn:
        files[README_PICTURE] = png(drawn[answer])
    return files
