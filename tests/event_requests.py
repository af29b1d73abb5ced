"""The lines in which Claude Code 2.1.282 and later records each request: its tools, system prompt and breakpoints."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from event_cache import EventCall

JSON = dict[str, Any]


def request_id(call: EventCall) -> str:
    return f"apireq_{call.id.removeprefix('msg_')}"


def shape_line(call: EventCall) -> JSON:
    """Tools and system prompt, written when they differ from those of the requests before."""
    tool = {"name": "Bash", "description": f"tools {call.static.key}", "input_schema": {"type": "object"}}
    shape = {"system": [{"type": "text", "text": "You are an agent."}], "tools": [tool]}
    return {"type": "api-request-shape", **_place(call), "shapeHash": call.static.key, "shape": shape}


def request_line(call: EventCall, time: str, version: str) -> JSON:
    """A request as what it adds to the one before it in the same process."""
    base, control = call.base, {"type": "ephemeral", "ttl": call.ttl}
    paths = (["system", 0], ["messages", call.messages - 1, "content", 0])
    keep = base.messages if base else 0
    tail = [sha256(f"{call.prompt.key} {number}".encode()).hexdigest() for number in range(keep, call.messages)]
    return {
        "type": "api-request",
        **_place(call),
        "id": request_id(call),
        "timestamp": time,
        "version": version,
        "querySource": "agent:builtin:Explore" if call.agent else "repl_main_thread",
        "shapeHash": call.static.key,
        "params": {"model": call.model, "max_tokens": 32_000, "thinking": {"type": "adaptive"}},
        **({"base": request_id(base)} if base else {}),
        "keep": keep,
        "tail": tail,
        "cacheControl": [{"path": path, "value": control} for path in paths],
        "requestDigest": sha256(call.prompt.key.encode()).hexdigest(),
    }


def _place(call: EventCall) -> JSON:
    return {"sessionId": call.session, **({"agentId": call.agent} if call.agent else {})}
