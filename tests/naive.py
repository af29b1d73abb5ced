"""The rulebook (docs/rulebook.md), written as plainly as it reads: lists, no tree, nothing shared, bytes as tokens.

An independent second opinion on the engine. It takes bodies as they go over the wire and keeps
every entry as the whole list of what stands before it. With a `Measure` blocks are as long as that
says, and hidden tokens count; where they stand is said here again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

from cachecost.providers.rules import ModelRules
from naive_refusals import refused
from naive_wire import Item, bare, blocks_of, breakpoint_places, compact, is_web, lifted, ttl_of


@dataclass
class NaiveEntry:
    key: list[str]
    key_ttl: str
    ttl: str
    started: float
    touched: float
    readable: float


class Hidden(Protocol):
    """Tokens that no block shows (rule 4)."""

    tools: int
    system: int
    messages: int
    turn: int
    tail: int
    parallel: int
    after_results: int


class Measure(Protocol):
    """How long things are in tokens."""

    def block(self, role: str, block: dict[str, Any], brought: list[dict[str, Any]]) -> int: ...
    def hidden(self, body: dict[str, Any]) -> Hidden: ...


class NaiveModel:
    """`call` gives (uncached, read, write_5m, write_1h), or the words of the refusal."""

    def __init__(self, measure: Measure | None = None) -> None:
        self.entries: list[NaiveEntry] = []
        self.measure = measure

    def loop(self, body: dict[str, Any], response: list[Any], rules: ModelRules, *when: Any) -> Any:
        """All passes of a call; `when` is its start, its first token and its workspace (rule 10)."""
        start, first_token, workspace = when
        first = self.call(body, rules, start, first_token, workspace)
        if isinstance(first, str):
            return first
        later = enumerate(later_passes(body, response), 1)
        answered = start + first_token
        return [
            first,
            *(self.call(each, rules, answered + n / 1000, 0.0, workspace, checked=False) for n, each in later),
        ]

    def call(
        self,
        body: dict[str, Any],
        rules: ModelRules,
        start: float,
        first_token: float,
        workspace: str = "",
        checked: bool = True,
    ) -> Any:
        sent = flatten(body, rules, workspace, self.measure)
        drop_unheeded(body, sent, rules)
        apply_automatic(body, sent)
        if checked and (problem := refused(body, sent, rules)):
            return problem
        prompt = rendered(body, sent, rules)
        total = sum(item.size for item in prompt)
        if self.measure:
            total += add_hidden(prompt, self.measure.hidden(body))
        breakpoints = [
            (number, item.ttl)
            for number, item in enumerate(prompt)
            if item.ttl
            and not item.is_web
            and sum(before.size for before in prompt[: number + 1]) >= rules.minimum_tokens
        ]
        hit, entry = self.look_up(prompt, breakpoints, rules, start)
        self.write(prompt, breakpoints, hit, entry, rules, start, first_token)
        return bill(prompt, breakpoints, hit, total)

    def look_up(self, prompt: list[Item], breakpoints: list[tuple[int, str]], rules: ModelRules, now: float) -> Any:
        for number, ttl in reversed(breakpoints):
            position = 1
            for back in range(number, -1, -1):
                if not prompt[back].is_block:
                    continue
                if back < number and not same_run(prompt, back, rules):
                    position += 1
                if position > rules.lookback_positions:
                    break
                entry = self.find(prompt, back, ttl, rules)
                if entry and alive(entry, rules, now):
                    return back, entry
        return -1, None

    def find(self, prompt: list[Item], number: int, ttl: str, rules: ModelRules) -> NaiveEntry | None:
        key = [item.identity for item in prompt[: number + 1]]
        for entry in self.entries:
            if entry.key == key and (not rules.assumptions.ttl_in_key or entry.key_ttl == ttl):
                return entry
        return None

    def write(
        self,
        prompt: list[Item],
        breakpoints: list[tuple[int, str]],
        hit: int,
        read: NaiveEntry | None,
        rules: ModelRules,
        start: float,
        first_token: float,
    ) -> None:
        if read:
            read.touched = max(read.touched, start)
        for number, ttl in breakpoints:
            if number > hit:
                self.put(prompt, number, ttl, ttl, rules, start, first_token)
            elif read and rules.assumptions.shallow_breakpoints != "ignore":
                entry = self.find(prompt, number, ttl, rules)
                if entry and alive(entry, rules, start):
                    entry.touched = max(entry.touched, start)
                elif rules.assumptions.shallow_breakpoints == "rewrite":
                    shorter = min(ttl, read.ttl, key=lambda name: rules.ttl_s[name])
                    self.put(prompt, number, ttl, shorter, rules, start, first_token)

    def put(
        self,
        prompt: list[Item],
        number: int,
        key_ttl: str,
        ttl: str,
        rules: ModelRules,
        start: float,
        first_token: float,
    ) -> None:
        old = self.find(prompt, number, key_ttl, rules)
        if old:
            self.entries.remove(old)
        key = [item.identity for item in prompt[: number + 1]]
        self.entries.append(NaiveEntry(key, key_ttl, ttl, start, start, start + first_token))


def alive(entry: NaiveEntry, rules: ModelRules, now: float) -> bool:
    readable = now >= entry.readable and now > entry.started
    return readable and now - entry.touched < rules.ttl_s[entry.ttl]


def same_run(prompt: list[Item], back: int, rules: ModelRules) -> bool:
    """Is the block at `back` in the same run as the block after it?"""
    later = prompt[back + 1]
    return rules.collapses_runs and later.is_block and prompt[back].kind == later.kind in ("tool_use", "tool_result")


def bill(prompt: list[Item], breakpoints: list[tuple[int, str]], hit: int, total: int) -> tuple[int, int, int, int]:
    def length(number: int) -> int:
        return sum(item.size for item in prompt[: number + 1])

    a = length(hit)
    b = max([a] + [length(number) for number, ttl in breakpoints if number > hit and ttl == "1h"])
    c = max([a] + [length(number) for number, _ in breakpoints if number > hit])
    return total - c, a, c - b, b - a


def as_item(
    layer: str,
    role: str,
    block: dict[str, Any],
    place: tuple[int, ...],
    measure: Measure | None,
    brought: list[dict[str, Any]] | None = None,
) -> Item:
    """The block with the definitions that it brings in: part of what it is, and of how long it is."""
    brought = brought or []
    text = "".join(map(compact, [bare(block), *brought]))
    same = bare(block)
    if block.get("type") == "tool_result" and isinstance(block.get("content"), str):
        same = {**same, "content": [{"type": "text", "text": block["content"]}]}
    size = measure.block(role, bare(block), brought) if measure else len(text.encode())
    kind = block.get("type", "tool") if role else "tool"
    identity = "+".join([f"{layer}/{role}|{compact(same)}", *map(compact, brought)])
    return Item(identity, size, kind, True, lifted(block), layer, role, place, not role and is_web(block))


def has_image(body: dict[str, Any]) -> bool:
    for message in body["messages"]:
        for block in blocks_of(message["content"]):
            inner = block.get("content")
            if block["type"] == "image" or (isinstance(inner, list) and any(sub["type"] == "image" for sub in inner)):
                return True
    return False


def has_citations(body: dict[str, Any]) -> bool:
    everything = blocks_of(body.get("system") or [])
    for message in body["messages"]:
        everything = everything + blocks_of(message["content"])
    return any((block.get("citations") or {}).get("enabled") is True for block in everything)


def choice_salt(body: dict[str, Any], rules: ModelRules) -> str:
    choice = body.get("tool_choice") or {}
    kind = choice.get("type", "auto")
    single = bool(choice.get("disable_parallel_tool_use"))
    reading = rules.assumptions.tool_choice_invalidation
    shown = "" if reading == "never" else kind + ":" + str(choice.get("name"))
    if kind == "auto" or (kind == "none" and reading == "rendered_class"):
        shown = ""
    return f"{shown}/{single}"


def cache_keys(body: dict[str, Any], rules: ModelRules) -> dict[str, str]:
    if rules.keyed_by is not None:
        assert {name for names in rules.keyed_by.values() for name in names} == {"model"}, rules.host
        return {"tools": rules.model, "system": "", "messages": ""}
    config = body.get("output_config") or {}
    thinking = {key: value for key, value in (body.get("thinking") or {}).items() if key != "display"}
    thinking = {**thinking, "type": thinking.get("type") or rules.default_thinking}
    thinking = {} if thinking.get("type") == "disabled" else thinking
    effort = "effort " + (config.get("effort") or rules.default_effort)
    rendered_thinking = compact(sorted(thinking.items()))
    schema = compact(config.get("format"))
    made = {
        "tools": f"{rules.model}/{body.get('speed') or 'standard'}",
        "system": compact(
            [has_citations(body), (body.get("container") or {}).get("skills") or None, config.get("task_budget")]
        ),
        "messages": f"{choice_salt(body, rules)}/{has_image(body)}",
    }
    made[rules.assumptions.structured_output_at] += schema
    made[rules.assumptions.thinking_rendered_at] += rendered_thinking
    made[{"thinking": rules.assumptions.thinking_rendered_at}.get(rules.effort_layer, rules.effort_layer)] += effort
    return made


def brought(block: dict[str, Any], deferred: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Definitions of the deferred tools that the references in a block bring in."""
    inner = block.get("content")
    subs = inner if isinstance(inner, list) else []
    names = [sub["tool_name"] for sub in subs if sub.get("type") == "tool_reference"]
    return [bare(deferred[name]) for name in names if name in deferred]


def flatten(body: dict[str, Any], rules: ModelRules, workspace: str, measure: Measure | None) -> list[Item]:
    """The request in the order of the prompt: thinking still in, message ends not shown."""
    cache_key = cache_keys(body, rules)
    tools = [(number, tool) for number, tool in enumerate(body.get("tools") or [])]
    deferred = {tool["name"]: tool for _, tool in tools if tool.get("defer_loading")}
    listed = [(number, tool) for number, tool in tools if not tool.get("defer_loading")]
    pool = f"{rules.host} {workspace}" if rules.scope == "workspace" else rules.host
    out = [Item(f"salt {pool} {cache_key['tools']}", 0, "cache_key", False, layer="tools")]
    out += [as_item("tools", "", tool, (0, n), measure) for n, tool in listed if not is_web(tool)]
    out.append(Item("salt " + cache_key["system"], 0, "cache_key", False, layer="system"))
    out += [as_item("system", "", tool, (0, n), measure) for n, tool in listed if is_web(tool)]
    texts = enumerate(blocks_of(body.get("system") or []))
    out += [as_item("system", "system", block, (1, n), measure) for n, block in texts]
    out.append(Item("salt " + cache_key["messages"], 0, "cache_key", False, layer="messages"))
    for number, message in enumerate(body["messages"]):
        for n, block in enumerate(blocks_of(message["content"])):
            definitions = brought(block, deferred)
            out.append(as_item("messages", message["role"], block, (2, number, n), measure, definitions))
    return out


def drop_unheeded(body: dict[str, Any], items: list[Item], rules: ModelRules) -> None:
    """Breakpoints that the host takes nowhere, and the oldest where it drops those that are too many."""
    for item in items:
        if item.layer not in rules.breakpoint_layers:
            item.ttl = None
    marked = [item for item in items if item.ttl]
    most = rules.maximum_breakpoints - bool(ttl_of(body))
    if rules.surplus_breakpoints == "oldest_dropped":
        for item in marked[: max(0, len(marked) - most)]:
            item.ttl = None


def add_hidden(prompt: list[Item], hidden: Hidden) -> int:
    """Make items longer by the hidden tokens before them. Returns all that were added, those at the end included."""
    before = sum(item.size for item in prompt)
    said: list[Item] = []
    for item in prompt:
        if not item.is_block:
            item.size += {"tools": hidden.tools, "system": hidden.system, "messages": hidden.messages}[item.layer]
        elif item.layer == "messages":
            last = said[-1] if said else None
            if last is None or last.role != item.role:
                item.size += hidden.turn
            elif item.kind == last.kind == "tool_result" and [one.kind for one in said[-2:-1]] != ["tool_result"]:
                item.size += hidden.parallel
            was_result = last is not None and last.kind == "tool_result"
            if was_result and (item.kind != "tool_result" or last.role != item.role):
                item.size += hidden.after_results
            if item.kind == "tool_result" and (not was_result or last.role != item.role):
                item.size -= hidden.after_results
            said.append(item)
    return sum(item.size for item in prompt) - before + hidden.tail


def later_passes(body: dict[str, Any], response: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rule 10: the bodies of the server tools' later passes, each result marked if the request has any breakpoint."""
    marked = body.get("cache_control") or '"cache_control": {' in json.dumps(body)
    bodies = []
    for number in range(1, len(response)):
        before, after = response[number - 1], response[number]
        is_sampled = any(not is_server_result(block) for block in response[:number])
        if is_sampled and is_server_result(before) and not is_server_result(after):
            answer = [
                {**block, "cache_control": {"type": "ephemeral"}} if marked and is_server_result(block) else block
                for block in response[:number]
            ]
            messages = [*body["messages"], {"role": "assistant", "content": answer}]
            bodies.append({**body, "cache_control": None, "messages": messages})
    return bodies


def is_server_result(block: dict[str, Any]) -> bool:
    return bool(block["type"].endswith("_tool_result"))


def apply_automatic(body: dict[str, Any], items: list[Item]) -> None:
    ttl = ttl_of(body)
    targets = [item for item in items if breakpoint_places(item)]
    if ttl and targets and targets[-1].ttl is None:
        targets[-1].ttl = ttl


def rendered(body: dict[str, Any], items: list[Item], rules: ModelRules) -> list[Item]:
    """Rule 3: thinking of the turns before the last human message is gone on last-turn-only models."""
    if rules.keeps_thinking:
        return items
    humans = [
        number
        for number, message in enumerate(body["messages"])
        if message["role"] == "user" and any(block["type"] != "tool_result" for block in blocks_of(message["content"]))
    ]
    if not humans:
        return items
    after = sum(len(blocks_of(message["content"])) for message in body["messages"][humans[-1] :])
    edge = len(items) - after
    return [item for number, item in enumerate(items) if number >= edge or item.kind != "thinking"]
