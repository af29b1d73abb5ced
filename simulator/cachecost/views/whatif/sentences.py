"""The sentences of `whatif`."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from math import ceil

from cachecost.analysis.whatif.alternatives import (
    NOT_EVALUATED,
    YES,
    Action,
    Alternative,
    Combination,
    TTLBreakEven,
    WhatifReport,
)
from cachecost.base.formatting import all_of, change, count_text, dollar_change, dollars, percent, short_session, tokens
from cachecost.ledger.results import ZERO


def headline(whatif: WhatifReport) -> Iterator[str]:
    """What it cost, and the best single change: one that keeps the answers, then one that may not."""
    yield f"{whatif.name}   {count_text(whatif.calls, 'call')} · {cost_words(whatif)}"
    kept = best(whatif, keeps_answers=True)
    other = best(whatif, keeps_answers=False)
    if kept is None:
        yield "No single change that keeps the answers saves anything that these data support."
    else:
        yield f"The best single change: {kept.name} saves {_saving_words(kept)}: {kept.does}.{_tie(whatif, kept)}"
    if other is not None:
        yield f"With other answers: {other.name} saves {_saving_words(other)}: {other.does}.{_tie(whatif, other)}"


def best(whatif: WhatifReport, keeps_answers: bool) -> Alternative | None:
    """The supported alternative that saves most; None: none saves."""
    return next((one for one in whatif.alternatives if one.is_gain and one.keeps_answers is keeps_answers), None)


def _tie(whatif: WhatifReport, best: Alternative) -> str:
    """What saves exactly as much as the best of its kind."""
    equal = [
        one.name
        for one in whatif.alternatives
        if one is not best and one.is_gain and (one.saving, one.keeps_answers) == (best.saving, best.keeps_answers)
    ]
    return f" {all_of(equal)} {'saves' if len(equal) == 1 else 'save'} the same." if equal else ""


def _saving_words(one: Alternative) -> str:
    share = f" ({percent(one.share)})" if one.share is not None else ""
    return f"{dollars(one.saving)}{share}"


def cost_words(whatif: WhatifReport) -> str:
    """What it cost: billed and simulated, and how far they are apart."""
    if whatif.billed is None:
        return f"{dollars(whatif.cost)} simulated"
    off = change(whatif.simulated, whatif.billed)
    apart = f", {percent(off, signed=True)}" if off else ""
    what = "only differences are simulated" if whatif.cost == whatif.billed else "too far off to rely on"
    if whatif.held_losses:
        losses = "1 unexplained loss" if whatif.held_losses == 1 else f"{whatif.held_losses:,} unexplained losses"
        what += f"; {losses} held in every alternative"
    return (
        f"{dollars(whatif.billed)} billed; {dollars(whatif.simulated)} simulated "
        f"({dollar_change(whatif.simulated - whatif.billed)}{apart}), {what}"
    )


def joint_lines(joint: Combination, cost: Decimal, is_asked: bool = False) -> Iterator[str]:
    """What several save together, and the sum of their single savings."""
    names = " + ".join(joint.names)
    if joint.cost is None or joint.saving is None:
        yield f"Together {names}: {joint.supported or NOT_EVALUATED}"
        return
    share = f" ({percent(joint.saving / cost)})" if cost else ""
    verb = "save" if len(joint.names) > 1 else "saves"
    start = "As asked, together" if is_asked else "Together"
    if len(joint.names) == 1 and not is_asked:
        yield f"No combination saves more than {names} alone, of those that keep the answers."
        return
    amount = f"{verb} {dollars(joint.saving)}" if joint.saving >= ZERO else f"cost {dollars(-joint.saving)} more"
    yield f"{start}: {names} {amount}{share}; the parts alone would add up to {dollars(joint.sum_of_parts)}."
    if joint.why:
        yield f"That is less than the best of them alone ({dollars(joint.best_part)}): {joint.why}."
    if joint.supported != YES:
        yield joint.supported


def action_answer(action: Action) -> str:
    """What an action costs at the next call, and when it pays off, in a line."""
    price = dollars(abs(action.price))
    more = f"{price} {'more' if action.price > 0 else 'less'}" if action.price else "the same"
    costs = f"{dollars(action.cost)} instead of {dollars(action.cost_without)}"
    lost = f"; {tokens(action.lost)} tokens are not read" if action.lost else ""
    where = f"after call {action.at}{_session(action)}"
    return f"{action.name} {where}: the next call costs {more} ({costs}{lost}); {_pays_off(action)}"


def _pays_off(action: Action) -> str:
    if action.pays_after is None:
        return "it does not pay for itself"
    return "it pays at once" if action.pays_after == 1 else f"paid off after {count_text(action.pays_after, 'call')}"


def action_lines(action: Action) -> Iterator[str]:
    """The price of an action, and whether it ever pays."""
    yield (
        f"The price of {action.name} after call {action.at}{_session(action)}: {dollars(action.price)}. "
        f"The next call costs {dollars(action.cost)} instead of "
        f"{dollars(action.cost_without)}: {tokens(action.lost)} tokens are not read."
    )
    later = f"{dollars(action.then)} instead of {dollars(action.then_without)}"
    if action.pays_after is None:
        yield f"  It does not pay for itself; the call after that costs {later}."
    elif action.pays_after == 1:
        yield f"  It pays at once; the call after that costs {later}."
    else:
        yield f"  It has paid for itself after {count_text(action.pays_after, 'call')}; the second costs {later}."
    yield f"  assumed: {action.assumption}"


def break_even_lines(edge: TTLBreakEven) -> Iterator[str]:
    """When an hour pays, and what the pauses were."""
    short, middle, long = edge.pauses
    yield (
        f"pauses   {short:,} under 5 min, {middle:,} of 5–60 min, {long:,} of an hour and more; "
        f"the longest {_duration(edge.longest_s)}"
    )
    here = f"; here {edge.here:.2f}" if edge.here is not None else ""
    yield (
        f"TTL      1h breaks even on {edge.model} at {edge.needed:.3f} rewritten tokens per new token "
        f"in pauses of 5–60 min{here}"
    )
    if edge.needed_pauses is not None:
        an_hour = edge.needed_an_hour
        rate = f", {an_hour:.1f} an hour" if an_hour is not None else ""
        needed = count_text(ceil(edge.needed_pauses), "such pause")
        yield f"         1h TTL breaks even at {needed}{rate}; you have {middle:,}"
    if edge.pings is not None:
        yield f"         keep-alives pay for a pause that takes at most {edge.pings:,} of them"


def _session(action: Action) -> str:
    return f" (session {short_session(action.session)})" if action.session else ""


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
