"""Longer and shorter TTLs, keep-alives, and calls that wait for the first token of the one that writes for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from cachecost.analysis.explain.fixes.conversations import in_scopes, replaced
from cachecost.analysis.explain.fixes.fix import Fix, FixContext
from cachecost.analysis.replays.pings import add_pings
from cachecost.analysis.replays.steps import NO_CALL, ReplayStep, in_order
from cachecost.analysis.replays.ttls import set_hour_on, set_ttl
from cachecost.base.formatting import count_text
from cachecost.base.structs import replace
from cachecost.caches.losses import Loss
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Layer
from cachecost.strategies.changes.keepalive import KeepAlive

LEAD_S = 5.0
"""Seconds before an entry expires at which a keep-alive is sent, as aider does (295 s for the TTL of 300)."""
MOST_PINGS = 11
"""Keep-alives in a pause that are tried: 12 reads at 0.1 cost more than a write at 1.25 does above a read."""
WAIT_S = 0.001
"""Seconds after the first token."""


def outlast_pauses(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """Policies for the whole log that know no pause before it comes: 1h TTLs, or keep-alives after every call."""
    if any("1h" in context.observed.rendered[loss.call].rules.accepted_ttls for loss in losses):
        yield from _hour_fixes(context, losses)
    for ttl, ttl_s in _ttls(context, losses).items():
        for times in _pings_needed(losses, ttl_s):
            habit = KeepAlive(every_s=ttl_s - LEAD_S, times=times)
            words = f"{count_text(times, 'keep-alive')} after every call, each {LEAD_S:g} s before the {ttl} TTL ends"
            pinged = add_pings(in_scopes(context, losses), habit, context.observed.refused)
            pings = [step for step in pinged if step.number == NO_CALL]
            yield Fix(in_order([*context.steps, *pings]), words=words)


def _hour_fixes(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    for change, words in (
        (set_ttl("1h"), "a 1h TTL on every breakpoint"),
        (set_hour_on((Layer.TOOLS, Layer.SYSTEM)), "a 1h TTL on tools and system prompt"),
    ):
        concerned = in_scopes(context, losses)
        changed = [step.with_request(change(step.call.request)) for step in concerned]
        if any(one.call.request is not other.call.request for one, other in zip(changed, concerned, strict=True)):
            yield Fix(replaced(context.steps, changed), words=words)


def shorten_hours(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """5m for all breakpoints, or for those on messages alone."""
    concerned = in_scopes(context, losses)
    for change, words in (
        (set_ttl("5m"), "a 5m TTL on every breakpoint"),
        (set_hour_on((Layer.TOOLS, Layer.SYSTEM)), "a 5m TTL on messages"),
    ):
        yield Fix(replaced(context.steps, [step.with_request(change(step.call.request)) for step in concerned]), words)


def _ttls(context: FixContext, losses: Sequence[Loss]) -> dict[str, float]:
    """The TTLs of the entries that expired, in seconds."""
    return {loss.ttl: context.observed.rendered[loss.call].rules.ttl_s[loss.ttl] for loss in losses if loss.ttl}


def _pings_needed(losses: Sequence[Loss], ttl_s: float) -> list[int]:
    """How many keep-alives bridge the pauses: those of the shortest, of the middle one and of the longest."""
    needed = sorted(int((loss.gap_s - ttl_s) // (ttl_s - LEAD_S)) + 1 for loss in losses)
    worth = [times for times in needed if 0 < times <= MOST_PINGS]
    return sorted({worth[0], worth[len(worth) // 2], worth[-1]}) if worth else []


def wait_for_first_token(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """Calls that wrote what another was writing start after that one's first token."""
    steps, starts = list(context.steps), dict[int, float]()
    for loss in sorted(losses, key=lambda loss: loss.call):
        at = context.observed.call(loss.call).start
        writer = _find_writer(context.steps, at - loss.gap_s, loss.call)
        starts[loss.call] = starts.get(writer.position, writer.first_token + WAIT_S)
        waiting = partial(_start_at, at=max(at, starts[loss.call]))
        steps[loss.call - 1] = steps[loss.call - 1].with_change(waiting)
    yield Fix(in_order(steps))


def _start_at(call: Call, at: float) -> Call:
    return replace(call, start=at)


@dataclass(frozen=True, slots=True)
class _Writer:
    """The position of a call, and when its first token came."""

    position: int
    first_token: float


def _find_writer(steps: Sequence[ReplayStep], start: float, before: int) -> _Writer:
    """The call that began at `start`: what it wrote could not be read yet by the one at position `before`."""
    found = min(range(before - 1, 0, -1), key=lambda position: abs(steps[position - 1].call.start - start))
    call = steps[found - 1].call
    return _Writer(found, call.start + call.ready_s)
