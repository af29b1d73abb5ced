"""What a request to OpenAI chooses decides what is cached, from a log through `cachecost replay`.

Tokens are bytes, so that a block of N letters counts N and what surrounds them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachecost.cli import cachecost
from conversations.session_stores import write_lines

Row = dict[str, Any]
IN_EXPLICIT_MODE = {"prompt_cache_options": {"mode": "explicit"}}
KEYED = {"prompt_cache_key": "a"}
POINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}
PRICES = """
[[price]]
host = "openai"
model = "gpt-6.2-sol"
input = 2
read = 0.1
write_5m = 2.5
write_1h = 5
output = 10
"""
TEXT = len('{"type":"text","text":""}')


def message(role: str, words: str, **more: Any) -> Row:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": words, **more}]}


def asked(model: str, question: str, *, head: Row | None = None, **more: Any) -> Row:
    return {"model": model, "input": [head or message("developer", "d" * 2_000), message("user", question)], **more}


def answered(number: int, model: str, **usage: Any) -> Row:
    return {"id": f"resp_{number}", "object": "response", "model": model, "created_at": 1_795_000_000, "output": []} | (
        {"usage": usage} if usage else {}
    )


def replayed(folder: Path, bodies: list[Row], *arguments: str) -> list[Row]:
    """The rows of calls a minute apart."""
    log = folder / "log.jsonl"
    entries = [
        {"timestamp": f"2026-11-20T10:0{number}:00Z", "request": body, "response": answered(number, body["model"])}
        for number, body in enumerate(bodies)
    ]
    write_lines(log, entries)
    return rows_of(log, *arguments)


def rows_of(log: Path, *arguments: str) -> list[Row]:
    command = ["replay", str(log), "--json", "--tokens", "bytes", "--host", "openai", *arguments]
    result = CliRunner().invoke(cachecost, command, catch_exceptions=False)
    return [json.loads(line) for line in result.stdout.splitlines()]


def counts(rows: list[Row]) -> list[tuple[int, int, int]]:
    """(read, written, uncached) of each call."""
    names = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens")
    return [tuple(row["usage"][name] for name in names) for row in rows]  # type: ignore[misc]


HEAD, USER = 2_000 + TEXT, 100 + TEXT


@pytest.mark.parametrize(
    ("options", "point", "expected"),
    [
        ({}, {}, [(0, HEAD + USER, 0), (HEAD, USER, 0)]),
        (IN_EXPLICIT_MODE, {}, [(0, 0, HEAD + USER), (0, 0, HEAD + USER)]),
        (IN_EXPLICIT_MODE, POINT, [(0, HEAD, USER), (HEAD, 0, USER)]),
        ({}, POINT, [(0, HEAD + USER, 0), (HEAD, USER, 0)]),
    ],
)
def test_the_mode_of_a_request_decides_where_its_breakpoints_are(
    tmp_path: Path, options: Row, point: Row, expected: list[tuple[int, int, int]]
) -> None:
    head = message("developer", "d" * 2_000, **point)
    bodies = [asked("gpt-6.1-sol", letter * 100, head=head, **options) for letter in "ab"]
    assert counts(replayed(tmp_path, bodies)) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-6.1-sol", [(0, 1_500 + TEXT + HEAD + USER, 0)] * 2),  # other instructions: nothing is shared
        ("gpt-6.2-sol", [(0, HEAD + USER, 1_500 + TEXT), (HEAD, USER, 1_500 + TEXT)]),
    ],
)
def test_instructions_are_never_cached_from_gpt_6_2_on(
    tmp_path: Path, model: str, expected: list[tuple[int, int, int]]
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES)
    bodies = [asked(model, letter * 100, instructions=letter * 1_500) for letter in "ab"]
    assert counts(replayed(tmp_path, bodies, "--prices", str(prices))) == expected


def test_breakpoints_after_instructions_stay_where_they_are(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES)
    head = message("developer", "d" * 2_000, **POINT)
    bodies = [
        asked("gpt-6.2-sol", letter * 100, head=head, instructions="i" * 50, **IN_EXPLICIT_MODE) for letter in "ab"
    ]
    uncached = 50 + TEXT + USER
    assert counts(replayed(tmp_path, bodies, "--prices", str(prices))) == [(0, HEAD, uncached), (HEAD, 0, uncached)]


@pytest.mark.parametrize("count", ["one", -1, 0, 1.5, None, {"a": 1}])
def test_a_strange_number_of_instructions_is_none(tmp_path: Path, count: Any) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES)
    body = {"model": "gpt-6.2-sol", "system": "s" * 2_000, "messages": [{"role": "user", "content": "u" * 100}]}
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"timestamp": "2026-11-20T10:00:00Z", "request": {**body, "instruction_blocks": count}}))
    assert counts(rows_of(log, "--prices", str(prices))) == [(0, HEAD + USER, 0)]


def test_a_model_without_a_price_is_not_evaluated(tmp_path: Path) -> None:
    (row,) = replayed(tmp_path, [asked("gpt-6-astra-law", "a")])
    assert row["error"]["message"] == "no price known for gpt-6-astra-law on host openai; give one with --prices"


@pytest.mark.parametrize("model", ["gpt-5.2", "gpt-6.1-sol"])
@pytest.mark.parametrize(
    ("first", "second", "is_read"),
    [({}, {}, True), (KEYED, KEYED, True), (KEYED, {"prompt_cache_key": "b"}, False), ({}, KEYED, False)],
)
def test_another_cache_key_finds_nothing(tmp_path: Path, model: str, first: Row, second: Row, is_read: bool) -> None:
    rows = replayed(tmp_path, [asked(model, "a", **first), asked(model, "a", **second)])
    assert [read > 0 for read, _, _ in counts(rows)] == [False, is_read]


def test_a_chain_of_responses_reads_what_it_continues(tmp_path: Path) -> None:
    first, second = asked("gpt-6.1-sol", "a" * 100), {"model": "gpt-6.1-sol", "input": "b" * 100}
    rows = replayed(tmp_path, [first, {**second, "previous_response_id": "resp_0"}, second])
    assert counts(rows)[1] == (HEAD + USER, USER, 0)
    assert counts(rows)[2][0] == 0, "the same input without what came before"


def test_a_pair_of_batch_files_costs_half(tmp_path: Path) -> None:
    chat = {"model": "gpt-5.2", "messages": [{"role": "user", "content": "a" * 3_000}]}
    usage = {"prompt_tokens": 3_000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 0}}
    answer = {"object": "chat.completion", "created": 1_763_632_800, "model": "gpt-5.2", "usage": usage}
    request = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": chat}
    result = {"custom_id": "a", "response": {"status_code": 200, "body": answer}, "error": None}
    (tmp_path / "batch_input.jsonl").write_text(json.dumps(request) + "\n")
    (tmp_path / "batch_output.jsonl").write_text(json.dumps(result) + "\n")
    (tmp_path / "single.jsonl").write_text(json.dumps({"request": chat, "response": answer}) + "\n")
    as_of = ("--as-of", "2026-11-20")
    (batched,), (single,) = (rows_of(tmp_path / name, *as_of) for name in ("batch_output.jsonl", "single.jsonl"))
    assert batched["usage"] == single["usage"]
    assert 2 * float(batched["cost_usd"]) == float(single["cost_usd"]) > 0


def test_a_call_before_gpt_5_6_costs_between_what_its_machines_may_have(tmp_path: Path) -> None:
    """The first call is cold, its repetition may read nothing; from then on a call reads what the one before it did,
    give or take the step of 128 tokens that a read is cut to."""
    rows = replayed(tmp_path, [asked("gpt-4o-mini", "a" * length) for length in (100, 100, 100)])
    read = [row["usage"]["cache_read_input_tokens"] for row in rows]
    ranges = [[float(end) for end in row["cost_range_usd"]] for row in rows]
    missed = float(rows[0]["cost_usd"])
    assert read[0] == 0 < read[1] == read[2]
    assert ranges[0] == [missed, missed]
    assert ranges[1] == [float(rows[1]["cost_usd"]), missed]
    step = 128 * 0.075e-6  # the difference of an input token and of one that was read
    assert ranges[2] == [float(rows[2]["cost_usd"]), pytest.approx(float(rows[2]["cost_usd"]) + step)]
    assert "cost_range_usd" not in replayed(tmp_path, [asked("gpt-6.1-sol", "a")])[0]


def test_replay_says_below_its_table_that_the_hits_are_a_range(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    replayed(tmp_path, [asked(model, "a" * 100) for model in ("gpt-4o-mini", "gpt-4o", "gpt-4o-mini")])
    command = ["replay", str(log), "--tokens", "bytes", "--host", "openai"]
    shown = CliRunner().invoke(cachecost, command, catch_exceptions=False).stdout
    assert shown.count("hits on host openai are a range: a call may come to a machine whose cache has less;") == 1
