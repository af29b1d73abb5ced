"""Causes: why a call did not read what had been cached. One table each in `causes.toml`, which every command reads."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

Cause = Literal[
    "hit",
    "new_content",
    "cold_start",
    "content_changed",
    "tools_changed",
    "system_changed",
    "tool_choice_changed",
    "thinking_changed",
    "effort_changed",
    "output_format_changed",
    "images_changed",
    "speed_changed",
    "model_changed",
    "thinking_stripped",
    "ttl_expired",
    "evicted",
    "upstream_changed",
    "lookback_exceeded",
    "below_minimum",
    "no_breakpoint",
    "breakpoint_misplaced",
    "written_never_read",
    "hour_unused",
    "concurrent_write",
    "compaction",
    "fork",
    "warm_start",
    "visibility_lag",
    "billed_not_explained",
    "unknown",
]
"""The closed list; the table has these and no others."""
NOTHING = "nothing"
"""The fixer of a cause that no change of calls mends."""
STATED = ("code", "rule", "word", "what", "sentence", "why", "fixed_in", "fixer", "fix", "source")
"""What every cause that costs something has besides its name."""


@dataclass(frozen=True, slots=True)
class CauseDefinition:
    """A cause: its code and words, the rule that it rests on, and what mends it; see the head of `causes.toml`.

    Outcomes that lost nothing have no code.
    """

    cause: Cause
    name: str
    code: str = ""
    bill_name: str = ""
    short_name: str = ""
    rule: int = 0
    tested_as: str = ""
    word: str = ""
    what: str = ""
    sentence: str = ""
    why: str = ""
    fixed_in: Literal["prompt", "time", "breakpoints", "bill", ""] = ""
    fixer: str = NOTHING
    fix: str = ""
    fix_as_replayed: str = ""
    habit: Mapping[str, str] | None = None
    not_avoidable: str = "the fix would have saved nothing"
    source: str = ""
    requested: bool = False
    named_by_evidence: bool = False
    unwritten: bool = False
    never_cached: bool = False
    changes_prefix: bool = True
    has_place: bool = True
    begins: bool = False
    reads_all: bool = False

    @property
    def replayed_fix(self) -> str:
        """What to do, as it is replayed: the words of `explain`, `bill` and `whatif`."""
        return self.fix_as_replayed or self.fix

    @property
    def name_in_bill(self) -> str:
        return self.bill_name or self.name

    @property
    def name_in_column(self) -> str:
        return self.short_name or self.name_in_bill


@dataclass(frozen=True, slots=True)
class CauseEvent:
    """An event between two calls that shows a cause; `lost` is what of the static prefix must then be lost."""

    event: str
    cause: Cause
    lost: Literal["static", "not kept", "any"]
    words: str
    decides: Literal["first", "", "last"] = ""


@cache
def causes() -> Mapping[str, CauseDefinition]:
    """Every cause by its name, in the order of the table."""
    return parse_causes(_table())


@cache
def coded_causes() -> Mapping[str, CauseDefinition]:
    """The causes that cost something, which have codes."""
    return {cause: row for cause, row in causes().items() if row.code}


@cache
def cause_events() -> tuple[CauseEvent, ...]:
    """The events that show a cause, in the order in which they decide."""
    return tuple(CauseEvent(**row) for row in _table()["event"])


@cache
def stood_before() -> Mapping[str, str]:
    """The events that are said of a loss that nothing explains, and their words; what says most comes first."""
    return dict(_table()["stood_before"])


def parse_causes(table: Mapping[str, Any]) -> Mapping[str, CauseDefinition]:
    """The causes of a table. Raises ValueError for one that `Cause` lacks, that lacks a text or a fixer, or that shares
    its code."""
    rows = {cause: CauseDefinition(cause, **row) for cause, row in table["cause"].items()}
    faults = [
        *(f"{one}: add it to `Cause` in causes.py" for one in rows.keys() - set(get_args(Cause))),
        *(f"{one}: `Cause` has it, and causes.toml no table" for one in set(get_args(Cause)) - rows.keys()),
    ]
    for cause, row in table["cause"].items():
        if any(field in row for field in STATED):
            faults += [f"{cause}: causes.toml says no `{field}`" for field in STATED if not row.get(field)]
    codes = Counter(row.code for row in rows.values() if row.code)
    faults += [f"{code} is the code of two causes" for code, count in codes.items() if count > 1]
    if faults:
        raise ValueError("; ".join(sorted(faults)))
    return rows


def _table() -> dict[str, Any]:
    return tomllib.loads(files("cachecost.account").joinpath("causes.toml").read_text(encoding="utf-8"))
