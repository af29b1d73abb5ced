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
from cachecost.api.html import Answered, HtmlTable, paragraph, rows_of
from cachecost.api.setup import Counter, RuleOptions, check_choice, setup_of
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.formatting import count_text, dollars, percent, tokens
from cachecost.base.formatting import tokens as token_text
from cachecost.base.times import seconds
from cachecost.conversations.input_files import input_path
from cachecost.sessions.locations import locations
from cachecost.sessions.reading import SessionReading
from cachecost.views.next.words import price_words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


BILL_FIELDS = (
    "models first last calls hit_rate input_tokens=usage.input_tokens read=usage.read write_5m=usage.write_5m "
    "write_1h=usage.write_1h output_tokens=usage.output_tokens cost_usd=cost fees_usd=cost_by_class "
    "rewritten_usd=rewritten saved_by_caching_usd=saved_by_caching"
)
REWRITE_FIELDS = (
    "cause session=call.session project=file.project agent=call.agent time=call.start file=file.path line=call.line "
    "model=call.model tokens cost_usd=cost message=words"
)
NEXT_FIELDS = (
    "name kind cost_usd=cost first_usd=first read=usage.usage.read write_5m=usage.usage.write_5m "
    "write_1h=usage.usage.write_1h input=usage.usage.input_tokens output=usage.usage.output_tokens breaks_even_after"
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

    def frame(self, by: str = "session") -> pd.DataFrame:
        """One row per session, or per what else `--by` of the command knows: tokens as int, dollars as Decimal."""
        import pandas as pd

        check_choice("by", by, list(ROWS_BY))
        project = "" if by == "project" else "project"
        rows = rows_of(summarize(self.account, by).rows, f"{by}=key {project} {BILL_FIELDS}")
        for row in rows:
            row |= {"models": ", ".join(row["models"]), "fees_usd": row["fees_usd"]["fees"]}
        return pd.DataFrame(rows)

    def rewrites(self) -> pd.DataFrame:
        """One row per call that paid again for what had been cached: `cause`, `session`, `project`, `agent`, `time`
        (seconds since the epoch), `file`, `line`, `model`, `tokens`, `cost_usd` (Decimal), `message`."""
        import pandas as pd

        rows = rows_of(self.account.rewrites, REWRITE_FIELDS)
        return pd.DataFrame([{**row, "cause": str(row["cause"])} for row in rows])

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

    def frame(self) -> pd.DataFrame:
        """One row per alternative: `name`, `kind`, `cost_usd` (Decimal, with what is paid first), `first_usd`, tokens
        `read`, `write_5m`, `write_1h`, `input`, `output`, and `breaks_even_after` (messages)."""
        import pandas as pd

        rows = rows_of(self.choice.alternatives, NEXT_FIELDS)
        for row in rows:
            row["first_usd"] = row["first_usd"].cost if row["first_usd"] else None
        return pd.DataFrame(rows).set_index("name")

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
    sessions = sessions_by_time(found.account)
    keys = [key for key in sessions if session is None or key.startswith(session)]
    if not keys or (session is not None and len(keys) > 1 and session not in keys):
        what = f"{len(keys)} sessions begin with it" if keys else "no such session"
        raise InputError([Fault("session:", f"{what}: {session or 'none was found'}")])
    key = session if session in keys else keys[0]
    has_requests = any(file.has_requests for file in found.account.files)
    workload = read_workload(input_path(path), setup, tokens) if has_requests else None
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
