"""Words that may stay are the API's own; all else becomes digests that only say equal or not."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.base.errors import InputError
from cachecost.conversations.input_files import GZIP
from cachecost.conversations.model import KNOWN_KEYS, KNOWN_WORDS, BlockWriter, ContentFree, Inquiry, key_from, key_of
from cachecost.prompts.blocks import given_block
from cachecost.prompts.request import block_of, text_block
from cachecost.providers.hosts import catalogue
from cachecost.providers.rules import RuleBook

FREE = ContentFree(b"k")


@pytest.mark.parametrize("key", [b"", b"x" * 65])
def test_keys_have_1_to_64_bytes(key: bytes) -> None:
    with pytest.raises(ValueError, match=f"key of {len(key)} bytes: expected 1 to 64"):
        ContentFree(key)


def test_the_key_of_a_source_is_of_all_its_bytes(tmp_path: Any) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 1_000_000)
    key = key_of(path)
    assert len(key) == 32
    assert key == key_of(path)
    path.write_bytes(b"x" * 999_999 + b"y")
    assert key != key_of(path)
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        key_of(tmp_path / "b")


def test_a_key_of_ones_own_is_a_file_of_any_bytes(tmp_path: Any) -> None:
    path, packed = tmp_path / "key", tmp_path / "key.gz"
    path.write_bytes(b"x")
    packed.write_bytes(gzip.compress(b"x"))
    assert key_from(path) == key_from(path) != key_from(packed)
    assert len(key_from(path)) == 32 and key_from(path) != key_of(path)
    path.write_bytes(GZIP + b" by chance")
    assert len(key_from(path)) == 32
    path.write_bytes(b"")
    with pytest.raises(InputError, match="key expected a key, which may be any bytes; the file is empty"):
        key_from(path)
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        key_from(tmp_path / "b")


@pytest.mark.parametrize(("number", "rounded"), [(0, 0), (1, 64), (63, 64), (64, 64), (65, 128)])
def test_lengths_are_rounded_up_and_what_is_counted_stays(number: int, rounded: int) -> None:
    free = ContentFree(b"k", 64)
    lengths = {"cl100k": number, "ctok-3": number, "unseen": number}
    assert free.size(number) == rounded
    assert free.counts({**lengths, "parameter": 3, "330x291 image": 1}) == {
        **dict.fromkeys(lengths, rounded),
        "parameter": 3,
        "330x291 image": 1,
    }
    assert FREE.counts(lengths) == lengths and FREE.size(number) == number


def test_there_is_no_rounding_to_nothing() -> None:
    with pytest.raises(ValueError, match="round_to=0: expected a whole number from 1"):
        ContentFree(b"k", 0)


def test_a_rounded_recording_tells_no_exact_length_of_a_block() -> None:
    text = {"type": "text", "text": "x" * 100}
    blocks = [block_of("user", text), given_block("text", "user", "head", 50)]
    table = BlockWriter(ContentFree(b"k", 64), lambda block: ({"cl100k": 13, "parameter": 2}, "text"))
    one, two = table.add(blocks)[1]
    assert (one["size"], one["counts"]) == (128, {"cl100k": 64, "parameter": 2})
    assert (two["size"], two["tokens"]) == (256, 64)
    schema = {"output_config": {"format": {"schema": {"a": 1}}}}
    assert table.params(schema)["output_config"]["format"]["counts"] == {"cl100k": 64, "parameter": 2}


def test_words_are_told_apart_and_empty_stays_empty() -> None:
    assert FREE.word("a") == FREE.word("a") != FREE.word("b")
    assert len(FREE.word("a" * 1000)) == 17
    assert FREE.word("") == ""
    assert ContentFree(b"other").word("a") != FREE.word("a")


@pytest.mark.parametrize(("kind", "stays"), [("boolean", True), ("select", True), ("delete /home/me?", False)])
def test_answer_types_stay_if_they_are_jps(kind: str, stays: bool) -> None:
    block = text_block("user", "x")
    assert (FREE.answer_type(Inquiry(0.0, block, block, kind)) == kind) is stays


def test_parameters_keep_what_the_simulator_needs() -> None:
    params = {
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "output_config": {"effort": "high"},
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
        "speed": "fast",
        "betas": ["context-1m-2025-08-07"],
        "max_tokens": 4096,
        "temperature": 0.5,
    }
    assert FREE.params(params) == params


names = st.text(st.characters(codec="ascii", categories=["Lu"]), min_size=4, max_size=6)
keys = names | st.sampled_from(sorted(KNOWN_KEYS))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(values)
def test_no_other_word_survives_and_no_number_under_an_unknown_key(value: Any) -> None:
    told = FREE.params(value)
    assert json.dumps(told) == json.dumps(FREE.params(value))

    def check(item: Any) -> None:
        if isinstance(item, dict):
            for key, inner in item.items():
                assert key in KNOWN_KEYS or (key.startswith("~") and isinstance(inner, str))
                check(inner)
        elif isinstance(item, list):
            for inner in item:
                check(inner)
        elif isinstance(item, str):
            assert item in KNOWN_WORDS or item.startswith("~")

    check(told)


@settings(max_examples=80, deadline=None)
@given(values, values)
def test_equal_parameters_stay_equal_and_others_stay_different(one: Any, two: Any) -> None:
    same = json.dumps(one) == json.dumps(two)
    assert (json.dumps(FREE.params(one)) == json.dumps(FREE.params(two))) is same


FAULTS = [
    ("messages.3.content.0.thinking.cache_control: Extra inputs are not permitted", None),
    ("system.1.text: cache_control cannot be set for empty text blocks", None),
    ("messages.0.content.1.content.2.cache_control: Extra inputs are not permitted", None),
    ("messages.0.content.1.mine.cache_control: Extra inputs are not permitted", "~"),
    ("something new about mine", "~"),
]


@pytest.mark.parametrize(("fault", "start"), FAULTS)
def test_what_the_api_says_of_a_body_stays_if_it_says_only_its_own_words(fault: str, start: str | None) -> None:
    told = FREE.fault(fault)
    assert told == fault if start is None else (told[0], len(told)) == (start, 17)


@pytest.mark.parametrize("name", ["mine", "it's\nmine' cannot have both defer_loading=true and cache_control set. x"])
def test_a_tool_that_is_refused_is_not_named(name: str) -> None:
    words = " cannot have both defer_loading=true and cache_control set. "
    words += "Tools with defer_loading cannot use prompt caching."
    assert FREE.fault(f"Tool '{name}'{words}") == f"Tool '{FREE.word(name)}'{words}"


def test_a_schema_is_one_digest_whatever_is_in_it() -> None:
    one, two = ({"format": {"type": "json_schema", "schema": {"type": "object", "total": n}}} for n in (1, 2))
    told = FREE.params(one)["format"]
    assert told["type"] == "json_schema" and told["schema"].startswith("~") and FREE.params(two)["format"] != told
    assert FREE.params({"schema": None}) == {"schema": None}


def test_every_word_that_a_rule_asks_for_may_stay() -> None:
    efforts = {
        RuleBook().rules("anthropic", model.id).default_effort for model in catalogue("anthropic").models.values()
    }
    assert {*efforts, "fast", "us", "any", "tool", "auto", "none", "enabled", "adaptive", "disabled"} <= KNOWN_WORDS
