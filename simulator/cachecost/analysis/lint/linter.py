"""Lint of one request, or of a request and the one after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.request_loader import Desk
from cachecost.analysis.lint.study import MARGIN, Study
from cachecost.providers.rules import RuleBook
from cachecost.tokens.factory import AUTO

Body = Mapping[str, Any]


def lint(
    request_body: Body,
    next_body: Body | None = None,
    *,
    host: str = "anthropic",
    as_of: date | str | None = None,
    tokens: str = AUTO,
    margin: int = MARGIN,
) -> list[LintFinding]:
    """What is wrong with a Messages body, or with it and the one that is sent after it, the worst first.

    `as_of` picks the rules (a date or "2026-03-07"; that of the shipped data), `tokens` the counter. With fewer than
    `margin` more positions between them the last mark of the first would be out of the second's reach.
    Raises InputError where a body is none, CannotEvaluate for what is not known.
    """
    day = date.fromisoformat(as_of) if isinstance(as_of, str) else as_of
    bodies = [("request", request_body)] + ([("next", next_body)] if next_body is not None else [])
    return lint_bodies(bodies, Desk(RuleBook(as_of=day), host, tokens), margin)


def lint_bodies(bodies: Iterable[tuple[str, Body]], desk: Desk, margin: int = MARGIN) -> list[LintFinding]:
    """As `lint`, for bodies that were sent one after another, each with a name."""
    study, before = Study(margin), None
    for number, (label, body) in enumerate(bodies):
        sent = desk.body(body, label)
        study.add(sent, before, number - 1 if number else None)
        before = sent
    return study.findings
