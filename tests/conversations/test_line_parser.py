"""Lines of transcripts that are parsed only in part: the result is that of a whole parse, also for damaged lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from random_transcripts import DAMAGE, RandomTranscript

from cachecost.base.errors import InputError
from cachecost.base.limits import DEEPEST
from cachecost.conversations.json_object import parse_json
from cachecost.conversations.readers.claude_code import steps
from cachecost.conversations.readers.claude_code.steps import parse_fields, read_steps_with_content
from cachecost.prompts.blocks import compact
from cachecost.prompts.exact_json import ENCODE
from step_records import TranscriptStep

LINE = {
    "type": "user",
    "uuid": "a",
    "message": {"content": [{"text": "é"}]},
    "toolUseResult": {"stdout": "é 1.5", "n": [1e3, -2]},
}
ANSWER = {
    "type": "assistant",
    "uuid": "b",
    "parentUuid": "a",
    "timestamp": "2026-01-02T03:04:05.678Z",
    "sessionId": "s",
    "requestId": "r",
    "message": {
        "id": "m",
        "model": "claude-opus-4-6",
        "content": [{"type": "text", "text": "é"}],
        "usage": {"input_tokens": 3, "cache_creation_input_tokens": 9, "cache_read_input_tokens": 0}
        | {"output_tokens": 7, "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 5}},
    },
}
ODD: tuple[Any, ...] = (None, "", "x", 0, 5, -1, 2.0, 2**70, True, False, [], ["x"], {}, {"a": 1})


def check(line: bytes) -> None:
    """A line that is parsed in part is JSON, and its content that of its whole parse."""
    found = parse_fields(line)
    if found is None:
        return
    fields, content = found
    whole = parse_json(line)
    assert isinstance(whole, dict), line
    assert (fields.type, fields.uuid) == (whole["type"], whole.get("uuid")), line
    stated = (whole.get("message") or {}).get("content")
    assert content == (stated if isinstance(stated, list) else [] if stated is None else [stated]), line
    assert ENCODE(content) == compact(content)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(40))
def test_a_line_is_parsed_as_a_whole_parse_does(seed: int) -> None:
    for line in RandomTranscript(Random(seed), has_copies=True).fill(20, damage=False).lines:
        check(line)


@pytest.mark.parametrize("seed", range(40))
def test_so_is_one_whose_bytes_were_changed(seed: int) -> None:
    random = Random(seed)
    whole = json.dumps(random.choice((LINE, ANSWER)), ensure_ascii=random.random() < 0.5).encode()
    for _ in range(200):
        line = bytearray(whole)
        for _ in range(random.randint(1, 3)):
            line[random.randrange(len(line))] = random.choice(b'"\\{}[],: \t\n\x00\xff\xc3\xa9' + b"ud8e01N-")
        check(bytes(line[: random.choice((len(line), random.randrange(len(line))))]))


@pytest.mark.parametrize("line", DAMAGE)
def test_so_is_a_damaged_line(line: bytes) -> None:
    check(line)


@pytest.mark.parametrize(
    ("line", "is_read"),
    [
        (b"\xef\xbb\xbf" + json.dumps(LINE).encode(), False),
        (json.dumps(LINE).encode(), True),
        (json.dumps(ANSWER).encode(), True),
        (b'{"type":"user","type":"system","other":{"type":"x"}}', True),
        (b'{"type":"system","message":{"content":[{"input":18446744073709551616}]}}', True),
        (b'{"type":"system","message":{"content":[{"n":-1e-7,"m":1e5}]}}', False),
        (b'{"type":"system","message":{"content":[{"input":18446744073709551615,"n":0,"m":"1e5"}]}}', True),
        (b'{"\\u0074ype":"system"}', True),
        (b'{"type":"user"}', False),
        (b'{"type":"\\ud83d","other":"\\ude00"}', False),
        (b'{"type":"system","other":"\xff"}', False),
        (b'{"type":"system","other":[NaN,Infinity]}', False),
        (b'{"type":"system","other":' + b"1" * 4300 + b"}", False),
        (b'{"type":"system","other":' + b"1" * 4301 + b"}", False),
        (
            b'{"type":"system","pad":"' + b"x" * 9000 + b'","other":' + b"1" * 4301 + b',"p":"' + b"x" * 999 + b'"}',
            False,
        ),
        (b'{"type":"system","other":' + b"[" * (DEEPEST - 1) + b"]" * (DEEPEST - 1) + b"}", True),
        (b'{"type":"system","other":' + b"[" * DEEPEST + b"]" * DEEPEST + b"}", False),
        (b'{"type":"system","other":' + b"[" * 50_000 + b"]" * 50_000 + b"}", False),
        (b'{"type":"system","other":"' + b"[" * 2 * DEEPEST + b'"}', True),
    ],
)
def test_so_are_lines_that_msgspec_might_see_otherwise(line: bytes, is_read: bool) -> None:
    check(line)
    assert (parse_fields(line) is not None) == is_read


def places(value: dict[str, Any]) -> list[tuple[str, ...]]:
    """The paths of all fields of an answer."""
    found: list[tuple[str, ...]] = []
    for name, inner in value.items():
        found += [(name,), *((name, *rest) for rest in (places(inner) if isinstance(inner, dict) else []))]
    return found


def changed(value: dict[str, Any], path: tuple[str, ...], new: Any) -> dict[str, Any]:
    name, *rest = path
    return {**value, name: changed(value[name], tuple(rest), new) if rest else new}


def read(path: Path, parse: Callable[[bytes], Any], patch: pytest.MonkeyPatch) -> str:
    """The steps of a transcript, or its errors, and what is said of it."""
    said: list[str] = []
    patch.setattr(steps, "parse_fields", parse)
    try:
        found: list[Any] = [
            (TranscriptStep.of(one), one.bill.session, one.project, one.agent, one.answer, one.request)
            for one in read_steps_with_content(path, said.append, True)
            if not one.is_copy
        ]
    except InputError as error:
        found = list(map(str, error.faults))
    return repr((found, said))


@pytest.mark.parametrize("place", [*places(ANSWER), ("isSidechain",), ("logicalParentUuid",), ("agentId",), ("cwd",)])
def test_a_field_of_another_type_means_what_it_means_in_a_line_that_is_parsed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: tuple[str, ...]
) -> None:
    for value in ODD:
        lines = [LINE, changed(ANSWER, place, value), changed({**ANSWER, "uuid": "c"}, place, value)]
        path = tmp_path / "session.jsonl"
        path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        assert read(path, parse_fields, monkeypatch) == read(path, lambda line: None, monkeypatch)


@pytest.mark.parametrize("way", [(), ("message",), ("message", "usage"), ("message", "usage", "cache_creation")])
def test_half_a_character_in_the_name_of_a_field_is_no_internal_error(tmp_path: Path, way: tuple[str, ...]) -> None:
    line = json.loads(json.dumps(ANSWER))
    part = line
    for name in way:
        part = part[name]
    part["\ud800"] = 1
    check(json.dumps(line).encode())
    path = tmp_path / "session.jsonl"
    path.write_text(json.dumps(line) + "\n")
    assert len(read_steps_with_content(path, list[str]().append, True)) == 1
