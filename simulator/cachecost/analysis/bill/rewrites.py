"""What each call of a file paid for although the call that it continues had cached it.

A call that continues another could have read all that the other left in the cache. What it did not read of that, and
paid for at a higher price, was rewritten: min(written + uncached, cached before − read). New content is never part of
it, as it comes after the cached prefix. Calls whose usage sums several passes imply no prefix and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from cachecost.analysis.bill.cache_states import CachedPrefix, state_after
from cachecost.analysis.bill.evidence import Rewrite, has_time_of_copy
from cachecost.conversations.billed_calls import BilledCall, SessionFile
from cachecost.providers.rules import ModelRules

TOLERANCE = 2
"""Tokens by which two bills of one prefix may differ (docs/reference/output-formats.md)."""
FindRules = Callable[[BilledCall], ModelRules | None]


class LastCall(msgspec.Struct, gc=False):
    """The last call of a session's main thread, the cache after it, and the length of its static prefix.

    `begin` is what the first call of the thread had cached: static prefix and first message.
    """

    call: BilledCall
    state: CachedPrefix
    static_tokens: int
    begin: int


def find_rewrites(file: SessionFile, rules_of: FindRules, last_of: dict[str, LastCall]) -> Iterator[Rewrite]:
    """The rewrites of a file, in its order.

    `last_of` has the last call of each session whose earlier part is in another file, and is updated: a session that
    is resumed in a new file continues it.
    """
    known: list[LastCall | None] = [None]
    static = [0]
    ended: dict[str, LastCall | None] = {}
    for call in file.calls:
        rules = rules_of(call)
        earlier = _continued(call, known, last_of)
        is_copied = earlier is not None and has_time_of_copy(call, earlier.call)
        at = None if is_copied else call.start
        if earlier is not None and is_copied:
            earlier.state.touched = None
        if earlier is not None and not call.is_summed:
            lost, tolerance = earlier.state.tokens - call.read, _tolerance(rules)
            if lost <= tolerance:
                if rules is None or rules.refreshes_on_read:
                    earlier.state.touch(at)
            elif call.written + call.tokens[0] > tolerance:  # else the prompt is shorter and nothing was paid
                yield _rewrite(call, earlier, rules)
        static.append(_static_tokens(call, earlier, static[call.before]))
        known.append(_after(call, earlier, rules, static[-1]))
        if is_copied and (last := known[-1]):
            last.state.touched = None
        if not call.agent:
            ended[call.session] = known[-1]
    _note_ends(ended, last_of)


def _note_ends(ended: dict[str, LastCall | None], last_of: dict[str, LastCall]) -> None:
    """Note the last calls of sessions; one that implies no prefix makes the next file of the session a beginning."""
    for session, last in ended.items():
        last_of.pop(session, None)
        if session and last is not None:
            last_of[session] = last


def _static_tokens(call: BilledCall, earlier: LastCall | None, before: int) -> int:
    """The length of the static prefix: what the first call read, else what a later one read of it alone; 0: unknown."""
    if earlier is not None:
        return earlier.static_tokens or (0 if call.is_summed else _seen_static(call, earlier))
    if call.before and "clear" not in call.events:
        return before
    return 0 if call.is_summed else call.read


def _seen_static(call: BilledCall, earlier: LastCall) -> int:
    """What a call read, if it is less than the first call had cached: all that was cached before its message; else 0.
    Where tools or system prompt changed, it is only a part of them."""
    is_changed = "tools" in call.events or "system" in call.events
    return call.read if call.read < earlier.begin and not is_changed else 0


def _continued(call: BilledCall, known: list[LastCall | None], last_of: dict[str, LastCall]) -> LastCall | None:
    """The call that this one continues, in its file or in that of the earlier part of its session."""
    if "clear" in call.events:
        return None
    if call.before:
        return known[call.before]
    earlier = last_of.get(call.session) if not call.agent else None
    is_later = earlier is not None and (earlier.call.start or 0.0) < (call.start or 0.0)
    return earlier if is_later else None


def _after(call: BilledCall, earlier: LastCall | None, rules: ModelRules | None, static_tokens: int) -> LastCall | None:
    if call.is_summed:
        return None
    state = state_after(call, earlier.state if earlier else None, rules)
    return LastCall(call, state, static_tokens, earlier.begin if earlier else state.tokens)


def _rewrite(call: BilledCall, earlier: LastCall, rules: ModelRules | None) -> Rewrite:
    tokens = min(call.written + call.tokens[0], earlier.state.tokens - call.read)
    static = earlier.static_tokens or _seen_static(call, earlier)
    is_static = call.read < static if static else call.read == 0
    live, keeps_static = earlier.state.live_tokens(call.start), 0 < static <= call.read
    is_at_static = 0 < static <= call.read < earlier.begin
    return Rewrite(call, earlier.call, earlier.state, tokens, live, is_static, rules, keeps_static, is_at_static)


def _tolerance(rules: ModelRules | None) -> int:
    """Tokens that a call may read less than was cached without anything lost: hosts that cache whole blocks round."""
    return max(TOLERANCE, 2 * rules.step_tokens) if rules is not None and rules.is_automatic else TOLERANCE
