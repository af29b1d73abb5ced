"""A validation as files: one page, or the evidence folder; and the picture of its residuals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from cachecost.base.atomic_files import write_text, write_whole
from cachecost.ledger.results import Evidence, Fidelity, Judgement
from cachecost.views.bound_units import bind_units_in_markdown
from cachecost.views.charts.palette import LINE_COLOURS, MUTED, RULE
from cachecost.views.charts.style import MARGIN, SMALL_SIZE, WIDTH, draw_title, house_style, inline, svg
from cachecost.views.fidelity.scores import GROUPS, Score
from cachecost.views.fidelity.text import (
    anthropic_judgements,
    assumption_table,
    basis_sentence,
    coverage_table,
    difference_table,
    evidence_markdown,
    exactness_sentences,
    fidelity_object,
    has_other_hosts,
    headline,
    host_table,
    other_scores_sentence,
    part_table,
    score_table,
)
from cachecost.views.html.frame import render_page

HEIGHT = 4.2
TICKS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
KINDS = {
    "hit": (LINE_COLOURS[0], "o"),
    "cold": (LINE_COLOURS[2], "s"),
    "unknown": (LINE_COLOURS[7], "x"),
    "range": (LINE_COLOURS[4], "^"),
}
PICTURE, PAGE, RESULT = "residuals.svg", "report.md", "result.json"


def residual_figure(fidelity: Fidelity, title: str) -> Figure:
    """A point a call: billed prompt length against the error of the predicted one; both axes grow by factors."""
    with house_style():
        figure = Figure(figsize=(WIDTH, HEIGHT))
        top = draw_title(figure, title) if title else 0.0
        axes = figure.add_axes((0.09, 0.13, 0.88, 1 - 0.13 - (top + MARGIN + 0.2) / HEIGHT))
        with_input = [one for one in fidelity.judgements if one.billed.total_input]
        for kind, (colour, marker) in KINDS.items():
            points = [one for one in with_input if one.kind == kind]
            if points:
                lengths, errors = [one.billed.total_input for one in points], list(map(signed_error, points))
                look: dict[str, Any] = {"c": colour, "marker": marker, "s": 16, "linewidths": 1.0, "alpha": 0.75}
                axes.scatter(lengths, errors, label=f"{kind}, {len(points):,}", **look)
        axes.axhline(0, color=RULE, linewidth=1, zorder=0)
        axes.set_xscale("log")
        axes.set_xticks(TICKS, [f"{tick:,}" for tick in TICKS])
        reach = [one.billed.total_input for one in with_input] or [1]
        axes.set_xlim(min(reach) / 1.5, max(reach) * 1.5)
        axes.minorticks_off()
        # errors below this share are drawn at zero's line: a logarithm has no zero
        axes.set_yscale("symlog", linthresh=0.001)
        axes.set_ylim(-1.2, 1.2)
        axes.set_yticks([-1, -0.1, -0.01, 0, 0.01, 0.1, 1], ["−100%", "−10%", "−1%", "0", "+1%", "+10%", "+100%"])
        axes.set_xlabel("billed input tokens of the call", color=MUTED)
        axes.legend(loc="upper left", bbox_to_anchor=(0, 1.13), ncols=len(KINDS), frameon=False, fontsize=SMALL_SIZE)
    return figure


def signed_error(one: Judgement) -> float:
    """Predicted minus billed prompt length, as a share of the billed one."""
    billed = one.billed.total_input
    return (one.predicted.total_input - billed) / billed if billed else 0.0


def write_evidence(
    fidelity: Fidelity, evidence: Sequence[Evidence], claims: Sequence[Evidence], folder: Path, again: str
) -> Path:
    """report.md, residuals.svg and result.json in `folder`; each whole or not at all. Raises OSError, InputError."""
    folder.mkdir(parents=True, exist_ok=True)
    title = headline(Score("all", anthropic_judgements(fidelity)))
    write_whole(folder / PICTURE, svg(residual_figure(fidelity, title)))
    write_whole(folder / RESULT, (json.dumps(fidelity_object(fidelity), indent=1) + "\n").encode())
    text = bind_units_in_markdown(evidence_markdown(fidelity, evidence, claims, PICTURE, again))
    write_text(folder / PAGE, text)
    return folder / PAGE


def fidelity_page(fidelity: Fidelity, evidence: Sequence[Evidence], claims: Sequence[Evidence] = ()) -> str:
    title = headline(Score("all", anthropic_judgements(fidelity)))
    return render_page(
        "fidelity.html",
        headline=title,
        chart=inline(residual_figure(fidelity, ""), "chart", title),
        others=" ".join(filter(None, (basis_sentence(fidelity), other_scores_sentence(fidelity)))),
        evidence=evidence,
        hosts=host_table(fidelity) if has_other_hosts(fidelity) else None,
        exactness=exactness_sentences(fidelity),
        rule_claims=claims,
        parts=part_table(fidelity) if fidelity.is_evidence else None,
        coverage=coverage_table(fidelity) if fidelity.is_evidence else None,
        groups=[(name, score_table(fidelity, name)) for name in GROUPS],
        assumptions=assumption_table(fidelity) if fidelity.readings else None,
        differs=difference_table(fidelity),
        token_source=fidelity.token_source,
    )
