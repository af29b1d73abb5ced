"""A request goes to the wire as the body it was read from."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.errors import CannotEvaluate
from cachecost.prompts.blocks import Message, Thread, given_block
from cachecost.prompts.intake import Intake
from cachecost.prompts.passes import body_of
from cachecost.prompts.request import Request

BREAKPOINTS = st.sampled_from([None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}])


def marked(item: dict[str, Any], breakpoint: dict[str, str] | None) -> dict[str, Any]:
    return {**item, "cache_control": breakpoint} if breakpoint else item


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Bodies whose contents are lists of blocks, as `body_of` writes them."""

    def blocks(kinds: list[dict[str, Any]], least: int = 1) -> list[dict[str, Any]]:
        chosen = draw(st.lists(st.sampled_from(kinds), min_size=least, max_size=3))
        return [marked(item, draw(BREAKPOINTS)) for item in chosen]

    text = {"type": "text", "text": draw(st.text(min_size=1, max_size=3))}
    use = {"type": "tool_use", "id": "t1", "name": "look", "input": {"b": 1, "a": [2.5, None, "é"]}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "found"}
    body: dict[str, Any] = {"model": "claude-opus-4-6", "max_tokens": 5}
    if draw(st.booleans()):
        search = {"type": "web_search_20250305", "name": "web_search"}
        ours = blocks([{"name": "look", "description": "looks", "input_schema": {"type": "object"}}])
        body["tools"] = [*ours, *([marked(search, draw(BREAKPOINTS))] if draw(st.booleans()) else [])]
    if draw(st.booleans()):
        body["system"] = blocks([text])
    body["messages"] = [
        {"role": "user", "content": blocks([text])},
        *([{"role": "assistant", "content": blocks([text, use])}] if draw(st.booleans()) else []),
        *([{"role": "user", "content": blocks([result, text])}] if draw(st.booleans()) else []),
    ]
    return marked(body, draw(BREAKPOINTS))


@given(bodies())
def test_what_was_read_is_sent(body: dict[str, Any]) -> None:
    sent = body_of(Intake(keep_content=True).body(body))
    assert sent == body
    assert [list(item) for item in sent["messages"]] == [list(item) for item in body["messages"]]


def test_a_string_is_sent_as_the_text_block_it_equals() -> None:
    body = {"model": "m", "system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]}
    assert body_of(Intake(keep_content=True).body(body)) == {
        "model": "m",
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    }


def test_what_has_no_content_cannot_be_sent() -> None:
    thread = Thread().then(Message.of("user", (given_block("text", "user", "a", 10),)))
    with pytest.raises(CannotEvaluate, match="a text block of 40 bytes has no content, so it cannot be sent"):
        body_of(Request("m", thread))
