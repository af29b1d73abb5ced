"""A validation as files: one self-contained HTML page, or the evidence folder with Markdown, chart and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from cachecost.base.atomic_files import write_text, write_whole
from cachecost.ledger.results import Evidence, Fidelity
from cachecost.views.bound_units import bind_units_in_markdown
from cachecost.views.charts.pictures import inline
from cachecost.views.charts.style import svg
from cachecost.views.fidelity.chart import residual_figure
from cachecost.views.fidelity.hosts import (
    anthropic_judgements,
    basis_sentence,
    exactness_sentences,
    has_other_hosts,
    other_scores_sentence,
)
from cachecost.views.fidelity.json_output import fidelity_object
from cachecost.views.fidelity.markdown import evidence_markdown, headline
from cachecost.views.fidelity.scores import GROUPS, score
from cachecost.views.fidelity.tables import (
    assumption_table,
    coverage_table,
    difference_table,
    host_table,
    part_table,
    score_table,
)
from cachecost.views.html.frame import render_page, write_page

PICTURE, PAGE, RESULT = "residuals.svg", "report.md", "result.json"


def write_html(fidelity: Fidelity, evidence: Sequence[Evidence], claims: Sequence[Evidence], path: Path) -> None:
    """The page with its chart inside, no network; written whole or not at all. Raises OSError."""
    write_page(path, fidelity_page(fidelity, evidence, claims))


def write_evidence(
    fidelity: Fidelity, evidence: Sequence[Evidence], claims: Sequence[Evidence], folder: Path, again: str
) -> Path:
    """report.md, residuals.svg and result.json in `folder`; each whole or not at all. Raises OSError, InputError."""
    folder.mkdir(parents=True, exist_ok=True)
    title = headline(score("all", anthropic_judgements(fidelity)))
    write_whole(folder / PICTURE, svg(residual_figure(fidelity, title)))
    write_whole(folder / RESULT, (json.dumps(fidelity_object(fidelity), indent=1) + "\n").encode())
    text = bind_units_in_markdown(evidence_markdown(fidelity, evidence, claims, PICTURE, again))
    write_text(folder / PAGE, text)
    return folder / PAGE


def fidelity_page(fidelity: Fidelity, evidence: Sequence[Evidence], claims: Sequence[Evidence] = ()) -> str:
    """The page as text, the same bytes each time."""
    title = headline(score("all", anthropic_judgements(fidelity)))
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
