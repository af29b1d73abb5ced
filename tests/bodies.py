"""Request bodies whose blocks are exactly as many bytes as a test wants, and an engine to send them to."""

from __future__ import annotations

import json
from typing import Any

from cachecost.base.structs import replace
from cachecost.caches.breakpoints import Outcome, PrefixCache
from cachecost.prompts.blocks import Block
from cachecost.prompts.intake import Intake
from cachecost.prompts.render import NOTHING_HIDDEN, Hidden, Renderer
from cachecost.prompts.request import Request, refusal, sent_breakpoints
from cachecost.providers.rules import ModelRules

Body = dict[str, Any]
BREAKPOINT = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}

RULES = ModelRules(
    host="anthropic",
    model="claude-sonnet-4-5",
    generation="claude-3",
    minimum_tokens=1024,
    keeps_thinking=True,
    accepts_forced_choice=True,
    default_effort="high",
    context_window=200_000,
    collapses_runs=True,
    scope="workspace",
)
STRIPS = replace(RULES, keeps_thinking=False)
COUNTS_EVERY_BLOCK = replace(RULES, collapses_runs=False)


class Bytes:
    """Rule 19: a block is as long as its compact JSON."""

    name = "bytes"
    source = "bytes"
    error_margin = 0.0

    def shared(self, one: Block, other: Block) -> int:
        return 0

    def block(self, block: Block) -> int:
        return block.size

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        return NOTHING_HIDDEN


class Engine:
    """A cache that takes bodies. Calls start `at` seconds, 10 s apart when nothing is said."""

    def __init__(self, rules: ModelRules = RULES) -> None:
        self.rules = rules
        self.intake = Intake()
        self.renderer = Renderer(Bytes())
        self.cache = PrefixCache()
        self.now = 0.0

    def call(self, body: Body, at: float | None = None, first_token: float = 0.0, **rules: Any) -> Outcome:
        """Send `body`; a refusal fails the test."""
        outcome = self.try_call(body, at, first_token, **rules)
        assert not isinstance(outcome, str), outcome
        return outcome

    def try_call(self, body: Body, at: float | None = None, first_token: float = 0.0, **rules: Any) -> Outcome | str:
        """Send `body`; a refusal comes back as its words."""
        self.now = self.now + 10 if at is None else at
        chosen = replace(self.rules, **rules)
        request = self.intake.body(body)
        sent = sent_breakpoints(request)
        if why := refusal(request, sent, chosen):
            return why
        prompt = self.renderer.render(request, sent.breakpoints, chosen)
        return self.cache.call(prompt, chosen, self.now, first_token)


def sized(content: Body, field: str, size: int) -> Body:
    """`content` with its string `field` padded so that the compact JSON is `size` bytes."""
    missing = size - len(json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode())
    assert missing >= 0, (content, size)
    return {**content, field: content[field] + "x" * missing}


def text(size: int, name: str = "") -> Body:
    return sized({"type": "text", "text": name}, "text", size)


def thinking(size: int, name: str = "") -> Body:
    return sized({"type": "thinking", "thinking": name, "signature": "s"}, "thinking", size)


def tool_use(size: int, name: str) -> Body:
    return sized({"type": "tool_use", "id": name, "name": "", "input": {}}, "name", size)


def tool_result(size: int, name: str) -> Body:
    return sized({"type": "tool_result", "tool_use_id": name, "content": ""}, "content", size)


def tool(size: int, name: str = "f") -> Body:
    return sized({"name": name, "description": "", "input_schema": {}}, "description", size)


def marked(block: Body, ttl: str = "5m") -> Body:
    return {**block, "cache_control": BREAKPOINT if ttl == "5m" else HOUR}


def user(*blocks: Body) -> Body:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Body) -> Body:
    return {"role": "assistant", "content": list(blocks)}


def body(*messages: Body, **fields: Any) -> Body:
    return {"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": list(messages), **fields}


def breakpoint_last(request: Body, ttl: str = "5m") -> Body:
    """The same body with a breakpoint on its last block."""
    *before, last = request["messages"]
    *blocks, end = last["content"]
    return {**request, "messages": [*before, {**last, "content": [*blocks, marked(end, ttl)]}]}
