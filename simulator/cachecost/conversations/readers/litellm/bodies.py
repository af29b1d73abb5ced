"""What LiteLLM logs of a request and its answer -> a Messages body and content blocks.

The messages are in the dialect of the endpoint that was called (`call_type`). `model_parameters` are those after
LiteLLM translated them for the provider: tools may be Anthropic's beside messages that are OpenAI's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.conversations.readers.common.dialects import Body, answer_of, from_messages, is_anthropic
from cachecost.conversations.readers.openai.chat import from_chat
from cachecost.conversations.readers.openai.responses import from_responses
from cachecost.prompts.wire import NotAMessage

REDACTED = "redacted-by-litellm"
CUT = "litellm_truncated"
"""Stands in the middle of a text that was cut for the database."""


def body_of(model: str, call_type: str, messages: Any, parameters: Mapping[str, Any]) -> Body:
    """The Messages body. Messages that were not logged are none. Raises NotAMessage."""
    if is_untold(messages):
        return {"model": model, "messages": []}
    if "responses" in call_type:
        return from_responses({**parameters, "model": model, "input": messages})
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, list):
        raise NotAMessage("messages", "an array of messages", messages)
    if "anthropic" in call_type or is_anthropic(messages):
        return from_messages({**parameters, "model": model, "messages": messages})
    return from_chat({**parameters, "model": model, "messages": messages})


def is_untold(messages: Any) -> bool:
    """Whether there are no messages, or LiteLLM's word for what it took out."""
    return not messages or REDACTED in (messages, _only_content(messages))


def _only_content(messages: Any) -> Any:
    alone = messages[0] if isinstance(messages, list) and len(messages) == 1 else None
    return alone.get("content") if isinstance(alone, Mapping) else None


def answer(response: Any) -> list[Body] | str:
    """The blocks of an answer; none where LiteLLM took them out. Raises NotAMessage."""
    told = answer_of(response)
    return [] if told == REDACTED or any(REDACTED in one.values() for one in told if isinstance(one, dict)) else told
