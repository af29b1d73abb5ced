"""A validation as files: one self-contained HTML page, or the evidence folder with Markdown, chart and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from cachecost.ledger import Evidence, Fidelity
from cachecost.views.chart_style import svg
from cachecost.views.fidelity_chart import residual_figure
from cachecost.views.fidelity_markdown import evidence_markdown, headline, score_cells
from cachecost.views.fidelity_rows import GROUPS, fidelity_object, score, scores

PICTURE, PAGE, RESULT = "residuals.svg", "report.md", "result.json"


def write_html(fidelity: Fidelity, evidence: Sequence[Evidence], path: Path) -> None:
    """The page with its chart inside, no network; written whole or not at all. Raises OSError."""
    _write(path, html(fidelity, evidence).encode())


def write_evidence(fidelity: Fidelity, evidence: Sequence[Evidence], folder: Path, again: str) -> Path:
    """report.md, residuals.svg and result.json in `folder`; each whole or not at all. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    title = headline(score("all", fidelity.judgements))
    _write(folder / PICTURE, svg(residual_figure(fidelity, title)))
    _write(folder / RESULT, (json.dumps(fidelity_object(fidelity), indent=1) + "\n").encode())
    _write(folder / PAGE, evidence_markdown(fidelity, evidence, PICTURE, again).encode())
    return folder / PAGE


def html(fidelity: Fidelity, evidence: Sequence[Evidence]) -> str:
    """The page as text, the same bytes each time."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    title = headline(score("all", fidelity.judgements))
    picture = svg(residual_figure(fidelity, title)).decode()
    environment = Environment(loader=PackageLoader("cachecost.views"), autoescape=True)
    return environment.get_template("fidelity.html").render(
        headline=title,
        chart=Markup(picture[picture.index("<svg") :]),
        evidence=evidence,
        groups=[(name, [score_cells(each) for each in scores(fidelity, key)]) for name, key in GROUPS.items()],
        mismatches=sorted(fidelity.mismatches, key=lambda one: one.kind == "unknown"),
        token_source=fidelity.token_source,
    )


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        file.write(content)
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)
