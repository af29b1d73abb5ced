"""What msgspec reads and writes is taken only where Python's own parser and encoder say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.prompts.blocks import compact
from cachecost.prompts.exact_json import ENCODE, load_with_writer
from cachecost.prompts.request import NotAMessage

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3), max_leaves=8
)
SPELLINGS: tuple[dict[str, Any], ...] = ({}, {"indent": 1}, {"ensure_ascii": False, "separators": (",", ":")})


def same(data: bytes) -> bool:
    """Whether msgspec was taken; fails where the value, or what is written of it, is not that of Python's own."""
    value, write = load_with_writer(data, "x")
    plain = json.loads(data)
    assert repr(value) == repr(plain)
    assert write({"x": value}) == compact({"x": plain})
    return write is ENCODE


@given(VALUES, st.sampled_from(SPELLINGS))
def test_a_value_and_how_it_is_written_are_those_of_pythons_own(value: Any, spelling: dict[str, Any]) -> None:
    text = json.dumps(value, **spelling)
    same(text.encode("utf-8", "replace"))


@pytest.mark.parametrize(
    ("text", "is_quick"),
    [
        ('{"a": 1, "b": [true, null, "\\u00e9\\/\\u001f"]}', True),
        ('{"b": 1, "a": 2, "b": 3}', True),
        ("[0, -0, 18446744073709551615, -9223372036854775808]", True),
        ("[18446744073709551616, -9223372036854775809]", True),
        ("[1.0]", False),
        ("[1e5]", False),
        ("[-0.0]", False),
        ("[1E+2]", False),
        ("[NaN, Infinity]", False),
        ('["\\ud800"]', False),
        ('["\\udc00x"]', False),
        ('["\\ud83d\\ude00"]', True),
    ],
)
def test_what_the_two_write_in_different_ways_goes_to_pythons_own(text: str, is_quick: bool) -> None:
    assert same(text.encode()) == is_quick


def test_every_character_is_written_alike() -> None:
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11_0000)]))
    assert ENCODE({"x": text}) == compact({"x": text})


@pytest.mark.parametrize("data", [b"[1,]", b'"\xff"', b"", b"[" * 3, b'["\n"]'])
def test_what_is_no_json_is_a_fault(data: bytes) -> None:
    with pytest.raises(NotAMessage, match="x: expected UTF-8 JSON; got 'bytes that are not'"):
        load_with_writer(data, "x")
