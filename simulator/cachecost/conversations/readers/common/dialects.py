"""Bodies and answers of which a log does not say whose API they are for -> the Messages API's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cachecost.base.limits import json_value
from cachecost.conversations.readers.openai.chat import from_chat, from_chat_message
from cachecost.conversations.readers.openai.responses import from_responses, from_responses_output
from cachecost.prompts.wire import content_blocks

Body = dict[str, Any]


def parse_json_text(value: Any) -> Any:
    """JSON that stands as text, parsed; anything else, and what is cut off, as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json_value(value)
    except ValueError:
        return value


def body_from(body: Mapping[str, Any]) -> Body:
    """The Messages body of a request to whichever API. Raises NotAMessage."""
    if "messages" not in body and "input" in body:
        return from_responses(body)
    if "system" in body or _has_their_tools(body.get("tools")) or is_anthropic(body["messages"]):
        return from_messages(body)
    return from_chat(body)


def is_anthropic(messages: Any) -> bool:
    """Whether tools are spoken of in Anthropic's blocks."""
    blocks = [block for message in _objects(messages) for block in _objects(message.get("content"))]
    return any(block.get("type") in ("tool_use", "tool_result") for block in blocks)


def _has_their_tools(tools: Any) -> bool:
    return any("input_schema" in tool for tool in _objects(tools))


def _objects(value: Any) -> Sequence[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def from_messages(body: Mapping[str, Any]) -> Body:
    """A Messages body whose system prompt may have been logged as its first messages."""
    system: list[Any] = []
    messages = list(body["messages"])
    while messages and isinstance(messages[0], Mapping) and messages[0].get("role") == "system":
        system += content_blocks(messages.pop(0).get("content") or [], "system")
    return {**body, "messages": messages, **({"system": system} if system else {})}


def answer_of(response: Any) -> list[Body] | str:
    """The blocks of an answer of whichever API; none where there is none. Raises NotAMessage."""
    if not isinstance(response, Mapping):
        return response if isinstance(response, str) else []
    if isinstance(response.get("output"), list):
        return from_responses_output(response["output"])
    choices = _objects(response.get("choices"))
    if choices:
        message = choices[0].get("message")
        return from_chat_message(message) if isinstance(message, Mapping) else []
    content = response.get("content") or []
    return content if isinstance(content, str) else [_without_nulls(block) for block in content]


def _without_nulls(block: Any) -> Any:
    """Fields that an SDK's object adds to what the API sent."""
    return {name: value for name, value in block.items() if value is not None} if isinstance(block, Mapping) else block
