"""Counters by name: what they count of a block, with content and without."""

import json
import sys
from datetime import date
from typing import Any

import pytest
from files_of_images import base64, png, with_pages
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.base.errors import CannotEvaluate
from cachecost.base.extras import NotInstalled
from cachecost.base.structs import replace
from cachecost.prompts.blocks import Block, given_block
from cachecost.prompts.intake import Intake
from cachecost.prompts.render import CannotCount, Renderer, TokenCounter
from cachecost.prompts.request import block_of
from cachecost.providers.rules import RuleBook
from cachecost.tokens.calibration import Calibration, calibration
from cachecost.tokens.factory import make_counter
from cachecost.tokens.textcounter import TextCounter
from cachecost.tokens.tokenizers import Cl100k, count_content, has_ctok
from slow_cases import examples

GENERATIONS = ("claude-3", "claude-4.7", "claude-4.8")
WITH_CTOK = pytest.mark.skipif(not has_ctok(), reason="ctok is not installed (it wants Python >= 3.12)")
NAMES = ("bytes", "tiktoken", pytest.param("ctok", marks=WITH_CTOK))
SIGNATURE = "A" * 800
SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "description": "A path"}}, "required": ["path"]}
READ = {"name": "read", "description": "Read a file", "input_schema": SCHEMA}

IMAGE = {"type": "image", "source": base64(png(1920, 1080), "image/png")}
PAPER = {"type": "document", "source": base64(with_pages(*[(612, 792)] * 3, words="Ducks quack."), "application/pdf")}
RAN = {
    "type": "bash_code_execution_tool_result",
    "tool_use_id": "s",
    "content": {"type": "bash_code_execution_result", "stdout": "a.txt", "stderr": "", "return_code": 0, "content": []},
}
FETCHED = {
    "type": "web_fetch_tool_result",
    "tool_use_id": "s",
    "content": {
        "type": "web_fetch_result",
        "url": "https://example.org",
        "retrieved_at": "2026-11-21T10:00:00Z",
        "content": {"type": "document", "title": "Ex", "source": {"type": "text", "data": "Hello there."}},
    },
}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "s",
    "content": [
        {"type": "web_search_result", "title": "Ducks", "url": "https://d.org", "encrypted_content": "A" * 400}
    ],
}

BLOCKS: list[tuple[str, dict[str, Any]]] = [
    ("user", {"type": "text", "text": "What is in the file, and who wrote it for us?"}),
    ("user", {"type": "text", "text": ""}),
    ("user", {"type": "text", "text": "naïve 東京 \ud800 lone"}),
    ("system", {"type": "text", "text": "You are a careful assistant."}),
    ("", READ),
    ("", {"type": "bash_20250124", "name": "bash"}),
    ("assistant", {"type": "thinking", "thinking": "Let me look.", "signature": SIGNATURE}),
    ("assistant", {"type": "redacted_thinking", "data": SIGNATURE}),
    ("assistant", {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "src/a.rs", "lines": [1, 2]}}),
    ("assistant", {"type": "tool_use", "id": "b", "name": "now", "input": {}}),
    ("user", {"type": "tool_result", "tool_use_id": "a", "content": 'fn main() { println!("{}", 1); }'}),
    (
        "user",
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [{"type": "text", "text": "1234 5678"}],
            "is_error": True,
        },
    ),
    ("user", {"type": "tool_result", "tool_use_id": "a"}),
    ("user", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 9000}}),
    ("user", IMAGE),
    ("user", {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}),
    ("user", {"type": "tool_result", "content": [IMAGE, IMAGE, {"type": "text", "text": "two of them"}]}),
    ("user", PAPER),
    ("user", {**PAPER, "citations": {"enabled": True}, "title": "On ducks"}),
    ("user", {"type": "document", "source": {"type": "file", "file_id": "file_1"}}),
    ("user", {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "One. Two."}}),
    ("user", {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a"}, IMAGE]}}),
    ("user", {"type": "search_result", "source": "here", "title": "T", "content": [{"type": "text", "text": "Ab. C"}]}),
    ("user", {"type": "container_upload", "file_id": "file_1"}),
    ("", {"type": "code_execution_20260120", "name": "code_execution"}),
    ("", {"type": "web_search_20991231", "name": "web_search"}),
    ("assistant", {"type": "server_tool_use", "id": "s", "name": "bash_code_execution", "input": {"command": "ls"}}),
    ("assistant", RAN),
    ("assistant", FETCHED),
    ("assistant", FOUND),
    ("assistant", {"type": "mcp_tool_result", "content": [{"type": "text", "text": "done"}]}),
    ("assistant", {"type": "text", "text": "as told", "citations": [{"cited_text": "told"}, {"cited_text": "as"}]}),
    ("user", {"type": "tool_result", "content": [{"type": "tool_reference", "tool_name": "look_up"}]}),
    ("assistant", {"type": "compaction", "content": "What happened so far."}),
    ("assistant", {"type": "of_tomorrow", "payload": [1, {"x": None}]}),
]


def blocks() -> list[Block]:
    return [block_of(role, content) for role, content in BLOCKS]


def without_content(block: Block) -> Block:
    counts, prose = count_content(block)
    return replace(block, content=None, counts=counts, prose=prose)


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_a_block_counts_the_same_without_its_content(name: str, generation: str) -> None:
    counter = make_counter(name, generation)
    told = [counter.block(block) for block in blocks()]
    bare = make_counter(name, generation)
    assert [bare.block(without_content(block)) for block in blocks()] == told


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80), st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=20), max_size=3))
def test_any_text_counts_the_same_without_its_content(text: str, arguments: dict[str, Any]) -> None:
    counter, bare = make_counter("tiktoken", "claude-4.8"), make_counter("tiktoken", "claude-4.8")
    for content in ({"type": "text", "text": text}, {"type": "tool_use", "name": text, "input": arguments}):
        block = block_of("assistant", content)
        assert counter.block(block) == bare.block(without_content(block)) >= 0


@pytest.mark.parametrize("name", NAMES)
def test_a_given_count_wins(name: str) -> None:
    counter = make_counter(name, "claude-3")
    block = given_block("text", "user", "head", 1700, {"type": "text", "text": "x"})
    assert counter.block(block) == 1700
    assert counter.block(replace(block, tokens=0)) == 0


def test_bytes_are_the_compact_json() -> None:
    counter = make_counter("bytes", "claude-3")
    assert counter.block(block_of("user", {"type": "text", "text": "é"})) == len('{"type":"text","text":"é"}'.encode())
    assert (counter.name, counter.error_margin) == ("bytes", 0.0)


OF_THE_TEST = Calibration(
    "claude-3",
    ratio={"text": 1.5, "code": 2.0, "data": 3.0, "tools": 4.0},
    structure={
        "tool": 1000,
        "system": 2,
        "tool_use": 100,
        "parameter": 20,
        "tool_result": 50,
        "error": 7,
        "thinking": 30,
    },
    tool_prompt_head=0,
    error_margin={"tiktoken": 0.1},
    fitted=date(2026, 11, 21),
)


@pytest.mark.parametrize(
    ("role", "content", "tokens"),
    [
        ("user", {"type": "text", "text": ""}, 0),
        ("user", {"type": "text", "text": "The cat sat on the mat."}, 7 * 1.5),
        ("system", {"type": "text", "text": "The cat sat on the mat."}, 7 * 1.5 + 2),
        ("user", {"type": "text", "text": "1234 5678"}, 5 * 3),
        ("user", {"type": "text", "text": "if (a[i]) { b(); }"}, 9 * 2),
        ("assistant", {"type": "tool_use", "name": "now", "input": {}}, 1 * 1.5 + 100),
        ("assistant", {"type": "tool_use", "name": "now", "input": None}, 2 * 1.5 + 120),
        ("assistant", {"type": "tool_use", "name": "add", "input": {"a": "hello", "b": "world"}}, 5 * 1.5 + 140),
        ("user", {"type": "tool_result", "content": "hello world"}, 2 * 1.5 + 50),
        ("user", {"type": "tool_result", "content": [{"type": "text", "text": "hello"}] * 2}, 2 * 1.5 + 50),
        ("user", {"type": "tool_result", "content": "hello world", "is_error": True}, 2 * 1.5 + 57),
        ("user", {"type": "tool_result", "content": "hello world", "is_error": False}, 2 * 1.5 + 50),
        ("assistant", {"type": "thinking", "thinking": "hello", "signature": ""}, 1 * 1.5 + 30),
        ("", {"name": "a", "input_schema": {}}, 15 * 4 + 1000),
        ("", {"name": "a", "input_schema": {}, "strict": True, "type": "custom"}, 15 * 4 + 1000),
    ],
)
def test_texts_by_ratio_and_structure_by_constants(role: str, content: dict[str, Any], tokens: float) -> None:
    counter = TextCounter("tiktoken", "", OF_THE_TEST, Cl100k(), OF_THE_TEST.ratio)
    assert counter.block(block_of(role, content)) == round(tokens)


@WITH_CTOK
@pytest.mark.parametrize(
    ("text", "tokens"), [("", (0, 0, 0)), ("a", (1, 1, 1)), ("hello, world", (3, 4, 4)), ("fn main() {}", (4, 6, 6))]
)
def test_ctok_counts_a_text_without_the_frame_of_a_message(text: str, tokens: tuple[int, ...]) -> None:
    block = block_of("user", {"type": "text", "text": text})
    assert tuple(make_counter("ctok", generation).block(block) for generation in GENERATIONS) == tokens


WEATHER = {
    "tools": [
        {
            "name": "get_weather",
            "description": "Get the current weather in a given location",
            "input_schema": {
                "type": "object",
                "properties": {
                    "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"}
                },
                "required": ["location"],
            },
        }
    ],
    "messages": [{"role": "user", "content": "What's the weather like in San Francisco?"}],
}


@pytest.mark.parametrize("name", NAMES[1:])
def test_the_documentations_tool_example_is_403_tokens(name: str) -> None:
    rules = RuleBook().rules("anthropic", "claude-opus-4-1")
    counter = make_counter(name, rules.generation)
    request = Intake(keep_content=True).body({"model": rules.model, **WEATHER})
    predicted = Renderer(counter).render(request, (), rules).total_tokens
    assert abs(predicted - 403) <= (0 if name == "ctok" else 403 * 0.02)


def test_key_order_of_a_schema_does_not_count() -> None:
    backwards = {**READ, "input_schema": dict(reversed(SCHEMA.items()))}
    counter = make_counter("tiktoken", "claude-3")
    first, second = block_of("", READ), block_of("", backwards)
    assert first.digest != second.digest
    assert counter.block(first) == counter.block(second)


def test_reasoning_that_only_the_signature_holds_counts() -> None:
    """800 characters of base64 are 600 bytes, 200 of them overhead: 400 bytes of reasoning."""
    shown = {"type": "thinking", "thinking": "", "signature": ""}
    assert count_content(block_of("assistant", {**shown, "signature": SIGNATURE}))[0]["unseen"] == 400
    assert count_content(block_of("assistant", {**shown, "thinking": "ab", "signature": SIGNATURE}))[0]["unseen"] == 398
    assert "unseen" not in count_content(block_of("assistant", {**shown, "signature": "A" * 264}))[0]
    counter = make_counter("tiktoken", "claude-3")
    empty, sealed = (counter.block(block_of("assistant", {**shown, "signature": s})) for s in ("", SIGNATURE))
    assert sealed - empty == round(400 * calibration("claude-3").structure["unseen"])


def test_an_unknown_kind_counts_as_its_json_and_is_told() -> None:
    counter = make_counter("tiktoken", "claude-3")
    source = {"type": "url", "url": "https://x"}
    assert 10 < counter.block(block_of("user", {"type": "of_tomorrow", "source": source})) < 60
    assert counter.guessed_kinds == ("of_tomorrow",)  # type: ignore[attr-defined]


GUESSED = (
    "compaction",
    "document",
    "image",
    "of_tomorrow",
    "search_result",
    "tool",
    "web_search_tool_result",
)


@pytest.mark.parametrize("order", [1, -1])
def test_guesses_are_told_in_one_order_with_content_and_without(order: int) -> None:
    counter, bare = make_counter("tiktoken", "claude-3"), make_counter("tiktoken", "claude-3")
    assert counter.guessed_kinds == ()  # type: ignore[attr-defined]
    for block in blocks()[::order]:
        counter.block(block)
        bare.block(without_content(block))
    assert counter.guessed_kinds == bare.guessed_kinds == GUESSED  # type: ignore[attr-defined]


FIELDS = ("type", "source", "content", "data", "citations", "enabled", "input", "text", "title", "encrypted_content")
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=8,
)
KINDS = (*{str(content.get("type", "custom")) for _, content in BLOCKS}, "document", "tool_use", "web_tool_result")


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.dictionaries(st.sampled_from(FIELDS[1:]), anything, max_size=4))
def test_malformed_content_is_counted_and_counts_the_same_without(kind: str, fields: dict[str, Any]) -> None:
    counter, bare = make_counter("tiktoken", "claude-3"), make_counter("tiktoken", "claude-3")
    for role in ("user", ""):
        block = block_of(role, {"type": kind, **fields})
        assert counter.block(block) == bare.block(without_content(block)) >= 0


def test_a_block_that_cannot_be_counted() -> None:
    digest = bytes.fromhex("0123456789abcdef" * 2)
    bare = Block("text", "user", digest, 10, counts={"cl100k": 3})
    assert make_counter("tiktoken", "claude-3").block(bare) == 3
    with pytest.raises(
        CannotCount,
        match=r"^text block 01234567 has no content and no cl100k count \(counts: none\): "
        r"import the recording again with --content digest$",
    ):
        make_counter("tiktoken", "claude-3").block(replace(bare, counts={}))
    known = "text, code, data, tools, cjk, cyrillic, script"
    with pytest.raises(CannotCount, match=rf"^prose 'cod': expected one of {known} \(did you mean 'code'\?\)$"):
        make_counter("tiktoken", "claude-3").block(replace(bare, prose="cod"))


@WITH_CTOK
def test_ctok_needs_its_own_counts() -> None:
    bare = Block("text", "user", b"0" * 16, 10, counts={"cl100k": 3, "ctok-3": 4})
    assert make_counter("ctok", "claude-3").block(bare) == 4
    with pytest.raises(
        CannotCount, match=r"no ctok-4\.8 count \(counts: cl100k, ctok-3\): .*or use --tokens tiktoken$"
    ):
        make_counter("ctok", "claude-4.8").block(bare)


def test_a_text_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def one(self: object, text: str) -> int:
        seen.append(text)
        return 1

    monkeypatch.setattr("cachecost.tokens.tokenizers.Cl100k.__call__", one)
    counter = make_counter("tiktoken", "claude-3")
    block = block_of("user", {"type": "text", "text": "again"})
    assert [counter.block(block), counter.block(block)] == [1, 1]
    assert seen == ["again"]


def test_raw_counts_name_tokenizers_and_facts() -> None:
    call = block_of("assistant", {"type": "tool_use", "name": "read", "input": {"path": "a", "n": 1}})
    counts = count_content(call)[0]
    assert counts["cl100k"] == 5
    assert counts["parameter"] == 2
    tokenizers = {"ctok-3", "ctok-4.7", "ctok-4.8"} if has_ctok() else set()
    assert set(counts) == {"cl100k", "parameter"} | tokenizers


def test_raw_counts_keep_sizes_and_no_word() -> None:
    result = {"type": "tool_result", "content": [IMAGE, IMAGE, PAPER]}
    counts = count_content(block_of("user", result))[0]
    facts = {name: number for name, number in counts.items() if not name.startswith(("cl100k", "ctok"))}
    assert facts == {"1920x1080 image": 2, "612x792 page": 3, "document": 1}
    assert "uack" not in json.dumps(counts)


def test_raw_counts_of_a_block_without_content_are_those_it_has() -> None:
    bare = Block("text", "user", b"0" * 16, 10, counts={"cl100k": 3}, prose="code")
    assert count_content(bare) == ({"cl100k": 3}, "code")
    assert count_content(given_block("text", "user", "head", 5))[0] == {}


@pytest.mark.parametrize(
    ("name", "generation", "message"),
    [
        (
            "calibrated",
            "claude-3",
            "--tokens calibrated is not there yet: expected one of auto, bytes, ctok, native, tiktoken",
        ),
        (
            "count_tokens",
            "claude-3",
            "--tokens count_tokens is not there yet: expected one of auto, bytes, ctok, native, tiktoken",
        ),
        (
            "tictoken",
            "claude-3",
            "--tokens tictoken is unknown: expected one of auto, bytes, ctok, native, tiktoken "
            "(did you mean 'tiktoken'?)",
        ),
        (
            "tiktoken",
            "claude-4.9",
            "tokenizer generation 'claude-4.9' is not calibrated: expected one of claude-3, claude-4.7, claude-4.8, "
            "o200k, gemini, deepseek, mistral, qwen, grok, minimax, open (did you mean 'claude-4.8'?)",
        ),
    ],
)
def test_counters_that_cannot_be_made(name: str, generation: str, message: str) -> None:
    with pytest.raises(CannotEvaluate) as told:
        make_counter(name, generation)
    assert str(told.value) == message


def test_ctok_missing_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctok", None)
    monkeypatch.setattr("cachecost.tokens.tokenizers.OLDEST_PYTHON", (3, 11))
    with pytest.raises(NotInstalled, match=r"--tokens ctok: ctok is not installed. .*, or use --tokens tik"):
        make_counter("ctok", "claude-3")
    monkeypatch.setattr("cachecost.tokens.tokenizers.OLDEST_PYTHON", (4, 0))
    with pytest.raises(CannotEvaluate, match=r"--tokens ctok needs Python 4.0 or later: use --tokens tiktoken"):
        make_counter("ctok", "claude-3")
    assert set(count_content(block_of("user", {"type": "text", "text": "x"}))[0]) == {"cl100k"}


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("name", NAMES[1:])
def test_every_counter_tells_its_source_and_band(name: str, generation: str) -> None:
    counter: TokenCounter = make_counter(name, generation)
    assert counter.name == name
    assert generation in counter.source
    assert 0 < counter.error_margin < 0.25
