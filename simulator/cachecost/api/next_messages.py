"""`next_message` and `bill`: what sessions cost, and what their next message will."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import Unpack

from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.advice import Advice, best_advice
from cachecost.analysis.bill.found_sessions import account_of_found
from cachecost.analysis.bill.summary import ROWS_BY, BillRow, summarize
from cachecost.analysis.bill.timeline import sessions_by_time
from cachecost.analysis.next_message.choices import (
    KeepAliveAdvice,
    NextChoice,
    NextRequest,
    count_message,
    next_session,
    parse_content,
)
from cachecost.analysis.next_message.state import CompactionPrice, NextMessage, SessionState
from cachecost.api.html import Answered, HtmlTable, paragraph
from cachecost.api.keywords import Counter, RuleOptions, named_keywords
from cachecost.api.setup import LogSource, check_choice, path_of, setup_of
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.formatting import count_text, dollars, percent, tokens
from cachecost.base.formatting import tokens as token_text
from cachecost.base.frames import MoneyColumn, flat_rows, frame_of
from cachecost.base.structs import replace
from cachecost.base.times import seconds
from cachecost.sessions.locations import locations
from cachecost.sessions.reading import SessionReading
from cachecost.views.next.words import price_words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


REWRITE_FIELDS = (
    "cause session project agent time file line call model tokens cost_usd idle_s message cache_miss_reason "
    "broke_at stood_before known_fault"
)


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

    def frame(self, by: str = "session", *, money: MoneyColumn = "float") -> pd.DataFrame:
        """One row per session, or per what else `--by` of the command knows, which is its `key`: the rows of
        `bill --csv`."""
        from cachecost.views.bill.json_output import csv_rows

        check_choice("by", by, list(ROWS_BY))
        summary = summarize(self.account, by)
        [columns] = flat_rows(csv_rows(replace(summary, rows=[summary.total])))
        return frame_of(csv_rows(summary), money, columns)

    def rewrites(self, *, money: MoneyColumn = "float") -> pd.DataFrame:
        """One row per call that paid again for what had been cached: `cause`, `session`, `project`, `agent`, `time`,
        `file`, `line`, `call`, `model`, `tokens`, `cost_usd`, `idle_s` (seconds since its cache was last used),
        `message`, `cache_miss_reason`."""
        from cachecost.views.bill.json_output import rewrite_object

        return frame_of(map(rewrite_object, self.account.rewrites), money, REWRITE_FIELDS.split())

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
        cost, rewritten = dollars(total.cost), dollars(total.rewritten)
        return f"{cost} in {count_text(total.calls, 'call')} · {rewritten} rewritten{share}"

    def __repr__(self) -> str:
        return f"<BillResult {self._answer(self.total)}>"

    def _repr_html_(self) -> str:
        total, table = self.total, HtmlTable(("cause", "times", "tokens", "cost"))
        for one in total.ranked_causes:
            table.add(one.cause, f"{one.times:,}", tokens(one.tokens), dollars(one.cost))
        return paragraph(self._answer(total), strong=True) + (table.html() if total.causes else "")


@named_keywords(RuleOptions)
def bill(*paths: LogSource, project: str | None = None, **options: Unpack[RuleOptions]) -> BillResult:
    """What the sessions in files, folders and logs cost, what was paid to write cached tokens again, and why.

    Without paths, the sessions of the agents on this machine. `project` keeps those whose folder contains the text.
    Nothing is remembered. Files that cannot be read are in `skipped`. Raises InputError for a path that does not exist.
    """
    from cachecost.conversations.logs import expand_folders

    given = [path_of(path) for path in paths]
    if missing := [Fault(str(path), "no such file or folder") for path in given if not path.exists()]:
        raise InputError(missing)
    folders = [path for path in given if path.is_dir()]
    here = (path for place in locations() for path in place.find(Path.home(), os.environ))
    files = expand_folders(given) if given else here
    found = SessionReading(None, folders=folders).read_all(files)
    account = account_of_found(found, setup_of(**options), project=project)
    return BillResult(account, found.skipped)


Moment = datetime | float | str


@dataclass(frozen=True, slots=True, repr=False)
class NextResult(Answered):
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

    def frame(self, *, money: MoneyColumn = "float") -> pd.DataFrame:
        """One row per alternative: `kind`, `cost_usd` (with what is paid first), `usage.…` (tokens), `first.cost_usd`
        and `first.usage.…` of what is paid first, `breaks_even_after` (messages), `note`."""
        from cachecost.views.next.json_output import next_object

        rows = next_object(self.choice, self.state, 0.0, 0, self.is_simulated)["alternatives"]
        return frame_of(({**row, "first": row["first"] or {}} for row in rows), money, index="name")

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

    def _repr_html_(self) -> str:
        table = HtmlTable(("next message", "cost", "read", "written"))
        for one in self.choice.alternatives:
            usage = one.usage.usage
            table.add(one.name, dollars(one.cost), token_text(usage.read), token_text(usage.write))
        return paragraph(self._answer(), strong=True) + table.html()


@named_keywords(RuleOptions)
def next_message(
    path: LogSource,
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

    `path` is a session file, a log or a folder; `session` the beginning of an id, the default is the latest.
    The message is sent `at` a time (the default: right after the last call) and is a text, or has `new_tokens`; by
    default it is as long as those of the session. `models` and `tools` (their size) are priced, too; `tokens` is the
    token counter. Nothing is sent.
    Raises InputError, CannotEvaluate.
    """
    from cachecost.simulation.workload import read_workload

    found = bill(path, **options)
    setup = setup_of(**options)
    sessions = sessions_by_time(found.account)
    keys = [key for key in sessions if session is None or key.startswith(session)]
    if not keys or (session is not None and len(keys) > 1 and session not in keys):
        what = f"{len(keys)} sessions begin with it" if keys else "no such session"
        raise InputError([Fault("session:", f"{what}: {session or 'none was found'}")])
    key = session if session in keys else keys[0]
    has_requests = any(file.has_requests for file in found.account.files)
    workload = read_workload(path_of(path), setup, tokens) if has_requests else None
    known = next_session(found.account, key, workload)
    if known is None:
        raise CannotEvaluate(f"{path}: no call of a main thread with a bill was found")
    content = parse_content(message, "message") if message is not None else None
    length = new_tokens if content is None else count_message(content, setup, known.state, tokens)
    if isinstance(at, datetime):
        at = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    elif isinstance(at, str):
        at = seconds(at)
    moment = known.state.last_used or 0.0 if at is None else float(at)
    asked = NextRequest(moment, length, content, models=models, tools_tokens=tools)
    return NextResult(known.choose(asked), known.state, known.is_simulated)
