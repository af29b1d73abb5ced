"""Bills that count the blocks of a layer otherwise than the token counter does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cachecost.analysis.bill.explanation import explain_recording
from cachecost.analysis.bill.found_sessions import prices_under
from cachecost.base.structs import replace
from cachecost.base.structs import replace as replace_struct
from cachecost.conversations.calls import Call
from cachecost.conversations.logs import Logs, read_logs
from cachecost.ledger.findings import Explanation
from cachecost.prompts.blocks import Block
from cachecost.prompts.render import TokenCounter
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, recorded_workload
from cachecost.tokens.factory import make_counter
from planted.check import written
from planted.logs import Log

SETUP = ReplaySetup(RuleBook(), PriceBook(), tokens="tiktoken")
LAYERS = {"tool": "tools", "system": "system"}
"""By role of a block; all other roles are those of messages."""


class MiscountedBlocks:
    """A counter whose blocks are by so much longer in each layer; it is like `base` in all else."""

    def __init__(self, base: TokenCounter, factors: Mapping[str, float]) -> None:
        self._base, self._factors = base, factors

    def shared(self, one: Block, other: Block) -> int:
        return 0

    def block(self, block: Block) -> int:
        layer = "tools" if block.kind == "tool" else LAYERS.get(block.role, "messages")
        return round(self._base.block(block) * self._factors.get(layer, 1.0))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)


def billed(calls: list[Call], factors: Mapping[str, float]) -> list[Call]:
    """The calls with the bills of the rules, whose layers are by so much longer than tiktoken counts them."""
    setup = replace(SETUP, counters={})
    for generation in {setup.rules_for(call).generation for call in calls}:
        setup.counters[generation] = MiscountedBlocks(make_counter("tiktoken", generation), factors)  # type: ignore[assignment]
    rows = Workload("billed", calls, setup).simulation().rows(calls)
    return [
        call if row.error else replace_struct(call, billed=row.usage) for call, row in zip(calls, rows, strict=True)
    ]


def explained_by_bills(log: Log, factors: Mapping[str, float]) -> Explanation:
    """What explain says of the log with such bills."""
    with TemporaryDirectory() as folder:
        calls = billed(list(read_logs(Logs([written(Path(folder, "log.jsonl"), log)]))), factors)
    setup = replace(SETUP, bills=calls, counters={})
    return explain_recording(recorded_workload("billed", calls, setup), prices_under(SETUP))
