"""Requests written out for the claims that no scenario can say: a byte of a block is a token.

python -m tools.seed_claims soft-force > log.jsonl
cachecost replay log.jsonl --tokens bytes --as-of 2026-03-07
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from cachecost.conversations.logs import Logs, read_logs
from cachecost.ledger.rows import CallRow
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import recorded_workload

JSON = dict[str, Any]
BREAKPOINT = {"cache_control": {"type": "ephemeral"}}
QUESTION_DAY, TOOLS_DAY = date(2026, 3, 7), date(2026, 1, 21)
OPUS, SONNET, REFUSING = "claude-opus-4-6", "claude-sonnet-4-5", "claude-opus-5-5"
ANSWER_TOOL = "answer_inquiry"
SOFT = 30
"""Tokens of a system block that asks for the tool (assumed)."""


def _sized(content: JSON, field: str, size: int) -> JSON:
    """`content` with its text `field` padded so that its compact JSON has `size` bytes."""
    missing = size - len(json.dumps(content, separators=(",", ":")).encode())
    if missing < 0:
        raise ValueError(f"{content}: longer than {size} bytes")
    return {**content, field: content[field] + "x" * missing}


def _text(size: int) -> JSON:
    return _sized({"type": "text", "text": ""}, "text", size)


def _tool(name: str, size: int, **fields: object) -> JSON:
    return _sized({"name": name, "description": "", "input_schema": {}, **fields}, "description", size)


def _call(name: str, size: int) -> JSON:
    return _sized({"type": "tool_use", "id": name, "name": "", "input": {}}, "name", size)


def _result(name: str, size: int) -> JSON:
    return _sized({"type": "tool_result", "tool_use_id": name, "content": ""}, "content", size)


def _message(role: str, *blocks: JSON) -> JSON:
    return {"role": role, "content": list(blocks)}


def _marked(*blocks: JSON) -> list[JSON]:
    return [*blocks[:-1], {**blocks[-1], **BREAKPOINT}]


def _question(system: Sequence[JSON] = (), **params: object) -> list[JSON]:
    """The main thread's call at 95,000 tokens, as in rfd033, and a question beside it with `params` of its own."""
    head = {"model": OPUS, "max_tokens": 1000, "tools": _marked(_tool("work", 21_000), _tool(ANSWER_TOOL, 75))}
    start, asked = _text(67_920), (_result("call", 83), _text(120))
    own = [*_marked(_text(6_000)), *system]
    return [
        {**head, "system": _marked(_text(6_000)), "messages": [_message("user", *_marked(start))]},
        {
            **head,
            "system": _marked(*own),
            "messages": [
                _message("user", start),
                _message("assistant", _call("call", 80)),
                _message("user", *_marked(*asked)),
            ],
            **params,
        },
    ]


def _forced(model: str, thinking: JSON | None) -> JSON:
    params = {"thinking": thinking} if thinking else {}
    body = {"model": model, "max_tokens": 20_000, "tools": [_tool(ANSWER_TOOL, 75)], **params}
    return {**body, "tool_choice": {"type": "tool", "name": ANSWER_TOOL}, "messages": [_message("user", _text(120))]}


def _forced_and_thinking() -> list[JSON]:
    manual, adaptive = {"type": "enabled", "budget_tokens": 10_000}, {"type": "adaptive"}
    return [_forced(OPUS, manual), _forced(OPUS, adaptive), _forced(REFUSING, None)]


CALLS, TOOLS, TOOL, STATIC, CALLED, FETCHED = 24, 12, 750, 15_707, 120, 1_200
SEARCH = 250
"""Tokens of the search tool's definition (assumed)."""


def _loop(tools: Sequence[JSON], results: Sequence[JSON]) -> list[JSON]:
    """A tool loop: a first call, and another one after each result, with breakpoints as amplifier places them."""
    head = {"model": SONNET, "max_tokens": 1000, "tools": _marked(*tools), "system": _marked(_text(STATIC))}
    messages = [_message("user", _text(120))]
    bodies = []
    for result in [*results, None]:
        *before, last = messages
        now = {**last, "content": _marked(*last["content"])}
        bodies.append({**head, "messages": [*before, now]})
        if result is not None:
            messages += [_message("assistant", _call(result["tool_use_id"], CALLED)), _message("user", result)]
    return bodies


def _fetched(calls: int) -> list[JSON]:
    return [_result(f"call{number:02}", FETCHED) for number in range(calls)]


def _declared() -> list[JSON]:
    return _loop([_tool(f"tool{number:02}", TOOL) for number in range(TOOLS)], _fetched(CALLS - 1))


def _searched() -> list[JSON]:
    """The same tools, deferred: the first answer searches, its result brings one of them in."""
    # a deferred tool may not end the list: a breakpoint on it is refused
    deferred = [_tool(f"tool{number:02}", TOOL, defer_loading=True) for number in range(TOOLS)]
    reference = [{"type": "tool_reference", "tool_name": "tool00"}]
    found = {"type": "tool_result", "tool_use_id": "search", "content": reference}
    return _loop([*deferred, _tool("search", SEARCH)], [found, *_fetched(CALLS - 1)])


def _strict() -> list[JSON]:
    """Two calls of a loop; with the second one the first tool becomes strict, with the third nothing changes."""
    first, second, third = _loop([_tool(f"tool{number:02}", TOOL) for number in range(TOOLS)], _fetched(2))
    tools = [{**second["tools"][0], "strict": True}, *second["tools"][1:]]
    return [first, {**second, "tools": tools}, {**third, "tools": tools}]


def _breakpoints() -> list[JSON]:
    """A system prompt in two blocks with breakpoints of its own, and three breakpoints more; then one fewer."""
    system = [{**_text(2_000), **BREAKPOINT}, {**_text(2_000), **BREAKPOINT}]
    body = {"model": SONNET, "max_tokens": 1000, "tools": _marked(_tool("work", 2_000)), "system": system}
    turns = [_message("user", _text(120)), _message("assistant", _text(120)), _message("user", *_marked(_text(120)))]
    branching = [turns[0], _message("assistant", *_marked(_text(120))), turns[2]]
    return [{**body, "messages": branching}, {**body, "messages": turns}]


LOGS: Mapping[str, tuple[date, Callable[[], list[JSON]]]] = {
    "suggested": (QUESTION_DAY, _question),
    "soft-force": (QUESTION_DAY, lambda: _question(system=[_text(SOFT)])),
    "forced-and-thinking": (date(2026, 11, 21), _forced_and_thinking),
    "strict": (TOOLS_DAY, _strict),
    "declared-tools": (TOOLS_DAY, _declared),
    "tool-search": (TOOLS_DAY, _searched),
    "five-breakpoints": (TOOLS_DAY, _breakpoints),
}


def lines(name: str) -> Iterator[str]:
    """The log of that name, a line for each request."""
    for number, body in enumerate(LOGS[name][1]()):
        stamp = f"{LOGS[name][0]}T10:{number // 6:02}:{number % 6 * 10:02}Z"
        yield json.dumps({"timestamp": stamp, "session": name, "request": body}) + "\n"


@cache
def rows(name: str) -> list[CallRow]:
    """What the requests of that name read, write and cost."""
    setup = ReplaySetup(RuleBook(as_of=LOGS[name][0]), PriceBook(), tokens="bytes")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.jsonl"
        path.write_text("".join(lines(name)), encoding="utf-8")
        calls = list(read_logs(Logs([path])))
    simulation = recorded_workload(name, calls, setup).simulation()
    return [simulation.row(call) for call in calls]


def how(*names: str) -> str:
    return "; ".join(f"`python -m tools.seed_claims {name}`" for name in names)
