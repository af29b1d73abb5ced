"""A check as GitLab code quality JSON, from its JSON: what does not hold, and the changes whose source lines are known.

The fields are those of https://docs.gitlab.com/ci/testing/code_quality/ (read 2026-11-24): `description`,
`check_name`, `fingerprint`, `severity`, `location.path`, `location.lines.begin`. A fingerprint says what the finding is
about and not its figures, so that GitLab finds the same one again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import PurePath
from typing import Any

from cachecost.base.formatting import inert
from cachecost.views.check.text import (
    change_sentence,
    change_words,
    has_failed,
    placed_changes,
    ranked_budgets,
    with_changes_once,
)

SEVERITIES = {"fail": "major", "not_comparable": "minor"}


def render(check: Mapping[str, Any]) -> str:
    findings = []
    about: tuple[str, ...]
    for one in with_changes_once(ranked_budgets(check)):
        about = one["scenario"], one["strategy"]
        words = "; ".join([one["message"], *map(change_words, one["changes"])])
        file = one["file"] or one["scenario"]  # what is written nowhere is at the top of its scenario
        findings.append(_finding(one["budget"], SEVERITIES[one["verdict"]], words, about, file, one["line"]))
    for comparison, change in placed_changes(check):
        severity = SEVERITIES["fail"] if has_failed(check, comparison) else "info"
        about = comparison["scenario"], comparison["strategy"], change["layer"], change["kind"], change["path"]
        words = change_sentence(change)
        findings.append(_finding("prompt_change", severity, words, about, change["file"], change["line"]))
    return json.dumps(findings, indent=2, ensure_ascii=False) + "\n"


def _finding(
    name: str, severity: str, words: str, about: tuple[str, ...], file: str, line: int | None
) -> dict[str, Any]:
    """A finding `about` a scenario, and more of what tells it from others."""
    path = inert(PurePath(file).as_posix())
    return {
        "description": inert(f"{about[0]}: {words}"),
        "check_name": name,
        "fingerprint": sha256("\0".join([name, *about, path]).encode("utf-8", "replace")).hexdigest(),
        "severity": severity,
        "location": {"path": path, "lines": {"begin": line or 1}},
    }
