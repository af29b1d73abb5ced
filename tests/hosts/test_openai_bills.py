"""Small logs of OpenAI's bills, one for each cause for which a prediction was wrong on bills that nobody had tuned to.

Lengths are those of bills: a call's own bill never sizes its own prediction, that of the call before it does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_runs import printed
from conversations.session_stores import write_lines

Row = dict[str, Any]
START = 1_757_930_400  # 2025-09-15T10:00:00Z
WORD = "word "


def said(role: str, text: str, **more: Any) -> Row:
    return {"role": role, "content": text, **more}


ASK, NEXT = said("user", WORD * 2_000), said("user", WORD * 150)
ANSWER = said("assistant", "answer " * 200)


def call(model: str, at: int, prompt: int, read: int, output: int, *messages: Row, **beside: Any) -> Row:
    """A call whose answer was created `at` seconds after the start, in whole seconds as OpenAI tells them."""
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "prompt_tokens_details": {"cached_tokens": read}}
    answer = {"id": f"c{at}", "object": "chat.completion", "created": START + at, "model": model, "choices": []}
    return {"request": {"model": model, "messages": list(messages)}, "response": {**answer, "usage": usage}, **beside}


def validated(folder: Path, *rows: Row) -> Row:
    log = folder / "log.jsonl"
    write_lines(log, rows)
    found: Row = json.loads(printed("validate", "--json", log))
    return found


def is_exact(folder: Path, *rows: Row) -> bool:
    parsed = validated(folder, *rows)
    counted = [parsed[kind][name] for kind in ("hits", "cold") for name in ("knowable", "exact")]
    assert counted[0] + counted[2] == len(rows), parsed["mismatches"]
    return bool(counted[0] == counted[1] and counted[2] == counted[3])


@pytest.mark.parametrize(("waited", "read"), [(2, 1_920), (4, 1_920), (60, 1_920)])
def test_a_fractional_duration_after_a_whole_second_hides_no_entry(tmp_path: Path, waited: int, read: int) -> None:
    """The answer came 2.9 s after a start that was told as up to a second earlier; the next call began after it."""
    rows = (
        call("gpt-5", 0, 2_012, 0, 900, ASK, first_token_s=2.9),
        call("gpt-5", waited, 2_400, read, 900, ASK, ANSWER, NEXT),
    )
    assert is_exact(tmp_path, *rows)


def test_a_call_beside_one_that_has_no_token_yet_reads_nothing(tmp_path: Path) -> None:
    other = call("gpt-5", 1, 2_200, 0, 50, ASK, NEXT)
    assert is_exact(tmp_path, call("gpt-5", 0, 2_012, 0, 900, ASK, first_token_s=2.9), other)


@pytest.mark.parametrize(("prompt", "read"), [(2_059, 1_920), (2_060, 2_048), (2_100, 2_048)])
def test_twelve_tokens_that_open_the_answer_of_gpt_5_are_not_shared(tmp_path: Path, prompt: int, read: int) -> None:
    reasoned = prompt // 2
    rows = (
        call("gpt-5", 0, prompt, 0, reasoned, ASK),
        call("gpt-5", 10, prompt + 400, read, reasoned, ASK, ANSWER, NEXT),
    )
    assert is_exact(tmp_path, *rows)


@pytest.mark.parametrize(("output", "read"), [(200, 2_176), (200 + 640, 1_920)])
def test_an_answer_is_read_where_nothing_was_reasoned(tmp_path: Path, output: int, read: int) -> None:
    rows = (
        call("gpt-5", 0, 2_012, 0, output, ASK),
        call("gpt-5", 10, 2_365, read, 9, ASK, ANSWER, NEXT),
    )
    assert is_exact(tmp_path, *rows)


def test_messages_of_the_assistant_that_the_client_wrote_are_no_answer(tmp_path: Path) -> None:
    """An agent that appends what a tool returned to the thought of the model."""
    thought = said("assistant", "I need the tool. " + WORD * 400)
    rows = [
        call("gpt-4o-mini", 2 * number, 2_012 + 408 * number, read, 26, ASK, *[thought] * number)
        for number, read in enumerate((0, 1_920, 2_304, 2_816))
    ]
    assert is_exact(tmp_path, *rows)


@pytest.mark.parametrize(("read", "in_range"), [(2_304, True), (1_920, True), (1_024, False), (0, False)])
def test_another_machine_has_what_an_earlier_call_sent(tmp_path: Path, read: int, in_range: bool) -> None:
    rows = (
        call("gpt-5", 0, 2_012, 0, 900, ASK),
        call("gpt-5", 10, 2_400, 1_920, 900, ASK, ANSWER, NEXT),
        call("gpt-5", 20, 2_800, read, 900, ASK, ANSWER, NEXT, ANSWER, NEXT),
    )
    parsed = validated(tmp_path, *rows)
    found = parsed["ranges"]
    assert (found["judged"], found["hold"], found["span_prompt"]) == (1, in_range, 1), "the second call's is 0 to 2,304"


@pytest.mark.parametrize(("model", "read"), [("gpt-5", 1_152), ("gpt-5.6-sol", 1_216)])
def test_reads_are_multiples_of_128_before_5_6_and_exact_after(tmp_path: Path, model: str, read: int) -> None:
    """The same prompt again: of 1,219 tokens GPT-5.6 leaves the opener of the answer uncached."""
    at = 0 if model == "gpt-5" else 30_000_000
    written = 0 if model == "gpt-5" else 1_216
    rows = [call(model, at + 10 * number, 1_219, (0, read)[number], 9, ASK) for number in (0, 1)]
    rows[0]["response"]["usage"]["prompt_tokens_details"]["cache_write_tokens"] = written
    assert is_exact(tmp_path, *rows)
