"""A validation as files: one self-contained HTML page, or the evidence folder with Markdown, chart and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from cachecost.base.atomic_files import write_whole
from cachecost.ledger.results import Evidence, Fidelity
from cachecost.views.charts.pictures import inline
from cachecost.views.charts.style import svg
from cachecost.views.fidelity.chart import residual_figure
from cachecost.views.fidelity.hosts import (
    HEADERS,
    host_cells,
    host_scores,
    of_anthropic,
    others_sentence,
    says_hosts,
)
from cachecost.views.fidelity.json_output import fidelity_object
from cachecost.views.fidelity.markdown import SCORE_HEADERS, evidence_markdown, headline, score_cells
from cachecost.views.fidelity.scores import GROUPS, score, scores
from cachecost.views.html.frame import Table, page, write_page

PICTURE, PAGE, RESULT = "residuals.svg", "report.md", "result.json"


def write_html(fidelity: Fidelity, evidence: Sequence[Evidence], claims: Sequence[Evidence], path: Path) -> None:
    """The page with its chart inside, no network; written whole or not at all. Raises OSError."""
    write_page(path, html(fidelity, evidence, claims))


def write_evidence(
    fidelity: Fidelity, evidence: Sequence[Evidence], claims: Sequence[Evidence], folder: Path, again: str
) -> Path:
    """report.md, residuals.svg and result.json in `folder`; each whole or not at all. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    title = headline(score("all", of_anthropic(fidelity)))
    write_whole(folder / PICTURE, svg(residual_figure(fidelity, title)))
    write_whole(folder / RESULT, (json.dumps(fidelity_object(fidelity), indent=1) + "\n").encode())
    write_whole(folder / PAGE, evidence_markdown(fidelity, evidence, claims, PICTURE, again).encode())
    return folder / PAGE


def html(fidelity: Fidelity, evidence: Sequence[Evidence], claims: Sequence[Evidence] = ()) -> str:
    """The page as text, the same bytes each time."""
    title = headline(score("all", of_anthropic(fidelity)))
    return page(
        "fidelity.html",
        headline=title,
        chart=inline(residual_figure(fidelity, ""), "chart", title),
        others=others_sentence(fidelity),
        evidence=evidence,
        hosts=_hosts(fidelity) if says_hosts(fidelity) else None,
        claims=claims,
        groups=[(name, _scores(fidelity, name)) for name in GROUPS],
        readings=_readings(fidelity) if fidelity.readings else None,
        differs=_differs(fidelity),
        token_source=fidelity.token_source,
    )


def _scores(fidelity: Fidelity, name: str) -> Table:
    rows = [list(score_cells(each)) for each in scores(fidelity, GROUPS[name])]
    return Table(f"Predicted against billed, by {name}", [name, *SCORE_HEADERS], rows)


def _hosts(fidelity: Fidelity) -> Table:
    rows = [list(host_cells(each)) for each in host_scores(fidelity)]
    return Table("Predicted against billed, by host; worst is tokens off", ["host", *HEADERS], rows, names=3)


def _readings(fidelity: Fidelity) -> Table:
    rows = [[each.switch, each.reading, f"{each.exact:,}", f"{each.knowable:,}"] for each in fidelity.readings]
    headers = ["switch", "reading", "calls exactly right", "of"]
    return Table("Calls that come out right under each reading; the first one is the default", headers, rows, names=2)


def _differs(fidelity: Fidelity) -> Table:
    found = sorted(fidelity.mismatches, key=lambda one: one.kind == "unknown")
    rows = [[one.kind, f"{one.source}:{one.line}", one.model, one.reason] for one in found]
    return Table("Calls whose prediction differs from the bill", ["kind", "call", "model", "reason"], rows, names=4)
