"""Where reads do not refresh, an entry is gone its TTL after it was written, whatever the way of matching (rule 12)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from case_files import DATA

import cachecost
from cachecost.base.structs import replace
from cachecost.providers.rules import ModelRules, RuleBook
from conversations.session_stores import write_lines

LOG = DATA / "57-reads-that-do-not-refresh" / "log.jsonl"
TTL = {"5m": 600.0, "1h": 600.0}
RESOLVE: Callable[..., ModelRules] = RuleBook._resolve
WAYS: dict[str, dict[str, Any]] = {
    "grid": {},
    "best_effort": {},
    "units": {},
    "breakpoint": {},
    "named": {"breakpoint_layers": ("tools", "system")},
}


def in_system(folder: Path) -> Path:
    """The same four calls with their text in a system block with a breakpoint."""
    rows = [json.loads(line) for line in LOG.read_text().splitlines()]
    for row in rows:
        text = row["request"]["messages"][0]["content"]
        row["request"]["system"] = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]
        row["request"]["messages"] = [{"role": "user", "content": "go"}]
        row["request"]["model"], row["host"] = "claude-sonnet-5", "anthropic"
    log = folder / "log.jsonl"
    write_lines(log, rows)
    return log


@pytest.mark.parametrize("refreshes", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_the_first_entry_is_gone_ten_minutes_after_it_was_written(
    way: str, refreshes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(book: RuleBook, *key: Any) -> ModelRules:
        return replace(RESOLVE(book, *key), matching=way, ttl_s=TTL, refreshes_on_read=refreshes, **WAYS[way])

    monkeypatch.setattr(RuleBook, "_resolve", resolve)
    log = in_system(tmp_path) if way in ("breakpoint", "named") else LOG
    reads = [row.usage.read for row in cachecost.replay(log, tokens="bytes").rows]
    assert [read > 8_000 for read in reads] == ([False, True, True, True] if refreshes else [False, True, False, True])
