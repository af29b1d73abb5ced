"""What is counted of server tools' calls and results, and of other blocks that only some requests have."""

from typing import Any

import pytest

from cachecost.prompts.request import block_of
from cachecost.tokens.calibration import calibration
from cachecost.tokens.factory import make_counter
from cachecost.tokens.parts import BlockParts, facts_of, parts_of

CONSTANTS = calibration("claude-3").structure


def ran(**result: Any) -> dict[str, Any]:
    return {"type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": result}


@pytest.mark.parametrize(
    ("content", "texts", "facts"),
    [
        (ran(type="r", stdout="out", stderr="err", return_code=0, content=[]), ("out", "err"), {}),
        (ran(type="e", error_code="unavailable"), ("unavailable",), {}),
        (ran(type="r", stdout="", content=[{"type": "bash_code_execution_output", "file_id": "file_1"}]), ("",), {}),
        (ran(type="r", encrypted_stdout="A" * 100, stderr=""), ("",), {"sealed": 100, "guessed": 1}),
        (
            {
                "type": "web_fetch_tool_result",
                "content": {
                    "type": "web_fetch_result",
                    "url": "u",
                    "retrieved_at": "2026-11-21",
                    "content": {"type": "document", "title": "t", "source": {"type": "text", "data": "d"}},
                },
            },
            ("u", "t", "d"),
            {"document": 1},
        ),
        (
            {
                "type": "web_search_tool_result",
                "content": [
                    {"type": "web_search_result", "title": "t", "url": "u", "encrypted_content": "A" * 200},
                    {"type": "web_search_result", "title": "v", "url": "w", "page_age": "1 day"},
                ],
            },
            ("t", "u", "v", "w", "1 day"),
            {"found": 2, "sealed": 200, "guessed": 2},
        ),
        ({"type": "mcp_tool_result", "content": [{"type": "text", "text": "a"}]}, ("a",), {}),
        ({"type": "mcp_tool_result", "content": "a"}, ("a",), {}),
        (
            {
                "type": "tool_search_tool_result",
                "content": {"type": "r", "tool_references": [{"type": "tool_reference", "tool_name": "n"}]},
            },
            ("n",),
            {"reference": 1},
        ),
        ({"type": "oracle_tool_result", "content": {"type": "r", "verdict": "yes"}}, ("yes",), {"guessed": 1}),
        ({"type": "oracle_tool_result"}, (), {"guessed": 1}),
    ],
)
def test_a_result_is_its_texts(content: dict[str, Any], texts: tuple[str, ...], facts: dict[str, int]) -> None:
    found = parts_of(content["type"], content)
    assert {name: number for name, number in found.facts.items() if name != "guessed"} == {
        name: number for name, number in facts.items() if name != "guessed"
    }
    assert ("guessed" in found.facts) == ("guessed" in facts)
    assert found.texts == texts


@pytest.mark.parametrize(
    ("role", "kind", "facts"),
    [
        ("assistant", "tool_use", {"tool_use": 1}),
        ("assistant", "server_tool_use", {"tool_use": 1}),
        ("assistant", "mcp_tool_use", {"tool_use": 1}),
        ("user", "tool_result", {"tool_result": 1}),
        ("assistant", "web_search_tool_result", {"server_result": 1}),
        ("user", "container_upload", {"container_upload": 1}),
        ("user", "image", {}),
        ("system", "text", {"system": 1}),
        ("user", "text", {}),
    ],
)
def test_facts_of_a_kind(role: str, kind: str, facts: dict[str, int]) -> None:
    assert facts_of(block_of(role, {"type": kind})) == facts


@pytest.mark.parametrize(
    ("generation", "least", "most"),
    [("claude-3", 0.244, 0.27), ("claude-4.7", 0.27, 0.37), ("claude-4.8", 0.27, 0.339)],
)
def test_what_is_sealed_costs_what_searches_were_billed(generation: str, least: float, most: float) -> None:
    """Recorded searches run from 0.244 to 0.339 tokens a character of their sealed content, all else included."""
    assert least <= calibration(generation).structure["sealed"] <= most
    counter = make_counter("tiktoken", generation)
    sealed = {"type": "web_search_result", "title": "", "url": "", "encrypted_content": "A" * 4000}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [sealed]}
    bare = {**found, "content": [{**sealed, "encrypted_content": ""}]}
    full, empty = (counter.block(block_of("assistant", content)) for content in (found, bare))
    assert full - empty == pytest.approx(4000 * calibration(generation).structure["sealed"], abs=1)


def test_another_maker_is_shown_what_is_sealed_as_text() -> None:
    structure = calibration("deepseek").structure
    assert structure["sealed"] == 0.93 * structure["unseen"]


def test_a_server_tools_call_counts_as_a_clients() -> None:
    counter = make_counter("tiktoken", "claude-3")
    call = {"id": "x", "name": "bash_code_execution", "input": {"command": "ls -la"}}
    server, client = (block_of("assistant", {"type": kind, **call}) for kind in ("server_tool_use", "tool_use"))
    assert counter.block(server) == counter.block(client)


@pytest.mark.parametrize("stdout", ["", "Sum: 100.0\n"])
def test_what_stands_around_a_result_is_a_constant(stdout: str) -> None:
    """On Sonnet 4.6 six recorded pairs of call and result were their texts and 66 tokens."""
    counter = make_counter("tiktoken", "claude-3")
    result = counter.block(block_of("assistant", ran(type="r", stdout=stdout, stderr="", return_code=0)))
    assert result - counter.block(block_of("user", {"type": "text", "text": stdout})) == CONSTANTS["server_result"]
    assert CONSTANTS["tool_use"] + CONSTANTS["parameter"] + CONSTANTS["server_result"] == 66


@pytest.mark.parametrize(
    ("content", "texts", "facts"),
    [
        ({"type": "container_upload", "file_id": "file_1"}, (), {}),
        ({"type": "compaction", "content": "so far"}, ("so far",), {"guessed": 1}),
        ({"type": "compaction", "content": None}, ("",), {"guessed": 1}),
        ({"type": "text", "text": "a", "citations": None}, ("a",), {}),
        ({"type": "text", "text": "a", "citations": []}, ("a",), {}),
        ({"type": "text", "text": "a", "citations": [{"cited_text": "long"}, {}]}, ("a",), {"cited": 2}),
        (
            {"type": "tool_result", "content": [{"type": "tool_reference", "tool_name": "look_up"}]},
            ("look_up",),
            {"reference": 1},
        ),
    ],
)
def test_other_blocks(content: dict[str, Any], texts: tuple[str, ...], facts: dict[str, int]) -> None:
    assert parts_of(content["type"], content) == BlockParts(texts, facts)


def test_an_uploaded_file_is_six_tokens() -> None:
    """Recorded on Sonnet 4.6: the prefix after it is 4,338 tokens, that before it 4,332."""
    assert make_counter("tiktoken", "claude-3").block(block_of("user", {"type": "container_upload"})) == 6
