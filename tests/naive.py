"""The rulebook, written as plainly as it reads: lists, no tree, nothing shared, bytes as tokens.

An independent second opinion on the engine. It takes bodies as they go over the wire and keeps
every entry as the whole list of what stands before it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from cachecost.providers.rules import ModelRules


@dataclass
class NaiveEntry:
    key: list[str]
    key_ttl: str
    ttl: str
    started: float
    touched: float
    readable: float


@dataclass
class Item:
    """One block or one salt of the flattened prompt."""

    identity: str
    size: int
    kind: str
    is_block: bool
    ttl: str | None = None


class NaiveModel:
    """`call` gives (uncached, read, write_5m, write_1h), or the words of the refusal."""

    def __init__(self) -> None:
        self.entries: list[NaiveEntry] = []

    def call(
        self, body: dict[str, Any], rules: ModelRules, start: float, first_token: float, checked: bool = True
    ) -> Any:
        sent = flatten(body, rules)
        apply_automatic(body, sent)
        if checked and (problem := refused(body, sent, rules)):
            return problem
        prompt = rendered(body, sent, rules)
        total = sum(item.size for item in prompt)
        marks = [
            (number, item.ttl)
            for number, item in enumerate(prompt)
            if item.ttl and sum(before.size for before in prompt[: number + 1]) >= rules.minimum_tokens
        ]
        hit, entry = self.look_up(prompt, marks, rules, start)
        self.write(prompt, marks, hit, entry, rules, start, first_token)
        return bill(prompt, marks, hit, total)

    def look_up(self, prompt: list[Item], marks: list[tuple[int, str]], rules: ModelRules, now: float) -> Any:
        for number, ttl in reversed(marks):
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
            if entry.key == key and (not rules.switches.ttl_in_key or entry.key_ttl == ttl):
                return entry
        return None

    def write(
        self,
        prompt: list[Item],
        marks: list[tuple[int, str]],
        hit: int,
        read: NaiveEntry | None,
        rules: ModelRules,
        start: float,
        first_token: float,
    ) -> None:
        if read:
            read.touched = max(read.touched, start)
        for number, ttl in marks:
            if number > hit:
                self.put(prompt, number, ttl, ttl, rules, start, first_token)
            elif read and rules.switches.shallow_marks != "ignore":
                entry = self.find(prompt, number, ttl, rules)
                if entry and alive(entry, rules, start):
                    entry.touched = max(entry.touched, start)
                elif rules.switches.shallow_marks == "rewrite":
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


def bill(prompt: list[Item], marks: list[tuple[int, str]], hit: int, total: int) -> tuple[int, int, int, int]:
    def length(number: int) -> int:
        return sum(item.size for item in prompt[: number + 1])

    a = length(hit)
    b = max([a] + [length(number) for number, ttl in marks if number > hit and ttl == "1h"])
    c = max([a] + [length(number) for number, _ in marks if number > hit])
    return total - c, a, c - b, b - a


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def bare(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"}


def ttl_of(block: dict[str, Any]) -> str | None:
    mark = block.get("cache_control")
    return (mark.get("ttl") or "5m") if mark else None


def as_item(role: str, block: dict[str, Any]) -> Item:
    text = compact(bare(block))
    return Item(role + "|" + text, len(text.encode()), block.get("type", "tool"), True, ttl_of(block))


def blocks_of(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


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
    reading = rules.switches.tool_choice_invalidation
    shown = "" if reading == "never" else kind + ":" + str(choice.get("name"))
    if kind == "auto" or (kind == "none" and reading == "rendered_class"):
        shown = ""
    return f"{shown}/{single}"


def salts(body: dict[str, Any], rules: ModelRules) -> dict[str, str]:
    config = body.get("output_config") or {}
    thinking = {key: value for key, value in (body.get("thinking") or {}).items() if key != "display"}
    thinking = {} if thinking.get("type") == "disabled" else thinking
    effort = config.get("effort") or rules.default_effort
    rendered_thinking = compact([sorted(thinking.items()), effort])
    schema = compact(config.get("format"))
    made = {
        "tools": f"{rules.model}/{body.get('speed') or 'standard'}",
        "system": compact(
            [has_citations(body), (body.get("container") or {}).get("skills"), config.get("task_budget")]
        ),
        "messages": f"{choice_salt(body, rules)}/{has_image(body)}",
    }
    made[rules.switches.structured_output_at] += schema
    made[rules.switches.thinking_rendered_at] += rendered_thinking
    return made


def is_web(tool: dict[str, Any]) -> bool:
    return str(tool.get("type", "")).startswith(("web_search_", "web_fetch_"))


def brought(block: dict[str, Any], deferred: dict[str, dict[str, Any]]) -> list[str]:
    """Compact definitions of the deferred tools that the references in a block bring in."""
    inner = block.get("content")
    subs = inner if isinstance(inner, list) else []
    names = [sub["tool_name"] for sub in subs if sub.get("type") == "tool_reference"]
    return [compact(bare(deferred[name])) for name in names if name in deferred]


def message_item(role: str, block: dict[str, Any], deferred: dict[str, dict[str, Any]]) -> Item:
    item = as_item("messages/" + role, block)
    for definition in brought(block, deferred):
        item.identity += "+" + definition
        item.size += len(definition.encode())
    return item


def flatten(body: dict[str, Any], rules: ModelRules) -> list[Item]:
    """The request as sent: thinking still in, message ends not shown."""
    salt = salts(body, rules)
    tools = body.get("tools") or []
    deferred = {tool["name"]: tool for tool in tools if tool.get("defer_loading")}
    listed = [tool for tool in tools if not tool.get("defer_loading")]
    out = [Item("salt " + salt["tools"], 0, "salt", False)]
    out += [as_item("tools", tool) for tool in listed if not is_web(tool)]
    out.append(Item("salt " + salt["system"], 0, "salt", False))
    out += [as_item("tools", tool) for tool in listed if is_web(tool)]
    out += [as_item("system", block) for block in blocks_of(body.get("system") or [])]
    out.append(Item("salt " + salt["messages"], 0, "salt", False))
    for message in body["messages"]:
        out += [message_item(message["role"], block, deferred) for block in blocks_of(message["content"])]
    return out


def later_passes(body: dict[str, Any], response: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rule 10: the bodies of the server tools' later passes, each result marked if the request has any mark."""
    marked = body.get("cache_control") or '"cache_control": {' in json.dumps(body)
    bodies = []
    for number in range(1, len(response)):
        before, after = response[number - 1], response[number]
        if before["type"].endswith("_tool_result") and not after["type"].endswith("_tool_result"):
            answer = [
                {**block, "cache_control": {"type": "ephemeral"}} if marked and is_server_result(block) else block
                for block in response[:number]
            ]
            messages = [*body["messages"], {"role": "assistant", "content": answer}]
            bodies.append({**body, "cache_control": None, "messages": messages})
    return bodies


def is_server_result(block: dict[str, Any]) -> bool:
    return bool(block["type"].endswith("_tool_result"))


def markable(item: Item) -> bool:
    return item.is_block and item.kind != "thinking" and not item.identity.endswith('|{"type":"text","text":""}')


def apply_automatic(body: dict[str, Any], items: list[Item]) -> None:
    ttl = ttl_of(body)
    targets = [item for item in items if markable(item)]
    if ttl and targets and targets[-1].ttl is None:
        targets[-1].ttl = ttl


def refused(body: dict[str, Any], items: list[Item], rules: ModelRules) -> str | None:  # noqa: C901 - the closed list
    marked = [item for item in items if item.ttl]
    if len(marked) > 4:
        return f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}."
    for tool in body.get("tools") or []:
        if tool.get("defer_loading") and ttl_of(tool):
            return "cannot have both defer_loading=true and cache_control set"
    for item in marked:
        if item.kind == "thinking":
            return "thinking.cache_control: Extra inputs are not permitted"
        if not markable(item):
            return "cache_control cannot be set for empty text blocks"
    automatic = ttl_of(body)
    targets = [item for item in items if markable(item)]
    if automatic and targets and targets[-1].ttl != automatic:
        return "Top-level cache_control has ttl"
    ttls = [item.ttl for item in marked]
    if "5m" in ttls and "1h" in ttls[ttls.index("5m") :]:
        return "must not come after a ttl='5m'"
    choice = (body.get("tool_choice") or {}).get("type")
    if choice in ("any", "tool"):
        if not rules.accepts_forced_choice:
            return "is not supported on"
        if (body.get("thinking") or {}).get("type") == "enabled":
            return "Thinking may not be enabled when tool_choice forces tool use."
    return None


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
