"""One call of a session: its blocks beside those of the call that it continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cachecost.analysis.bill.timeline import TimelineCall
from cachecost.analysis.viewing.blocks import SentBlock, sent_blocks
from cachecost.analysis.viewing.changes import CallChanges, TextDifference, compare_blocks, first_text_difference
from cachecost.analysis.viewing.listing import ViewedSession
from cachecost.analysis.viewing.replay import SessionReplay
from cachecost.simulation.engine import SimulatedCall

Blocks = Sequence[SentBlock]


@dataclass(frozen=True, slots=True)
class ViewedCall:
    """A call, the one that it continues (None: it begins a thread), and the blocks of both; none are known of a bill
    alone. `made` is what a replay says of it.
    """

    call: TimelineCall
    before: TimelineCall | None
    blocks: Blocks
    blocks_before: Blocks
    changes: CallChanges
    made: SimulatedCall | None

    @property
    def has_text(self) -> bool:
        """Whether the content of any block is known."""
        return any(one.block is not None and one.block.content is not None for one in self.blocks)

    @property
    def difference(self) -> TextDifference | None:
        """Where the first block that changed differs from its counterpart."""
        at = self.changes.first_changed
        return None if at is None else self.difference_of(at)

    def difference_of(self, at: int) -> TextDifference | None:
        """Where a block differs from its counterpart; None where it has none, or there is no text."""
        new, old = self.blocks[at].block, self.counterpart(at)
        if old is None or old.block is None or new is None:
            return None
        return first_text_difference(old.block, new, self.blocks[at].layer)

    def counterpart(self, at: int) -> SentBlock | None:
        """The block of the call before that a block corresponds to."""
        place = self.changes.blocks[at].before
        return None if place is None else self.blocks_before[place]


def view_call(session: ViewedSession, replay: SessionReplay | None, number: int) -> ViewedCall:
    """The call of this number (from 1); without `replay`, its bill alone. Raises KeyError."""
    if not 1 <= number <= len(session.calls):
        raise KeyError(number)
    one = session.calls[number - 1]
    before = _call_before(session, one)
    blocks = _blocks(session, replay, one)
    blocks_before = _blocks(session, replay, before) if before else ()
    made = replay.made.get(number) if replay else None
    return ViewedCall(one, before, blocks, blocks_before, compare_blocks(blocks_before, blocks), made)


def _call_before(session: ViewedSession, one: TimelineCall) -> TimelineCall | None:
    """The call of the session that `one` continues."""
    if one.before is None:
        return None
    return next((other for other in reversed(session.calls[: one.number - 1]) if other.call is one.before), None)


def _blocks(session: ViewedSession, replay: SessionReplay | None, one: TimelineCall) -> Blocks:
    recorded = replay.recorded(one.number) if replay else None
    if replay is None or recorded is None or recorded.is_bill_only:
        return ()
    billed = None if one.call.is_summed else one.call.usage
    return sent_blocks(recorded, replay.made.get(one.number), billed)
