"""A new format of traces is a table of paths: the fields of a call are found there, and what is wrong has its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.readers.traces import (
    TraceFormat,
    moment_of,
    object_within,
    seconds_between,
    text_at,
    value_at,
    values_at,
)
from cachecost.providers.usage import Usage

FORMAT = TraceFormat(
    expected="spans of a tracer",
    kind="kind",
    kinds=("llm",),
    model=("call/model",),
    provider=("call/provider",),
    session=("meta/conversation", "trace"),
    parent=("parent",),
    keys=(("trace", "kind", "began"),),
    request=("call/request",),
    response=("call/response",),
    counts=("call/usage",),
    start=lambda row: moment_of(row, "began", "started", required=True),
    first_token_s=lambda row, start: seconds_between(start, moment_of(row, "first")),
)
CALL = {
    "model": "claude-opus-4-6",
    "provider": "anthropic",
    "request": {"messages": [{"role": "user", "content": "hello"}]},
    "response": {"content": [{"type": "text", "text": "done"}]},
    "usage": {"input_tokens": 9, "output_tokens": 2},
}


def row(**more: Any) -> dict[str, Any]:
    return {"kind": "LLM", "id": "a", "trace": "t", "began": "2026-03-07T10:00:00Z", "call": CALL, **more}


def read(folder: Path, *rows: Any, notes: list[str] | None = None) -> Any:
    path = folder / "spans.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    return list(FORMAT.calls(path, (notes if notes is not None else []).append))


@pytest.mark.parametrize("call", [CALL, json.dumps(CALL)])
def test_a_call_is_made_of_its_paths(tmp_path: Path, call: Any) -> None:
    (made,) = read(tmp_path, row(call=call, first="2026-03-07T10:00:01.5Z", meta={"conversation": 7}))
    assert (made.request.model, made.host, made.session, made.id) == ("claude-opus-4-6", "anthropic", "7", "a")
    assert (made.billed, made.first_token_s, made.timestamp) == (Usage(9, output_tokens=2), 1.5, "2026-03-07T10:00:00Z")
    assert [block.content["text"] for block in made.response] == ["done"]


def test_a_failed_call_has_the_status_of_its_error(tmp_path: Path) -> None:
    (made,) = read(tmp_path, row(call={**CALL, "usage": None}, error="Error code: 429 - rate limit"))
    assert (made.status, made.billed, made.response, made.session) == (429, None, (), "t")


def test_what_is_no_call_and_what_lacks_is_a_note(tmp_path: Path) -> None:
    notes: list[str] = []
    unnamed, unbilled = {**CALL, "model": None}, {**CALL, "usage": {}}
    read(tmp_path, row(kind="tool"), row(call=unnamed), row(id="b", call=unbilled), row(), row(), notes=notes)
    assert [note.partition(": ")[2] for note in notes] == [
        "skipped 1 entry: kind 'tool' is not a model call",
        "skipped 1 model call: no model name",
        "1 call without usage",
        "skipped 1 entry: same id as another entry",
    ]


def test_errors_have_their_places(tmp_path: Path) -> None:
    damaged = {**CALL, "usage": {"input_tokens": -1, "output_tokens": 2}}
    with pytest.raises(InputError) as found:
        read(tmp_path, row(call=damaged), row(began=None), row(kind=None), [])
    assert [str(fault).partition("spans.jsonl:")[2] for fault in found.value.faults] == [
        "1 usage.input_tokens: expected a whole number of tokens; got -1",
        "2 began: expected an ISO 8601 time; got nothing",
        "3 kind: expected a text; got nothing",
        "4 expected an object; got an array",
    ]
    with pytest.raises(InputError, match="expected spans of a tracer; got nothing"):
        read(tmp_path)


def test_lines_count_from_the_beginning_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_text(f"\n\n{json.dumps([row(kind=None)])}\n\n{json.dumps(row(kind=None))}")
    with pytest.raises(InputError) as found:
        list(FORMAT.calls(path))
    assert [fault.line for fault in found.value.faults] == [3, 5]


def test_a_path_leads_through_json_in_texts() -> None:
    view = {"a": '{"b": {"c": 1, "text": "{cut"}}', "empty": "", "none": None, "list": "[1]", "words": "{}"}
    assert value_at(view, "none", "empty", "a/x", "a/b/c/d", "a/b/c") == 1
    assert list(values_at(view, ("a/b/text", "list"))) == ["{cut", "[1]"]
    assert (value_at(view, "list"), value_at(view, "none")) == ([1], None)
    assert (text_at(view, ("none", "a/b", "words")), text_at(view, ("a/b/c",))) == ("{}", "1")
    assert (object_within(view, "list", "words", "a/b"), object_within(view, "none")) == (
        {"c": 1, "text": "{cut"},
        {},
    )


def test_a_file_is_known_by_its_keys() -> None:
    assert FORMAT.sniff(json.dumps([row()]).encode()) == 'its first object has a "trace" and a "began"'
    assert FORMAT.sniff(json.dumps({"kind": "LLM", "trace": "t"}).encode()) is None
