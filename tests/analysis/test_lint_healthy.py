"""Lint of real and of long traffic: no warning about healthy clients, and the right ones about the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cachecost.analysis.lint import LintedLog, LintFinding, RequestLoader, codes, lint_bodies, lint_log
from cachecost.conversations.readers.detect import read_calls
from cachecost.providers.rules import RuleBook
from growing_log import Shape, write_log

ROOT = Path(__file__).parents[2]
SESSIONS = sorted((ROOT / "scenarios" / "recordings" / "sessions").glob("*.jsonl"))
SHAPES = ROOT / "tests" / "strategies" / "client_shapes"
WIDER = 4
"""Heads of these recordings are those of a trial; blocks are so many times as long, as a real project's are."""
LIST = len('[{"type":"text","text":}]')
"""How much longer a tool result is whose text is sent as a list."""


def loader(tokens: str = "tiktoken") -> RequestLoader:
    return RequestLoader(RuleBook(), "anthropic", tokens)


def log(path: Path, tokens: str = "tiktoken") -> LintedLog:
    return lint_log(read_calls(path), "log", loader(tokens))


def serious(found: Sequence[LintFinding]) -> list[str]:
    return [one.code for one in found if not one.is_note]


@pytest.mark.slow
def test_the_benchmark_log_of_2000_requests(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write_log(path, Shape())
    linted = log(path, "bytes")
    path.unlink()
    assert (linted.requests, linted.findings, linted.not_evaluated) == (2000, [], {})


def test_a_benchmark_log_in_tokens(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write_log(path, Shape(conversations=3, requests=12))
    assert log(path).findings == []


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_recorded_claude_code_sessions(path: Path) -> None:
    linted = log(path)
    assert linted.requests > 50 and not linted.not_evaluated
    assert serious(linted.findings) == []


# ------------------------------------------------------------------------------------------------- clients


class Client:
    """Bodies with the shape of what a client sent, with a filler for text that is the same wherever a block is."""

    def __init__(self, name: str) -> None:
        self.calls: list[dict[str, Any]] = json.loads((SHAPES / f"{name}.json").read_text())["calls"]
        self._shortest: dict[str, int] = {}

    def bodies(self) -> list[tuple[str, dict[str, Any]]]:
        for call in self.calls:
            for number, (_, cells) in enumerate(call["messages"]):
                for index, cell in enumerate(cells):
                    key = f"{number}.{index} {cell[0]}"
                    self._shortest[key] = min(cell[1], self._shortest.get(key, cell[1]))
        return [(f"call {call['seq']}", self._body(call)) for call in self.calls]

    def _body(self, call: dict[str, Any]) -> dict[str, Any]:
        plain = [cell for cell in call["tools"] if "deferred" not in cell]
        body = {
            "model": "claude-opus-4-8",
            "max_tokens": 99,
            "tools": [
                _block(cell, f"tool {plain.index(cell)}" if cell in plain else f"deferred {cell[1]}", cell[1])
                for cell in call["tools"]
            ],
            "system": [_block(cell, f"system {index}", cell[1]) for index, cell in enumerate(call["system"])],
            "messages": [
                {"role": role, "content": [self._cell(cell, f"{number}.{index}") for index, cell in enumerate(cells)]}
                for number, (role, cells) in enumerate(call["messages"])
            ],
        }
        return {**body, "cache_control": _breakpoint(call["automatic"])} if call["automatic"] else body

    def _cell(self, cell: list[Any], place: str) -> dict[str, Any]:
        """A tool result that is as much longer as a list makes it is sent as one: same content, another shape."""
        size = self._shortest[f"{place} {cell[0]}"]
        block = _block(cell, place if cell[0] == "tool_result" else f"{place} {cell[1]}", size)
        if cell[0] == "tool_result" and cell[1] - size == LIST:
            block["content"] = [{"type": "text", "text": block["content"]}]
        return block


def _block(cell: list[Any], name: str, size: int) -> dict[str, Any]:
    filler = (f"{name} " + "lorem ipsum dolor " * size)[: max(size * WIDER, len(name))]
    made: dict[str, dict[str, Any]] = {
        "tool": {"name": name.replace(" ", "_"), "description": filler, "input_schema": {}},
        "tool_use": {"type": "tool_use", "id": f"call {name}", "name": "f", "input": {"text": filler}},
        "tool_result": {"type": "tool_result", "tool_use_id": f"call {name}", "content": filler},
        "text": {"type": "text", "text": filler},
    }
    block = made[cell[0]]
    if "deferred" in cell:
        block["defer_loading"] = True
    if len(cell) > 2 and cell[2]:
        block["cache_control"] = _breakpoint(cell[2])
    return block


def _breakpoint(ttl: str) -> dict[str, str]:
    return {"type": "ephemeral", "ttl": ttl}


BAD = {
    "agno": ["CC521 system.0"],
    "anthropic-python": ["CC502 system.0"],
    "cline": ["CC521 messages.0.content.0"],
    "cn": ["CC521 system.0"],
    "langchain-plain": ["CC520 cache_control"],
    "qwen": ["CC521 system.0"],
}
"""What is wrong with recorded clients: the tail of a tool loop is never cached, the order of TTLs, no breakpoint."""


@pytest.mark.parametrize("name", sorted(path.stem for path in SHAPES.glob("*.json")))
def test_recorded_clients(name: str) -> None:
    found = lint_bodies(Client(name).bodies(), loader())
    assert [f"{one.code} {one.path}" for one in found if not one.is_note] == BAD.get(name, [])


def test_a_client_that_is_said_to_be_good_could_be_found_out() -> None:
    """The same comparison with a breakpoint fewer: Claude Code without its last one."""
    bodies = Client("claude-code-2.1.330").bodies()
    for _, body in bodies:
        for message in body["messages"]:
            for block in message["content"]:
                block.pop("cache_control", None)
    assert serious(lint_bodies(bodies, loader())) == ["CC521"]


# ------------------------------------------------------------------------------------------------- logs


def request_log(folder: Path, *bodies: dict[str, Any]) -> Path:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps({"request": body}) + "\n" for body in bodies))
    return path


def conversation(minute: int, turns: int, system: str = "You help. ", first: str = "Do it. ") -> dict[str, Any]:
    """A conversation of some turns whose last message is marked."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": first + "word " * 1500}]
    for turn in range(turns):
        messages += [{"role": "assistant", "content": f"answer {turn}"}, {"role": "user", "content": f"and {turn}?"}]
    return {
        "model": "claude-sonnet-4-5",
        "system": system.replace("MINUTE", str(minute)),
        "cache_control": {"type": "ephemeral"},
        "messages": [{**messages[0], "content": messages[0]["content"].replace("MINUTE", str(minute))}, *messages[1:]],
    }


def test_a_finding_of_many_calls_is_one_line(tmp_path: Path) -> None:
    calls = [conversation(10 + turn, turn, "Current time: 2026-03-06T21:MINUTE:00Z") for turn in range(5)]
    linted = log(request_log(tmp_path, *calls))
    (one,) = linted.findings
    assert (one.code, one.path, one.call, one.calls, one.request) == ("CC530", "system.0", 2, 4, "log")
    assert linted.requests == 5


def test_a_conversation_whose_first_message_changes_is_found_to_be_one(tmp_path: Path) -> None:
    calls = [conversation(10 + turn, turn, first="Current time: 2026-03-06T21:MINUTE:00Z. ") for turn in range(1, 5)]
    (one,) = log(request_log(tmp_path, *calls)).findings
    assert (one.code, one.path, one.calls) == ("CC530", "messages.0.content.0", 3)


def test_a_lonely_call_without_a_breakpoint_loses_nothing_a_conversation_does(tmp_path: Path) -> None:
    lonely, more = ({**conversation(0, turns), "cache_control": None} for turns in (0, 1))
    assert log(request_log(tmp_path, lonely)).findings == []
    (one,) = log(request_log(tmp_path, lonely, more)).findings
    assert (one.code, one.calls) == ("CC520", 2)


def test_calls_of_unknown_models_are_told_and_others_looked_at(tmp_path: Path) -> None:
    linted = log(
        request_log(tmp_path, {**conversation(0, 0), "model": "claude-opus-46"}, conversation(0, 0), conversation(0, 1))
    )
    assert (linted.requests, linted.findings) == (2, [])
    ((why, calls),) = linted.not_evaluated.items()
    assert "did you mean 'claude-opus-4-6'" in why and calls == [1]


def test_a_side_call_is_sent_otherwise_on_purpose(tmp_path: Path) -> None:
    main, after = conversation(0, 1), conversation(0, 2)
    title = {
        **conversation(0, 2),
        "system": "Give it a title.",
        "messages": [*after["messages"], {"role": "user", "content": "?"}],
    }
    assert log(request_log(tmp_path, main, title, after)).findings == []
    assert [one.code for one in log(request_log(tmp_path, main, {**title, "tools": []}, after)).findings] == []
    (one,) = log(
        request_log(tmp_path, main, {**after, "system": "You hinder. "}, conversation(0, 3, "You hinder. "))
    ).findings
    assert (one.code, one.call) == ("CC533", 2)


def test_every_code_is_planted_somewhere() -> None:
    planted = "".join(path.read_text() for path in Path(__file__).parent.glob("test_lint*.py"))
    assert [code for code in codes() if f'"{code}"' not in planted] == []
