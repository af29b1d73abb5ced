"""Each preset breakpoints what its client marked: 18 clients in 26 configurations, as they were recorded.

`client_shapes/` holds one file a configuration, derived from requests that were sent to a stand-in for the API on
2026-11-21 (three turns, one tool): for each call its tools, its system blocks and its messages as
`[type, bytes, TTL of its breakpoint, "deferred"]`, what is absent at the end left out, and the TTL of a top-level
`cache_control`. There is no text in them.

The recordings tell blocks in order with their roles. Message boundaries are found again: a block goes into the
message before it if that has the same role, unless either was sent as a bare string, which is a message of its own.
Calls that are not of the main thread are under `skipped`, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cachecost.prompts.blocks import Block, Layer, Message, Part, Thread, given_block
from cachecost.prompts.request import Breakpoint
from cachecost.strategies.placements import LastN, LastTool, Placement, SystemBlock, ThreadIndex, View
from cachecost.strategies.presets import PRESETS

SHAPES = Path(__file__).parent / "client_shapes"
PRESET_OF = {
    "agno": "agno",
    "aider-known-model": "aider",
    "cc330-1h": "claude-code-1h",
    "cc330-mixttl": "claude-code-mixed-ttl",
    "cc330-sonnet": "claude-code",
    "cc330-toolsearch": "claude-code",
    "claude-code-2.1.197": "claude-code-2.1.197",
    "claude-code-2.1.330": "claude-code",
    "cline": "cline-sdk",
    "cn": "continue-systemAndTools",
    "gptme": "gptme",
    "inspect-ai": "inspect-ai",
    "langchain-mw": "langchain-middleware",
    "langchain-plain": "none",
    "litellm": "litellm-injection",
    "llm-anthropic": "llm-anthropic",
    "mini-swe-agent": "mini-swe-agent",
    "opencode": "opencode",
    "pi": "pi",
    "pydantic-ai-auto": "pydantic-ai-auto",
    "pydantic-ai-cache": "pydantic-ai",
    "qwen": "qwen-code-0.15",
    "qwen-0.24.4": "qwen-code",
    "strands-cache": "strands",
}
CALLER_PLACED = {
    "anthropic-python": Placement((LastTool(), SystemBlock("last", ttl="1h"), LastN("tool", 9))),
    "anthropic-ts": Placement((LastTool(), SystemBlock("last"), LastN("tool", 9))),
}
"""SDKs breakpoint nothing themselves; this is what the recording's caller chose. The first would be refused: 1h
after 5m.
"""

PLACEMENT_OF = {name: PRESETS[preset].placement for name, preset in PRESET_OF.items()} | CALLER_PLACED
SKIPPED = {
    "anthropic-python": ["3", "4", "5", "6"],
    "anthropic-ts": ["3"],
    "gptme": ["1"],
    "llm-anthropic": ["3"],
    "opencode": ["0"],
}
"""Side calls, token counts, and conversations that were sent otherwise."""


def shape(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SHAPES / f"{name}.json").read_text())
    return loaded


def block(role: str, where: str, cell: list[Any]) -> Block:
    kind, size = cell[:2]
    return given_block(kind, role, f"{where} {size}", size // 4, {"defer_loading": True} if "deferred" in cell else {})


def part(role: str, cells: list[list[Any]]) -> Part:
    return Part(tuple(block(role, str(index), cell) for index, cell in enumerate(cells)))


def sent(call: dict[str, Any], root: Thread, trail: ThreadIndex) -> View:
    thread = root
    for number, (role, cells) in enumerate(call["messages"]):
        blocks = tuple(block(role, f"{number}.{index}", cell) for index, cell in enumerate(cells))
        thread = thread.then(Message.of(role, blocks))
    return View(thread, part("", call["tools"]), part("system", call["system"]), trail)


def marked_cells(call: dict[str, Any]) -> Iterator[tuple[str, int, int, str]]:
    """Where the client's breakpoints are: layer, message, block, TTL."""
    for layer in ("tools", "system"):
        yield from ((layer, 0, i, cell[2]) for i, cell in enumerate(call[layer]) if len(cell) > 2 and cell[2])
    for number, (_, cells) in enumerate(call["messages"], 1):
        yield from (("messages", number, i, cell[2]) for i, cell in enumerate(cells) if len(cell) > 2 and cell[2])


def told(breakpoint: Breakpoint) -> tuple[str, int, int, str]:
    return str(breakpoint.layer), breakpoint.node.length if breakpoint.node else 0, breakpoint.index, breakpoint.ttl


@pytest.mark.parametrize("name", sorted(PLACEMENT_OF))
def test_the_preset_breakpoints_what_the_client_marked(name: str) -> None:
    """For every call of the main thread, with one trail for all, as a plan has it."""
    root, trail = Thread(), ThreadIndex()
    for call in shape(name)["calls"]:
        breakpoints, automatic = PLACEMENT_OF[name].place(sent(call, root, trail))
        assert [told(breakpoint) for breakpoint in breakpoints] == list(marked_cells(call)), f"call {call['seq']}"
        assert automatic == call["automatic"]


def test_every_recorded_client_is_here_and_what_is_skipped_is_known() -> None:
    files = {path.stem for path in SHAPES.glob("*.json")}
    assert files == set(PLACEMENT_OF)
    assert {name: sorted(shape(name)["skipped"]) for name in files if shape(name)["skipped"]} == SKIPPED
    assert all(len(shape(name)["calls"]) >= 2 for name in files)


def test_a_shape_holds_no_text() -> None:
    allowed = {"text", "tool", "tool_use", "tool_result", "thinking", "5m", "1h", "deferred"}
    for path in SHAPES.glob("*.json"):
        for call in json.loads(path.read_text())["calls"]:
            cells = [*call["tools"], *call["system"], *(cell for _, cells in call["messages"] for cell in cells)]
            assert {word for cell in cells for word in cell if isinstance(word, str)} <= allowed
            assert {role for role, _ in call["messages"]} <= {"user", "assistant", "system"}


def test_another_placement_is_seen_to_differ() -> None:
    """The comparison can fail: what Claude Code 2.1.330 breakpoints is not what 2.1.197 marked, and the other way
    round.
    """
    for recording, other in (("claude-code-2.1.197", "claude-code"), ("claude-code-2.1.330", "claude-code-2.1.197")):
        call = shape(recording)["calls"][0]
        breakpoints = PRESETS[other].placement.place(sent(call, Thread(), ThreadIndex())).breakpoints
        assert [told(breakpoint) for breakpoint in breakpoints] != list(marked_cells(call))
        assert {breakpoint.layer for breakpoint in breakpoints} == {Layer.SYSTEM, Layer.MESSAGES}
