"""One conversation in the words of each API that the server speaks: what a client sends, and what it reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from server_fakes import post

from cachecost.conversations.readers.http.exchange import HttpExchange, read

Wire = dict[str, Any]
KEY = "sk-planted-0123456789"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = "read_file"
WORDS = "It looks at a file. "
BEARER = {"authorization": f"Bearer {KEY}"}


@dataclass
class Said:
    """A conversation so far: a system prompt, and (question | answer | results of tools) in turn."""

    system: str = ""
    turns: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Dialect:
    """How an API is called. `body` makes a request of turns, `extend` adds an answer and results to them."""

    name: str
    host: str
    model: str
    headers: Mapping[str, str]
    path: str
    stream_path: str
    body: Callable[[str, str, Sequence[Any], bool], Wire]
    question: Callable[[str], Any]
    extend: Callable[[Wire, str], list[Any]]

    def send(self, served: Any, said: Said, streams: bool = False, model: str = "", **more: Any) -> Any:
        """The response of a POST."""
        name = model or self.model
        body = {**self.body(name, said.system, said.turns, streams), **more}
        return post(served, body, (self.stream_path if streams else self.path).format(model=name), self.headers)

    def read(self, response: Any, request: Wire | None = None, model: str = "") -> SimpleNamespace:
        """What our own readers of HTTP recordings make of an exchange."""
        name = model or self.model
        content = json.dumps(request or self.body(name, "", [self.question("Hi")], False)).encode()
        kind = {"content-type": response.headers["content-type"]}
        path = self.path.format(model=name)
        exchange = HttpExchange(url=path, request=content, response=response.content, response_headers=kind)
        told = read(exchange, lambda body, **fields: SimpleNamespace(**fields, body=body))
        assert isinstance(told, SimpleNamespace)
        return told

    def go_on(self, said: Said, answer: Wire, result: str) -> None:
        said.turns += self.extend(answer, result)


def _chat(model: str, system: str, turns: Sequence[Any], streams: bool) -> Wire:
    function = {"name": TOOL, "description": WORDS, "parameters": SCHEMA}
    head = [{"role": "developer", "content": system}] if system else []
    tools = [{"type": "function", "function": function}]
    told = {"model": model, "messages": [*head, *turns], "tools": tools}
    return {**told, "stream": True, "stream_options": {"include_usage": True}} if streams else told


def _extend_chat(answer: Wire, result: str) -> list[Any]:
    message = answer["choices"][0]["message"]
    calls = message.get("tool_calls") or ()
    return [message, *({"role": "tool", "tool_call_id": call["id"], "content": result} for call in calls)]


def _responses(model: str, system: str, turns: Sequence[Any], streams: bool) -> Wire:
    tool = {"type": "function", "name": TOOL, "description": WORDS, "parameters": SCHEMA}
    head = {"instructions": system} if system else {}
    return {"model": model, **head, "input": list(turns), "tools": [tool], **({"stream": True} if streams else {})}


def _extend_responses(answer: Wire, result: str) -> list[Any]:
    calls = [item for item in answer["output"] if item["type"] == "function_call"]
    results = ({"type": "function_call_output", "call_id": call["call_id"], "output": result} for call in calls)
    return [*answer["output"], *results]


def _gemini(model: str, system: str, turns: Sequence[Any], streams: bool) -> Wire:
    declared = {"name": TOOL, "description": WORDS, "parameters": SCHEMA}
    head = {"systemInstruction": {"parts": [{"text": system}]}} if system else {}
    return {**head, "contents": list(turns), "tools": [{"functionDeclarations": [declared]}]}


def _extend_gemini(answer: Wire, result: str) -> list[Any]:
    content = answer["candidates"][0]["content"]
    calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    results = [{"functionResponse": {"name": call["name"], "response": {"result": result}}} for call in calls]
    return [content, *([{"role": "user", "parts": results}] if results else [])]


def _messages(model: str, system: str, turns: Sequence[Any], streams: bool) -> Wire:
    tool = {"name": TOOL, "description": WORDS, "input_schema": SCHEMA}
    head = {"system": system} if system else {}
    told = {"model": model, "max_tokens": 400, **head, "messages": list(turns), "tools": [tool]}
    return {**told, "cache_control": {"type": "ephemeral"}, **({"stream": True} if streams else {})}


def _extend_messages(answer: Wire, result: str) -> list[Any]:
    calls = [block for block in answer["content"] if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": result} for call in calls]
    said = [{"role": "assistant", "content": answer["content"]}]
    return [*said, *([{"role": "user", "content": results}] if results else [])]


def _user(words: str) -> Wire:
    return {"role": "user", "content": words}


GEMINI = "/v1beta/models/{model}:"
CHAT = Dialect("chat", "openai", "gpt-5.2", BEARER, *["/v1/chat/completions"] * 2, _chat, _user, _extend_chat)
RESPONSES = Dialect(
    "responses", "openai", "gpt-5.6-sol", BEARER, *["/v1/responses"] * 2, _responses, _user, _extend_responses
)
GEMINI_API = Dialect(
    "gemini",
    "gemini",
    "gemini-2.5-pro",
    {"x-goog-api-key": KEY},
    f"{GEMINI}generateContent",
    f"{GEMINI}streamGenerateContent?alt=sse",
    _gemini,
    lambda words: {"role": "user", "parts": [{"text": words}]},
    _extend_gemini,
)
MESSAGES = Dialect(
    "messages",
    "anthropic",
    "claude-sonnet-4-5",
    {"x-api-key": KEY, "anthropic-version": "2023-06-01"},
    *["/v1/messages"] * 2,
    _messages,
    _user,
    _extend_messages,
)
OTHERS = (CHAT, RESPONSES, GEMINI_API)
"""All but the Messages API."""
