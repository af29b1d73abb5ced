"""A way to send calls differently, before it is priced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cachecost.analysis.replays.steps import ReplayStep, StepChange


@dataclass(frozen=True, slots=True)
class Option:
    """`change` makes other steps of steps; options are applied in the order of their `rank`, of a `kind` only one.

    `unsupported` says why the recording cannot tell what it saves, `unchanged` why nothing would change ("": it can,
    it would). `counts_anew`: the tokens are those of another tokenizer, so that their error is its own.
    """

    name: str
    kind: str
    does: str
    change: StepChange
    rank: int
    assumption: str = ""
    unsupported: str = ""
    unchanged: str = ""
    keeps_answers: bool = True
    counts_anew: bool = False
    is_batch: bool = False

    @property
    def keeps_prompts(self) -> bool:
        """Whether the same prompts go to the same cache."""
        return self.rank >= BREAKPOINTS

    def apply(self, steps: Sequence[ReplayStep]) -> list[ReplayStep]:
        return self.change(steps)


CONTENT, MODEL, COMPACTION, BREAKPOINTS, TTL_LEVER, PINGS = range(6)
"""Ranks: content, model, compaction, breakpoints, TTLs, keep-alives."""
