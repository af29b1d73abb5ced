"""Bodies that lint finds nothing wrong with, a thousand bytes a block and more: tests change one thing at a time."""

from __future__ import annotations

from typing import Any

from bodies import Body, assistant, body, breakpoint_last, marked, text, tool, user
from cachecost.analysis.lint import LintFinding, lint

QUESTION, ANSWER, NEXT = user(text(300, "question")), assistant(text(300, "answer")), user(text(300, "next"))
TOOLS = [tool(1200, "a"), marked(tool(1200, "b"))]
SYSTEM = [marked(text(1100, "You help."))]


def first(**fields: Any) -> Body:
    """The first request of a conversation: tools, system and the question are marked."""
    return breakpoint_last(body(QUESTION, **{"tools": TOOLS, "system": SYSTEM, **fields}))


def second(**fields: Any) -> Body:
    """The request after it: one answer and one question more, the last breakpoint moved on."""
    return breakpoint_last(body(QUESTION, ANSWER, NEXT, **{"tools": TOOLS, "system": SYSTEM, **fields}))


def linted(*bodies: Body, **options: Any) -> list[LintFinding]:
    return lint(*bodies, **{"tokens": "bytes", **options})


def found(*bodies: Body, **options: Any) -> list[tuple[str, str]]:
    """(code, path) of each finding."""
    return [(one.code, one.path) for one in linted(*bodies, **options)]


def serious(*bodies: Body, **options: Any) -> list[tuple[str, str]]:
    """The same without notes."""
    return [(one.code, one.path) for one in linted(*bodies, **options) if not one.is_note]
