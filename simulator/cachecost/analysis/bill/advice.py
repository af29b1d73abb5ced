"""What to change: the settings and habits that would have saved most on these sessions, each priced on them.

Each piece of advice is priced on its own, with everything else as it was; of those that avoid the same loss only the
best is given. Settings are named as Claude Code has them (providers/clients).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.compaction import measure_compactions, saved_by_limits
from cachecost.analysis.bill.savings import (
    InScope,
    best_keep_alive,
    is_main,
    is_sub_agent,
    saved_by_five_minutes,
    saved_by_hour,
)
from cachecost.base.formatting import count_text
from cachecost.caches.causes import Cause
from cachecost.providers.clients.setting_rows import ClientSetting, client_settings
from cachecost.providers.usage import ZERO

MOST = 3
LEAST_SHARE = Decimal("0.005")
"""Of the bill: what saves less is no advice."""
WINDOWS = (100_000, 150_000, 200_000)
"""Values of the compaction window that are tried; it takes no smaller one."""
RESERVE = 13_000
"""The client compacts so many tokens before the window is full."""
CLIENT = "claude-code"
PAUSES, COMPACTION = "pauses", "compaction"


@dataclass(frozen=True, slots=True)
class Advice:
    """One change, the USD that it would have saved, and how to make it.

    `setting` is the row of the client's setting and `value` what to set it to (None: no setting does it). Of pieces
    with one `about` only one can be followed. `assumption` is what the price takes for granted.
    """

    about: str
    change: str
    how: str
    saved: Decimal
    setting: ClientSetting | None = None
    value: object = None
    assumption: str = ""


def best_advice(account: BillAccount, most: int = MOST) -> list[Advice]:
    """The changes that would have saved most, the best first."""
    found: dict[str, Advice] = {}
    for one in _all_advice(account):
        known = found.get(one.about)
        if known is None or one.saved > known.saved:
            found[one.about] = one
    least = _billed(account) * LEAST_SHARE
    ranked = sorted((one for one in found.values() if one.saved > least), key=lambda one: -one.saved)
    return ranked[:most]


def _billed(account: BillAccount) -> Decimal:
    """USD of rewrites, which bounds what there is to save."""
    return sum((one.cost or ZERO for one in account.rewrites), ZERO)


def _all_advice(account: BillAccount) -> Iterator[Advice]:
    if any(file.client == CLIENT for file in account.files):
        yield from _ttl_advice(account, is_main, "main_ttl", "the main conversation", PAUSES)
        yield from _ttl_advice(account, is_sub_agent, "side_ttl", "sub-agents", "sub-agents")
        yield from _window_advice(account)
    yield from _keep_alive_advice(account)
    yield from _habits(account)


def _ttl_advice(account: BillAccount, scope: InScope, name: str, whom: str, about: str) -> Iterator[Advice]:
    setting = client_settings().settings[name]
    for ttl, saved in (("1h", saved_by_hour(account, scope)), ("5m", saved_by_five_minutes(account, scope))):
        how = f'"{setting.key}": "{ttl}" in the settings, or {setting.variable}={ttl} (Claude Code {setting.since})'
        yield Advice(about, f"a {ttl} TTL for {whom}", how, saved, setting, ttl)


def _window_advice(account: BillAccount) -> Iterator[Advice]:
    size = measure_compactions(account)
    setting = client_settings().settings["auto_compact_window"]
    savings = saved_by_limits(account, [window - RESERVE for window in WINDOWS], size) if size else {}
    for limit, saved in savings.items():
        window = limit + RESERVE
        how = f'"{setting.key}": {window} in the settings, or {setting.variable}={window}'
        change = f"compacting at {limit // 1000}k tokens"
        yield Advice(COMPACTION, change, how, saved, setting, window, "the answers stay the same after a summary")


def _keep_alive_advice(account: BillAccount) -> Iterator[Advice]:
    best = best_keep_alive(account)
    if best.pings:
        change = f"up to {count_text(best.pings, 'keep-alive')} after each call"
        how = "send the last request again with max_tokens: 0 a minute before the cache expires; no setting does this"
        yield Advice(PAUSES, change, how, best.saved)


HABITS: tuple[tuple[Cause, str, str, str], ...] = (
    (
        "tools_changed",
        "tools that stay the same within a session",
        "connect MCP servers before the first message, or load their tools on demand: ENABLE_TOOL_SEARCH=true",
        "tool_search",
    ),
    (
        "model_changed",
        "one model a session",
        "choose the model before the first message; give work for another model to a sub-agent",
        "",
    ),
    ("effort_changed", "one effort level a session", "set it before the first message: effortLevel", ""),
    ("thinking_changed", "thinking not switched within a session", "set it before the first message", ""),
    ("cold_start", "fewer new sessions after a pause", "go on with the session you have: claude --continue", ""),
    ("system_changed", "upgrades between sessions", "end a session before the client is upgraded or resumed", ""),
)
"""Cause, change, how to make it, and the client's setting that does it."""


def _habits(account: BillAccount) -> Iterator[Advice]:
    """What would not have been written again at all."""
    for cause, change, how, name in HABITS:
        saved = sum((one.cost or ZERO for one in account.rewrites if one.cause == cause), ZERO)
        setting = client_settings().settings[name] if name else None
        if saved:
            yield Advice(cause, change, how, saved, setting, "true" if setting else None)
