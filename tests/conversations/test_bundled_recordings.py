"""The recordings in the repository: what is in them, and that no word is."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from shapes import blocks_of

from cachecost.base.times import iso
from cachecost.conversations.model import KNOWN_KEYS, KNOWN_WORDS, Human, Results, read

FOLDER = Path(__file__).parents[2] / "scenarios" / "recordings"
SESSIONS = [  # name, model, messages of a person, calls, tool calls, inquiries
    ("jp-17653152345", "claude-sonnet-4-5", 2, 7, 5, 0),
    ("jp-17659773217", None, 6, 6, 0, 0),
    ("jp-17662304290", "google/gemini-flash-latest", 11, 11, 0, 0),
    ("jp-17671120783", "google/gemini-3-flash-preview", 1, 10, 9, 0),
    ("jp-17673061097", "google/gemini-3-flash-preview", 1, 4, 3, 0),
    ("jp-17727391057", "claude-opus-4-6", 8, 32, 35, 3),
    ("jp-17727484633", "claude-opus-4-6", 1, 7, 7, 2),
    ("jp-17727523543", "claude-opus-4-6", 6, 36, 35, 4),
    ("jp-17728322628", "claude-opus-4-6", 14, 200, 230, 41),
    ("jp-17732257364", "claude-opus-4-6", 2, 29, 27, 4),
    ("jp-17738348630", "claude-opus-4-6", 8, 47, 55, 13),
    ("jp-17738500500", "claude-opus-4-6", 6, 101, 108, 18),
    ("jp-17758406187", None, 2, 11, 10, 0),
    ("jp-17800836875", None, 4, 22, 24, 0),
]
NAMES = [session[0] for session in SESSIONS]
KEYS = {
    "format", "kind", "content", "name", "model", "source", "licence", "params", "tools", "system",
    "block", "role", "digest", "size", "counts", "prose",
    "event", "at", "blocks", "first_token_s", "batch", "answer_type", "tool_use",
    "cl100k", "ctok-3", "ctok-4.7", "ctok-4.8", "parameter", "error", "unseen",
    "type",
}  # fmt: skip
WORDS = {
    "conversation", "digest", "https://github.com/dcdpr/jp .jp/conversations", "Apache-2.0",
    "text", "thinking", "tool_use", "tool_result", "user", "assistant", "code", "data",
    "human", "reply", "results", "inquiry", "boolean",
}  # fmt: skip
SHAPES = re.compile(r"[0-9a-f]{32}|~[0-9a-f]{16}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def test_all_of_them_are_here_and_in_the_readme() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.jsonl")) == NAMES
    readme = (FOLDER / "README.md").read_text()
    for name, model, humans, calls, tool_calls, inquiries in SESSIONS:
        day = iso(read(FOLDER / f"{name}.jsonl").events[0].at)[:10]
        row = f"| {name} | {day} | {model or 'not known'} | {humans} | {calls} | {tool_calls} | {inquiries} |"
        assert row in readme


@pytest.mark.parametrize(("name", "model", "humans", "calls", "tool_calls", "inquiries"), SESSIONS)
def test_what_is_in_them(
    name: str, model: str | None, humans: int, calls: int, tool_calls: int, inquiries: int
) -> None:
    conversation = read(FOLDER / f"{name}.jsonl", pytest.fail)
    kinds = Counter(block.kind for block in blocks_of(conversation))
    assert (conversation.name, conversation.model, conversation.licence) == (name, model, "Apache-2.0")
    assert sum(isinstance(event, Human) for event in conversation.events) == humans
    assert len(conversation.replies) == calls
    assert kinds["tool_use"] == kinds["tool_result"] == tool_calls
    assert len(conversation.inquiries) == inquiries
    assert sum(isinstance(event, Results) for event in conversation.events) == sum(
        any(block.kind == "tool_use" for block in reply.blocks) for reply in conversation.replies
    )
    times = [event.at for event in conversation.events]
    assert times == sorted(times)
    assert all(block.content is None and block.counts["cl100k"] >= 0 for block in blocks_of(conversation))


@pytest.mark.parametrize("name", NAMES)
def test_no_word_is_in_them(name: str) -> None:
    path = FOLDER / f"{name}.jsonl"
    assert path.stat().st_size < 200_000

    def check(value: Any) -> None:
        if isinstance(value, dict):
            assert set(value) <= KEYS | KNOWN_KEYS, set(value) - KEYS
            for inner in value.values():
                check(inner)
        elif isinstance(value, list):
            for inner in value:
                check(inner)
        elif isinstance(value, str):
            assert value in allowed or SHAPES.fullmatch(value), value

    conversation = read(path)
    allowed = WORDS | KNOWN_WORDS | {conversation.name, conversation.model}
    assert re.fullmatch(r"jp-\d{11}", conversation.name)
    for line in path.read_text().splitlines():
        check(json.loads(line))
