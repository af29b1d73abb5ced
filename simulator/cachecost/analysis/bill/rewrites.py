"""What each call of a file paid for although the call that it continues had cached it.

A call that continues another could have read all that the other left in the cache. What it did not read of that, and
paid for at a higher price, was rewritten: min(written + uncached, cached before − read). New content is never part of
it, as it comes after the cached prefix. Calls whose usage sums several passes imply no prefix and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cachecost.analysis.bill.cache_states import CacheState, state_after
from cachecost.analysis.bill.evidence import Rewrite
from cachecost.conversations.billed_calls import BilledCall, SessionFile
from cachecost.providers.rules import ModelRules

TOLERANCE = 2
"""Tokens by which two bills of one prefix may differ (docs/output-formats.md)."""
FindRules = Callable[[BilledCall], ModelRules | None]


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """The last call of a session's main thread, the cache after it, and the length of its static prefix."""

    call: BilledCall
    state: CacheState
    static_tokens: int


def find_rewrites(file: SessionFile, rules_of: FindRules, last_of: dict[str, EarlierCall]) -> Iterator[Rewrite]:
    """The rewrites of a file, in its order.

    `last_of` has the last call of each session whose earlier part is in another file, and is updated: a session that
    is resumed in a new file continues it.
    """
    known: list[EarlierCall | None] = [None]
    for call in file.calls:
        rules = rules_of(call)
        earlier = _continued(call, known, last_of)
        if earlier is not None and not call.is_summed:
            if earlier.state.tokens - call.read > _tolerance(rules):
                yield _rewrite(call, earlier, rules)
            elif call.start is not None and call.read >= earlier.state.tokens:
                earlier.state.touched = call.start
        known.append(_after(call, earlier, rules))
    last = next((one for one in reversed(known) if one is not None and not one.call.agent), None)
    if last is not None and last.call.session:
        last_of[last.call.session] = last


def _continued(
    call: BilledCall, known: list[EarlierCall | None], last_of: dict[str, EarlierCall]
) -> EarlierCall | None:
    """The call that this one continues, in its file or in that of the earlier part of its session."""
    if "clear" in call.events:
        return None
    if call.before:
        return known[call.before]
    earlier = last_of.get(call.session) if not call.agent else None
    is_later = earlier is not None and (earlier.call.start or 0.0) < (call.start or 0.0)
    return earlier if is_later else None


def _after(call: BilledCall, earlier: EarlierCall | None, rules: ModelRules | None) -> EarlierCall | None:
    if call.is_summed:
        return None
    state = state_after(call, earlier.state if earlier else None, rules)
    return EarlierCall(call, state, earlier.static_tokens if earlier else call.read)


def _rewrite(call: BilledCall, earlier: EarlierCall, rules: ModelRules | None) -> Rewrite:
    tokens = min(call.written + call.tokens[0], earlier.state.tokens - call.read)
    static = earlier.static_tokens
    is_static = call.read < static if static else call.read == 0
    return Rewrite(call, earlier.call, earlier.state, tokens, earlier.state.live_tokens(call.start), is_static, rules)


def _tolerance(rules: ModelRules | None) -> int:
    """Tokens that a call may read less than was cached without anything lost: hosts that cache whole blocks round."""
    return max(TOLERANCE, 2 * rules.step_tokens) if rules is not None and rules.is_automatic else TOLERANCE
