"""`bill`: what sessions cost, and why."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack

from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.advice import Advice, best_advice
from cachecost.analysis.bill.found_sessions import account_of_found
from cachecost.analysis.bill.summary import ROWS_BY, BillRow, summarize
from cachecost.api.html import HtmlTable, paragraph
from cachecost.api.setup import RuleOptions, setup_of
from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text, dollars, percent, tokens
from cachecost.base.schema_errors import one_of
from cachecost.conversations.input_files import input_path
from cachecost.sessions.locations import locations
from cachecost.sessions.reading import SessionReading

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, repr=False)
class BillResult:
    """The account of sessions: every call priced, and every dollar necessary or rewritten. USD are list prices."""

    account: BillAccount
    skipped: list[Fault]
    """Files and lines that could not be read."""

    @property
    def total(self) -> BillRow:
        """`cost`, `necessary`, `rewritten`, `saved_by_caching` (USD), `usage` (tokens), `hit_rate`, `causes`."""
        return summarize(self.account).total

    def frame(self, by: str = "session") -> pd.DataFrame:
        """One row per session, project, day, week, month, model or agent: tokens as int, dollars as Decimal."""
        import pandas as pd

        if by not in ROWS_BY:
            raise InputError([Fault("by:", one_of(list(ROWS_BY), by))])
        return pd.DataFrame([_row(row, by) for row in summarize(self.account, by).rows])

    def rewrites(self) -> pd.DataFrame:
        """One row per call that paid again for what had been cached: `cause`, `session`, `project`, `agent`, `time`
        (seconds since the epoch), `file`, `line`, `model`, `tokens`, `cost_usd` (Decimal), `message`."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "cause": str(one.cause),
                    "session": one.call.session,
                    "project": one.file.project,
                    "agent": one.call.agent,
                    "time": one.call.start,
                    "file": one.file.path,
                    "line": one.call.line,
                    "model": one.call.model,
                    "tokens": one.tokens,
                    "cost_usd": one.cost,
                    "message": one.words,
                }
                for one in self.account.rewrites
            ]
        )

    def advice(self) -> list[Advice]:
        """The changes that would have saved most, the best first."""
        return best_advice(self.account)

    def plot(self) -> Figure:
        """USD that were paid to write cached tokens again, one bar per cause."""
        from cachecost.api.charts import ChartBar, bars

        total = self.total
        entries = [
            ChartBar(one.cause, one.cost, dollars(one.cost), count_text(one.times, "time"))
            for one in total.ranked_causes
        ]
        return bars(self._answer(total), entries)

    def _answer(self, total: BillRow) -> str:
        share = f" ({percent(total.rewritten / total.cost)})" if total.cost else ""
        return (
            f"{dollars(total.cost)} in {count_text(total.calls, 'call')} · {dollars(total.rewritten)} rewritten{share}"
        )

    def __repr__(self) -> str:
        return f"<BillResult {self._answer(self.total)}>"

    def _repr_html_(self) -> str:
        total, table = self.total, HtmlTable(("cause", "times", "tokens", "cost"))
        for one in total.ranked_causes:
            table.add(one.cause, f"{one.times:,}", tokens(one.tokens), dollars(one.cost))
        return paragraph(self._answer(total), strong=True) + (table.html() if total.causes else "")


def bill(*paths: str | Path, project: str | None = None, **options: Unpack[RuleOptions]) -> BillResult:
    """What the sessions in files and folders cost, what was paid to write cached tokens again, and why.

    Without paths, the sessions of the agents on this machine. `project` keeps those whose folder contains the text.
    Nothing is remembered. Files that cannot be read are in `skipped`. Raises InputError for a path that does not exist.
    """
    from cachecost.conversations.merging import expand_folders

    given = [input_path(path) for path in paths]
    if missing := [Fault(str(path), "no such file or folder") for path in given if not path.exists()]:
        raise InputError(missing)
    folders = [path for path in given if path.is_dir()]
    files = (
        expand_folders(given)
        if given
        else (path for place in locations() for path in place.find(Path.home(), os.environ))
    )
    found = SessionReading(None, folders=folders).read_all(files)
    account = account_of_found(found, setup_of(**options), project=project)
    return BillResult(account, found.skipped)


def _row(row: BillRow, by: str) -> dict[str, Any]:
    usage = row.usage
    return {
        by: row.key,
        **({} if by == "project" else {"project": row.project}),
        "models": ", ".join(row.models),
        "first": row.first,
        "last": row.last,
        "calls": row.calls,
        "hit_rate": row.hit_rate,
        "input_tokens": usage.input_tokens,
        "read": usage.read,
        "write_5m": usage.write_5m,
        "write_1h": usage.write_1h,
        "output_tokens": usage.output_tokens,
        "cost_usd": row.cost,
        "fees_usd": row.cost_by_class["fees"],
        "rewritten_usd": row.rewritten,
        "saved_by_caching_usd": row.saved_by_caching,
    }
