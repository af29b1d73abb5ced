"""Requests without content become ones that can be sent: of the same size, in the API's order, each run its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from driver_fake import SCENARIO, START, small_plan

from cachecost.live.driver.planning import (
    DIGEST_WORDS,
    NO_THINKING,
    UNMATCHED,
    WORDS,
    FillerContent,
    LiveOptions,
    faults_in,
    nonce_of,
    plan,
    text,
    with_nonce,
)
from cachecost.prompts.blocks import Block, Layer, Message, Part, Thread, given_block
from cachecost.prompts.passes import body_of
from cachecost.prompts.request import Breakpoint, Request, block_of
from cachecost.scenario.loading import from_mapping
from cachecost.tokens.factory import make_counter

COUNTER = make_counter("tiktoken", "claude-3")


def thread_of(*messages: tuple[str, list[Block]]) -> Thread:
    node = Thread()
    for role, blocks in messages:
        node = node.then(Message.of(role, tuple(blocks)))
    return node


def given(kind: str, role: str, name: str, tokens: int = 100) -> Block:
    return given_block(kind, role, name, tokens)


def test_words_are_plain_and_each_once() -> None:
    assert len(set(WORDS)) == 128 and all(word.isascii() and word.isalpha() for word in WORDS)


def test_equal_digests_give_equal_texts_and_others_differ_at_once() -> None:
    digests = [bytes([number]) * 15 + bytes([255 - number]) for number in range(200)]
    firsts = {tuple(text(digest, 50).split()[:DIGEST_WORDS]) for digest in digests}
    assert len(firsts) == 200
    assert text(digests[0], 50) == text(digests[0], 50)
    assert text(digests[0], 80).startswith(text(digests[0], DIGEST_WORDS))


@pytest.mark.parametrize(
    ("kind", "role"), [("text", "user"), ("tool_use", "assistant"), ("text", "system"), ("tool", "")]
)
@pytest.mark.parametrize("tokens", [150, 1_000, 7_000])
def test_filler_is_of_the_blocks_size(kind: str, role: str, tokens: int) -> None:
    part = Part((given(kind, role, "x", tokens),))
    made = FillerContent(COUNTER).fill_request(Request("claude-sonnet-4-5", Thread(), system=part)).system.blocks[0]
    assert made.tokens is None and made.content is not None
    assert COUNTER.block(made) == pytest.approx(tokens, rel=0.04)


def test_results_answer_the_calls_before_them_in_order() -> None:
    thread = thread_of(
        ("user", [given("text", "user", "ask")]),
        (
            "assistant",
            [given("thinking", "assistant", "t"), *(given("tool_use", "assistant", f"u{n}") for n in (1, 2))],
        ),
        ("user", [*(given("tool_result", "user", f"r{n}") for n in (1, 2, 3)), given("text", "user", "more")]),
    )
    assert thread.message is not None
    breakpoint = Breakpoint(Layer.MESSAGES, 1, "5m", thread.parent)
    material = FillerContent(COUNTER)
    body = body_of(material.fill_request(Request("claude-sonnet-4-5", thread, breakpoints=(breakpoint,))))
    calls, results = body["messages"][1]["content"], body["messages"][2]["content"]
    assert [block["type"] for block in calls] == ["tool_use", "tool_use"]
    assert "cache_control" in calls[0], "the breakpoint moved with its block, past the thinking that was left out"
    assert [block["type"] for block in results] == ["tool_result", "tool_result", "text", "text"]
    assert [block["tool_use_id"] for block in results[:2]] == [block["id"] for block in calls]
    assert faults_in(body) == []
    assert {NO_THINKING, UNMATCHED} <= set(material.notes)


def test_a_result_with_content_goes_to_the_call_that_is_open() -> None:
    told = block_of("user", {"type": "tool_result", "tool_use_id": "call_0", "content": "Paused."})
    thread = thread_of(
        ("user", [given("text", "user", "ask")]),
        ("assistant", [given("tool_use", "assistant", "u")]),
        ("user", [told]),
    )
    body = body_of(FillerContent(COUNTER).fill_request(Request("claude-sonnet-4-5", thread)))
    assert body["messages"][2]["content"][0]["tool_use_id"] == body["messages"][1]["content"][0]["id"]
    assert faults_in(body) == []


def test_what_has_content_is_sent_as_it_is() -> None:
    block = block_of("user", {"type": "text", "text": "as it is"})
    body = body_of(FillerContent(COUNTER).fill_request(Request("claude-sonnet-4-5", thread_of(("user", [block])))))
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "as it is"}]}]


TOOL: dict[str, Any] = {"name": "a", "description": "does", "input_schema": {}}
USER: dict[str, Any] = {"role": "user", "content": "hello"}


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"tools": [TOOL], "system": "s", "messages": [USER]}, ("tools", 0, "description")),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}, TOOL], "messages": [USER]}, ("tools", 1, "description")),
        ({"system": "s", "messages": [USER]}, ("system", 0, "text")),
        ({"messages": [USER]}, ("messages", 0, "content", 0, "text")),
    ],
)
def test_the_nonce_stands_in_the_first_block(body: dict[str, Any], where: tuple[Any, ...]) -> None:
    made: Any = with_nonce(body, "run 1")
    for key in where:
        made = made[key]
    assert made.startswith("run 1 ")


def test_a_nonce_is_of_one_length_and_of_one_run_and_strategy() -> None:
    nonces = {nonce_of(run, name) for run in ("a", "b") for name in ("x", "a long name")}
    assert len(nonces) == 4 and {len(nonce) for nonce in nonces} == {20}


def test_strategies_share_no_prefix_and_calls_of_one_do() -> None:
    made = small_plan()
    first = [planned.steps[0].request.tools.digest for planned in made.strategies]
    assert first[0] != first[1]
    assert all(step.request.tools.digest == first[0] for step in made.strategies[0].steps)
    assert made.digest == small_plan().digest != small_plan("beef").digest


def test_output_is_cut_and_thinking_has_its_budget() -> None:
    assert {step.body["max_tokens"] for step in small_plan().steps} == {16}
    params = {"params": {"thinking": {"type": "enabled", "budget_tokens": 2_000}}}
    source = {**SCENARIO["conversation"], **params}
    made = plan(from_mapping({**SCENARIO, "conversation": source}, Path()), Path(), "a", START, LiveOptions(20))
    assert {step.body["max_tokens"] for step in made.steps} == {2_020}


def result(name: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": "x"}


def use(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "a", "input": {}}


def says(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


HELLO = says("user", {"type": "text", "text": "hello"})
TEXT: dict[str, Any] = {"type": "text", "text": "t"}


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([HELLO, says("assistant", use("1")), says("user", result("1"))], None),
        ([HELLO, says("assistant", use("1"), use("2")), says("user", result("2")), says("user", result("1"))], None),
        ([], "messages: at least one message is required"),
        ([says("assistant", TEXT)], "messages.0: the first message must be the user's"),
        ([says("user", {"type": "text", "text": " "})], "messages.0.content.0: text must not be empty"),
        ([says("user")], "messages.0: content must not be empty"),
        ([HELLO, says("assistant", use("1"))], "turn 2: the last message calls tools, and has no results for them"),
        ([HELLO, says("assistant", use("1")), HELLO], "turn 3: no tool_result for tool_use 1 right after it"),
        ([says("user", result("1"))], "turn 1: a tool_result without a tool_use right before it: 1"),
        (
            [HELLO, says("assistant", use("1")), says("user", TEXT, result("1"))],
            "turn 3: tool results must come before anything else",
        ),
        (
            [HELLO, says("assistant", use("1"), use("1")), says("user", result("1"))],
            "turn 2: tool_use ids must be unique: 1",
        ),
    ],
)
def test_the_order_that_the_api_wants(messages: list[dict[str, Any]], fault: str | None) -> None:
    assert faults_in({"messages": messages}) == ([fault] if fault else [])


def test_tools_need_names_of_their_own_and_a_choice_one_of_them() -> None:
    body = {"tools": [TOOL, TOOL, {"name": "a b"}], "tool_choice": {"type": "tool", "name": "c"}, "messages": [HELLO]}
    assert faults_in(body) == [
        "tools: names must be unique; 'a' appears 2 times",
        "tools: 'a b' is not a valid tool name",
        "tool_choice: tool 'c' is not among the tools",
    ]


@pytest.mark.parametrize(("kind", "faults"), [("enabled", 1), ("adaptive", 0), ("disabled", 0)])
def test_manual_thinking_needs_the_thinking_before_results(kind: str, faults: int) -> None:
    messages = [HELLO, says("assistant", use("1")), says("user", result("1"))]
    assert len(faults_in({"thinking": {"type": kind}, "messages": messages})) == faults
    sealed = {"type": "thinking", "thinking": "x", "signature": "y"}
    messages[1] = says("assistant", sealed, use("1"))
    assert faults_in({"thinking": {"type": kind}, "messages": messages}) == []
