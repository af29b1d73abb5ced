"""The same tools, system prompt and messages as before: what changed is sent once, behind what stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from cachecost.analysis.explain.codes import codes
from cachecost.analysis.explain.fixes.breakpoints import place_where_prompts_part
from cachecost.analysis.explain.fixes.conversations import block_counter, replaced, with_losses
from cachecost.analysis.explain.fixes.fix import Fix, FixContext
from cachecost.analysis.explain.fixes.parts import with_part
from cachecost.analysis.explain.fixes.prefix_order import SHARED_FIRST, send_shared_first
from cachecost.analysis.explain.fixes.settings import same_settings
from cachecost.analysis.explain.fixes.threads import Continuation, ThreadCorrections, go_on
from cachecost.analysis.explain.fixes.versions import CountBlock, align, changed_tokens
from cachecost.analysis.replays.steps import PartPool, ReplayStep
from cachecost.analysis.replays.volatile import VolatileTail
from cachecost.base.structs import replace
from cachecost.caches.losses import Loss
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Layer, Part, Thread


def same_tools(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """Every tool of a conversation from its first call on, as first sent and in the order first sent."""
    parts, changed = PartPool(), list[ReplayStep]()
    for steps in with_losses(context, losses).values():
        tools = _union([step.call.request.tools for step in steps], parts)
        changed += [step.with_change(partial(with_part, layer=Layer.TOOLS, part=tools)) for step in steps]
    yield Fix(replaced(context.steps, changed))


def _union(lists: Sequence[Part], parts: PartPool) -> Part:
    """The blocks of all lists, of versions the first."""
    found = list(lists[0].blocks)
    for part in dict.fromkeys(lists[1:]):
        found += [new for old, new in align(found, part.blocks) if old is None and new is not None]
    return parts.of(found)


def same_system(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """The system prompt of a conversation's first call; what changes is sent in the last message, or in each call after
    the last breakpoint. Of settings that it
    is rendered with, one value in all calls. What several conversations share behind what differs comes first."""
    reordered, others = _reorder_shared(context, losses)
    conversations = list(with_losses(context, others).values())
    for changed, words in same_settings(conversations):
        yield _joined(context, _first_system(context, changed, words) if others else None, reordered)
    moved = [step.with_change(tail) for steps in conversations for tail in [_volatile_tail(steps)] for step in steps]
    if moved:
        yield _joined(context, Fix(replaced(context.steps, moved)), reordered)


def _volatile_tail(steps: Sequence[ReplayStep]) -> VolatileTail:
    return VolatileTail.find([step.call for step in steps])


def _reorder_shared(context: FixContext, losses: Sequence[Loss]) -> tuple[list[ReplayStep], list[Loss]]:
    """The calls of conversations that share what comes after what differs, sent the other way round; and the losses of
    all others."""
    conversation_of = context.observed.conversations.of
    found = with_losses(context, [loss for loss in losses if loss.is_out_of_order])
    others = [loss for loss in losses if conversation_of(context.observed.call(loss.call)) not in found]
    return [one for steps in found.values() for one in send_shared_first(context, steps)], others


def _joined(context: FixContext, fix: Fix | None, reordered: Sequence[ReplayStep]) -> Fix:
    """The fix with the calls that are sent the other way round, too."""
    if not reordered:
        assert fix is not None
        return fix
    words = f"{fix.words}; {SHARED_FIRST}" if fix and fix.words else SHARED_FIRST
    return Fix(replaced(fix.steps if fix else context.steps, reordered), words)


def _first_system(context: FixContext, conversations: Sequence[Sequence[ReplayStep]], words: str = "") -> Fix:
    corrections, changed = ThreadCorrections(), list[ReplayStep]()
    for steps in conversations:
        first = steps[0].call.request.system
        for thread, tokens in _changes(steps, block_counter(context, steps[0].call)):
            corrections.lengthen(thread, tokens)
        changed += [step.with_change(partial(_with_system, system=first, corrections=corrections)) for step in steps]
        if words and any(step.call.request.system.digest != first.digest for step in steps):
            words = f"{words}; {codes()['system_changed'].fix}"
    return Fix(replaced(context.steps, changed), words, names_others=bool(words))


def _with_system(call: Call, system: Part, corrections: ThreadCorrections) -> Call:
    return with_part(replace(call, request=corrections.request(call.request)), Layer.SYSTEM, system)


def _changes(steps: Sequence[ReplayStep], count: CountBlock) -> Iterator[tuple[Thread, int]]:
    """The calls whose system prompt is not that of the call before, and how many tokens of it are new."""
    before = steps[0].call.request.system
    for step in steps[1:]:
        now = step.call.request.system
        if now is not before and now.digest != before.digest:
            yield step.call.request.thread, changed_tokens(align(before.blocks, now.blocks), count)
        before = now


def same_messages(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """Earlier messages as they were sent before; what is new comes after them, also what changed in them. What several
    conversations share behind what differs comes first."""
    reordered, others = _reorder_shared(context, losses)
    yield _joined(context, _go_on(context, others, keeps_inserted=True) if others else None, reordered)


def no_compaction(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """The whole history instead of the summary; or the summary, and a breakpoint on what it leaves as it was."""
    yield _go_on(context, losses, keeps_inserted=False)
    yield from place_where_prompts_part(context, losses)


def _go_on(context: FixContext, losses: Sequence[Loss], keeps_inserted: bool) -> Fix:
    """Calls that go on from the thread of the call that they are compared with."""
    since = {loss.call: loss.since.request for loss in losses if loss.since}
    corrections, changed = ThreadCorrections(), list[ReplayStep]()
    for position, step in enumerate(context.steps, 1):
        if before := since.get(position):
            made = _correct(corrections, before.thread, step.call.request.thread, keeps_inserted)
            count = block_counter(context, step.call)
            changed_here = sum(changed_tokens(align(a.blocks, b.blocks), count) for a, b in made.changed)
            corrections.lengthen(step.call.request.thread, changed_here)
        if corrections.request(step.call.request) is not step.call.request:
            changed.append(step.with_change(partial(_with_thread, corrections=corrections)))
    return Fix(replaced(context.steps, changed))


def _correct(corrections: ThreadCorrections, before: Thread, now: Thread, keeps_inserted: bool) -> Continuation:
    """Let `now` go on from `before`, both as corrected so far."""
    corrected = corrections.of(now)
    made = go_on(corrections.of(before), corrected, keeps_inserted)
    corrections.put({**made.places, now: made.places[corrected]})
    return made


def _with_thread(call: Call, corrections: ThreadCorrections) -> Call:
    return replace(call, request=corrections.request(call.request))
