"""What a call lost: blocks that were sent before and that it paid for again, and why. `inspection.py` finds it."""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.base.structs import value
from cachecost.caches.breakpoints import Outcome
from cachecost.caches.causes import Cause
from cachecost.caches.lineage import EarlierCall
from cachecost.prompts.blocks import Prefix


@value
class Loss:
    """Unread blocks of a prompt, up to `depth`, that would have been read without `cause`.

    `first` is the block that differs, else the first one that was not read. `was` was in its place in the call `since`.
    `gap_s` is the time since that call, `ttl` the TTL of an expired entry,
    `positions` the distance of an entry from the last breakpoint. `tokens` is the length of what was sent before and
    is lost by this cause; `added` that of new blocks among it, which no fix avoids. `is_whole`: all that `since` cached
    is sent again, as it was or in another version. `place` and `place_before` are the pools of this call and of
    `since`, where they differ. `is_apart`: `since` is of another conversation; `is_out_of_order`: and what both send
    comes after content of their own.
    """

    call: int
    cause: Cause
    first: Prefix
    depth: int
    was: Prefix | None = None
    since: EarlierCall | None = None
    gap_s: float = 0.0
    ttl: str = ""
    positions: int = 0
    window: int = 0
    minimum: int = 0
    tokens: int = 0
    added: int = 0
    is_whole: bool = False
    place: str = ""
    place_before: str = ""
    is_apart: bool = False
    is_out_of_order: bool = False


def cause_of_losses(losses: Sequence[Loss], outcome: Outcome, is_first: bool) -> Cause:
    """The cause of a call: that of its largest loss, the first of equal ones; without a loss, how it began."""
    if losses:
        return max(losses, key=lambda loss: loss.tokens).cause
    if outcome.hit:
        return "hit"
    return "cold_start" if is_first else "new_content"
