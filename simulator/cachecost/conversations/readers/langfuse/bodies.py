"""What instrumentations log as input, parameters and output of a Langfuse generation -> a Messages body and blocks.

Langfuse fixes no form. Known here: messages as OpenAI's, Anthropic's or LangChain's; an object with them and the
tools; a Responses request; a text. LangChain's handler puts the definitions of tools at the end of the messages, as
messages of role tool whose content is a tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cachecost.conversations.readers.common.dialects import Body, parse_json_text
from cachecost.conversations.readers.common.dialects import answer_of as answer_of_response
from cachecost.conversations.readers.common.traces import as_text
from cachecost.conversations.readers.langsmith.langchain_blocks import block_from
from cachecost.conversations.readers.langsmith.langchain_messages import answer_blocks, body_from_request, plain
from cachecost.conversations.readers.openai.responses import from_responses, from_responses_output

ITEMS = ("function_call", "function_call_output", "reasoning", "message", "custom_tool_call", "web_search_call")
"""Types of what a Responses request and its answer are lists of."""
NOT_MESSAGES = "whose input is not a list of messages: read as one text"
NO_INPUT = "without input: only usage is known"


def parameters_of(value: Any) -> dict[str, Any]:
    """The model parameters; Langfuse writes those that are objects as texts."""
    return {name: parse_json_text(one) for name, one in value.items()} if isinstance(value, Mapping) else {}


def body_of(value: Any, parameters: Mapping[str, Any], model: str) -> tuple[Body, str]:
    """(Messages body, note for the user or ""). Raises NotAMessage."""
    if value is None or value in ([], {}):
        return {"messages": []}, NO_INPUT
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, Mapping):
        return body_from_request({**parameters, "model": model, "messages": as_text(value)}), ""
    request = {**parameters, **value, "model": model}
    messages = _messages(value)
    if messages is None and ("input" in value or "instructions" in value):
        return _from_responses(request), ""
    if messages is None:
        return {"messages": as_text(value)}, NOT_MESSAGES
    if any(_is_item(one) for one in messages):
        return _from_responses({**request, "input": messages}), ""
    if not all(map(_is_message, messages)):
        return {"messages": as_text(messages)}, NOT_MESSAGES
    return body_from_request({**request, **_with_tools(messages, request.get("tools"))}), ""


def _messages(value: Mapping[str, Any]) -> list[Any] | None:
    """The messages of an input. LangChain may wrap them in a list of conversations that has one element."""
    messages = value.get("messages")
    if _is_message(value):
        return [value]
    if isinstance(value.get("prompt"), str):
        return as_text(value["prompt"])
    if isinstance(messages, list) and len(messages) == 1 and isinstance(messages[0], list):
        return messages[0]
    return messages if isinstance(messages, list) else None


def _is_message(one: Any) -> bool:
    if not isinstance(one, Mapping):
        return False
    return isinstance(one.get("role"), str) or "lc" in one or ("content" in one and isinstance(one.get("type"), str))


def _is_item(one: Any) -> bool:
    return isinstance(one, Mapping) and one.get("type") in ITEMS and one.get("type") != "message" and "role" not in one


def _from_responses(request: Mapping[str, Any]) -> Body:
    inner = request.get("input")
    return from_responses({**request, "input": inner if inner is not None else []})


def _with_tools(messages: Sequence[Any], tools: Any) -> Body:
    """The messages without the tools among them, and the tools."""
    among = [one["content"] for one in messages if _is_definition(one)]
    said = [one for one in messages if not _is_definition(one)]
    return {"messages": said, "tools": [*(tools or []), *among]} if among else {"messages": said}


def _is_definition(one: Mapping[str, Any]) -> bool:
    return one.get("role") == "tool" and "tool_call_id" not in one and isinstance(one.get("content"), Mapping)


def answer_of(value: Any, text: Any = None) -> list[Body] | str:
    """The blocks of an output; for an unknown kind of output, its `text` as logged. Raises NotAMessage."""
    found = _answer_of_list(value) if isinstance(value, list) else _answer_of(value)
    if found is not None:
        return found
    return text if isinstance(text, str) else str(as_text(value)[0]["content"])


def _answer_of(value: Any) -> list[Body] | str | None:
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) else []
    if "choices" in value or isinstance(value.get("output"), list):
        return answer_of_response(value)
    if _is_message(value) or "content" in value or "tool_calls" in value:
        return answer_blocks(plain({"role": "assistant", **value}, "output"))
    return None


def _answer_of_list(values: Sequence[Any]) -> list[Body] | str | None:
    """A list of messages, of which the last is the answer; of items of Responses; or of blocks."""
    last = values[-1] if values else None
    if isinstance(last, Mapping) and last.get("type") in ITEMS:
        return from_responses_output(list(values))
    if _is_message(last):
        return _answer_of(last)
    if all(isinstance(one, Mapping) and isinstance(one.get("type"), str) for one in values):
        return [block_from(one, f"output.{number}", {}) for number, one in enumerate(values)]
    return None
