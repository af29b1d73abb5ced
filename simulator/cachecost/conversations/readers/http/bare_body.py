"""A request body that stands alone, without the address it was sent to: its keys show whose API it is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cachecost.conversations.readers.common.model_names import host_of, parse_model_name
from cachecost.conversations.readers.http.converse import KINDS, from_converse
from cachecost.conversations.readers.http.gemini import from_generate_content
from cachecost.conversations.readers.http.routes import Api
from cachecost.conversations.readers.openai.chat import from_chat
from cachecost.conversations.readers.openai.responses import from_responses
from cachecost.prompts.wire import NotAMessage

NAMES: Mapping[Api, str] = {
    "messages": "Anthropic's Messages API",
    "converse": "Bedrock's Converse API",
    "chat": "OpenAI's Chat Completions API",
    "responses": "OpenAI's Responses API",
    "gemini": "Gemini's generateContent",
}
HOSTS: Mapping[Api, str] = {"converse": "bedrock", "gemini": "gemini"}
OF_CONVERSE = frozenset({"modelId", "inferenceConfig", "toolConfig", "additionalModelRequestFields"})
OF_CHAT = frozenset(
    {"max_completion_tokens", "reasoning_effort", "response_format", "functions", "parallel_tool_calls", "logit_bias"}
)
OF_MESSAGES = frozenset({"system", "cache_control", "thinking", "output_config", "anthropic_version"})
ROLES_OF_CHAT = frozenset({"developer", "tool", "function"})


class BareBody(NamedTuple):
    """A body as one of the Messages API. `host` is "" where neither its API nor its model shows one."""

    api: Api
    body: dict[str, Any]
    host: str


def api_of(body: Mapping[str, Any]) -> Api | None:
    """Whose API a body is for; None if it is no request."""
    messages = body.get("messages")
    if "contents" in body:
        return "gemini"
    if not isinstance(messages, list):
        is_input = "input" in body and "model" in body
        return "responses" if is_input else "messages" if "messages" in body else None
    if OF_CONVERSE & body.keys() or any(map(_is_of_converse, messages)):
        return "converse"
    if OF_MESSAGES & body.keys():
        return "messages"
    tools = [tool for tool in body.get("tools") or () if isinstance(tool, Mapping)]
    is_chat = OF_CHAT & body.keys() or any("function" in tool for tool in tools) or _has_roles_of_chat(messages)
    return "chat" if is_chat or host_of(str(body.get("model"))) not in ("", "anthropic") else "messages"


def _is_of_converse(message: Any) -> bool:
    content = message.get("content") if isinstance(message, Mapping) else None
    blocks = content if isinstance(content, list) else ()
    return any(isinstance(block, Mapping) and "type" not in block and KINDS & block.keys() for block in blocks)


def _has_roles_of_chat(messages: list[Any]) -> bool:
    """The Messages API has no message of a tool, and none of the system before the first of the user."""
    roles = [message.get("role") for message in messages if isinstance(message, Mapping)]
    return not ROLES_OF_CHAT.isdisjoint(map(str, roles)) or roles[:1] == ["system"]


def messages_body(body: Mapping[str, Any]) -> BareBody:
    """The body as one of the Messages API. Raises NotAMessage with a path in the body as it is."""
    api = api_of(body) or "messages"
    if api == "messages":
        return BareBody(api, dict(body), "")
    name = body.get("modelId") or body.get("model")
    if not isinstance(name, str) or not name:
        key = "modelId" if api == "converse" else "model"
        raise NotAMessage(key, "a model id, which this API has in the URL" if api in HOSTS else "a model id", name)
    model, host = parse_model_name(name.removeprefix("models/"), HOSTS.get(api, ""))
    host = host or HOSTS.get(api) or host_of(model)
    if api == "converse":
        return BareBody(api, from_converse(body, model), host)
    if api == "gemini":
        return BareBody(api, from_generate_content(body, model), host)
    return BareBody(api, (from_chat if api == "chat" else from_responses)({**body, "model": model}), host)
