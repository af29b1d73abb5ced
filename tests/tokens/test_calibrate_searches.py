"""What results of a web search cost, fitted on bills that are sums over passes."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from cachecost.analysis.fidelity.validation import is_held_out
from cachecost.tokens.calibration import Calibration
from cachecost.tokens.tokenizers import has_ctok
from tools.calibrate.recorded import read_recorded
from tools.calibrate.searches import STARTS, Search, searches_in, with_searches

WITH_CTOK = pytest.mark.skipif(not has_ctok(), reason="ctok is not installed (it wants Python >= 3.12)")
WEB = {"type": "web_search_20250305", "name": "web_search"}
ASKS = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": [WEB], "messages": [{"role": "user", "content": "?"}]}
USE = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "ducks"}}


def row(characters: int, billed: int, file: str = "b", **more: Any) -> str:
    sealed = {"type": "web_search_result", "title": "t", "url": "u", "encrypted_content": "A" * characters}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [sealed] * 2}
    answer = [USE, found, {"type": "text", "text": "Yes."}] if characters else [{"type": "text", "text": "Yes."}]
    usage = {"input_tokens": billed, "output_tokens": 9}
    fields = {
        "source": "s",
        "file": file,
        "timestamp": None,
        "request": ASKS,
        "usage": usage,
        "response_content": answer,
    }
    return json.dumps({**fields, **more})


def log_of(tmp_path: Path, *rows: str) -> Path:
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(rows) + "\n")
    return log


@WITH_CTOK
def test_what_is_left_of_a_bill_is_what_the_results_cost(tmp_path: Path) -> None:
    assert [is_held_out(f"s__{name}") for name in "bd"] == [False, True]
    rows = [row(2000, 5000), row(3000, 5600), row(0, 2000), row(2000, 9999, "d"), row(2000, 9999, redacted=2)]
    short, long = searches_in([log_of(tmp_path, *rows)])
    assert (short.generation, short.billed, short.facts) == ("claude-3", 5000, {"found": 2, "sealed": 4000})
    assert (long.billed, long.facts["sealed"]) == (5600, 6000)
    assert long.left - short.left == pytest.approx(600, abs=2), "all else is the same in both"


def test_calls_without_a_bill_to_go_by_are_left_out(tmp_path: Path) -> None:
    log = log_of(tmp_path, row(0, 10), row(0, 0), row(0, 11, redacted=1), row(0, 12, "d"))
    assert [(one.billed, one.is_held_out) for one in read_recorded(log)] == [(10, False), (12, True)]


def blank(generation: str, ratio: float) -> Calibration:
    return Calibration(generation, {"text": ratio}, {"tool": 1}, 0, {}, date(2026, 11, 24))


def test_constants_are_found_and_grow_where_no_search_tells() -> None:
    facts = [{"found": n, "sealed": characters} for n in (5, 10) for characters in (20_000, 40_000, 60_000)]
    told = [Search("claude-3", one, 60 * one["found"] + 0.25 * one["sealed"], 20_000) for one in facts]
    found = with_searches({"claude-3": blank("claude-3", 1.1), "claude-4.8": blank("claude-4.8", 1.65)}, told)
    assert found["claude-3"].structure == {"tool": 1, "found": 60, "sealed": 0.25}
    assert found["claude-4.8"].structure == {"tool": 1, "found": 60, "sealed": 0.375}
    untold = with_searches({"claude-3": blank("claude-3", 1.1)}, [])["claude-3"].structure
    assert (untold["found"], untold["sealed"] * 1000) == (STARTS["found"], STARTS["sealed"])
