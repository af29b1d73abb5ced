"""Lint of one request: each planted fault is found with its code and path, and nothing else is."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from lint_bodies import ANSWER, NEXT, QUESTION, SYSTEM, TOOLS, first, found, linted, second, serious

from bodies import (
    BREAKPOINT,
    HOUR,
    Body,
    assistant,
    body,
    breakpoint_last,
    marked,
    text,
    thinking,
    tool,
    tool_result,
    user,
)
from cachecost.analysis.lint import codes, lint
from cachecost.base.errors import CannotEvaluate, InputError


def test_a_good_request_has_no_finding() -> None:
    assert linted(first()) == [] and linted(second()) == []


MANUAL = {"type": "enabled", "budget_tokens": 1024}
SUB_MARKED = {**tool_result(300, "r"), "content": [marked(text(50)), text(50)]}
REFUSED: dict[str, tuple[Body, dict[str, Any], str, str, str]] = {
    "five breakpoints": (
        breakpoint_last(
            body(QUESTION, ANSWER, NEXT, tools=[marked(tool(1200, "a")), TOOLS[1]], system=[*SYSTEM, *SYSTEM])
        ),
        {},
        "CC501",
        "messages.2.content.0",
        "A maximum of 4 blocks with cache_control may be provided. Found 5. "
        "They are tools.0, tools.1, system.0, system.1, messages.2.content.0.",
    ),
    "four breakpoints in a thread": (
        {
            **breakpoint_last(body(QUESTION, ANSWER, NEXT, tools=[marked(tool(1200, "a")), TOOLS[1]], system=SYSTEM)),
            "thread": {"type": "create"},
        },
        {},
        "CC501",
        "thread",
        "thread: a maximum of 3 blocks with cache_control may be provided when `thread` is set -- the fourth marker "
        "slot is reserved for the marker the server places on the conversation's last cache-eligible block. Found 4.",
    ),
    "a thread on Bedrock": (
        {**first(), "thread": {"type": "create"}},
        {"host": "bedrock"},
        "CC505",
        "thread",
        "thread: Extra inputs are not permitted",
    ),
    "on-demand compaction on Bedrock": (
        {**first(), "compaction": {"type": "summarize"}},
        {"host": "bedrock"},
        "CC505",
        "compaction",
        "compaction: Extra inputs are not permitted",
    ),
    "1h after 5m": (
        first(system=[marked(text(1100), "1h")]),
        {},
        "CC502",
        "system.0",
        "system.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control "
        "block. Note that blocks are processed in the following order: `tools`, `system`, `messages`. "
        "The 5m block is tools.1.",
    ),
    "on thinking": (
        breakpoint_last(body(QUESTION, assistant(marked(thinking(300)), text(90)), NEXT, tools=TOOLS)),
        {},
        "CC503",
        "messages.1.content.0",
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    "on empty text": (
        first(system=[*SYSTEM, {"type": "text", "text": "", "cache_control": BREAKPOINT}]),
        {},
        "CC503",
        "system.1",
        "system.1.text: cache_control cannot be set for empty text blocks",
    ),
    "on a deferred tool": (
        first(tools=[{**marked(tool(200, "X")), "defer_loading": True, "name": "X"}, *TOOLS]),
        {},
        "CC503",
        "tools.0",
        "Tool 'X' cannot have both defer_loading=true and cache_control set. "
        "Tools with defer_loading cannot use prompt caching.",
    ),
    "inside a block": (
        breakpoint_last(body(QUESTION, ANSWER, user(SUB_MARKED), ANSWER, NEXT, tools=TOOLS)),
        {},
        "CC503",
        "messages.2.content.0",
        "messages.2.content.0.content.0.cache_control: Extra inputs are not permitted",
    ),
    "automatic": (
        {**first(), "cache_control": HOUR},
        {},
        "CC504",
        "cache_control",
        "Top-level cache_control has ttl='1h' but the target block already has cache_control with ttl='5m'",
    ),
    "no automatic on this host": (
        {**body(QUESTION, tools=TOOLS), "cache_control": BREAKPOINT},
        {"host": "bedrock", "as_of": "2026-03-07"},
        "CC505",
        "cache_control",
        "cache_control: Extra inputs are not permitted",
    ),
    "forced choice": (
        first(tool_choice={"type": "any"}, thinking=MANUAL),
        {},
        "CC506",
        "tool_choice",
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    "forced choice on a model without": (
        first(tool_choice={"type": "tool", "name": "a"}, model="claude-opus-5-5"),
        {},
        "CC506",
        "tool_choice",
        "tool_choice: type 'tool' is not supported on claude-opus-5-5; it answers to 'auto' and 'none' only.",
    ),
}


@pytest.mark.parametrize(("sent", "options", "code", "path", "message"), REFUSED.values(), ids=REFUSED)
def test_what_the_api_refuses_is_an_error_in_its_words(
    sent: Body, options: dict[str, Any], code: str, path: str, message: str
) -> None:
    (one,) = [one for one in linted(sent, **options) if not one.is_note]
    assert (one.code, one.path, one.message, one.severity) == (code, path, message, "error")


def test_all_that_is_refused_is_told_at_once() -> None:
    sent = first(
        tools=[marked(tool(1200, "a")), TOOLS[1]],
        system=[marked(text(1100), "1h"), {"type": "text", "text": "", "cache_control": BREAKPOINT}],
        tool_choice={"type": "any"},
        thinking=MANUAL,
    )
    assert serious(sent) == [
        ("CC501", "messages.0.content.0"),
        ("CC502", "system.0"),
        ("CC503", "system.1"),
        ("CC506", "tool_choice"),
    ]


def test_four_breakpoints_and_equal_lifetimes_are_fine() -> None:
    assert serious(first(tools=[marked(tool(1200, "a")), TOOLS[1]])) == []
    assert serious({**first(), "cache_control": BREAKPOINT}) == [], "automatic caching where the breakpoint is already"
    adaptive = first(model="claude-sonnet-4-6", tool_choice={"type": "any"}, thinking={"type": "adaptive"})
    assert serious(adaptive) == []


def test_web_tools_stand_in_another_layer_and_keep_their_path() -> None:
    web = {"type": "web_search_20250305", "name": "web_search", "cache_control": HOUR}
    assert serious(first(tools=[web, *TOOLS])) == [], "an hour before five minutes, as sent"
    assert serious(first(tools=[*TOOLS, web])) == [("CC502", "tools.2")]


def test_a_prompt_longer_than_the_window_is_refused_where_that_is_sure() -> None:
    def states(words: int) -> list[str]:
        part = {"type": "text", "text": "word " * 10_000}
        sent = breakpoint_last(body(user(*[part] * (words // 10_000)), model="claude-opus-4-1"))
        return [one.code for one in linted(sent, tokens="tiktoken")]

    seen = [states(words) for words in range(140_000, 240_000, 10_000)]
    assert seen == sorted(seen, key=[[], ["CC508"], ["CC507"]].index)
    assert {len(one) for one in seen} == {0, 1} and ["CC508"] in seen and ["CC507"] in seen


# ---------------------------------------------------------------------------------------------- lengths


@pytest.mark.parametrize(("size", "message"), [(1023, "1 token short"), (1024, None), (500, "524 tokens short")])
def test_below_the_minimum_says_how_much_is_missing(size: int, message: str | None) -> None:
    (finding,) = linted(body(user(marked(text(size))))) or [None]
    assert (finding is None) == (message is None)
    if finding is not None and message is not None:
        assert (finding.code, finding.path, finding.tokens) == ("CC510", "messages.0.content.0", 1024 - size)
        assert finding.message.startswith(message)


def test_a_breakpoint_below_the_minimum_before_one_that_counts_is_a_note() -> None:
    (one,) = linted(first(tools=[marked(tool(600))]))
    assert (one.code, one.path, one.severity, one.tokens) == ("CC512", "tools.0", "note", 424)
    assert one.message == (
        "424 tokens short: 600, where claude-sonnet-4-5 needs 1,024; "
        "the first breakpoint that counts is system.0 (1,700 tokens)"
    )


def test_breakpoints_that_are_too_short_while_the_rest_is_long_enough() -> None:
    (one,) = linted(body(user(marked(text(500)), text(900))))
    assert one.code == "CC510" and one.message.endswith("; with the 900 after it the request is long enough")


def test_near_the_minimum_three_states() -> None:
    def states(words: int) -> list[str]:
        sent = body(user(marked({"type": "text", "text": "word " * words})))
        return [one.code for one in linted(sent, tokens="tiktoken")]

    counts = {words: states(words) for words in range(800, 1300, 20)}
    order = ["CC510", "CC511", ""]
    seen = [codes_[0] if codes_ else "" for codes_ in counts.values()]
    assert seen == sorted(seen, key=order.index) and set(seen) == set(order)
    assert Counter(seen)["CC511"] <= 10


def test_no_breakpoint_at_all_on_a_prompt_that_is_long_enough() -> None:
    assert found(body(user(text(1024)))) == [("CC520", "cache_control")]
    assert found(body(user(text(1023)))) == []
    assert found({**body(user(text(1024))), "cache_control": BREAKPOINT}) == []


def test_all_breakpoints_in_the_head_of_a_conversation() -> None:
    head: dict[str, Any] = {"tools": [marked(tool(1200, "a")), TOOLS[1]], "system": [*SYSTEM, marked(text(90))]}
    (one,) = linted(body(QUESTION, ANSWER, NEXT, **head))
    assert (one.code, one.path, one.tokens) == ("CC522", "system.1", 900)
    assert found(body(QUESTION, **head)) == [], "no conversation yet"
    assert serious(body(QUESTION, ANSWER, NEXT, tools=TOOLS, system=SYSTEM)) == [], "two breakpoints are left"


# ------------------------------------------------------------------------------------------------ input


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({"messages": []}, "request model: expected a model id; got nothing"),
        ({"model": "m", "messages": [{"role": "usr"}]}, "request messages.0.role: expected one of assistant, system,"),
        ({"model": "m"}, "request messages: expected an array of messages; got nothing"),
    ],
)
def test_what_is_no_body_is_bad_input(sent: Body, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        lint(sent)


def test_an_unknown_model_cannot_be_evaluated() -> None:
    with pytest.raises(CannotEvaluate, match="did you mean 'claude-opus-4-6'"):
        lint(first(model="claude-opus-46"))


def test_the_table_of_codes_is_whole() -> None:
    for code, row in codes().items():
        assert re.fullmatch(r"CC5\d\d", code) and row.code == code
        assert row.severity in ("error", "warning", "note")
        assert all((row.name, row.what, row.why, row.fix, row.source))
    assert len({row.name for row in codes().values()}) == len(codes())
