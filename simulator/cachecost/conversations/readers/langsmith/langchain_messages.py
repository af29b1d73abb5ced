"""Converts LangChain's messages, serialized or as plain objects, to the Messages body that ChatAnthropic sends.

Source: langchain-core 1.8 (`load.dumpd`, `messages_to_dict`, content blocks) and langchain-anthropic 1.7 (what its
payload makes of messages), read 2026-11. As there: results of tools and what a person says after them are one user
message, a breakpoint inside a result is the result's own, arguments come from `tool_calls`, texts of white space
and empty answers are not sent, and of a block only what the API takes. Other than there a system message in the
middle stays where it is: whether it was sent there or put to the head depends on the model's profile.

Converts a content block of a LangChain message to a block of the Messages API (see langchain_messages.py).

Finds the usage of a LangSmith run, and decides which of several is the bill.

One LangSmith run of type llm: its request, answer and times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cachecost.base.times import iso
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.dialects import Body, answer_of, as_text, body_from, parse_json_text
from cachecost.conversations.readers.common.json_values import array_at, object_or_empty, require_object
from cachecost.conversations.readers.openai.chat import (
    LIMITS,
    SHORT,
    choice,
    from_chat,
    from_chat_message,
    parameters,
    part,
    tools,
)
from cachecost.conversations.readers.otel.parts import blocks_of as from_parts
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.intake import OBJECTS
from cachecost.prompts.request import BREAKPOINT, NotAMessage, content_blocks, show_found
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

NARROWED = {
    "text": ("type", "text", "citations", BREAKPOINT),
    "thinking": ("type", "thinking", "signature", BREAKPOINT),
    "redacted_thinking": ("type", "data", BREAKPOINT),
}
"""What is sent of these; LangChain keeps more in them."""
STREAMED = ("index", "partial_json")
"""What streaming leaves behind in a block. It is never sent."""
BESIDE = (BREAKPOINT, "citations", "title", "context")
MEDIA = {"image": "image", "file": "document", "text-plain": "document"}
"""LangChain's own blocks for pictures and documents: they have no `source`."""
Calls = Mapping[str, Mapping[str, Any]]


def block_from(block: Any, path: str, calls: Calls) -> Body:
    """The block as it is sent; an unknown type stays unchanged. Raises NotAMessage."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
        raise NotAMessage(path, "a block with a type", block)
    kind, inner = block["type"], block.get("value")
    if kind == "non_standard" and isinstance(inner, Mapping):
        return block_from(inner, path, calls)
    if kind in NARROWED:
        return {name: value for name, value in block.items() if name in NARROWED[kind]}
    if kind == "image_url":
        return part(block, path, SHORT)
    if kind in MEDIA and "source" not in block:
        return _medium(block)
    return _call_or_other(block, calls)


def _call_or_other(block: Mapping[str, Any], calls: Calls) -> Body:
    kind, id_ = block["type"], str(block.get("id"))
    if kind == "tool_call" or (kind == "tool_use" and id_ in calls):
        return tool_use(calls.get(id_, block))
    signature = _extras(block).get("signature")
    if signature and kind == "reasoning":
        return {"type": "thinking", "thinking": block.get("reasoning") or "", "signature": signature}
    sent = {name: value for name, value in block.items() if name not in STREAMED}
    if "partial_json" in block and not block.get("input"):
        sent["input"] = parse_json_text(block["partial_json"]) or {}
    return sent


def tool_use(call: Mapping[str, Any]) -> Body:
    """The block of an entry of `tool_calls`."""
    return {"type": "tool_use", "name": call.get("name"), "input": call.get("args") or {}, "id": call.get("id")}


def result_of(message: Mapping[str, Any], blocks: Sequence[Body]) -> list[Body]:
    """The tool_result blocks of a tool message, whose content may already be such blocks."""
    if blocks and all(block["type"] == "tool_result" for block in blocks):
        return list(blocks)
    content = message.get("content")
    breakpoints = [block[BREAKPOINT] for block in blocks if BREAKPOINT in block]
    inner = [{name: value for name, value in block.items() if name != BREAKPOINT} for block in blocks]
    result = {
        "type": "tool_result",
        "content": content if isinstance(content, str) else inner,
        "tool_use_id": message.get("tool_call_id"),
        "is_error": message.get("status") == "error",
    }
    return [{**result, BREAKPOINT: breakpoints[-1]} if breakpoints else result]


def _medium(block: Mapping[str, Any]) -> Body:
    extras = _extras(block)
    beside = {name: block.get(name, extras.get(name)) for name in BESIDE if name in block or name in extras}
    return {"type": MEDIA[block["type"]], "source": _source(block), **beside}


def _extras(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """What LangChain's blocks keep of a provider's own fields."""
    extras = block.get("extras") or block.get("metadata")
    return extras if isinstance(extras, Mapping) else {}


def _source(block: Mapping[str, Any]) -> Body:
    kind, url = block.get("source_type"), block.get("url")
    media = block.get("mime_type") or "application/pdf"
    if isinstance(url, str) and not url.startswith("data:"):
        return {"type": "url", "url": url}
    if isinstance(url, str):
        media, _, data = url.removeprefix("data:").partition(";base64,")
        return {"type": "base64", "media_type": media, "data": data}
    if block["type"] == "text-plain" or kind == "text":
        return {"type": "text", "media_type": block.get("mime_type") or "text/plain", "data": block.get("text")}
    if "file_id" in block or kind == "id":
        return {"type": "file", "file_id": block.get("file_id", block.get("id"))}
    return {"type": "base64", "media_type": media, "data": block.get("base64", block.get("data"))}


M5, H1 = "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"
INCLUDED_SINCE = (0, 7, 14)
"""The first langsmith-py whose `wrap_anthropic` puts cached tokens into the input."""
MISSPELT = {"ephemeral_1hr_input_tokens": H1, "ephemeral_5min_input_tokens": M5}
"""Keys of langsmith-js before March 2026."""
Mapped = Mapping[str, Any]


def usage_of_answer(message: Mapped, outputs: Mapped, extra: Mapped) -> Usage | None:
    """The usage in the answer, or None. Raises NotAMessage."""
    own, counted = _provider_usage(message, outputs), _usage_metadata(message, outputs, extra)
    if "input_tokens" in own and any(str(name).startswith("cache_") for name in own):
        usage = usage_from(own, "usage", "anthropic")
        streamed = counted.get("output_tokens")
        return replace(usage, output_tokens=max(usage.output_tokens, streamed if isinstance(streamed, int) else 0))
    if counted:
        return usage_from(_with_cached_input(counted, outputs, extra), "usage_metadata", "langchain")
    return usage_from(own, "usage") if own else None


def usage_of_columns(run: JsonObject) -> Usage | None:
    """The usage in LangSmith's own columns, or None if they are empty. Raises NotAMessage."""
    prompt, completion = run.whole("prompt_tokens", 0), run.whole("completion_tokens", 0)
    if not prompt:
        return None
    details = run.mapping("prompt_token_details", required=False)
    told = {"input_tokens": prompt, "output_tokens": completion, "input_token_details": details}
    return usage_from(told, "prompt_tokens", "langchain")


def is_from_own_cache(message: Mapped) -> bool:
    """Whether LangChain answered from its own cache: it keeps the usage of then and sets the cost to 0."""
    counted = object_or_empty(message.get("usage_metadata"))
    return counted.get("total_cost") == 0 and "total_cost" in counted


def _provider_usage(message: Mapped, outputs: Mapped) -> Mapped:
    llm = object_or_empty(outputs.get("llm_output"))
    places = [object_or_empty(message.get("response_metadata")), llm, outputs]
    found = [object_or_empty(place.get(name)) for place in places for name in ("usage", "token_usage")]
    return next((usage for usage in found if usage), {})


def _usage_metadata(message: Mapped, outputs: Mapped, extra: Mapped) -> Mapped:
    places = (message, outputs, object_or_empty(extra.get("metadata")))
    return next((usage for place in places if (usage := object_or_empty(place.get("usage_metadata")))), {})


def _with_cached_input(counted: Mapped, outputs: Mapped, extra: Mapped) -> dict[str, Any]:
    """LangChain's usage with the cached tokens in its input, where it was written without them."""
    told = object_or_empty(counted.get("input_token_details"))
    details = {MISSPELT.get(name, name): value for name, value in told.items()}
    read, written, five, hour = (_count(details, name) for name in ("cache_read", "cache_creation", M5, H1))
    cached, uncached = read + max(written, five + hour), _count(counted, "input_tokens")
    excludes = uncached < cached or _is_of_old_wrapper(outputs, extra)
    return {
        **counted,
        "input_token_details": details,
        **({"input_tokens": uncached + cached} if excludes and cached else {}),
    }


def _is_of_old_wrapper(outputs: Mapped, extra: Mapped) -> bool:
    runtime, provider = object_or_empty(extra.get("runtime")), object_or_empty(extra.get("metadata")).get("ls_provider")
    if provider != "anthropic" or "generations" in outputs or runtime.get("sdk") != "langsmith-py":
        return False
    numbers = str(runtime.get("sdk_version") or "").split(".")[:3]
    return all(map(str.isdecimal, numbers)) and tuple(map(int, numbers)) < INCLUDED_SINCE


def _count(told: Mapped, name: str) -> int:
    value = told.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


ROLES = {"human": "user", "ai": "assistant", "model": "assistant"}
PLAIN_ROLES = ("user", "assistant", "system", "tool", "developer", "function")
OPENAI_ROLES = ("developer", "function")


def body_from_request(request: Mapping[str, Any]) -> Body:
    """The Messages body of a request whose messages are LangChain's, Anthropic's or OpenAI's. Raises NotAMessage."""
    raw = array_at(request["messages"], "messages", "an array of messages")
    messages = [plain(message, f"messages.{number}") for number, message in enumerate(raw)]
    body = _parameters(request)
    if any(map(_is_openai, messages)):
        return {**body, **from_chat({"model": body.get("model"), "messages": messages})}
    system, sent = _split_system(messages)
    told = content_blocks(body.pop("system", []), "system")
    return {**body, "messages": sent, **({"system": [*told, *system]} if told or system else {})}


def plain(message: Any, path: str) -> dict[str, Any]:
    """A message as an object with `role` and `content`, whether it was serialized or nested in `data`."""
    require_object(message, path, "a message object")
    inner = next((message[name] for name in ("kwargs", "data") if isinstance(message.get(name), Mapping)), message)
    named = inner.get("role") or inner.get("type") or message.get("type")
    if "lc" in message and not inner.get("type") and not inner.get("role"):
        named = str((message.get("id") or [""])[-1])
    role = str(named or "").removesuffix("Chunk").removesuffix("Message").lower()
    role = ROLES.get(role, role)
    if role not in PLAIN_ROLES:
        raise NotAMessage(f"{path}.role", f"one of {', '.join(sorted({*PLAIN_ROLES, *ROLES}))}", named)
    return {**inner, "role": role}


def answer_blocks(message: Mapping[str, Any]) -> list[Body]:
    """The blocks of an answer, as `plain` gives it. Raises NotAMessage."""
    return from_chat_message(message) if _is_openai(message) else _blocks(message, "response")


def _is_openai(message: Mapping[str, Any]) -> bool:
    """Whether a message speaks of tools as Chat Completions does, which LangChain never does."""
    calls = message.get("tool_calls")
    nested = isinstance(calls, list) and any(isinstance(call, Mapping) and "function" in call for call in calls)
    return nested or message["role"] in OPENAI_ROLES or message.get("function_call") is not None


# ---------------------------------------------------------------------------------------------- messages


def _split_system(messages: Sequence[Mapping[str, Any]]) -> tuple[list[Body], list[Body]]:
    system: list[Body] = []
    sent: list[Body] = []
    for number, message in enumerate(messages):
        blocks, role = _blocks(message, f"messages.{number}"), message["role"]
        role = "user" if role == "tool" else role
        if role == "system" and not sent:
            system += blocks
        elif role == "user" and sent and sent[-1]["role"] == "user":
            sent[-1]["content"] += blocks
        elif blocks or role != "assistant":
            sent.append({"role": role, "content": blocks})
    return system, sent


def _blocks(message: Mapping[str, Any], path: str) -> list[Body]:
    if message.get("content") is None and isinstance(message.get("parts"), list):
        return from_parts(message["parts"], f"{path}.parts")
    calls = _calls(message.get("tool_calls"))
    blocks = _content(message.get("content"), f"{path}.content", calls)
    if message["role"] == "tool":
        return result_of(message, blocks)
    told = {str(block.get("id")) for block in blocks if block["type"] == "tool_use"}
    return [*blocks, *(tool_use(call) for name, call in calls.items() if name not in told)]


def _calls(calls: Any) -> dict[str, Mapping[str, Any]]:
    """The tool calls of a message's `tool_calls`, by id."""
    told = [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    return {str(call.get("id") or f"call {number}"): call for number, call in enumerate(told)}


def _content(content: Any, path: str, calls: Mapping[str, Mapping[str, Any]]) -> list[Body]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    items = array_at(content, path, "a string or an array of blocks")
    found = [block_from(item, f"{path}.{number}", calls) for number, item in enumerate(items)]
    return [block for block in found if block["type"] != "text" or str(block.get("text") or "").strip()]


# -------------------------------------------------------------------------------------------- parameters


def _parameters(request: Mapping[str, Any]) -> Body:
    """What else the Messages API takes of a request; what only other APIs have is left out."""
    told = {**object_or_empty(request.get("model_kwargs")), **request}
    told |= {name: parse_json_text(told[name]) for name in (*OBJECTS, "tools") if name in told}
    limits = {name: told[name] for name in LIMITS if isinstance(told.get(name), int)}
    own = {
        name: value
        for name, value in told.items()
        if name not in LIMITS and not (name in OBJECTS and not isinstance(value, Mapping))
    }
    effort = told.get("effort") or told.get("reasoning_effort")
    body = parameters({**own, **limits}, LIMITS, effort, told.get("response_format"))
    body |= {name: told[name] for name in ("model", "system") if told.get(name)}
    body |= {"tools": tools(told["tools"], "tools", SHORT)} if told.get("tools") else {}
    chosen = choice(told.get("tool_choice"), told.get("parallel_tool_calls"))
    return {**body, **({"tool_choice": chosen} if chosen else {})}


THREADS = ("session_id", "thread_id", "conversation_id")
"""Keys of the metadata that LangSmith groups traces by."""
MODELS = ("model", "model_name", "model_id", "deployment_name", "azure_deployment")


class LangSmithRun:
    """A run. Raises NotAMessage if its answer is not a message."""

    def __init__(self, row: JsonObject) -> None:
        self.row = row
        self.inputs, self.outputs, self.extra = (_part(row, name) for name in ("inputs", "outputs", "extra"))
        self.metadata = object_or_empty(self.extra.get("metadata"))
        self.invocation = object_or_empty(self.extra.get("invocation_params"))
        found: Any = self.outputs.get("generations")
        while isinstance(found, list) and found:
            found = found[0]
        self.generation = object_or_empty(found)
        self.message = _message(self.generation, self.outputs)

    def model_and_host(self) -> tuple[str, str | None]:
        """(model, host). The model is that of the request, else that of the answer, else ""."""
        asked = [place.get(name) for place in (self.invocation, self.inputs) for name in MODELS]
        answered = [object_or_empty(self.message.get("response_metadata")).get(name) for name in MODELS]
        found = [*asked, self.metadata.get("ls_model_name"), *answered, self.outputs.get("model")]
        provider = str(self.metadata.get("ls_provider") or "")
        model = next((name for name in found if isinstance(name, str) and name), "")
        return parse_model_name(model, provider)

    def session(self) -> str:
        """The id of the conversation, else of the trace."""
        names = [*(self.metadata.get(name) for name in THREADS), self.row.data.get("trace_id")]
        return next((str(name) for name in names if name), "")

    def body(self, model: str) -> tuple[Body, str]:
        """(Messages body, note for the user or ""). Raises NotAMessage."""
        request = {**self.invocation, **self.inputs, "model": model}
        prompts = self.inputs.get("prompts") or self.inputs.get("prompt")
        if "messages" in self.inputs:
            return body_from_request({**request, "messages": _one_conversation(self.inputs["messages"])}), ""
        if "input" in self.inputs:
            return body_from(request), ""
        if prompts:
            alone = prompts[0] if isinstance(prompts, list) and len(prompts) == 1 else prompts
            return body_from_request({**request, "messages": as_text(alone)}), ""
        if self.inputs:
            return {"messages": as_text(self.inputs)}, "whose input is not a list of messages: read as one text"
        return {"messages": []}, "without messages: only usage is known"

    def answer(self) -> list[Body] | str:
        """The blocks that came back. Raises NotAMessage."""
        if self.message:
            return answer_blocks(self.message)
        text = self.generation.get("text")
        return text if isinstance(text, str) and text else answer_of(self.outputs)

    def start(self) -> str | None:
        return _moment(self.row, "start_time")

    def first_token(self) -> str | None:
        """When the first token came: in its own column, or as an event."""
        for event in self.row.objects("events") if self.row.has("events") else ():
            if event.data.get("name") == "new_token":
                return _moment(self.row, "first_token_time") or _moment(event, "time")
        return _moment(self.row, "first_token_time")


def _part(row: JsonObject, name: str) -> Mapped:
    """An object of a run. Database rows contain it as a JSON string."""
    value = parse_json_text(row.data.get(name))
    if value and not isinstance(value, Mapping):
        row.fault(name, f"expected an object; got {show_found(value)}")
    return object_or_empty(value)


def _message(generation: Mapped, outputs: Mapped) -> dict[str, Any]:
    """The answer as a message; empty if there is none, or if it is another API's."""
    several = outputs.get("messages")
    last = several[-1] if isinstance(several, list) and several else None
    flat = outputs if "content" in outputs or "tool_calls" in outputs else None
    for told in (generation.get("message"), outputs.get("message"), flat, last):
        if isinstance(told, Mapping):
            return plain({"role": "assistant", **told}, "outputs")
    return {}


def _one_conversation(messages: Any) -> Any:
    """The messages. LangChain may wrap them in a list of conversations, which must have one element."""
    if not isinstance(messages, list) or not messages or not isinstance(messages[0], list):
        return messages
    if len(messages) > 1:
        raise NotAMessage("inputs.messages", "one conversation per run", f"{len(messages)} conversations")
    return messages[0]


def _moment(row: JsonObject, name: str) -> str | None:
    """An ISO 8601 time; tracers in JavaScript count milliseconds."""
    value = row.data.get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e14:
        return iso(value / 1000)
    return row.moment(name)
