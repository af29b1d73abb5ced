"""Recordings: what is written comes back, what must not be written does not, bad input is told whole."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shapes import block_shape, blocks_of, event_shapes, pattern, whole

from cachecost.base.errors import InputError
from cachecost.conversations.model import (
    BlockWriter,
    ContentFree,
    Conversation,
    Human,
    Inquiry,
    Reply,
    Results,
    read,
    sniff,
    write,
)
from cachecost.prompts.blocks import Block, Part, given_block
from cachecost.prompts.request import block_of, text_block
from slow_cases import examples

KEY = b"a key for tests"
WORDS = ("zebra", "quagga", "okapi\u00e9", "tapir\n", "\u65e5\u672c", "\U0001f600", "half \ud800 pair", "")

texts = st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
inputs = st.dictionaries(texts, values, max_size=3)
images = st.just({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}})
contents = st.one_of(
    texts.map(lambda text: {"type": "text", "text": text}),
    texts.map(lambda text: {"text": text, "type": "text"}),
    texts.map(lambda text: {"type": "thinking", "thinking": text, "signature": "sig"}),
    inputs.map(lambda value: {"type": "tool_use", "id": "toolu_1", "name": "read", "input": value}),
    st.one_of(texts, st.lists(texts.map(lambda text: {"type": "text", "text": text}) | images, max_size=2)).map(
        lambda value: {"type": "tool_result", "tool_use_id": "toolu_1", "content": value}
    ),
    images,
    st.just({"type": "document", "source": {"type": "text"}, "citations": {"enabled": True}}),
)
with_content = st.builds(block_of, st.sampled_from(["user", "assistant", "system"]), contents)
given_blocks = st.sampled_from("abc").map(
    lambda name: given_block("text", "user", name, 7, {"x": 1} if name == "c" else None)
)
counted = st.builds(
    lambda n: Block(
        "text", "user", bytes([n]) * 16, 40, counts={"ctok-3": n, "cl100k": n}, prose=("text", "code")[n % 2]
    ),
    st.integers(0, 3),
)
blocks = st.one_of(with_content, given_blocks, counted)
some = st.lists(blocks, max_size=3).map(tuple)
moments = st.integers(0, 4 * 10**15).map(lambda micro: micro / 1e6)
events = st.one_of(
    st.builds(Human, moments, some),
    st.builds(Reply, moments, some, st.none() | st.floats(0, 1e4, allow_nan=False), st.none() | st.integers(0, 10**9)),
    st.builds(Results, moments, some),
    st.builds(Inquiry, moments, blocks, blocks, st.sampled_from(["boolean", "select"]), texts, st.integers(0, 5)),
)
conversations = st.builds(
    Conversation,
    texts,
    st.lists(events, max_size=5).map(tuple),
    st.sampled_from([None, "claude-opus-4-6"]),
    some.map(Part),
    some.map(Part),
    texts,
    texts,
    inputs,
)


def written(conversation: Conversation, content: Any = "keep", key: bytes | None = None, count: Any = None) -> bytes:
    stream = BytesIO()
    write(conversation, stream, BlockWriter(ContentFree(key or b""), count) if content == "digest" else None)
    return stream.getvalue()


def again(data: bytes, folder: Path) -> Conversation:
    path = folder / "recording.jsonl"
    path.write_bytes(data)
    return read(path)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(conversations)
def test_what_is_kept_comes_back(tmp_path: Path, conversation: Conversation) -> None:
    data = written(conversation)
    back = again(data, tmp_path)
    assert whole(back) == whole(conversation)
    assert written(back) == data


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(conversations)
def test_content_free_keeps_structure_and_equality_and_no_word(tmp_path: Path, conversation: Conversation) -> None:
    data = written(conversation, "digest", KEY)
    back = again(data, tmp_path)
    was, now = blocks_of(conversation), blocks_of(back)
    assert event_shapes(back) == event_shapes(conversation)
    assert [block_shape(block, identity=False) for block in now] == [
        block_shape(block, identity=False) for block in was
    ]
    assert pattern([block.digest for block in now]) == pattern([block.digest for block in was])
    assert all(block.content is None for block in now)
    assert not {block.digest for block in now} & {block.digest for block in was}
    told = json.dumps([json.loads(line) for line in data.splitlines()[1:]], ensure_ascii=False)
    assert not [word for word in ("zebra", "quagga", "okapi", "tapir", "\u65e5", "\U0001f600") if word in told]


def small() -> Conversation:
    """A conversation of every event, with words that must not get out."""
    ask = text_block("user", "Overwrite secret.txt?")
    use = block_of("assistant", {"type": "tool_use", "id": "toolu_77", "name": "secret_tool", "input": {"p": "secret"}})
    result = block_of("user", {"type": "tool_result", "tool_use_id": "toolu_77", "content": "secret"})
    return Conversation(
        "mine",
        (
            Human(1.0, (text_block("user", "secret"),)),
            Reply(1.0, (use,), 0.25, 12),
            Inquiry(2.5, ask, text_block("assistant", "secret yes"), "secret type", "toolu_77", 1),
            Results(3.0, (result,)),
            Reply(3.0, (text_block("assistant", "secret"),)),
        ),
        "claude-opus-4-6",
        Part((block_of("", {"name": "secret_tool", "input_schema": {}}),)),
        Part((text_block("system", "secret"),)),
        "a source",
        "MIT",
        {
            "thinking": {"type": "enabled", "budget_tokens": 4096},
            "tool_choice": {"type": "tool", "name": "secret_tool"},
            "output_config": {"format": {"type": "json_schema", "schema": {"secret": 1}}, "effort": "high"},
            "metadata": {"user_id": "secret"},
        },
    )


def test_the_layout_is_pinned() -> None:
    lines = [json.loads(line) for line in written(small()).splitlines()]
    assert lines[0] == {
        "format": 1,
        "kind": "conversation",
        "content": "keep",
        "name": "mine",
        "model": "claude-opus-4-6",
        "source": "a source",
        "licence": "MIT",
        "params": dict(small().params),
        "tools": [1],
        "system": [2],
    }
    assert lines[1] == {"block": 1, "role": "", "content": {"name": "secret_tool", "input_schema": {}}}
    assert lines[3:5] == [
        {"block": 3, "role": "user", "content": {"type": "text", "text": "secret"}},
        {"event": "human", "at": "1970-01-01T00:00:01.000000Z", "blocks": [3]},
    ]
    assert [line["event"] for line in lines if "event" in line] == ["human", "reply", "inquiry", "results", "reply"]
    assert lines[9] == {
        "event": "inquiry",
        "at": "1970-01-01T00:00:02.500000Z",
        "blocks": [5, 6],
        "answer_type": "secret type",
        "tool_use": "toolu_77",
        "batch": 1,
    }
    assert lines[6] == {
        "event": "reply",
        "at": "1970-01-01T00:00:01.000000Z",
        "blocks": [4],
        "first_token_s": 0.25,
        "output_tokens": 12,
    }


def test_content_free_holds_no_name_of_anything() -> None:
    data = written(small(), "digest", KEY)
    for word in (b"secret", b"toolu", b"txt", b"user_id", b"metadata"):
        assert word not in data
    params = json.loads(data.splitlines()[0])["params"]
    assert params["thinking"] == {"type": "enabled", "budget_tokens": 4096}
    assert params["output_config"]["effort"] == "high"
    assert params["tool_choice"]["type"] == "tool"
    assert params["tool_choice"]["name"].startswith("~")


def test_equal_text_cannot_be_matched_across_keys_and_is_the_same_under_one() -> None:
    one, same, other = (written(small(), "digest", key) for key in (KEY, KEY, b"another key"))
    assert one == same
    digests = [{line.get("digest") for line in map(json.loads, data.splitlines())} - {None} for data in (one, other)]
    assert len(digests[0]) == len(digests[1]) == 8
    assert not digests[0] & digests[1]


def test_content_free_needs_a_key() -> None:
    with pytest.raises(ValueError, match="expected 1 to 64"):
        written(small(), "digest")


def test_blocks_are_counted_while_their_content_is_there(tmp_path: Path) -> None:
    def count(block: Block) -> tuple[dict[str, int], str]:
        assert block.content is not None
        return {"cl100k": len(str(block.content))}, "prose of " + block.kind

    mixed = Conversation("mixed", (Human(0.0, (text_block("user", "hello"), given_block("text", "user", "x", 5))),))
    once = again(written(mixed, "digest", KEY, count), tmp_path)
    text, given_ = blocks_of(once)
    assert (dict(text.counts), text.prose) == ({"cl100k": 33}, "prose of text")
    assert (dict(given_.counts), given_.tokens) == ({}, 5)
    twice = again(written(once, "digest", b"second key", count), tmp_path)
    assert dict(blocks_of(twice)[0].counts) == {"cl100k": 33}


def test_a_file_is_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(small(), path)
    before = path.read_bytes()

    def count(block: Block) -> tuple[dict[str, int], str]:
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        write(small(), path, BlockWriter(ContentFree(KEY), count))
    assert path.read_bytes() == before
    assert [child.name for child in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize(
    ("place", "why"), [("no/such/a.jsonl", "No such file or directory"), ("file/a.jsonl", "Not a directory")]
)
def test_an_unwritable_place_is_a_clear_error(tmp_path: Path, place: str, why: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError) as error:
        write(small(), tmp_path / place)
    assert str(error.value) == f"{tmp_path / place} cannot be written: {why}"


HEAD = '{"format":1,"kind":"conversation","content":"keep","name":"n"}\n'
BLOCK = '{"block":1,"role":"user","content":{"type":"text","text":"hi"}}\n'
HUMAN = '{"event":"human","at":"2026-03-06T21:46:11Z","blocks":[1]}\n'

BAD = [
    ("", ["{file} is empty: a recording starts with a whole header line"]),
    ("\n \n", ["{file} is empty: a recording starts with a whole header line"]),
    ("[1]\n", ["{file}:1 expected an object; got an array"]),
    ('{"a":1}\n', ["{file}:1 format: expected the header of a recording, format 1; got nothing"]),
    (HEAD.replace("1", "2") + "rubbish\n", ["{file}:1 format: expected 1; got 2, which this version cannot read"]),
    (HEAD.replace("1", "true"), ["{file}:1 format: expected 1; got True, which this version cannot read"]),
    (
        HEAD.replace('"conversation"', '"conversaton"'),
        ["{file}:1 kind: expected one of conversation; got 'conversaton' (did you mean 'conversation'?)"],
    ),
    (
        HEAD.replace('"name"', '"nam"').replace('"keep"', '"kept"'),
        [
            "{file}:1 content: expected one of keep, digest; got 'kept' (did you mean 'keep'?)",
            "{file}:1 name: expected a text; got nothing",
            "{file}:1 nam: unknown key (did you mean 'name'?)",
        ],
    ),
    (
        HEAD + '{"block":1,"rol\n' + HUMAN,
        [
            "{file}:2 damaged JSON: Invalid control character at character 16",
            "{file}:3 blocks: no line before this one defines block 1",
        ],
    ),
    (
        HEAD + BLOCK + HUMAN.replace("human", "humna"),
        ["{file}:3 event: expected one of human, reply, results, inquiry; got 'humna' (did you mean 'human'?)"],
    ),
    (HEAD + HUMAN + BLOCK, ["{file}:2 blocks: no line before this one defines block 1"]),
    (HEAD + BLOCK + BLOCK, ["{file}:3 block: 1 is already defined"]),
    (HEAD + BLOCK + '{"blok":2}\n', ["{file}:3 line: expected a block or an event"]),
    (
        HEAD + BLOCK.replace("user", "usr"),
        ["{file}:2 role: expected one of user, assistant, system, ; got 'usr' (did you mean 'user'?)"],
    ),
    (HEAD.replace('"n"', '"n","tools":[4]'), ["{file}:1 tools: no line defines block 4"]),
    (
        HEAD + '{"block":1,"role":"user","kind":3,"digest":"xyz","size":-1,"counts":{"cl100k":1.5},"tokens":true}\n',
        [
            "{file}:2 kind: expected a text; got 3",
            "{file}:2 digest: expected 32 hex digits; got 'xyz'",
            "{file}:2 size: expected a whole number from 0; got -1",
            "{file}:2 tokens: expected a whole number from 0; got True",
            "{file}:2 counts.cl100k: expected a whole number from 0; got 1.5",
        ],
    ),
    (
        HEAD + BLOCK + '{"event":"reply","at":"yesterday","blocks":"1","first_token_s":-1,"output_tokens":1.5,"x":0}\n',
        [
            "{file}:3 at: expected an ISO 8601 time; got 'yesterday'",
            "{file}:3 blocks: expected an array of whole numbers; got '1'",
            "{file}:3 first_token_s: expected a number from 0; got -1",
            "{file}:3 output_tokens: expected a whole number from 0; got 1.5",
            "{file}:3 x: unknown key",
        ],
    ),
    (
        HEAD + BLOCK + HUMAN.replace("human", "inquiry"),
        ["{file}:3 blocks: expected two blocks, question and answer"],
    ),
]


@pytest.mark.parametrize(("text", "faults"), BAD)
def test_every_fault_is_told_with_its_line(tmp_path: Path, text: str, faults: list[str]) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read(path)
    assert [str(fault) for fault in error.value.faults] == [fault.format(file=path) for fault in faults]


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(HEAD.encode() + b'{"block":"\xff"}\n' + b"[" * 100_000 + b"\n")
    with pytest.raises(InputError) as error:
        read(path)
    assert [str(fault) for fault in error.value.faults] == [
        f"{path}:2 damaged JSON: not UTF-8 at byte 11",
        f"{path}:3 expected at most 128 levels of nesting; got more",
    ]


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path / "none.jsonl")
    assert str(error.value) == f"{tmp_path / 'none.jsonl'} cannot be read: No such file or directory"


def test_a_last_line_that_is_cut_off_is_left_out_and_said(tmp_path: Path) -> None:
    data = written(small())
    last = data.rstrip(b"\n").rfind(b"\n") + 1
    path = tmp_path / "growing.jsonl"
    for end in range(last + 1, len(data) - 1):
        said: list[str] = []
        path.write_bytes(data[:end])
        cut = read(path, said.append)
        assert len(cut.events) == 4
        assert said == [f"{path}:14 the last line is cut off (still being written?): skipped"]
    path.write_bytes(data[:-1])
    assert len(read(path, pytest.fail).events) == 5


def test_blank_lines_and_a_byte_order_breakpoint_are_nothing(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text("\ufeff" + HEAD + "\n" + BLOCK + "  \n" + HUMAN, encoding="utf-8")
    assert len(read(path).events) == 1


def test_a_time_without_a_zone_is_utc_and_zones_count(tmp_path: Path) -> None:
    path = tmp_path / "times.jsonl"
    times = ["1970-01-01 00:00:10", "1970-01-01T00:00:10Z", "1970-01-01T02:00:10.5+02:00", "1970-01-01T00:00:10.25"]
    path.write_text(HEAD + "".join(f'{{"event":"human","at":"{time}","blocks":[]}}\n' for time in times))
    assert [event.at for event in read(path).events] == [10.0, 10.0, 10.5, 10.25]


def test_edited_content_changes_the_block(tmp_path: Path) -> None:
    path = tmp_path / "edited.jsonl"
    path.write_text(HEAD + BLOCK.replace("hi", "hello") + HUMAN)
    (block,) = blocks_of(read(path))
    assert block_shape(block) == block_shape(text_block("user", "hello"))


@pytest.mark.parametrize(
    ("head", "known"),
    [(HEAD, True), ('{"format":1}\n', False), ('[{"type":"turn_start"}]', False), ("", False), ("{", False)],
)
def test_it_knows_its_own(head: str, known: bool) -> None:
    assert (sniff(head.encode()) is not None) is known
