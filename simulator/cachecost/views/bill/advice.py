"""What to change, in text and JSON: the changes with the largest savings, and notes beside the causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.advice import Advice
from cachecost.analysis.bill.savings import best_keep_alive, is_main, saved_by_five_minutes, saved_by_hour
from cachecost.base.formatting import count_text, dollar_column, dollars, exact
from cachecost.caches.causes import Cause
from cachecost.providers.usage import ZERO


def advice_lines(advice: Sequence[Advice]) -> Iterator[str]:
    """A heading, and two lines a change: what it would have saved, and how to make it."""
    if not advice:
        return
    yield "What would have saved most (each alone, everything else as it was):"
    amounts = dollar_column([one.saved for one in advice])
    width = max(map(len, amounts))
    for amount, one in zip(amounts, advice, strict=True):
        note = f"; assumes that {one.assumption}" if one.assumption else ""
        yield f"  {amount.rjust(width)}  {one.change}"
        yield f"  {' ' * width}  → {one.how}{note}"
    if any(one.setting for one in advice):
        yield "  --apply shows the change of Claude Code's settings file, and writes it when you confirm."


def advice_object(one: Advice) -> dict[str, Any]:
    """A change as JSON; `setting` is the key in the settings file, `variable` the environment variable."""
    return {
        "change": one.change,
        "how": one.how,
        "saved_usd": exact(one.saved),
        "setting": one.setting.key or None if one.setting else None,
        "variable": one.setting.variable or None if one.setting else None,
        "value": one.value,
        "assumption": one.assumption,
    }


def cause_notes(account: BillAccount) -> dict[Cause, str]:
    """What would have saved how much of the rewrites after a pause."""
    hour, keep_alive = saved_by_hour(account, is_main), best_keep_alive(account)
    is_best = hour > max(ZERO, saved_by_five_minutes(account, is_main))
    parts = [f"a 1h TTL on the main thread would have saved {dollars(hour)}"] if is_best else []
    if keep_alive.saved > ZERO:
        saved = "" if parts else "would have saved "
        parts.append(f"up to {count_text(keep_alive.pings, 'keep-alive')} {saved}{dollars(keep_alive.saved)}")
    return {"ttl_expired": "; ".join(parts)} if parts else {}
