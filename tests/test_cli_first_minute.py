"""A Claude Code user's first minute: a folder of transcripts in, what they cost and would have cost out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sessions.small_sessions import answer, write

from command_runs import run_apart, run_here
from conversations.test_merging import BESIDE, FIRST, GOES_ON, project


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    (tmp_path / "X").mkdir()
    project(tmp_path / "X", one=FIRST, two=[*FIRST, *GOES_ON], three=BESIDE)
    made = run_here("import", "X", "-o", "x.jsonl", cwd=tmp_path)
    assert made.returncode == 0
    assert made.stdout == (
        'x.jsonl  3 calls in 3 conversations  (claude-code: its first line has a "type" and a "parentUuid")\n'
        "billed $0.043: 5.0k read, 6.1k written, 16 uncached, 93 output\n"
    )
    return tmp_path


def test_what_did_it_cost_and_what_otherwise(sessions: Path) -> None:
    """By hand, at 5, 0.50, 6.25, 10 and 25 dollars per million; the session of 704 tokens is too short to cache."""
    asked = ("none", "claude-code", "claude-code@1h")
    done = run_apart("replay", "x.jsonl", *(word for name in asked for word in ("--strategy", name)), cwd=sessions)
    assert (done.returncode, done.stderr) == (
        0,
        "x.jsonl: detected format: calls (its first line says format and kind calls)\n",
    )
    head, *lines = [line.split() for line in done.stdout.splitlines()[1:6]]
    assert " ".join(head) == "strategy calls read write 5m write 1h uncached output cost rank"
    assert [line[: line.index("93") + 3] for line in lines] == [
        ["billed", "3", "5.0k", "6.1k", "0", "16", "93", "$0.0430"],
        ["none", "3", "0", "0", "0", "11k", "93", "$0.0579", "2"],
        ["claude-code", "3", "5.0k", "5.4k", "0", "716", "93", "$0.0422", "1"],
        ["claude-code@1h", "3", "5.0k", "0", "5.4k", "716", "93", "$0.0624", "3"],
    ]


def test_planned_anew_as_the_client_sent_it_is_as_recorded(sessions: Path) -> None:
    """What a transcript is marked with is what the strategy of that name breakpoints."""
    recorded = run_here("replay", "x.jsonl", "--json", cwd=sessions).stdout.splitlines()
    planned = run_here("replay", "x.jsonl", "--strategy", "claude-code", "--json", cwd=sessions).stdout.splitlines()
    assert [json.loads(line)["usage"] for line in recorded] == [json.loads(line)["usage"] for line in planned]
    assert {json.loads(line)["strategy"] for line in planned} == {"claude-code"}


def test_a_ttl_that_a_strategy_cannot_have_is_told(sessions: Path) -> None:
    done = run_here("replay", "x.jsonl", "--strategy", "claude-cod@1h", cwd=sessions)
    assert done.returncode == 2
    assert "got 'claude-cod' (did you mean 'claude-code'?)" in done.stderr


def test_on_another_model(sessions: Path) -> None:
    asked = ("replay", "x.jsonl", "--strategy", "none", "--model", "claude-haiku-4-5", "--json")
    rows = [json.loads(line) for line in run_here(*asked, cwd=sessions).stdout.splitlines()]
    assert {row["model"] for row in rows} == {"claude-haiku-4-5"}
    done = run_here("replay", "x.jsonl", "--model", "claude-haiku-4-5", cwd=sessions)
    assert done.returncode == 2
    assert "--model: expected --strategy or --all too; without them each call keeps its own model" in done.stderr


def test_a_call_of_which_only_the_bill_is_known_counts_in_the_bill_and_is_not_predicted(tmp_path: Path) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 100}
    request = {"model": "claude-opus-4-6", "messages": []}
    bare = {"timestamp": "2026-03-07T10:00:00Z", "request": request, "usage": usage}
    (tmp_path / "log.jsonl").write_text(json.dumps(bare) + "\n")
    done = run_here("replay", "log.jsonl", cwd=tmp_path)
    assert (done.returncode, "  billed " in done.stdout) == (3, True)
    planned = run_here("replay", "log.jsonl", "--strategy", "none", cwd=tmp_path)
    assert planned.returncode == 3
    assert "1 call with only its bill in the log: not part of a conversation" in planned.stderr
    assert "log.jsonl contains no conversation that can be planned again" in planned.stderr
    made = run_here("replay", "log.jsonl", "--json", cwd=tmp_path)
    assert json.loads(made.stdout)["error"]["message"] == "the log has only the bill, not the request"
    judged = run_here("validate", "log.jsonl", "--json", cwd=tmp_path)
    assert judged.returncode == 3 and json.loads(judged.stdout)["calls"] == 0


def test_lengths_that_only_bills_give_name_no_tokenizer(tmp_path: Path) -> None:
    write(tmp_path / "s.jsonl", *(answer(at, (3, 20_000 + at, 100, 0, 9)) for at in (0, 100, 200)))
    printed = run_here("validate", "s.jsonl", cwd=tmp_path).stdout.splitlines()
    assert "  tokens   bills of other calls" in printed
