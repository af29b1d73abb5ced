"""What a host's rules say of a cache is read by a replay of its own way of matching.

A row that nothing reads is listed by `cachecost rules` and changes nothing: the answer would contradict it.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

import cachecost
from cachecost.base.errors import CannotEvaluate
from cachecost.providers.hosts import catalogue, hosts
from cachecost.providers.prices import STANDARD, PriceBook
from cachecost.providers.rules import ModelRules, RuleBook
from conversations.session_stores import write_lines

OF_CACHES = (
    *("step_tokens", "reported_step_tokens", "grid_offset_tokens", "recomputed_tokens", "capacity_tokens"),
    *("keeps_answers", "refreshes_on_read", "implicit_breakpoint", "keyed_by", "read_range"),
)
"""What every replay reads of a cache where it is not the default. Other rules are about requests (what is refused, what
renders where) or are read only where a bill says something (answers, machines, the provider's shared prefix)."""
PLAIN = object.__getattribute__
DEFAULTS = ModelRules("", "", "", 0, 0, "")
LONG = [{"type": "text", "text": "y" * 9_000, "cache_control": {"type": "ephemeral"}}]
REQUESTS: list[dict[str, Any]] = [
    {"system": LONG, "messages": [{"role": "user", "content": LONG}]},
    {"system": LONG, "messages": [{"role": "user", "content": LONG}]},
    {
        "system": LONG,
        "messages": [
            {"role": "user", "content": LONG},
            {"role": "assistant", "content": "z" * 400},
            {"role": "user", "content": "w" * 400},
        ],
    },
]


def is_priced(host: str, model: str, day: date) -> bool:
    try:
        return bool(PriceBook().quote(host, model, day, STANDARD).tiers)
    except CannotEvaluate:
        return False


def ways() -> list[tuple[str, str]]:
    """(host, model): of each host the newest model of each way of matching."""
    found = dict[tuple[str, str, str], tuple[str, str]]()
    for host in hosts():
        book = catalogue(host)
        for known in book.models.values():
            for one in (known, *book.other_ways(known)):
                name = one.id.replace("*", "x")
                rules = RuleBook().rules(host, name, book.data_date)
                if is_priced(host, name, book.data_date) or not book.is_priced:
                    found.setdefault((host, rules.matching, rules.finds), (host, name))
    return list(found.values())


@pytest.mark.parametrize(("host", "model"), ways())
def test_what_a_host_states_is_read(host: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = catalogue(host).data_date
    stated = RuleBook().rules(host, model, day)
    own = {name for name in OF_CACHES if getattr(stated, name) != getattr(DEFAULTS, name)}
    rows = [
        {"timestamp": f"{day}T12:{n:02}:00Z", "host": host, "request": {"model": model, "max_tokens": 9, **request}}
        for n, request in enumerate(REQUESTS)
    ]
    log = tmp_path / "log.jsonl"
    write_lines(log, rows)
    read: set[str] = set()

    def note(rules: ModelRules, name: str) -> Any:
        read.add(name)
        return PLAIN(rules, name)

    monkeypatch.setattr(ModelRules, "__getattribute__", note, raising=False)
    cachecost.replay(log, tokens="bytes")
    assert own - read == set()
    if stated.matching != "none":
        assert "refreshes_on_read" in read
