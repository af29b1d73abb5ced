"""A recording that begins in the middle of a session: what its first bills read was cached before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from cachecost.api import compare, explain, read, replay
from cachecost.cli import cachecost
from conversations.session_stores import write_lines

SYSTEM = [{"type": "text", "text": "All rules of the house. " * 400, "cache_control": {"type": "ephemeral"}}]
BREAKPOINT = {"cache_control": {"type": "ephemeral"}}


def user(text: str, marked: bool = False) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text, **(BREAKPOINT if marked else {})}]}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


TALK = [user("first " * 300), assistant("yes"), user("second " * 300), assistant("no"), user("third " * 300)]


def call(second: int, messages: list[dict[str, Any]], usage: tuple[int, int, int], **more: Any) -> dict[str, Any]:
    """One row; `usage` is input, read, written for 5m."""
    body = {"model": "claude-sonnet-4-6", "max_tokens": 9, "system": SYSTEM, "messages": messages, **more}
    names = "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"
    billed = {**dict(zip(names, usage, strict=True)), "output_tokens": 5}
    return {"timestamp": f"2026-06-01T10:00:{second:02d}Z", "request": body, "usage": billed}


def last_marked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*messages[:-1], user(messages[-1]["content"][0]["text"], marked=True)]


WARM = [
    call(0, last_marked(TALK[:3]), (3, 2_300, 310)),
    call(20, last_marked(TALK), (3, 2_610, 306)),
]
COLD = [call(0, last_marked(TALK[:3]), (3, 0, 2_610)), WARM[1]]


def log(tmp_path: Path, rows: list[dict[str, Any]]) -> str:
    path = tmp_path / "log.jsonl"
    write_lines(path, rows)
    return str(path)


def run(*arguments: str) -> str:
    found = CliRunner().invoke(cachecost, arguments)
    assert found.exit_code == 0, found.output
    return found.stdout


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_first_bill_that_reads_proves_what_was_cached(tmp_path: Path) -> None:
    rows = rows_of(run("replay", log(tmp_path, WARM), "--json"))
    assert [row["cause"] for row in rows] == ["warm_start", "hit"]
    assert [row["usage"]["cache_read_input_tokens"] for row in rows] == [2_300, 2_610]
    assert [row["usage"]["cache_creation_input_tokens"] for row in rows] == [310, 306]


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    rows = rows_of(run("replay", log(tmp_path, WARM), "--json", "--rule", "warm_start=cold"))
    assert [row["cause"] for row in rows] == ["cold_start", "hit"]
    assert rows[0]["usage"]["cache_read_input_tokens"] == 0


def test_a_recording_that_starts_cold_stays_cold(tmp_path: Path) -> None:
    assert [row["cause"] for row in rows_of(run("replay", log(tmp_path, COLD), "--json"))] == ["cold_start", "hit"]
    assert "arm start" not in run("replay", log(tmp_path, COLD))


def test_it_is_said(tmp_path: Path) -> None:
    words = "Warm start: 1 call reads 2,300 tokens cached before the recording began (--rule warm_start=cold counts"
    assert words in run("replay", log(tmp_path, WARM))
    assert words in run("explain", log(tmp_path, WARM))
    parsed = json.loads(run("explain", log(tmp_path, WARM), "--json"))
    assert parsed["warm_start"] == {"calls": 1, "tokens": 2_300}
    assert parsed["findings"] == []


def test_it_holds_where_the_recording_is_planned_anew(tmp_path: Path) -> None:
    path = log(tmp_path, WARM)
    rows = rows_of(run("replay", path, "--strategy", "progressive", "--strategy", "system-only", "--json"))
    first = [row for row in rows if row["call"] == 1]
    assert [row["cause"] for row in first] == ["warm_start", "warm_start"]
    assert first[0]["usage"]["cache_read_input_tokens"] == 2_300
    assert 0 < first[1]["usage"]["cache_read_input_tokens"] < 2_300  # its breakpoint stands before the messages
    assert "  Lower bound: $0.00372; no choice" in run("replay", path, "--strategy", "progressive")


def test_other_content_starts_cold(tmp_path: Path) -> None:
    rows = rows_of(
        run("replay", log(tmp_path, WARM), "--strategy", "progressive", "--model", "claude-sonnet-5", "--json")
    )
    assert rows[0]["cause"] == "cold_start"


def test_it_holds_in_the_api(tmp_path: Path) -> None:
    recording = read(log(tmp_path, WARM))
    assert replay(recording).rows[0].cause == "warm_start"
    assert replay(recording, rules={"warm_start": "cold"}).rows[0].cause == "cold_start"
    assert explain(recording).warm.tokens == 2_300
    assert compare(recording, ["progressive", "none"])["progressive"].usage.read > 2_300


def test_each_prefix_has_its_own_first_bill(tmp_path: Path) -> None:
    side = call(10, last_marked([user("side " * 2_000), assistant("?"), user("question")]), (3, 4_000, 12),
                system=[{"type": "text", "text": "Another."}])  # fmt: skip
    rows = rows_of(run("replay", log(tmp_path, [WARM[0], side, WARM[1]]), "--json"))
    assert [row["cause"] for row in rows] == ["warm_start", "warm_start", "hit"]
    assert rows[1]["usage"]["cache_read_input_tokens"] == 4_000


def test_what_an_earlier_call_sent_without_reading_it_is_no_warm_start(tmp_path: Path) -> None:
    uncached = call(0, TALK[:3], (2_613, 0, 0), system=[{"type": "text", "text": SYSTEM[0]["text"]}])
    rows = rows_of(run("replay", log(tmp_path, [uncached, {**WARM[0], "timestamp": "2026-06-01T10:00:05Z"}]), "--json"))
    assert rows[1]["cause"] != "warm_start"


def test_a_cut_recording_costs_what_was_billed(tmp_path: Path) -> None:
    cut = str(tmp_path / "cut.jsonl")
    session = Path(__file__).parents[1] / "scenarios/recordings/sessions/claude-code.jsonl"
    run("recording", "cut", str(session), "--calls", "10-20", "-o", cut)
    rows = rows_of(run("replay", cut, "--json"))
    billed = read(cut).calls
    assert [row["usage"]["cache_read_input_tokens"] for row in rows] == [one.billed.read for one in billed]
    assert rows[0]["cause"] == "warm_start"
