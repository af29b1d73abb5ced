"""The named strategies. `presets.toml` has the breakpoints of each, `best_per_provider.toml` how questions are asked on
each host."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.strategies.agent import Agent, InquiryOptions
from cachecost.strategies.changes.base import HostFacts
from cachecost.strategies.changes.keepalive import Adapt
from cachecost.strategies.placements import Automatic, LastMessage, LastTool, Placement, SystemBlock, primitive_named

BASE = (LastTool(), SystemBlock("last"), Automatic())
"""The breakpoints of `base`, which all inquiry arms share."""


def _read_table(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def _agent(row: Mapping[str, Any]) -> Agent:
    primitives = tuple(map(primitive_named, row["breakpoints"])) if "breakpoints" in row else BASE
    placed = {name: row[name] for name in ("ttl", "slots", "trim", "from_message") if name in row}
    return Agent(
        **{name: row[name] for name in ("name", "what", "source")},
        date=row["date"].isoformat(),
        placement=Placement(primitives, **placed),
        inquiry=InquiryOptions(**row["inquiry"]) if "inquiry" in row else None,
        rules=row.get("rules", {}),
    )


_TABLE = _read_table("presets.toml")
PLACEMENTS = tuple(map(_agent, _TABLE["placement"]))
"""Strategies that differ in where their breakpoints go."""
ARMS = tuple(map(_agent, _TABLE["inquiry_arm"]))
"""Strategies that differ in how a tool's questions are asked."""


class Best(msgspec.Struct, frozen=True):
    """What costs the least on a host; `matching` "" is any kind of it."""

    host: str
    matching: str
    strategy: str
    why: str


@cache
def best_table() -> tuple[Best, ...]:
    """The rows, in their order: the first that fits decides."""
    rows = _read_table("best_per_provider.toml")["row"]
    return tuple(Best(row["host"], row.get("matching", ""), row["strategy"], row["why"]) for row in rows)


def find_best(rules: HostFacts) -> Best:
    """The row of a host and its kind of matching. Raises CannotEvaluate for a host that has none."""
    fitting = (row for row in best_table() if row.host == rules.host and row.matching in ("", rules.matching))
    if found := next(fitting, None):
        return found
    raise CannotEvaluate(f"best-per-provider has no row for host {rules.host}")


def inquiry_by_host(rules: HostFacts) -> tuple[InquiryOptions, str]:
    """How questions are asked there, and a sentence that says why."""
    best = find_best(rules)
    inquiry = next(arm.inquiry for arm in ARMS if arm.name == best.strategy)
    assert inquiry is not None
    return inquiry, f"On {rules.host} it asks as “{best.strategy}” does: {best.why}."


LEARNED = Agent(
    name="adaptive",
    what="head and end marked for 5m or 1h by the pauses seen so far; ends that nothing goes on from not at all",
    source="cachecost optimize: what the optimum does, from the past alone",
    date="2026-11-22",
    changes=(Adapt(),),
)
PER_PROVIDER = Agent(
    name="best-per-provider",
    what="questions are asked as costs the least on each host: by a schema, a forced tool or a suggested one",
    source="dcdpr/jp RFD 033, alternatives",
    date="2026-03-07",
    placement=Placement((LastTool(), SystemBlock("last"), LastMessage())),
    inquiry_by_host=inquiry_by_host,
)
"""Its breakpoints are those that each host takes: the last tool, the last system block, the last message."""
PRESETS: dict[str, Agent] = {agent.name: agent for agent in (*PLACEMENTS, LEARNED, *ARMS, PER_PROVIDER)}
"""Every built-in strategy by name."""
