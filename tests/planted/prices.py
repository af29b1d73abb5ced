"""What a log costs by the naive model of the rulebook (`naive.py`), with prices written down here again."""

from __future__ import annotations

import marshal
from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from hashlib import sha256

from cachecost.providers.rules import ModelRules, RuleBook
from naive import NaiveModel
from planted.logs import BEGIN, Log, Sending, in_order
from planted.recorded import Sizes, is_recorded

# USD per million tokens: input, 5m write, 1h write, read (Claude docs, Pricing, 2026-11-12)
PRICES = {
    "claude-opus-4-8": ("5", "6.25", "10", "0.50"),
    "claude-opus-4-7": ("5", "6.25", "10", "0.50"),
    "claude-sonnet-4-5": ("3", "3.75", "6", "0.30"),
    "claude-sonnet-4-6": ("3", "3.75", "6", "0.30"),
    "claude-sonnet-4": ("3", "3.75", "6", "0.30"),
    "claude-3-7-sonnet": ("3", "3.75", "6", "0.30"),
}
FAST = 2
"""Fast mode costs so many times as much (Claude docs, Fast mode, 2026-11-12)."""
MILLION = Decimal(10) ** 6
PRICED: dict[bytes, tuple[Decimal, ...]] = {}
"""What calls cost, by their digest: pairs of faults share many a log."""


@cache
def rules_of(model: str, day: date) -> ModelRules:
    return RuleBook().rules("anthropic", model, day)


def costs(log: Log) -> tuple[Decimal, ...]:
    """USD of each call without its output, in the order of time."""
    calls = [
        (one.body, one.start, one.first_token_s, one.workspace, one.status, one.cached_as) for one in in_order(log)
    ]
    key = sha256(marshal.dumps(calls, 2)).digest()
    if key not in PRICED:
        naive = NaiveModel(Sizes() if is_recorded(log) else None)
        PRICED[key] = tuple(_cost(naive, sending) for sending in in_order(log))
    return PRICED[key]


def cost(log: Log) -> Decimal:
    return sum(costs(log), Decimal())


def cheapest(logs: Iterable[Log]) -> Log:
    return min(logs, key=cost)


def _cost(naive: NaiveModel, sending: Sending) -> Decimal:
    if sending.status != 200:
        return Decimal()
    body, day = sending.body, (BEGIN + timedelta(seconds=sending.start)).date()
    cached = {**body, "model": sending.cached_as, "speed": None} if sending.cached_as else body
    rules = rules_of(cached["model"], day)
    usage = naive.call(cached, rules, sending.start, sending.first_token_s, sending.workspace)
    assert not isinstance(usage, str), usage
    prices = map(Decimal, PRICES[rules_of(body["model"], day).model])
    per_input, per_5m, per_1h, per_read = prices
    uncached, read, write_5m, write_1h = usage
    dollars: Decimal = uncached * per_input + read * per_read + write_5m * per_5m + write_1h * per_1h
    return dollars / MILLION * (FAST if body.get("speed") == "fast" else 1)
