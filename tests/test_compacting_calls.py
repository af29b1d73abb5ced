"""A call that the API compacted in is charged for each of its passes, in replay as in the bill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_runs import printed
from conversations.session_stores import write_lines

Row = dict[str, Any]
SUMMARY = {"type": "compaction", "content": "summary " * 300}
SYSTEM = [{"type": "text", "text": "be kind " * 5_000, "cache_control": {"type": "ephemeral"}}]


def user(text: str, marked: bool = False) -> Row:
    breakpoint = {"cache_control": {"type": "ephemeral"}} if marked else {}
    return {"role": "user", "content": [{"type": "text", "text": text, **breakpoint}]}


def usage(uncached: int, read: int, written: int, output: int, **more: Any) -> Row:
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    return {**dict(zip(names, (uncached, read, written, output), strict=True)), **more}


def row(second: int, messages: list[Row], bill: Row, *answer: Row) -> Row:
    request = {
        "model": "claude-opus-4-6",
        "max_tokens": 9,
        "system": SYSTEM,
        "messages": messages,
        "context_management": {"edits": [{"type": "compact_20260112"}]},
    }
    answered = {"response": {"content": list(answer)}} if answer else {}
    return {"timestamp": f"2026-03-07T10:00:{second:02}Z", "request": request, "usage": bill, **answered}


def log(path: Path, with_answer: bool = True) -> Path:
    """Two questions, one that fills the context, and one after the compaction; the system prompt has 12,004 tokens."""
    first, second, done = "word " * 20_000, "x " * 80_000, {"type": "text", "text": "done"}
    answer = [{"role": "assistant", "content": "ok"}]
    compacted = [{"type": "compaction", **usage(300, 32_010, 80_006, 900)}]
    compacted += [{"type": "message", **usage(400, 12_004, 0, 50)}]
    bill = usage(400, 12_004, 0, 50, iterations=compacted)
    rows = [
        row(0, [user("hi")], usage(9, 0, 12_004, 10)),
        row(9, [user(first, True)], usage(3, 12_004, 20_006, 10), {"type": "text", "text": "ok"}),
        row(20, [user(first), *answer, user(second, True)], bill, *([SUMMARY, done] if with_answer else [])),
        row(
            40,
            [user(first), *answer, user(second), {"role": "assistant", "content": [SUMMARY, done]}, user("next", True)],
            usage(3, 12_004, 420, 10),
        ),
    ]
    return write_lines(path, rows)


@pytest.mark.parametrize("with_answer", [True, False])
def test_it_costs_the_sum_over_its_iterations(tmp_path: Path, with_answer: bool) -> None:
    """By hand, at 5, 0.50, 6.25 and 25 dollars a million: 700 uncached, 44,014 read, 80,006 written, 950 of output."""
    made = [
        json.loads(line) for line in printed("replay", log(tmp_path / "log.jsonl", with_answer), "--json").splitlines()
    ]
    usage = made[2]["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]) == (
        700,
        44_014,
        80_006,
    )
    assert (usage["output_tokens"], made[2]["cost_usd"]) == (950, "0.5492945")
    imported = json.loads(printed("import", tmp_path / "log.jsonl", "-o", tmp_path / "made.jsonl", "--json"))
    assert float(imported["billed_cost_usd"]) == pytest.approx(sum(float(one["cost_usd"]) for one in made), abs=1e-9)
    again = [json.loads(line) for line in printed("replay", tmp_path / "made.jsonl", "--json").splitlines()]
    assert [one["usage"] for one in again] == [one["usage"] for one in made]


def test_what_was_summed_up_is_rendered_as_sent_and_what_is_left_without_it(tmp_path: Path) -> None:
    """In bytes, where no bill counts: the first pass has all messages, the second tools, system prompt and summary."""
    path = log(tmp_path / "log.jsonl")
    _, one, two, _ = (json.loads(line) for line in printed("replay", path, "--tokens", "bytes", "--json").splitlines())
    system = len(json.dumps({"type": "text", "text": SYSTEM[0]["text"]}, separators=(",", ":")))
    summary = len(json.dumps(SUMMARY, separators=(",", ":")))
    assert two["usage"]["cache_read_input_tokens"] == one["usage"]["cache_creation_input_tokens"] + 2 * system
    assert two["usage"]["input_tokens"] == summary


def test_validate_holds_it_against_all_that_was_billed(tmp_path: Path) -> None:
    parsed = json.loads(printed("validate", log(tmp_path / "log.jsonl"), "--json"))
    assert (parsed["hits"]["knowable"], parsed["cold"], parsed["unknown_earlier_writes"]) == (
        3,
        {"knowable": 1, "exact": 1},
        0,
    )
    assert parsed["token_error"]["p95"] < 0.5
    assert {wrong["call"]: wrong["billed"]["cache_read_input_tokens"] for wrong in parsed["mismatches"]}.get(
        3, 44_014
    ) == 44_014
