"""What a recorded session costs by the naive model of the rulebook, with prices written down here again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from cachecost.providers.rules import RuleBook
from cachecost.tokens.factory import make_counter
from naive import NaiveModel
from test_differential import Tokens

# USD per million tokens: input, write for five minutes, read (Claude docs, Pricing, 2026-11-21)
PRICES = {"claude-sonnet-5-5": ("2", "2.5", "0.1"), "claude-opus-5-5": ("4", "5", "0.2")}
DAY = date(2026, 11, 21)
MILLION = Decimal(10) ** 6
Body = dict[str, Any]
Sent = tuple[Body, float]
"""A body, and its time in seconds."""


def sent_calls(recording: Path) -> list[Sent]:
    """The calls of a recording with content, as bodies of the Messages API."""
    blocks: dict[int, Body] = {}
    heads: dict[int, Body] = {}
    messages: dict[int, list[Body]] = {0: []}
    calls: list[Sent] = []
    for text in recording.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        if "block" in line:
            blocks[line["block"]] = line["content"]
        elif "call" in line:
            before, count = line.get("after", (0, 0))
            own = [{"role": role, "content": [blocks[one] for one in numbers]} for role, numbers in line["messages"]]
            messages[line["call"]] = messages[before][:count] + own
            body = _body(heads[line["head"]], blocks, messages[line["call"]], line)
            calls.append((body, datetime.fromisoformat(line["timestamp"]).timestamp()))
        elif "head" in line:
            heads[line["head"]] = line
    return calls


def _body(head: Body, blocks: dict[int, Body], messages: list[Body], line: Body) -> Body:
    layers = {layer: [blocks[one] for one in head[layer]] for layer in ("tools", "system")}
    body: Body = json.loads(json.dumps({**head["params"], "model": head["model"], **layers, "messages": messages}))
    for layer, *at, ttl in line["breakpoints"]:
        block = body[layer][at[0]] if len(at) == 1 else body[layer][at[0]]["content"][at[1]]
        block["cache_control"] = {"type": "ephemeral", "ttl": ttl}
    if "automatic" in line:
        body["cache_control"] = {"type": "ephemeral", "ttl": line["automatic"]}
    return body


def cost(calls: Sequence[Sent]) -> Decimal:
    """USD of calls one after the other, from an empty cache on; of input only, as no output is billed."""
    naive = NaiveModel()
    total = Decimal()
    for body, start in calls:
        rules = RuleBook(as_of=DAY).rules("anthropic", body["model"])
        naive.measure = Tokens(make_counter("tiktoken", rules.generation), rules)
        uncached, read, write_5m, write_1h = naive.call(body, rules, start, 0.0)
        assert write_1h == 0
        prices = map(Decimal, PRICES[body["model"]])
        total += sum(tokens * price for tokens, price in zip((uncached, write_5m, read), prices, strict=True))
    return total / MILLION


def repeated(calls: Sequence[Sent], change: Callable[[Body], Body]) -> list[Sent]:
    """The same calls again right after them, each changed."""
    later = calls[-1][1] + 2.0 - calls[0][1]
    return [*calls, *((change(json.loads(json.dumps(body))), start + later) for body, start in calls)]
