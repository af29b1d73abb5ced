"""The pictures of a report as bytes: SVG for the report, one PNG for the README."""

from __future__ import annotations

from matplotlib.figure import Figure

from cachecost.analysis.comparison.summary import Summary
from cachecost.views.charts.style import png, svg
from cachecost.views.run.bar_charts import dollars_figure, question_figure
from cachecost.views.run.files import CUMULATIVE, DOLLARS, QUESTION, README_PICTURE
from cachecost.views.run.line_charts import cumulative_figure


def figures(summary: Summary) -> dict[str, Figure]:
    """Every picture that this comparison has, by its file name: where no price is known, that of its tokens alone."""
    if not summary.lines:
        return {}
    drawn = {DOLLARS: dollars_figure(summary)}
    if summary.is_priced and any(line.cost.total for line in summary.lines):
        drawn[CUMULATIVE] = cumulative_figure(summary)
    if any(line.question is not None for line in summary.lines):
        drawn[QUESTION] = question_figure(summary)
    return drawn


def chart_files(summary: Summary) -> dict[str, bytes]:
    """File name to content: all pictures as SVG, the dollars by token class as PNG too."""
    drawn = figures(summary)
    files = {name: svg(figure) for name, figure in drawn.items()}
    if DOLLARS in drawn:
        files[README_PICTURE] = png(drawn[DOLLARS])
    return files
