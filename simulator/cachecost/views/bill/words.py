"""Words and tables of a bill that text, page and JSON share: names of causes, sessions and projects, times."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from itertools import pairwise
from pathlib import PurePath

from cachecost.account.causes import Cause, causes
from cachecost.analysis.bill.account import BilledRewrite
from cachecost.analysis.bill.summary import PERIODS, RESULTS, BillRow, BillSummary, CauseTotal
from cachecost.base.formatting import (
    CENTS,
    UNKNOWN,
    count_text,
    dollar_column,
    dollars,
    duration,
    percent_column,
    token_column,
)
from cachecost.base.times import zone_name
from cachecost.conversations.calls import BillTotal
from cachecost.providers.usage import ZERO
from cachecost.views.tables.table import (
    COMPARISON,
    COUNT,
    DETAIL,
    ZERO_CLASS,
    Column,
    Table,
    shorten_end,
    shorten_middle,
    word_column,
)

SHORT_ID = 8
LOG_SUFFIXES = (".jsonl", ".json", ".ndjson", ".log", ".har", ".yaml", ".yml", ".mitm", ".db", ".gz", ".zst")
"""Names of files, which stand for sessions without an id; an id has none of these."""
PAUSES_SHOWN = 3
LIST_PRICES = "List prices of the API; a subscription is not billed by the token."

CLASS_WORDS = {
    "read": "cache reads",
    "write_5m": "5m writes",
    "write_1h": "1h writes",
    "input": "uncached",
    "output": "output",
    "fees": "fees of server tools",
}


def cause_name(cause: Cause) -> str:
    """The name of a cause in a bill."""
    return causes()[cause].name_in_bill


def short_cause(cause: Cause) -> str:
    """The name of a cause in a narrow column."""
    return causes()[cause].name_in_column


def evidence_words(rewrite: BilledRewrite) -> str:
    """The cause of a rewrite and what shows it."""
    reason = rewrite.call.miss_reason
    reported = f"; the API reported {reason}" if reason and reason not in rewrite.words else ""
    name = "" if causes()[rewrite.cause].named_by_evidence else f"{cause_name(rewrite.cause)}: "
    return f"{name}{rewrite.words}{reported}"


def session_names(sessions: Iterable[str]) -> Mapping[str, str]:
    """The shortest beginnings of ids that tell these sessions apart, of eight letters at least.

    A session without an id has the name of its file.
    """
    sessions = list(sessions)
    keys = sorted({one for one in sessions if "/" not in one and PurePath(one).suffix not in LOG_SUFFIXES})
    needed = dict.fromkeys(keys, SHORT_ID)
    for first, second in pairwise(keys):
        shared = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(first))
        needed[first], needed[second] = max(needed[first], shared + 1), max(needed[second], shared + 1)
    return {one: one[: needed[one]] if one in needed else PurePath(one).stem for one in sessions}


def project_names(projects: Iterable[str]) -> Mapping[str, str]:
    """The last folder of each project, with as many parents as tell it apart from the others: "work/api"."""
    paths = {one: tuple(part for part in PurePath(one.replace("\\", "/")).parts if part != "/") for one in projects}
    names = dict.fromkeys(paths, 1)
    for _ in range(max(map(len, paths.values()), default=0)):
        counts = Counter(_end(paths[one], names[one]) for one in paths)
        for one in paths:
            if counts[_end(paths[one], names[one])] > 1 and names[one] < len(paths[one]):
                names[one] += 1
    return {one: _end(paths[one], names[one]) or one for one in paths}


def _end(folders: Sequence[str], count: int) -> str:
    return "/".join(folders[-count:])


def period(row: BillRow, zone: tzinfo = UTC) -> str:
    """The days of the first and the last call: "8 Jan – 6 Feb 2026"."""
    if row.first is None or row.last is None:
        return ""
    first, last = (datetime.fromtimestamp(at, zone) for at in (row.first, row.last))
    end = f"{last.day} {last:%b %Y}"
    if first.date() == last.date():
        return end
    year = f" {first.year}" if first.year != last.year else ""
    return f"{first.day} {first:%b}{year} – {end}"


def span(row: BillRow, zone: tzinfo = UTC) -> str:
    """The times of the first and the last call: "12 Jan 2026 08:10 – 09:41 UTC"."""
    if row.first is None or row.last is None:
        return ""
    first, last = (datetime.fromtimestamp(at, zone) for at in (row.first, row.last))
    end = "" if first.date() == last.date() else f"{last.day} {last:%b %Y} "
    return f"{first.day} {first:%b %Y} {first:%H:%M} – {end}{last:%H:%M} {zone_name(zone)}"


def clock(at: float | None, zone: tzinfo = UTC) -> str:
    """A moment: "2026-02-09 07:10:31"; empty where it is unknown."""
    return "" if at is None else f"{datetime.fromtimestamp(at, zone):%Y-%m-%d %H:%M:%S}"


def pauses(rewrites: Sequence[BilledRewrite]) -> str:
    """The longest pauses among rewrites: "(9 h, 2 h, 41 min …)"; empty where none is known."""
    idle = sorted((one.idle_s for one in rewrites if one.idle_s is not None), reverse=True)
    if not idle:
        return ""
    more = " …" if len(idle) > PAUSES_SHOWN else ""
    return f"({', '.join(map(duration, idle[:PAUSES_SHOWN]))}{more})"


def class_words(row: BillRow, whole: str = "") -> str:
    """What the dollars were paid for: "Of $36.00: $33.15 cache reads · $2.85 output"; empty where that is one class.

    `whole` takes the place of the dollars right behind them ("it").
    """
    costs = {name: cost for name, cost in row.cost_by_class.items() if cost}
    if len(costs) < 2:
        return ""
    amounts = dollar_column(list(costs.values()))
    parts = [f"{amount} {CLASS_WORDS[name]}" for name, amount in zip(costs, amounts, strict=True)]
    return f"Of {whole or dollars(row.cost)}: {' · '.join(parts)}"


def charged_words(row: BillRow | BillTotal) -> str:
    """What was charged by the answers' own account, and what list prices would say; empty where none says so."""
    if not row.charged_calls:
        return ""
    calls = f"{count_text(row.charged_calls, 'answer', 'say')} what was charged"
    listed = f"; at list prices {dollars(row.listed)}" if row.listed not in (None, row.charged) else ""
    return f"{calls}: {dollars(row.charged)}, which counts here{listed}."


def partial_output_words(row: BillRow, estimates: bool = True) -> str:
    """That more output was billed than was recorded, and about how much; empty where all answers were complete."""
    if not row.partial_outputs:
        return ""
    answers = f"{row.partial_outputs:,} of {count_text(row.calls, 'answer')}"
    words = f"Output is understated: Claude Code logged only the first tokens of {answers}"
    if not estimates or not row.missing_output_cost:
        return f"{words}."
    margin = dollars(row.missing_output_margin, CENTS)
    total = dollars(row.cost + row.missing_output_cost)
    return f"{words}; the true total is about {total} (±{margin}, from the answers' text)."


def caching_words(saved: Decimal) -> str:
    """What caching did to the dollars: "caching saved $7,609"."""
    return f"caching cost {dollars(-saved)} more than it saved" if saved < 0 else f"caching saved {dollars(saved)}"


CHANGED = "prefix changed within the TTL"
MOST = "most"
NAME_CELLS = 24
CLASSES = ("input", "cache read", "cache write", "output")
"""Columns of tokens."""


@dataclass(frozen=True, slots=True)
class CauseLine:
    """A line of the table of causes: a cause, or the sum of those that are indented below it."""

    name: str
    causes: tuple[CauseTotal, ...]
    is_part: bool = False

    @property
    def times(self) -> int:
        return sum(one.times for one in self.causes)

    @property
    def tokens(self) -> int:
        return sum(one.tokens for one in self.causes)

    @property
    def cost(self) -> Decimal:
        return sum((one.cost for one in self.causes), ZERO)


def cause_lines(summary: BillSummary) -> list[CauseLine]:
    """The causes, the most expensive first; several changes of the prefix are one line with their parts below it."""
    totals = summary.total.ranked_causes
    changes = tuple(one for one in totals if causes()[one.cause].changes_prefix)
    has_sum = len(changes) > 1
    alone = [one for one in totals if not has_sum or not causes()[one.cause].changes_prefix]
    lines = [CauseLine(cause_name(one.cause), (one,)) for one in alone]
    if has_sum:
        lines.append(CauseLine(CHANGED, changes))
    lines.sort(key=lambda line: (-line.cost, -line.tokens, line.name))
    parts = [CauseLine(cause_name(one.cause), (one,), is_part=True) for one in changes]
    return [one for line in lines for one in (line, *(parts if line.name == CHANGED else ()))]


def causes_table(summary: BillSummary, rewrites: Sequence[BilledRewrite]) -> Table:
    """A row a cause, the most expensive first; the note is its most expensive example."""
    lines = cause_lines(summary)
    return Table(
        [
            word_column("cause", ["  " * one.is_part + one.name for one in lines]),
            Column("times", "times", [f"{one.times:,} ×" for one in lines]),
            Column("cost", "cost", dollar_column([one.cost for one in lines])),
            Column("tokens", "tokens", token_column([one.tokens for one in lines]), rank=COUNT),
            Column("note", "", note_cells(lines, rewrites), right=False, rank=COMPARISON),
        ],
        "What was written again although it had been cached",
    )


def note_cells(lines: Sequence[CauseLine], rewrites: Sequence[BilledRewrite]) -> list[str]:
    """What to say beside each line; nothing beside a sum."""
    by_cause: dict[Cause, list[BilledRewrite]] = defaultdict(list)
    for one in rewrites:
        by_cause[one.cause].append(one)
    names = session_names([one.call.session for one in rewrites])
    cells = []
    for line in lines:
        found = [] if line.name == CHANGED else by_cause[line.causes[0].cause]
        words = ""
        if found:
            first = max(found, key=lambda one: (one.cost or 0, one.tokens))
            most = f"largest: {dollars(first.cost, CENTS)}; " if len(found) > 1 else ""
            session = f" (session {names[first.call.session]})" if first.call.session else ""
            is_unknown = first.cause == "billed_not_explained" and not first.file.has_requests
            words = f"{'transcript does not show it; ' if is_unknown else ''}{most}{first.words}{session}"
        cells.append(words)
    return cells


def rows_table(
    summary: BillSummary, rewrites: Sequence[BilledRewrite], most: int | None = None, name_cells: int = NAME_CELLS
) -> Table:
    """A row a session, project, day …, and their total where there are several. Names have `name_cells` at most."""
    by, rows = summary.by, summary.rows[:most]
    total = [summary.total] if len(summary.rows) > 1 else []
    by_session: dict[str, list[BilledRewrite]] = defaultdict(list)
    for one in rewrites if by == "session" else ():
        by_session[one.call.session or one.file.path].append(one)
    projects = project_names(row.project for row in summary.rows)
    heading = f"{by} ({zone_name(summary.zone)})" if by in PERIODS else by
    has_project = by in ("session", "branch")
    words = {
        "title": [shorten_end(row.title, name_cells) for row in rows] if by == "session" else [],
        "project": [shorten_middle(projects[row.project], name_cells) for row in rows] if has_project else [],
        "branch": [shorten_middle(", ".join(row.branches), name_cells) for row in rows] if by == "session" else [],
    }
    rows = [*rows, *total]
    names = [*row_names(summary)[:most], *("total" for _ in total)]
    columns = [Column("key", heading, names, right=False)]
    for name, cells in words.items():
        if any(cells):
            columns.append(word_column(name, [*cells, *("" for _ in total)], COMPARISON))
    if by in RESULTS:
        sent = [row.result_tokens or None for row in rows]
        columns += [
            Column("results", "results", [f"{row.results:,}" if row.results else UNKNOWN for row in rows], rank=COUNT),
            Column("sent", "est. tokens", token_column(sent), rank=COUNT),
        ]
    else:
        columns.append(Column("calls", "calls", [f"{row.calls:,}" for row in rows], rank=COUNT))
    usages = (row.usage for row in rows)
    tokens = [(one.input_tokens, one.read, one.write, one.output_tokens) for one in usages]
    columns += [
        Column("hit_rate", "hit rate", percent_column([row.hit_rate for row in rows]), rank=COMPARISON),
        *(
            Column(name, name, token_column([one[place] for one in tokens]), rank=ZERO_CLASS)
            for place, name in enumerate(CLASSES)
        ),
        Column("cost", "cost", dollar_column([known_cost(row) for row in rows])),
        Column("rewritten", "rewritten", dollar_column([row.rewritten for row in rows])),
        Column(MOST, "main cause", [main_cause(row, by_session.get(row.key, [])) for row in rows], right=False),
    ]
    if by != "model":
        columns.append(Column("model", "models", [", ".join(row.models) for row in rows], right=False, rank=DETAIL))
    return Table(columns, f"The bill by {by}", frozenset(range(len(rows) - len(total), len(rows))))


def known_cost(row: BillRow) -> Decimal | None:
    """USD of a row; None where no call of it has a price."""
    return None if row.calls == row.unpriced else row.cost


def row_names(summary: BillSummary) -> list[str]:
    """The first cell of each row."""
    names: Mapping[str, str] = {}
    if summary.by == "session":
        names = session_names(row.key for row in summary.rows)
    elif summary.by == "project":
        names = project_names(row.key for row in summary.rows)
    return [names.get(row.key, row.key) or "unknown" for row in summary.rows]


def main_cause(row: BillRow, rewrites: Sequence[BilledRewrite]) -> str:
    """The most expensive cause of a row, and how often; of pauses their lengths."""
    if not row.ranked_causes:
        return ""
    first = row.ranked_causes[0]
    idle = pauses([one for one in rewrites if one.cause == first.cause]) if first.cause == "ttl_expired" else ""
    return f"{short_cause(first.cause)} {first.times:,} × {idle}".rstrip()
