"""Every rule that a host states in another way than by default is read by a replay of its own way of matching.

A row that nothing reads is listed by `cachecost rules` and changes nothing: the answer would contradict it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cachecost
from cachecost.providers.rulefile import catalogue, hosts
from cachecost.providers.rules import ModelRules, RuleBook

OF_CACHES = (
    *("step_tokens", "reported_step_tokens", "grid_offset_tokens", "recomputed_tokens", "capacity_tokens"),
    *("keeps_answers", "keeps_unreasoned_answers", "opener_tokens", "machine_shares", "first_shares"),
    *("shared_prefix_tokens", "refreshes_on_read", "implicit_breakpoint", "keyed_by", "ttl_s", "read_range"),
)
"""What a simulated cache does. The other rules are about requests: what is refused, and what renders where."""
PLAIN = object.__getattribute__
DEFAULTS = ModelRules("", "", "", 0, 0, "")
PRIVATE = {"role": "user", "content": [{"type": "text", "text": "y" * 9_000, "cache_control": {"type": "ephemeral"}}]}
REQUESTS: list[dict[str, Any]] = [
    {"messages": [PRIVATE]},
    {"messages": [PRIVATE, {"role": "assistant", "content": "z" * 400}, {"role": "user", "content": "w" * 400}]},
    {
        "messages": [{"role": "user", "content": "v" * 9_000}],
        "tools": [
            {"name": "f", "description": "d" * 9_000, "input_schema": {}, "cache_control": {"type": "ephemeral"}}
        ],
        "system": [{"type": "text", "text": "s" * 9_000, "cache_control": {"type": "ephemeral"}}],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    },
    {
        "messages": [{"role": "user", "content": "v" * 9_000}],
        "cache_control": {"type": "ephemeral"},
        "output_config": {"effort": "low"},
        "tool_choice": {"type": "any"},
        "tools": [{"name": "f", "description": "d" * 9_000, "input_schema": {}}],
    },
    {"messages": [PRIVATE, {"role": "system", "content": "u", "output_config": {"effort": "low"}}]},
    {"messages": [PRIVATE], "thread": {"id": "t"}},
    {"messages": [PRIVATE], "compaction": {}},
]


def ways() -> Iterator[tuple[str, str]]:
    """(host, model): of each host the newest model of each way of matching."""
    for host in hosts():
        book, seen = catalogue(host), set[tuple[str, str]]()
        for known in book.models.values():
            for one in (known, *book.other_ways(known)):
                name = one.id.replace("*", "x")
                rules = RuleBook().rules(host, name, book.data_date)
                if (rules.matching, rules.finds) not in seen:
                    seen.add((rules.matching, rules.finds))
                    yield host, name


@pytest.mark.parametrize(("host", "model"), list(ways()))
def test_what_a_host_states_is_read(host: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = catalogue(host).data_date
    stated = RuleBook().rules(host, model, day)
    own = {name for name in OF_CACHES if getattr(stated, name) != getattr(DEFAULTS, name)}
    rows = [
        {"timestamp": f"{day}T12:{n:02}:00Z", "host": host, "request": {"model": model, "max_tokens": 9, **request}}
        for n, request in enumerate(REQUESTS)
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    read: set[str] = set()

    def note(rules: ModelRules, name: str) -> Any:
        read.add(name)
        return PLAIN(rules, name)

    monkeypatch.setattr(ModelRules, "__getattribute__", note, raising=False)
    cachecost.replay(log, tokens="bytes")
    assert (own - read, stated.matching, {n: getattr(stated, n) for n in own - read}) == (set(), stated.matching, {})
    if stated.matching != "none":
        assert "refreshes_on_read" in read
