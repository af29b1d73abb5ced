"""Lines of transcripts that are parsed only in part: the result is that of a whole parse, also for damaged lines."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from random_transcripts import DAMAGE, RandomTranscript

from cachecost.base.limits import DEEPEST
from cachecost.conversations.json_object import parse_json
from cachecost.conversations.readers.claude_code.line_parser import LineFields, LineParser, parse_line
from cachecost.conversations.transcript_steps import KIND
from cachecost.prompts.blocks import compact
from cachecost.prompts.exact_json import ENCODE

LINE = {"type": "user", "uuid": "a", "message": {"content": "é"}, "toolUseResult": {"stdout": "é 1.5", "n": [1e3, -2]}}


def fields_of(line: bytes) -> Any:
    """What a whole parse of a line has of the fields that are read; the error of a damaged one."""
    value = parse_json(line)
    known = LineFields.__annotations__
    shown = {name: one for name, one in value.items() if name in known} if isinstance(value, dict) else value
    return repr(shown)


def check(line: bytes) -> None:
    value, is_exact = parse_line(line)
    assert not is_exact or ENCODE(value) == compact(value)
    known = LineFields.__annotations__
    shown = {name: one for name, one in value.items() if name in known} if isinstance(value, dict) else value
    assert repr(shown) == fields_of(line), line


@pytest.mark.parametrize("seed", range(40))
def test_a_line_is_parsed_as_a_whole_parse_does(seed: int) -> None:
    for line in RandomTranscript(Random(seed), has_copies=True).fill(20, damage=False).lines:
        check(line)


@pytest.mark.parametrize("seed", range(40))
def test_so_is_one_whose_bytes_were_changed(seed: int) -> None:
    random = Random(seed)
    whole = json.dumps(LINE, ensure_ascii=random.random() < 0.5).encode()
    for _ in range(200):
        line = bytearray(whole)
        for _ in range(random.randint(1, 3)):
            line[random.randrange(len(line))] = random.choice(b'"\\{}[],: \t\n\x00\xff\xc3\xa9' + b"ud8e01N-")
        check(bytes(line[: random.choice((len(line), random.randrange(len(line))))]))


@pytest.mark.parametrize(
    "line",
    [
        *DAMAGE,
        b"\xef\xbb\xbf" + json.dumps(LINE).encode(),
        b'{"type":"user","type":"system","other":{"type":"x"}}',
        b'{"message":{"content":[{"input":18446744073709551616,"n":-1e-7,"m":1e5}]}}',
        b'{"message":{"content":[{"input":18446744073709551615,"n":0,"m":"1e5"}]}}',
        b'{"\\u0074ype":"user"}',
        b'{"type":"\\ud83d","other":"\\ude00"}',
        b'{"other":"\xff"}',
        b'{"other":[NaN,Infinity]}',
        b'{"other":' + b"1" * 4300 + b"}",
        b'{"other":' + b"1" * 4301 + b"}",
        b'{"pad":"' + b"x" * 9000 + b'","other":' + b"1" * 4301 + b',"pad2":"' + b"x" * 999 + b'"}',
        b'{"other":"' + b"1" * 9000 + b'"}',
        b'{"other":' + b"[" * (DEEPEST - 1) + b"]" * (DEEPEST - 1) + b"}",
        b'{"other":' + b"[" * DEEPEST + b"]" * DEEPEST + b"}",
        b'{"other":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"other":"' + b"[" * 2 * DEEPEST + b'"}',
    ],
)
def test_so_are_lines_that_msgspec_might_see_otherwise(line: bytes) -> None:
    check(line)


@pytest.mark.parametrize("kind", [KIND, "other"])
def test_the_content_free_form_is_parsed_whole(kind: str) -> None:
    parse = LineParser()
    parse(b"damaged")
    assert parse(json.dumps({"kind": kind, "step": 0}).encode()) == {"kind": kind, "step": 0}
    assert parse(b'{"step":1}') == ({"step": 1} if kind == KIND else {})
