"""The JSON Schema of a line: what is bundled and what is written validates, damaged lines do not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from random_logs import lines, logs

from cachecost.conversations import call_recording, model
from cachecost.conversations.call_recording import TOKENS, Title
from cachecost.conversations.model import (
    CONTENTS,
    EVENTS,
    BlockWriter,
    ContentFree,
    Conversation,
    Human,
    Inquiry,
    Reply,
    Results,
)
from cachecost.conversations.readers import request_log
from cachecost.conversations.readers.call_recording import TTLS
from cachecost.conversations.readers.claude_code.content_free import BETWEEN
from cachecost.prompts.blocks import Part, given_block
from cachecost.prompts.intake import OBJECTS, PARAMETERS
from cachecost.prompts.request import ROLES, block_of, text_block
from cachecost.providers.usage import Usage
from step_records import TranscriptStep, steps_to_records

SCHEMA = json.loads((files("cachecost.conversations") / "recording.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
RECORDINGS = Path(__file__).parents[2] / "scenarios" / "recordings"
DIGEST = re.compile(r"[0-9a-f]{32}")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
NOON = "2026-03-07T12:00:00Z"
FREE_TEXTS = {"name", "source", "model", "answer_type", "tool_use", "chain"}


def shape(value: Any, name: str = "") -> Any:
    """The same line for all lines that the schema cannot tell apart, so that each shape is validated once."""
    if isinstance(value, dict):
        return {key: shape(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        all_shapes = [shape(inner) for inner in value]
        return all_shapes if len(value) < 6 else list({json.dumps(one): one for one in all_shapes}.values())
    if isinstance(value, str):
        same = "0" * 32 if name == "digest" and DIGEST.fullmatch(value) else value
        return name if name in FREE_TEXTS else NOON if MOMENT.fullmatch(value) else same
    return type(value)(1) if type(value) in (int, float) and value >= 0 else value


def faults(told: Iterable[Any]) -> Iterator[str]:
    """The shapes that do not validate."""
    for one in {json.dumps(shape(line)) for line in told}:
        if not VALIDATOR.is_valid(json.loads(one)):
            yield one


def parsed(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def test_it_is_a_schema_and_every_part_says_what_it_is() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    kinds = [SCHEMA["$defs"][one["$ref"].rpartition("/")[2]] for one in SCHEMA["oneOf"]]
    assert all(kind["title"] and kind["additionalProperties"] is False for kind in kinds)
    assert all("title" in part or "description" in part or len(part) < 3 for part in SCHEMA["$defs"].values())


def test_its_words_are_those_of_the_readers() -> None:
    parts = SCHEMA["$defs"]
    assert parts["content"]["enum"] == list(CONTENTS) and parts["ttl"]["enum"] == list(TTLS)
    assert parts["block_role"]["enum"] == [*ROLES, ""]
    assert list(parts["params"]["properties"]) == list(PARAMETERS)
    assert [name for name, one in parts["params"]["properties"].items() if one is not True] == list(OBJECTS)
    counts = [*TOKENS, "tool_uses", "charged_usd"]
    assert list(parts["usage"]["properties"]) == counts == list(parts["iteration"]["properties"])[2:]
    assert parts["step"]["properties"]["between"]["items"]["enum"] == list(BETWEEN)
    told = [*parts["message_event"]["properties"]["event"]["enum"], "reply", "inquiry"]
    assert sorted(told) == sorted(EVENTS.values())


def test_every_bundled_recording_validates() -> None:
    paths = sorted(RECORDINGS.rglob("*.jsonl"))
    assert len(paths) > 300
    assert not list(faults(line for path in paths for line in parsed(path.read_bytes())))


def blocks(content: str) -> BlockWriter:
    return BlockWriter(ContentFree(b"k") if content == "digest" else None, lambda block: ({"cl100k": 3}, "code"))


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs())
def test_what_is_written_of_calls_validates(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    path = tmp_path / "log.jsonl"
    rows[0] |= {"session": "one", "commit_date": "2026-03-07"}
    path.write_bytes(lines(rows))
    for content in CONTENTS:
        stream = BytesIO()
        call_recording.write(Title("n"), request_log.calls(path), stream, blocks(content))
        assert not list(faults(parsed(stream.getvalue())))


def conversation() -> Conversation:
    use = block_of("assistant", {"type": "tool_use", "id": "t", "name": "x", "input": {}})
    result = block_of("user", {"type": "tool_result", "tool_use_id": "t", "content": ""})
    asked = Inquiry(3.0, text_block("user", "?"), text_block("assistant", ""), "delete it?", "t", 2)
    events = (Human(1.0, (text_block("user", "hi"),)), Reply(2.0, (use,), 0.5, 7), asked, Results(4.0, (result,)))
    tools = Part((block_of("", {"name": "x", "input_schema": {}}), given_block("tool", "", "head", 9)))
    return Conversation("n", events, None, tools, params={"speed": "fast"})


@pytest.mark.parametrize("content", CONTENTS)
def test_what_is_written_of_conversations_validates(content: Any) -> None:
    stream = BytesIO()
    model.write(conversation(), stream, blocks(content))
    told = parsed(stream.getvalue())
    assert {line.get("event") for line in told} == {None, *EVENTS.values()}
    assert not list(faults(told))


def test_what_is_written_of_steps_validates() -> None:
    usage, modes = Usage(1, 2, 3, 4, 5, (("web_search", 2),)), ("batch", "us", "priority")
    one = TranscriptStep(1, 1, "main", None, "m", usage, 0.0, 1.0, 2.5, 3, True, BETWEEN, modes, True)
    two = TranscriptStep(2, 2, "side 1", 1, "m", Usage())
    assert not list(faults(steps_to_records([one, two], "n")))


# ------------------------------------------------------------------------------------------ damaged

GOOD: dict[str, dict[str, Any]] = {
    "calls": {"format": 1, "kind": "calls", "content": "keep", "name": "n"},
    "conversation": {"format": 1, "kind": "conversation", "content": "digest", "name": "n", "model": None},
    "steps": {"format": 1, "kind": "steps", "name": "n"},
    "kept": {"block": 1, "role": "user", "content": {"type": "text", "text": "hi"}},
    "bare": {"block": 1, "role": "user", "kind": "text", "digest": "0" * 32, "size": 9, "counts": {"cl100k": 1}},
    "head": {"head": 1, "model": "m", "params": {"thinking": {"type": "adaptive"}}, "tools": [1]},
    "call": {
        "call": 1,
        "head": 1,
        "messages": [["user", [1]]],
        "breakpoints": [["messages", 0, 0, "5m"]],
        "after": [1, 2],
    },
    "late": {"call": 2, "head": 1, "start_s": 1.5, "session": "main"},
    "human": {"event": "human", "at": "2026-03-07T10:00:00Z", "blocks": [1]},
    "reply": {"event": "reply", "at": "2026-03-07T10:00:00Z", "blocks": [1], "output_tokens": 1},
    "inquiry": {"event": "inquiry", "at": "2026-03-07T10:00:00Z", "blocks": [1, 2], "batch": 0},
    "step": {"step": 1, "chain": "main", "model": "m", "usage": [1, 2, 3, 4, 5]},
}
DAMAGED = [
    ("calls", {"format": 2}),
    ("calls", {"format": True}),
    ("calls", {"content": "kept"}),
    ("calls", {"kind": "call"}),
    ("calls", {"name": ...}),
    ("calls", {"model": "m"}),
    ("conversation", {"tools": [-1]}),
    ("conversation", {"content": ...}),
    ("steps", {"content": "keep"}),
    ("kept", {"role": "usr"}),
    ("kept", {"content": "hi"}),
    ("kept", {"block": "1"}),
    ("kept", {"content": ...}),
    ("bare", {"digest": "0" * 31}),
    ("bare", {"digest": ...}),
    ("bare", {"size": 1.5}),
    ("bare", {"size": ...}),
    ("bare", {"counts": {"cl100k": -1}}),
    ("bare", {"image": 1}),
    ("head", {"model": ...}),
    ("head", {"params": {"speeed": "fast"}}),
    ("head", {"params": {"thinking": "on"}}),
    ("call", {"head": ...}),
    ("call", {"messages": [["user"]]}),
    ("call", {"messages": [["usr", [1]]]}),
    ("call", {"messages": [["user", [1], 2]]}),
    ("call", {"after": [1]}),
    ("call", {"breakpoints": [["messages", 0, "5m"]]}),
    ("call", {"breakpoints": [["tools", 0, 0, "5m"]]}),
    ("call", {"breakpoints": [["tools", 0, "2h"]]}),
    ("call", {"breakpoints": [["tolls", 0, "5m"]]}),
    ("call", {"timestamp": "noon"}),
    ("call", {"seen_on": "today"}),
    ("call", {"start_s": -1}),
    ("call", {"service": "standard"}),
    ("call", {"usage": {"inputs": 2}}),
    ("call", {"usage": {"input_tokens": -2}}),
    ("call", {"iterations": [{"output_tokens": 2}]}),
    ("call", {"status": "ok"}),
    ("call", {"session": 1}),
    ("call", {"mesages": []}),
    ("human", {"at": ...}),
    ("human", {"event": "humans"}),
    ("human", {"output_tokens": 1}),
    ("reply", {"first_token_s": -1}),
    ("inquiry", {"blocks": [1]}),
    ("step", {"usage": [1, 2, 3, 4]}),
    ("step", {"usage": [1, 2, 3, 4, -5]}),
    ("step", {"between": ["tea"]}),
    ("step", {"chain": ...}),
]


def test_the_good_lines_are_good_and_of_one_kind() -> None:
    assert not [name for name, line in GOOD.items() if not VALIDATOR.is_valid(line)]


@pytest.mark.parametrize(("name", "damage"), DAMAGED)
def test_a_damaged_line_does_not_validate(name: str, damage: dict[str, Any]) -> None:
    line = {key: value for key, value in {**GOOD[name], **damage}.items() if value is not ...}
    assert not VALIDATOR.is_valid(line)


@pytest.mark.parametrize("line", [{}, [], 1, {"block": 1}, {"hed": 1, "model": "m"}])
def test_what_is_no_line_does_not_validate(line: Any) -> None:
    assert not VALIDATOR.is_valid(line)
