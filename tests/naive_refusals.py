"""What the API refuses (rule 6), for the naive model: checked on the request as sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cachecost.providers.rules import ModelRules
from naive_wire import Item, blocks_of, breakpoint_places, inside, ttl_of


def faults_of(block: dict[str, Any], path: str) -> Iterator[str]:
    """Why a block as sent may not carry the breakpoints that it has, what is inside it first."""
    subs = inside(block)
    if block.get("type") == "text":
        subs = []
    for number, sub in enumerate(subs):
        may_lift = block.get("type") in ("tool_result", "document") and number == len(subs) - 1
        if (ttl_of(sub) and not may_lift) or any('"cache_control": {' in json.dumps(inner) for inner in inside(sub)):
            yield "cache_control: Extra inputs are not permitted"
        elif ttl_of(sub) and sub.get("type") == "text" and not sub.get("text"):
            yield ".text: cache_control cannot be set for empty text blocks"
    if ttl_of(block) and block.get("type") == "thinking":
        yield f"{path}.thinking.cache_control: Extra inputs are not permitted"
    if ttl_of(block) and block.get("type") == "text" and not block.get("text"):
        yield f"{path}.text: cache_control cannot be set for empty text blocks"
    if ttl_of(block) and block.get("defer_loading"):
        yield "cannot have both defer_loading=true and cache_control set"


def faults_as_sent(body: dict[str, Any]) -> Iterator[str]:
    for number, tool in enumerate(body.get("tools") or []):
        yield from faults_of(tool, f"tools.{number}")
    for number, block in enumerate(blocks_of(body.get("system") or [])):
        yield from faults_of(block, f"system.{number}")
    for number, message in enumerate(body["messages"]):
        for n, block in enumerate(blocks_of(message["content"])):
            yield from faults_of(block, f"messages.{number}.content.{n}")


def path_of(item: Item) -> str:
    layer, *numbers = item.place
    return f"messages.{numbers[0]}.content.{numbers[1]}" if layer == 2 else f"{('tools', 'system')[layer]}.{numbers[0]}"


def refused(body: dict[str, Any], items: list[Item], rules: ModelRules) -> str | None:
    automatic = ttl_of(body)
    marked = sorted((item for item in items if item.ttl), key=lambda item: item.place)
    if len(marked) > rules.maximum_breakpoints:
        return (
            f"A maximum of {rules.maximum_breakpoints} blocks with cache_control may be provided. Found {len(marked)}."
        )
    if fault := next(faults_as_sent(body), None):
        return fault
    if automatic and not rules.accepts_automatic:
        return "cache_control: Extra inputs are not permitted"
    for item in marked:
        if item.ttl not in rules.accepted_ttls:
            return f"{path_of(item)}.{item.kind}.cache_control.ephemeral.ttl: Extra inputs are not permitted"
    return refused_times(automatic, items, marked) or next(refused_parameters(body, rules), None)


def refused_thread(breakpoints: int, idle_s: float, rules: ModelRules) -> str | None:
    """Why a request in a message thread with this many breakpoints, this long after the last one, is refused."""
    if not rules.accepts_threads:
        return "thread: Extra inputs are not permitted"
    if breakpoints > rules.thread_breakpoints:
        return f"thread: a maximum of {rules.thread_breakpoints} blocks with cache_control may be provided"
    return "No thread state was found" if idle_s > rules.thread_held_s else None


def refused_times(automatic: str | None, items: list[Item], marked: list[Item]) -> str | None:
    targets = [item for item in items if breakpoint_places(item)]
    if automatic and targets and targets[-1].ttl != automatic:
        return "Top-level cache_control has ttl"
    ttls = [item.ttl for item in marked]
    late = [item for n, item in enumerate(marked) if item.ttl == "1h" and "5m" in ttls[:n]]
    return f"{path_of(late[0])}.cache_control.ttl: a ttl='1h' cache_control block must not" if late else None


def refused_messages(messages: list[dict[str, Any]], rules: ModelRules) -> Iterator[str]:
    if not rules.accepts_system_messages and "system" in [message["role"] for message in messages]:
        yield "role 'system' is not supported"
    if not rules.accepts_message_effort and any("output_config" in message for message in messages):
        yield "output_config: Extra inputs are not permitted"
    last = messages[-1] if messages else {"role": "user", "content": ""}
    end = blocks_of(last["content"])[-1:]
    if not rules.accepts_prefill and last["role"] == "assistant" and end and end[0]["type"] == "text":
        yield "does not support assistant message prefill"


def refused_parameters(body: dict[str, Any], rules: ModelRules) -> Iterator[str]:
    """What the model does not take, in the order of the engine: the sentences are the API's, by their middle."""
    config, thinking = body.get("output_config") or {}, (body.get("thinking") or {}).get("type")
    choice, effort = (body.get("tool_choice") or {}).get("type"), config.get("effort")
    yield from refused_messages(body["messages"], rules)
    if effort and rules.accepted_efforts is not None and effort not in rules.accepted_efforts:
        yield "effort"
    if thinking and rules.accepted_thinking is not None and thinking not in rules.accepted_thinking:
        yield "not supported"
    elif thinking == "disabled" and effort and effort not in (rules.efforts_without_thinking or [effort]):
        yield "'disabled' is not supported"
    if body.get("speed") == "fast" and not rules.accepts_fast:
        yield "does not support the `speed` parameter"
    if body.get("inference_geo") and not rules.accepts_inference_geo:
        yield "does not support the `inference_geo` parameter"
    if choice in ("any", "tool") and not rules.accepts_forced_choice:
        yield "is not supported on"
    elif choice in ("any", "tool") and thinking == "enabled":
        yield "Thinking may not be enabled when tool_choice forces tool use."
    yield from refused_together(body, rules)


def refused_together(body: dict[str, Any], rules: ModelRules) -> Iterator[str]:
    form = (body.get("output_config") or {}).get("format") or body.get("output_format")
    there = {"stream": body.get("stream"), "output_config.format": form}
    there |= {f"{name}.type: {(body.get(name) or {}).get('type')}": True for name in ("thinking", "tool_choice")}
    if body.get("max_tokens") == 0:
        yield from (
            f"max_tokens: 0 is not supported with `{name}`" for name in rules.prewarming_excludes if there.get(name)
        )
    if form and "citations" in rules.format_excludes and '"citations": {"enabled": true}' in json.dumps(body):
        yield "output_config.format is not supported with `citations`"
