"""`best-per-provider`: questions are asked in another way on each host, as `best_per_provider.toml` says."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import value
from cachecost.strategies.agent import Agent
from cachecost.strategies.inquiry import InquiryOptions
from cachecost.strategies.model_facts import HostFacts
from cachecost.strategies.placements import LastMessage, LastTool, Placement, SystemBlock
from cachecost.strategies.presets.arms import ARMS, RFD_033

TABLE = Path(__file__).with_name("best_per_provider.toml")


@value
class Best:
    """What costs the least on a host; `matching` "" is any kind of it."""

    host: str
    matching: str
    strategy: str
    why: str


@cache
def best_table() -> tuple[Best, ...]:
    """The rows, in their order: the first that fits decides."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["row"]
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


PER_PROVIDER = (
    Agent(
        name="best-per-provider",
        what="questions are asked as costs the least on each host: by a schema, a forced tool or a suggested one",
        source=f"{RFD_033}, alternatives",
        date="2026-03-07",
        placement=Placement((LastTool(), SystemBlock("last"), LastMessage())),
        inquiry_by_host=inquiry_by_host,
    ),
)
"""Its breakpoints are those that each host takes: the last tool, the last system block, the last message."""
