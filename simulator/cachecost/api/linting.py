"""`lint`: static checks of a request, of two consecutive requests, or of the calls of a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.linter import MARGIN
from cachecost.api.html import HtmlTable, paragraph
from cachecost.api.recordings import Source, calls_in, read_source
from cachecost.api.setup import day_from
from cachecost.base.formatting import count_text, tokens
from cachecost.providers.hosts import AUTO_HOST
from cachecost.tokens.factory import AUTO

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COLUMNS = (
    "code",
    "name",
    "severity",
    "path",
    "call",
    "calls",
    "tokens",
    "message",
    "fix",
    "session",
    "file",
    "line",
    "bill",
    "explains_as",
)


class LintResult(list[LintFinding]):
    """The findings, most severe first."""

    def frame(self) -> pd.DataFrame:
        """One row per finding: `code`, `name`, `severity` (error, warning, note), `path` in the request, `call` (the
        first with this finding; None outside a log), `calls` (their number), `tokens` concerned (None: unknown),
        `message`, `fix`; `session`, `file` and `line` of that call; `bill` ("confirmed" where its bill shows it), and
        `explains_as`, the code under which `explain` prices it."""
        import pandas as pd

        rows = [{name: getattr(one, name) for name in COLUMNS} for one in self]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def plot(self) -> Figure:
        """The number of findings, one bar per code."""
        from cachecost.api.charts import ChartBar, bars
        from cachecost.views.charts.palette import CLASS_COLOURS

        severe = {
            "error": CLASS_COLOURS["input"],
            "warning": CLASS_COLOURS["write_5m"],
            "note": CLASS_COLOURS["output"],
        }
        counts = Counter((one.code, one.name, one.severity) for one in self)
        entries = [
            ChartBar(f"{code}  {name}", Decimal(found), str(found), severity, colour=severe[severity])
            for (code, name, severity), found in counts.items()
        ]
        return bars(self._answer(), entries)

    def _answer(self) -> str:
        counts = Counter(one.severity for one in self)
        shown = [count_text(counts[kind], kind) for kind in ("error", "warning", "note") if counts[kind]]
        return ", ".join(shown) or "No findings"

    def _repr_html_(self) -> str:
        table = HtmlTable(("code", "where", "tokens", "what", "what to do"), prose=("where", "what", "what to do"))
        for one in self:
            table.add(one.code, one.path, tokens(one.tokens), one.message, one.fix, strong=one.severity == "error")
        return paragraph(self._answer(), strong=True) + (table.html() if self else "")


def lint(
    request: Mapping[str, Any] | Source,
    next_request: Mapping[str, Any] | None = None,
    *,
    host: str = AUTO_HOST,
    as_of: date | str | None = None,
    tokens: str = AUTO,
    margin: int = MARGIN,
) -> LintResult:
    """Check a Messages API body, two consecutive bodies, or the calls of a log.

    `as_of` picks the rules, `tokens` the token counter. `margin`: warn if fewer than this many further blocks would put
    the last breakpoint out of reach. Raises InputError for an invalid body, CannotEvaluate.
    """
    from cachecost.analysis.lint import lint as linted

    if isinstance(request, Mapping):
        day = day_from(as_of)
        return LintResult(linted(request, next_request, host=host, as_of=day, tokens=tokens, margin=margin))
    return _log(request, host, day_from(as_of), tokens, margin)


def _log(source: Source, host: str, day: date | None, tokens: str, margin: int) -> LintResult:
    from cachecost.analysis.lint import RequestLoader, lint_log
    from cachecost.providers.rules import RuleBook

    recorded = read_source(source)
    return LintResult(
        lint_log(calls_in(recorded), recorded.name, RequestLoader(RuleBook(as_of=day), host, tokens), margin).findings
    )
