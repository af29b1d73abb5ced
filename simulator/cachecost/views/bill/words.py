"""Words of a bill that text, page and JSON share: names of causes, sessions and projects, times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from itertools import pairwise
from pathlib import PurePath

from cachecost.analysis.bill.account import BilledRewrite
from cachecost.analysis.bill.summary import BillRow
from cachecost.analysis.explain.codes import codes
from cachecost.base.formatting import CENTS, count_text, dollar_column, dollars, duration
from cachecost.base.time_zones import zone_name
from cachecost.caches.causes import Cause
from cachecost.conversations.bills import BillTotal

SHORT_ID = 8
LOG_SUFFIXES = (".jsonl", ".json", ".ndjson", ".log", ".har", ".yaml", ".yml", ".mitm", ".db", ".gz", ".zst")
"""Names of files, which stand for sessions without an id; an id has none of these."""
PAUSES_SHOWN = 3
LIST_PRICES = "List prices of the API; a subscription is not billed by the token."

CAUSE_NAMES: dict[Cause, str] = {
    "ttl_expired": "idle longer than the TTL",
    "cold_start": "new sessions and sub-agents",
    "model_changed": "model switched",
    "speed_changed": "fast mode switched",
    "tools_changed": "MCP server or tool list changed",
    "system_changed": "system prompt changed",
    "content_changed": "earlier messages changed",
    "thinking_changed": "thinking switched",
    "effort_changed": "effort level switched",
    "images_changed": "first image",
    "lookback_exceeded": "more blocks than a breakpoint looks back",
    "concurrent_write": "sent before the first answer had begun",
    "billed_not_explained": "cause unknown",
}
"""Where the name differs from that of `explain`, which names what changed in a request."""
SHORT_NAMES: dict[Cause, str] = {
    "compaction": "compaction",
    "tools_changed": "tools changed",
    "ttl_expired": "idle",
    "cold_start": "new session",
    "concurrent_write": "started together",
    "billed_not_explained": "unknown",
    "lookback_exceeded": "outside the lookback",
}

CLASS_WORDS = {
    "read": "cache reads",
    "write_5m": "5m writes",
    "write_1h": "1h writes",
    "input": "uncached",
    "output": "output",
    "fees": "fees of server tools",
}
NAMED_BY_WORDS: tuple[Cause, ...] = (
    *("ttl_expired", "cold_start", "compaction", "model_changed", "speed_changed", "concurrent_write", "fork"),
    *("thinking_stripped", "lookback_exceeded", "billed_not_explained", "tools_changed"),
)
"""Causes that the words for what shows them name already."""


def cause_name(cause: Cause) -> str:
    """The name of a cause in a bill."""
    return CAUSE_NAMES.get(cause) or (codes()[cause].name if cause in codes() else cause.replace("_", " "))


def short_cause(cause: Cause) -> str:
    """The name of a cause in a narrow column."""
    return SHORT_NAMES.get(cause) or cause_name(cause)


def evidence_words(rewrite: BilledRewrite) -> str:
    """The cause of a rewrite and what shows it."""
    reason = rewrite.call.miss_reason
    reported = f"; the API reported {reason}" if reason and reason not in rewrite.words else ""
    name = "" if rewrite.cause in NAMED_BY_WORDS else f"{cause_name(rewrite.cause)}: "
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
    paths = {one: _folders(one) for one in projects}
    names = dict.fromkeys(paths, 1)
    for _ in range(max(map(len, paths.values()), default=0)):
        counts = Counter(_end(paths[one], names[one]) for one in paths)
        for one in paths:
            if counts[_end(paths[one], names[one])] > 1 and names[one] < len(paths[one]):
                names[one] += 1
    return {one: _end(paths[one], names[one]) or one for one in paths}


def _folders(project: str) -> tuple[str, ...]:
    return tuple(part for part in PurePath(project.replace("\\", "/")).parts if part != "/")


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
    calls = f"{count_text(row.charged_calls, 'answer')} {'says' if row.charged_calls == 1 else 'say'} what was charged"
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
