"""Small conversations that tests send to a meter, as a server would."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cachecost.live.clock import moment
from cachecost.live.request_log import CallLog
from cachecost.live.server.answers import answerer_from
from cachecost.live.server.model import Answerer, ApiError, CallCharge, ClientCall, ModelAnswer
from cachecost.live.server.state import Meter
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup

Body = dict[str, Any]
Style = Callable[[Body], Body]
BREAKPOINT = {"type": "ephemeral"}
MODEL = "claude-sonnet-4-5"
START = 1793577600.0
"""2026-11-02."""
PATH = {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}
TOOLS = [{"name": name, "description": "It looks. " * 120, "input_schema": PATH} for name in ("Read", "Glob")]


def automatic(body: Body) -> Body:
    return {**body, "cache_control": BREAKPOINT}


def an_hour(body: Body) -> Body:
    return {**body, "cache_control": {**BREAKPOINT, "ttl": "1h"}}


def uncached(body: Body) -> Body:
    return body


def system_only(body: Body) -> Body:
    return {**body, "system": [{**body["system"][0], "cache_control": BREAKPOINT}]}


def first_text_only(body: Body) -> Body:
    (text, *blocks), *later = body["messages"][0]["content"], *body["messages"][1:]
    first = {"role": "user", "content": [{**text, "cache_control": BREAKPOINT}, *blocks]}
    return {**system_only(body), "messages": [first, *later]}


class Served:
    """A meter with what a server does around it: time goes on 3 s a call, and every call is logged."""

    def __init__(self, tokens: str = "tiktoken", log: Path | None = None) -> None:
        self.meter = Meter(ReplaySetup(RuleBook(), PriceBook.load(), "anthropic", tokens))
        self.now = START
        self.calls = 0
        self._log = log

    def call(
        self, body: Body, answer: ModelAnswer | None = None, workspace: str = "w1", **asked: Any
    ) -> CallCharge | ApiError:
        self.calls += 1
        turn = sum(message.get("role") == "assistant" for message in body.get("messages", []))
        call = ClientCall(f"msg_{self.calls}", body, workspace, self.now, turn, **asked)
        answer = answer or ModelAnswer([{"type": "text", "text": "Done."}])
        taken = self.meter.charge(call, answer)
        self._record(call, answer, taken)
        self.now += 3
        return taken

    def _record(self, call: ClientCall, answer: ModelAnswer, taken: CallCharge | ApiError) -> None:
        if self._log is None:
            return
        fields: dict[str, Any] = {"timestamp": moment(call.start), "workspace": call.workspace}
        if isinstance(taken, CallCharge):
            fields |= {"usage": taken.usage.wire(), "response": {"content": list(answer.content)}}
            fields |= {"first_token_s": answer.first_token_s}
        with CallLog(self._log) as log:
            log.append(fields, json.dumps(call.body).encode())

    def loop(self, first: str, style: Style, steps: int = 4, workspace: str = "w1", **fields: Any) -> None:
        """A loop of `steps` tool calls, one a call, each answered with a long result."""
        answerer = answerer_from(f"agent:{steps}")
        messages: list[Body] = [{"role": "user", "content": [{"type": "text", "text": first + " please" * 400}]}]
        while True:
            system = [{"type": "text", "text": "You are a careful assistant. " * 150}]
            body = {"model": MODEL, "max_tokens": 99, "tools": TOOLS, "system": system, "messages": messages, **fields}
            answer = self.answered(answerer, style(body), workspace)
            messages = [*messages, {"role": "assistant", "content": list(answer.content)}]
            if answer.stop_reason != "tool_use":
                return
            result = {"type": "tool_result", "tool_use_id": answer.content[-1]["id"], "content": "A line.\n" * 500}
            messages = [*messages, {"role": "user", "content": [result]}]

    def answered(self, answerer: Answerer, body: Body, workspace: str) -> ModelAnswer:
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        answer = answerer.answer(ClientCall(f"msg_{self.calls + 1}", body, workspace, self.now, turn))
        assert isinstance(answer, ModelAnswer)
        taken = self.call(body, answer, workspace)
        assert isinstance(taken, CallCharge), taken
        return answer


def text_body(text: str, **fields: Any) -> Body:
    messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    return {"model": MODEL, "max_tokens": 99, "messages": messages, **fields}


def refusable() -> Mapping[str, Any]:
    """A body that the API refuses: a breakpoint on an empty text."""
    return {
        **text_body(""),
        "messages": [{"role": "user", "content": [{"type": "text", "text": "", "cache_control": BREAKPOINT}]}],
    }
