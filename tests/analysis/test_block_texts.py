"""Blocks as a person reads them."""

from __future__ import annotations

from json import dumps
from typing import Any

import pytest

from cachecost.analysis.viewing.blocks import compared_texts, readable_text
from cachecost.prompts.blocks import Block, Layer, digest_of


def block(content: dict[str, Any]) -> Block:
    kind = content.get("type", "tool")
    return Block(kind, "user", digest_of("user", kind, dumps(content).encode()), 9, content)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"type": "text", "text": "Hi\n"}, "Hi\n"),
        ({"type": "thinking", "thinking": "Hm.", "signature": "x"}, "Hm."),
        (
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls -l\npwd", "timeout": 5}},
            "Bash command: ls -l\npwd, timeout: 5",
        ),
        ({"type": "tool_use", "id": "t1", "name": "Stop", "input": {}}, "Stop"),
        ({"type": "tool_use", "id": "t1", "name": "Say", "input": "words"}, "Say words"),
        ({"type": "tool_result", "tool_use_id": "t1", "content": "done"}, "done"),
        (
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "content": [{"type": "text", "text": "see"}, {"type": "image", "source": {}}],
            },
            "see\n[image]",
        ),
        ({"type": "image", "source": {"data": "x"}}, '{"type": "image", "source": {"data": "x"}}'),
        ({"type": "text", "text": 5}, '{"type": "text", "text": 5}'),
        ({"type": "tool_result", "tool_use_id": "t1"}, '{"type": "tool_result", "tool_use_id": "t1"}'),
    ],
)
def test_what_a_person_reads_of_a_block(content: dict[str, Any], text: str) -> None:
    assert readable_text(block(content)) == text


def test_a_tool_is_its_name_and_description_then_the_rest() -> None:
    tool = block({"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}})
    assert readable_text(tool, Layer.TOOLS) == 'Read\nReads a file.\n{"input_schema": {"type": "object"}}'


def test_without_content_nothing_is_known() -> None:
    bare = Block("text", "user", b"1", 9)
    assert readable_text(bare) is None
    assert compared_texts(bare, block({"type": "text", "text": "Hi"}), Layer.MESSAGES) is None


def test_what_differs_only_in_the_json_is_compared_as_json() -> None:
    one, other = (block({"type": "tool_result", "tool_use_id": id_, "content": "done"}) for id_ in ("t1", "t2"))
    was, now = compared_texts(one, other, Layer.MESSAGES) or ("", "")
    assert was != now and '"t1"' in was and '"t2"' in now
    changed = block({"type": "tool_result", "tool_use_id": "t1", "content": "failed"})
    assert compared_texts(one, changed, Layer.MESSAGES) == ("done", "failed")
