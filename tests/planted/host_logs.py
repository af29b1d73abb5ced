"""Conversations for every host: a healthy one, faults planted into it, and bills of the rules for both."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path

from cachecost.base.structs import replace
from cachecost.conversations.logs import Logs, read_logs
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.simulation.engine import SimulatedCall
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload
from cachecost.tokens.factory import make_counter
from conversations.session_stores import write_lines
from planted.fault import Change, Edit, as_is, changed, put, since
from planted.logs import (
    Body,
    Log,
    Sending,
    bare,
    copied,
    exchange,
    in_order,
    place,
    place_last,
    text,
    user,
    words,
    write_log,
)
from planted.message_faults import drop_exchange
from planted.miscounted import MiscountedBlocks
from planted.time_faults import paused, together
from planted.tool_faults import add_tool, sort_schema, swap_tools

HOSTS = {
    "anthropic": ("claude-opus-4-8", "claude-opus-4-7"),
    "bedrock": ("claude-opus-4-8", "claude-opus-4-7"),
    "openrouter": ("anthropic/claude-opus-4.8", "anthropic/claude-opus-4.7"),
    "openai": ("gpt-5.1", "gpt-5"),
    "openai, looking back": ("gpt-6.1-sol", "gpt-6-sol"),
    "azure": ("gpt-5.5", "gpt-5.1"),
    "deepseek": ("deepseek-flash", "deepseek-v4-pro"),
    "gemini": ("gemini-3.8-flash", "gemini-3.6-flash"),
    "xai": ("grok-4.7", "grok-4.6"),
    "mistral": ("mistral-large-4", "mistral-medium-3-5"),
    "qwen": ("qwen3.8-max", "qwen3.7-max"),
    "moonshot": ("kimi-k3", "kimi-k2.6"),
    "zai": ("glm-5.1", "glm-5"),
    "groq": ("openai/gpt-oss-120b", "openai/gpt-oss-20b"),
    "vllm": ("Qwen/Qwen3-8B", "Qwen/Qwen3-4B"),
    "sglang": ("my-model", "my-other-model"),
}
"""Two models of each host, in each of its ways of caching."""
DAY = date(2026, 11, 2)
CALLS = 8
FACTORS: Mapping[str, Mapping[str, float]] = {
    "exact": {},
    "long tools": {"tools": 1.1, "system": 0.9, "messages": 1.1},
    "long system": {"tools": 0.9, "system": 1.1, "messages": 0.9},
}
"""By how much the layers of the billed prompts are longer than they are counted."""


@cache
def rules_on(host: str) -> ModelRules:
    return RuleBook().rules(host.partition(",")[0], HOSTS[host][0], DAY)


@dataclass(frozen=True)
class HostFault:
    """`plant` puts the fault into a log of `base`, `spare` sends the same as it would be read. `calls` lose by `cause`
    in every command, `echo` may; `block` is where. `change` is the alternative that removes it."""

    name: str
    cause: str
    calls: tuple[int, ...]
    block: str
    plant: Change
    spare: Change = as_is
    base: Callable[[], Log] = field(default_factory=lambda: conversation)
    change: str = ""
    lint: str = ""
    echo: tuple[int, ...] = ()
    is_on: Callable[[str], bool] = lambda host: True

    def logs(self, host: str) -> tuple[Log, Log]:
        """As planted, and without the fault."""
        return for_host(self.plant(self.base()), host), for_host(self.spare(self.base()), host)

    def calls_on(self, host: str) -> tuple[int, ...]:
        """The calls that lose on a host. A unit is written where two prompts part: the second of several conversations
        can read nothing anyway."""
        is_apart = self.base is not conversation and rules_on(host).matching == "units"
        return self.calls[1:] if is_apart else self.calls


def conversation(calls: int = CALLS, topic: str = "one", begin: float = 0.0, every: float = 20.0) -> Log:
    """A tool loop with a long static prefix: every host caches it."""
    tools = [
        {
            "name": f"tool_{number}",
            "description": words(f"tool {number}", 150),
            "input_schema": {"type": "object", "properties": {"path": {"type": "string"}, "line": {"type": "integer"}}},
        }
        for number in range(4)
    ]
    static = {"tools": [*tools[:-1], place(tools[-1])], "system": [text("rule", 1200), place(text("folder", 60))]}
    messages, log = [user(text(f"note {topic}", 120), text(f"question {topic}", 120))], Log()
    for number in range(calls):
        body = json.loads(json.dumps({"model": "", "max_tokens": 100, **static, "messages": messages}))
        log.append(Sending(body, begin + every * number))
        place_last(body)
        messages = messages + exchange(topic, number, lines=150)
    return log


def questions(calls: int = CALLS) -> Log:
    """One-shot questions about one document, in conversations of their own."""
    log = []
    for number in range(calls):
        blocks = [place(text("document", 1800)), text(f"question {number}", 60)]
        log.append(Sending({"model": "", "max_tokens": 100, "messages": [user(*blocks)]}, 30.0 * number))
    return log


def users(calls: int = CALLS) -> Log:
    """One-shot questions of several people under one system prompt."""
    log = []
    for number in range(calls):
        system = [place(text("rule", 1800)), text(f"user {number}", 8)]
        body = {"model": "", "max_tokens": 100, "system": system, "messages": [user(text(f"question {number}", 60))]}
        log.append(Sending(body, 30.0 * number))
    return log


def sessions(calls: int = CALLS) -> Log:
    """One-shot questions under one system prompt."""
    log = users(calls)
    for sending in log:
        del sending.body["system"][1]
    return log


def for_host(log: Log, host: str) -> Log:
    """The log as it is sent to a host: its models, and breakpoints where it needs them."""
    for sending in log:
        needs_them = rules_on(host).uses_breakpoints or (
            rules_on(host).implicit_breakpoint and "tools" not in sending.body
        )
        model = HOSTS[host][sending.body["model"] == "other"]
        sending.body = {**(sending.body if needs_them else bare(sending.body)), "model": model}
    return log


def clock(layer_end: bool, fixed: bool = False) -> Edit:
    def change(body: Body, call: int) -> None:
        block, time = body["system"][-1 if layer_end else 0], f"Current time: 12:{3 if fixed else call:02d}."
        block["text"] = f"{block['text']} {time}" if layer_end else f"{time} {block['text']}"

    return change


def rotate_tools(body: Body, call: int) -> None:
    tools = bare(body["tools"])
    tools = tools[call % 4 :] + tools[: call % 4]
    body["tools"] = [*tools[:-1], place(tools[-1])]


def edit_first(body: Body, _: int) -> None:
    block = body["messages"][0]["content"][0]
    block["text"] = block["text"].replace("-3 ", "-4 ", 1)


def trim(body: Body, _: int) -> None:
    """The first two results that are no longer the latest are replaced by a note."""
    for message in body["messages"][2:-1:2][:2]:
        message["content"][0]["content"] = "[trimmed]"


def compact(body: Body, call: int) -> None:
    """A summary instead of all but the last two exchanges."""
    body["messages"] = [user(text("in short", 5)), *body["messages"][7:]]


def swap_content(layer: str) -> Edit:
    """What changes first, then what is shared."""

    def change(body: Body, _: int) -> None:
        blocks = body[layer] if layer == "system" else body["messages"][0]["content"]
        blocks[:] = [bare(blocks[1]), place(bare(blocks[0]))]

    return change


def is_keyed_by(parameter: str) -> Callable[[str], bool]:
    def is_on(host: str) -> bool:
        keyed = rules_on(host).keyed_by
        if keyed is None:
            return parameter in {"model", "effort", "thinking", "format", "tool_choice"}
        return any(parameter in names for names in keyed.values())

    return is_on


def has_ttl(host: str) -> bool:
    return bool(rules_on(host).ttl_s)


def pause(log: Log) -> Log:
    """Before the fifth call, so long that it outlasts every host's TTL."""
    return paused(4 * 60, 5)(log)


FORMAT = {"type": "json_schema", "schema": {"type": "object", "properties": {"answer": {"type": "string"}}}}
AFTER = tuple(range(2, CALLS + 1))
HOST_FAULTS = {
    one.name: one
    for one in [
        HostFault(
            *("clock first", "system_changed", AFTER, "system.0"),
            *(since(1, clock(False)), since(1, clock(False, True))),
            change="volatile=last",
            lint="CC530",
        ),
        HostFault(
            *("clock last", "system_changed", AFTER, "system.1"),
            *(since(1, clock(True)), since(1, clock(True, True))),
            change="volatile=last",
            lint="CC530",
        ),
        HostFault(
            *("tools reordered", "tools_changed", (5,), "tools.0", since(5, swap_tools)),
            change="tools=sorted",
            lint="CC535",
        ),
        HostFault(
            *("tools rotated", "tools_changed", (2, 3, 4), "tools.0", changed(range(2, 5), rotate_tools)),
            change="tools=sorted",
            lint="CC535",
            echo=(5,),
        ),
        HostFault("tool added", "tools_changed", (5,), "tools.4", since(5, add_tool), since(1, add_tool), lint="CC536"),
        HostFault(
            *("schema keys", "tools_changed", (5,), "tools.1", since(5, sort_schema)),
            change="tools=sorted",
            lint="CC534",
        ),
        HostFault("message edited", "content_changed", (5,), "messages.0.content.0", since(5, edit_first)),
        HostFault("results trimmed", "content_changed", (6,), "messages.2.content.0", since(6, trim), since(1, trim)),
        HostFault(
            *("exchange dropped", "content_changed", (6,), "messages.1.content.0"),
            *(since(6, drop_exchange), since(3, drop_exchange)),
        ),
        HostFault("compaction", "compaction", (8,), "messages.0.content.0", since(8, compact), since(6, compact)),
        HostFault(
            *("model switched", "model_changed", (5,), "tools.0", changed((5, 6), put(model="other"))), echo=(6, 7)
        ),
        *(
            HostFault(
                f"{name} once",
                f"{cause}_changed",
                (5,),
                "",
                changed((5,), put(**fields)),
                echo=(6,),
                is_on=is_keyed_by(name),
            )
            for name, cause, fields in [
                ("effort", "effort", {"output_config": {"effort": "low"}}),
                ("format", "output_format", {"output_config": {"format": FORMAT}}),
                ("thinking", "thinking", {"thinking": {"type": "adaptive"}}),
                ("tool_choice", "tool_choice", {"tool_choice": {"type": "any"}}),
            ]
        ),
        HostFault("long pause", "ttl_expired", (5,), "tools.0", pause, is_on=has_ttl),
        HostFault(
            *("parallel", "concurrent_write", (2, 3, 4), "messages.0.content.0", together(range(1, 5), 0.0)),
            base=questions,
            is_on=lambda host: rules_on(host).matching != "units",
        ),
        HostFault(
            *("document after the question", "content_changed", AFTER, "messages.0.content.0"),
            since(1, swap_content("messages")),
            base=questions,
        ),
        HostFault(
            *("clock across sessions", "system_changed", AFTER, "system.0"),
            *(since(1, clock(False)), since(1, clock(False, True))),
            base=sessions,
            change="volatile=last",
            lint="CC530",
        ),
        HostFault(
            *("user before the rules", "system_changed", AFTER, "system.0", since(1, swap_content("system"))),
            base=users,
        ),
    ]
}


def restarted() -> Log:
    """A second conversation under the same static prefix."""
    return [*conversation(4), *conversation(4, topic="two", begin=100.0)]


def retried() -> Log:
    """The last call is sent again 8 s later."""
    log = conversation(6)
    return [*log, replace(copied(log)[-1], start=log[-1].start + 8)]


def many_agents() -> Log:
    topics = ("one", "two", "three")
    return in_order([one for n, topic in enumerate(topics) for one in conversation(4, topic=topic, begin=7.0 * n)])


CONTROLS: Mapping[str, Callable[[], Log]] = {
    "growing": conversation,
    "restarted": restarted,
    "retried": retried,
    "overnight": lambda: paused(20 * 60, 5)(conversation()),
    "many agents": many_agents,
    "one-shots": sessions,
    "questions about a document": questions,
}
"""Logs that are as they should be."""


def made(log: Log, host: str, path: Path, factors: Mapping[str, float], prices: PriceBook) -> list[SimulatedCall]:
    """What the rules make of a log whose layers are by so much longer than they are counted."""
    write_host_log(path, log, host)
    calls = list(read_logs(Logs([path])))
    setup = ReplaySetup(RuleBook(), prices, tokens="auto")
    for generation in {setup.rules_for(call).generation for call in calls}:
        setup.counters[generation] = MiscountedBlocks(make_counter("auto", generation), factors)  # type: ignore[assignment]
    simulation = Workload("planted", calls, setup).simulation()
    return [simulation.simulate(call) for call in calls]


def write_host_log(path: Path, log: Log, host: str, bills: list[SimulatedCall] | None = None) -> Path:
    """A request log of the host, with these bills."""
    lines = [json.loads(line) for line in write_log(path, log).read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(lines):
        line |= {"host": host.partition(",")[0]}
        line |= {"usage": {**bills[number].row.usage.wire(), "output_tokens": 0}} if bills else {}
    return write_lines(path, lines)


def paid_again(planted: SimulatedCall, spared: SimulatedCall) -> Decimal:
    """USD that a call cost more than without the fault, at its own prices."""
    assert planted.prices is not None
    return planted.row.cost.total - planted.prices.total_cost(spared.row.usage)
