"""A small project under guard: a recorded session with tools and system prompt, a scenario, ways to spoil them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cachecost.budgets.check import BudgetResult, CheckOptions, check_scenarios

Body = dict[str, Any]
Spoil = Callable[[int, Body], None]
"""Changes the body of a call, numbered from 1."""
BREAKPOINT = {"type": "ephemeral"}
START = datetime.fromisoformat("2026-03-07T10:00:00+00:00")
SCENARIO = """\
format: 1
name: mine
as_of: 2026-03-07
model: claude-opus-4-6
tokens: bytes
conversation: {recording: calls.jsonl}
strategies: [progressive]
budget:
"""
REGRESSION = "  - {strategy: as recorded, max_regression: 5%}\n"


def tool(name: str) -> Body:
    about = f"{name} reads and writes files of the project. " * 60
    return {"name": name, "description": about, "input_schema": {"type": "object", "properties": {}}}


def bodies(calls: int = 6, spoil: Spoil | None = None) -> list[Body]:
    """One conversation of as many calls: each goes on from the one before and breakpoints its tail."""
    messages: list[Body] = []
    made = []
    for number in range(1, calls + 1):
        asked = f"Question {number}: what is in the next file, and why? " * 8
        messages.append({"role": "user", "content": [{"type": "text", "text": asked}]})
        body: Body = {
            "model": "claude-opus-4-6",
            "max_tokens": 1_000,
            "tools": [tool(name) for name in ("fs_read_file", "fs_modify_file", "fs_list")],
            "system": [
                {"type": "text", "text": "You are an agent that works on a project. " * 200},
                {"type": "text", "text": "Today is a working day. " * 20, "cache_control": BREAKPOINT},
            ],
            "messages": copy.deepcopy(messages),
        }
        body["messages"][-1]["content"][-1]["cache_control"] = BREAKPOINT
        if spoil:
            spoil(number, body)
        made.append(body)
        answered = f"Answer {number}: there is a file. "
        messages.append({"role": "assistant", "content": [{"type": "text", "text": answered * 10}]})
    return made


def line(number: int, body: Body) -> Body:
    at = START + timedelta(seconds=60 * number)
    return {"timestamp": at.isoformat(), "request": body, "usage": {"input_tokens": 1, "output_tokens": 100}}


def project(folder: Path, spoil: Spoil | None = None, budgets: str = REGRESSION, calls: int = 6) -> Path:
    """The scenario's path; its recording stands beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(line(number, body)) for number, body in enumerate(bodies(calls, spoil), 1)]
    (folder / "calls.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "mine.yaml").write_text(SCENARIO + budgets, encoding="utf-8")
    return folder / "mine.yaml"


def spoiled(folder: Path, spoil: Spoil, budgets: str = REGRESSION, accepted: Any = None) -> BudgetResult:
    """What becomes of a project that was accepted whole and is then spoiled."""
    check_scenarios([project(folder, None, budgets)], CheckOptions(folder / "reports", update=True, today=accepted))
    return check_scenarios([project(folder, spoil, budgets)], CheckOptions(folder / "reports"))


def timestamp(number: int, body: Body) -> None:
    """The time of each call at the head of the system prompt."""
    system: Sequence[Body] = body["system"]
    system[0]["text"] = f"Current time: 2026-03-06T21:2{number}. " + system[0]["text"]


def reordered(number: int, body: Body) -> None:
    """Tools in another order with each call."""
    body["tools"] = body["tools"][number % 3 :] + body["tools"][: number % 3]


def fifth_breakpoint(number: int, body: Body) -> None:
    """Five breakpoints from call 3 on."""
    if number >= 3:
        for block in (*body["tools"], body["system"][0]):
            block["cache_control"] = BREAKPOINT
        body["tools"][0].pop("cache_control")


def modified_tool(number: int, body: Body) -> None:
    """The description of a tool changes in the middle of the session."""
    if number >= 4:
        about = body["tools"][1]["description"]
        body["tools"][1]["description"] = about[:212] + "carefully " + about[212:]


def new_tool(number: int, body: Body) -> None:
    """A fourth tool."""
    body["tools"].append(tool("fs_move"))


def shuffled_tools(number: int, body: Body) -> None:
    """Another order of tools, the same in every call."""
    body["tools"] = body["tools"][1:] + body["tools"][:1]


def moved_breakpoint(number: int, body: Body) -> None:
    """The breakpoint of the system prompt stands before its last block, and the messages have none."""
    body["system"][0]["cache_control"] = body["system"][1].pop("cache_control")
    body["messages"][-1]["content"][-1].pop("cache_control")


def longer_system(number: int, body: Body) -> None:
    """Rules at the end of the first block of the system prompt."""
    body["system"][0]["text"] += "Always answer with care and cite your sources. " * 30


def other_model(number: int, body: Body) -> None:
    body["model"] = "claude-sonnet-4-6"


def thinking(number: int, body: Body) -> None:
    body["thinking"] = {"type": "enabled", "budget_tokens": 500}


def timed_question(number: int, body: Body) -> None:
    """The time of each call before every question."""
    for message in body["messages"][::2]:
        text = message["content"][0]
        text["text"] = f"At 10:0{number}: {text['text']}"


def accept(folder: Path, budgets: str = REGRESSION, calls: int = 6) -> Path:
    """A project whose costs and calls were accepted; its scenario."""
    scenario = project(folder / "scenarios", None, budgets, calls)
    check_scenarios([scenario], CheckOptions(folder / "reports", update=True))
    recording = folder / "reports" / "mine" / "recording.jsonl"
    recording.write_bytes((folder / "scenarios" / "calls.jsonl").read_bytes())
    return scenario
