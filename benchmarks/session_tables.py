"""What commands cost on sessions, once, before and now: kept in session_speed.json, shown as tables in README.md.

There is a table for each number of calls. Time is in milliseconds a call in the tables, in seconds in the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from cachecost.base.structs import replace

README, FIGURES = Path(__file__).with_name("README.md"), Path(__file__).with_name("session_speed.json")
BEGIN = "<!-- sessions: written by session_speed.py --record -->\n"
END = "<!-- end of sessions -->\n"
NAMES = ("once", "before", "now")
HEAD = "| ms a call (MiB) | once | before | now | goal | × bytes and hash | × `json.loads` |\n" + "|---" * 7 + "|\n"
BARE = "bare parsing"
WORDS = {
    "strategy": "replay --strategy",
    "2-strategies": "two strategies",
    "8-strategies": "eight strategies",
    "all-strategies": "replay --all",
}
GOAL_CALLS = 10_000
"""Goals are of folders with at least so many calls, where start-up is a small part."""
GOALS_MS = {
    "strategy": 0.25,
    "2-strategies": 0.35,
    "8-strategies": 0.95,
    "explain": 0.4,
    "whatif": 1.5,
    "optimize": 3.0,
}
IMPORT_GOAL = 1.5
"""Of `json.loads` of each line."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The least processor seconds and the most MiB of a command."""

    processor_s: float
    peak_mib: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Processor seconds to read all bytes of the transcripts, and to read and hash them."""

    read_s: float
    hash_s: float


@dataclass(frozen=True, slots=True)
class SpeedTable:
    """The folder, its limits, and by name (once, before, now) the cost of each command."""

    calls: int
    megabytes: float
    limits: Limits
    costs: Mapping[str, Mapping[str, Cost]] = field(default_factory=dict)

    @property
    def parsing_s(self) -> float | None:
        """Bare parsing, as it was measured last."""
        known = [self.costs[name][BARE].processor_s for name in NAMES if BARE in self.costs.get(name, {})]
        return known[-1] if known else None


def load(path: Path = FIGURES) -> list[SpeedTable]:
    """In the order of calls."""
    return msgspec.json.decode(path.read_bytes(), type=list[SpeedTable]) if path.exists() else []


def record(found: SpeedTable, path: Path = FIGURES, readme: Path = README) -> None:
    """Put what was found over what is kept for so many calls, and write the tables of the README anew."""
    kept = {one.calls: one for one in load(path)}
    before = kept.get(found.calls, found).costs
    merged = {name: {**before.get(name, {}), **found.costs.get(name, {})} for name in NAMES}
    kept[found.calls] = replace(found, costs={name: costs for name, costs in merged.items() if costs})
    tables = [kept[calls] for calls in sorted(kept)]
    path.write_bytes(msgspec.json.format(msgspec.json.encode(tables), indent=1) + b"\n")
    write(tables, readme)


def write(tables: Sequence[SpeedTable], path: Path = README) -> None:
    text = path.read_text(encoding="utf-8")
    start, stop = text.index(BEGIN) + len(BEGIN), text.index(END)
    path.write_text(text[:start] + "\n".join(map(markdown, tables)) + text[stop:], encoding="utf-8")


def markdown(table: SpeedTable) -> str:
    """A line about the folder and its limits, and a row a command, in the order in which they were measured last."""
    limits = (
        f"reading the bytes takes {table.limits.read_s:.3f} s, reading and hashing them {table.limits.hash_s:.3f} s"
    )
    parsing = f", `json.loads` of every line {table.parsing_s:.2f} s" if table.parsing_s else ""
    commands = dict.fromkeys(
        command for name in reversed(NAMES) for command in table.costs.get(name, {}) if command != BARE
    )
    rows = "".join(_row(table, command) for command in commands)
    return f"{table.calls:,} calls, {table.megabytes:g} MB; {limits}{parsing}:\n\n{HEAD}{rows}"


def _row(table: SpeedTable, command: str) -> str:
    costs = [table.costs.get(name, {}).get(command) for name in NAMES]
    cells = [f"`{WORDS.get(command, command)}`", *(_cost(cost, table.calls) for cost in costs)]
    return f"| {' | '.join([*cells, _goal(table, command), *_ratios(table, costs[-1])])} |\n"


def _cost(cost: Cost | None, calls: int) -> str:
    return "" if cost is None else f"{_number(cost.processor_s / calls * 1000)} ({cost.peak_mib:.0f})"


def _goal(table: SpeedTable, command: str) -> str:
    if table.calls < GOAL_CALLS:
        return ""
    if command == "import" and table.parsing_s:
        return _number(IMPORT_GOAL * table.parsing_s / table.calls * 1000)
    return _number(GOALS_MS[command]) if command in GOALS_MS else ""


def _ratios(table: SpeedTable, now: Cost | None) -> tuple[str, str]:
    """How far the command is from the least that anything needs that reads every byte, or parses every line."""
    if now is None:
        return "", ""
    parsing = _number(now.processor_s / table.parsing_s) if table.parsing_s else ""
    return _number(now.processor_s / table.limits.hash_s), parsing


def _number(value: float) -> str:
    """Two digits."""
    return f"{value:#.2g}" if value < 10 else f"{value:.0f}"
