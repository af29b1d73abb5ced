"""`next_message` and `bill`: what sessions cost, and what their next message will."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack

from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.advice import Advice, best_advice
from cachecost.analysis.bill.found_sessions import account_of_found
from cachecost.analysis.bill.summary import ROWS_BY, BillRow, summarize
from cachecost.analysis.bill.timeline import sessions_by_time
from cachecost.analysis.next_message.choices import (
    KeepAliveAdvice,
    NextAlternative,
    NextChoice,
    NextRequest,
    count_message,
    next_session,
    parse_content,
)
from cachecost.analysis.next_message.state import CompactionPrice, NextMessage, SessionState
from cachecost.api.html import HtmlTable, paragraph
from cachecost.api.setup import Counter, RuleOptions, setup_of
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.formatting import count_text, dollars, percent, tokens
from cachecost.base.formatting import tokens as token_text
from cachecost.base.times import seconds
from cachecost.base.yaml_text import one_of
from cachecost.conversations.input_files import input_path
from cachecost.sessions.locations import locations
from cachecost.sessions.reading import SessionReading
from cachecost.views.next.words import price_words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cachecost.simulation.workload import Workload


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
    from cachecost.conversations.logs import expand_folders

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


Moment = datetime | float | str


@dataclass(frozen=True, slots=True, repr=False)
class NextResult:
    """The next message of a session, and what could be done instead. `is_simulated`: its requests are known, so that
    `cachecost serve` would bill the same tokens."""

    choice: NextChoice
    state: SessionState
    """What is known of the session."""
    is_simulated: bool

    @property
    def message(self) -> NextMessage:
        """`is_warm`, `usage` (tokens), `cost` (USD), and the same with a cold cache: `cold.usage`, `cold.cost`."""
        return self.choice.message

    @property
    def cost(self) -> Decimal | None:
        """USD of the next message; None where no price is known."""
        return self.choice.message.cost

    @property
    def compaction(self) -> CompactionPrice | None:
        """/compact now: its own call, the next message after it, what each later one saves, its break-even."""
        return self.choice.compaction

    @property
    def keep_alive(self) -> KeepAliveAdvice | None:
        """Whether a keep-alive is worth it, and up to how many; None where the cache is cold."""
        return self.choice.keep_alive

    def frame(self) -> pd.DataFrame:
        """One row per alternative: `name`, `kind`, `cost_usd` (Decimal, with what is paid first), `first_usd`, tokens
        `read`, `write_5m`, `write_1h`, `input`, `output`, and `breaks_even_after` (messages)."""
        import pandas as pd

        return pd.DataFrame([_next_messages_row(one) for one in self.choice.alternatives]).set_index("name")

    def plot(self) -> Figure:
        """USD of the next message, one bar per alternative."""
        from cachecost.api.charts import ChartBar, bars

        entries = [
            ChartBar(one.name, one.cost, dollars(one.cost), f"{token_text(one.usage.usage.read)} read")
            for one in self.choice.alternatives
            if one.cost is not None
        ]
        return bars(self._answer(), entries)

    def _answer(self) -> str:
        return f"next message {price_words(self.choice.message)}"

    def __repr__(self) -> str:
        return f"<NextResult {self._answer()}>"

    def _repr_html_(self) -> str:
        table = HtmlTable(("next message", "cost", "read", "written"))
        for one in self.choice.alternatives:
            usage = one.usage.usage
            table.add(one.name, dollars(one.cost), token_text(usage.read), token_text(usage.write))
        return paragraph(self._answer(), strong=True) + table.html()


def next_message(
    path: str | Path,
    *,
    session: str | None = None,
    at: Moment | None = None,
    new_tokens: int | None = None,
    message: str | None = None,
    models: Sequence[str] = (),
    tools: int | None = None,
    tokens: Counter | None = None,
    **options: Unpack[RuleOptions],
) -> NextResult:
    """What the next message of a session costs, warm and cold, and what a switch, a compaction or tools would do.

    `path` is a session file, a request log or a folder; `session` the beginning of an id, the default is the latest.
    The message is sent `at` a time (the default: right after the last call) and is a text, or has `new_tokens`; by
    default it is as long as those of the session. `models` and `tools` (their size) are priced, too; `tokens` is the
    token counter. Nothing is sent.
    Raises InputError, CannotEvaluate.
    """
    from cachecost.simulation.workload import read_workload

    found = bill(path, **options)
    setup = setup_of(**options)
    key = _choose(sessions_by_time(found.account), session)
    workload: Workload | None = None
    if any(file.has_requests for file in found.account.files):
        workload = read_workload(input_path(path), setup, tokens)
    known = next_session(found.account, key, workload)
    if known is None:
        raise CannotEvaluate(f"{path}: no call of a main thread with a bill was found")
    content = parse_content(message, "message") if message is not None else None
    length = new_tokens if content is None else count_message(content, setup, known.state, tokens)
    moment = _seconds(at) if at is not None else known.state.last_used or 0.0
    asked = NextRequest(moment, length, content, models=models, tools_tokens=tools)
    return NextResult(known.choose(asked), known.state, known.is_simulated)


def _choose(sessions: Sequence[str], named: str | None) -> str:
    found = [key for key in sessions if named is None or key.startswith(named)]
    if not found or (named is not None and len(found) > 1 and named not in found):
        what = f"{len(found)} sessions begin with it" if found else "no such session"
        raise InputError([Fault("session:", f"{what}: {named or 'none was found'}")])
    return named if named in found else found[0]


def _seconds(at: Moment) -> float:
    if isinstance(at, str):
        return seconds(at)
    if isinstance(at, datetime):
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return float(at)


def _next_messages_row(one: NextAlternative) -> dict[str, Any]:
    usage = one.usage.usage
    return {
        "name": one.name,
        "kind": one.kind,
        "cost_usd": one.cost,
        "first_usd": one.first.cost if one.first else None,
        "read": usage.read,
        "write_5m": usage.write_5m,
        "write_1h": usage.write_1h,
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "breaks_even_after": one.breaks_even_after,
    }
