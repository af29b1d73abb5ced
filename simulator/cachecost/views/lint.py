"""What `cachecost lint` prints: how many findings, then each with where it is, what it is and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import IO, Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cachecost.analysis.lint.finding import LintFinding
from cachecost.base.formatting import count_text, tokens
from cachecost.views.charts.palette import SEVERITY_STYLES
from cachecost.views.streams import REPORT_WIDTH, render_text, stream_look, write_report
from cachecost.views.tables.output import pick
from cachecost.views.tables.table import shorten_middle

INDENT = 7
FIELDS = (
    *("code", "name", "severity", "path", "request", "call", "calls", "message", "why"),
    *("fix", "source", "tokens", "offset", "excerpt", "session", "file", "line", "bill", "explains_as"),
)


def lint_object(findings: Sequence[LintFinding], requests: int) -> dict[str, Any]:
    return {"format": 1, "requests": requests, "findings": [pick(one, *FIELDS) for one in findings]}


def print_lint(findings: Sequence[LintFinding], requests: int, stream: IO[str], pricing: str = "") -> None:
    """As wide as the terminal of `stream`, 120 cells into a pipe. `pricing` is the command that prices the findings."""
    width, colours = stream_look(stream)
    many = Counter[str](one.severity for one in findings)
    counts = [count_text(many[name], name) for name in SEVERITY_STYLES if many[name]]
    head = " · ".join([count_text(requests, "request"), *(counts or ["nothing found"])])
    parts: list[RenderableType] = [Text(head, "bold")]
    shows_request = len({one.request for one in findings}) > 1 or any(one.call is not None for one in findings)
    for one in findings:
        where = shorten_middle(one.request, 40) if shows_request else ""
        if one.call is not None:
            where += f" call {one.call:,}" if one.calls == 1 else f" in {one.calls:,} calls, first in call {one.call:,}"
        elif one.calls > 1:
            where = f"in {one.calls} requests"
        size = f"{tokens(one.tokens)} tokens" if one.tokens else ""
        words = Text.assemble((one.name, "bold"), "  ", one.path)
        if more := " · ".join(part for part in (where.strip(), size) if part):
            words.append(f"  {more}")
        row = Table.grid(padding=(0, 2, 0, 0))
        row.add_column(no_wrap=True)
        row.add_column()
        row.add_row(Text(one.code, SEVERITY_STYLES[one.severity]), words)
        prose = [one.message, *([f"→ {one.fix}"] if one.severity != "note" else [])]
        parts += [Text(), row, *(Padding(Text(text, overflow="fold"), (0, 0, 0, INDENT)) for text in prose)]
    codes = sorted({one.explains_as for one in findings if one.explains_as and one.severity != "note"})
    if pricing and codes:
        parts += [Text(), Text(f"{pricing} prices what this costs (as {', '.join(codes)})", overflow="fold")]
    write_report(render_text(parts, min(width, REPORT_WIDTH), "standard" if colours else None), stream)
