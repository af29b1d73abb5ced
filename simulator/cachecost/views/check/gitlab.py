"""A check as GitLab code quality JSON, from its JSON: what does not hold, and the changes whose source lines are known.

The fields are those of https://docs.gitlab.com/ci/testing/code_quality/ (read 2026-11-24): `description`,
`check_name`, `fingerprint`, `severity`, `location.path`, `location.lines.begin`. A fingerprint says what the finding is
about and not its figures, so that GitLab finds the same one again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import PurePath
from typing import Any

from cachecost.base.formatting import inert
from cachecost.views.check.change_words import cost_words, has_failed, placed_changes, prompt_change_words
from cachecost.views.check.text import change_words, ranked_budgets, with_changes_once

SEVERITIES = {"fail": "major", "not_comparable": "minor"}
NOTE = "info"
PROMPT_CHANGE = "prompt_change"
CheckObject = Mapping[str, Any]


def render(check: CheckObject) -> str:
    """The text of the JSON file."""
    findings = [*_budgets(check), *_changes(check)]
    return json.dumps(findings, indent=2, ensure_ascii=False) + "\n"


def _budgets(check: CheckObject) -> Iterator[dict[str, Any]]:
    """Those that do not hold; one that is written nowhere is at the top of its scenario."""
    for one in with_changes_once(ranked_budgets(check)):
        words = "; ".join([f"{one['scenario']}: {one['message']}", *map(change_words, one["changes"])])
        about = one["scenario"], one["strategy"]
        yield _finding(
            one["budget"], SEVERITIES[one["verdict"]], words, about, one["file"] or one["scenario"], one["line"]
        )


def _changes(check: CheckObject) -> Iterator[dict[str, Any]]:
    for comparison, change in placed_changes(check):
        severity = SEVERITIES["fail"] if has_failed(check, comparison) else NOTE
        words = f"{comparison['scenario']}: {cost_words(change)} a session: {prompt_change_words(change)}"
        about = comparison["scenario"], comparison["strategy"], change["layer"], change["kind"], change["path"]
        yield _finding(PROMPT_CHANGE, severity, words, about, change["file"], change["line"])


def _finding(
    name: str, severity: str, words: str, about: tuple[str, ...], file: str, line: int | None
) -> dict[str, Any]:
    path = inert(PurePath(file).as_posix())
    return {
        "description": inert(words),
        "check_name": name,
        "fingerprint": sha256("\0".join([name, *about, path]).encode("utf-8", "replace")).hexdigest(),
        "severity": severity,
        "location": {"path": path, "lines": {"begin": line or 1}},
    }
