"""Converts an HTTP exchange, recorded by a proxy, a browser or a test recorder, to a model call if it is one.

What is read: requests to the Messages API on any host (Anthropic, InvokeModel on Bedrock, rawPredict on Google
Cloud, Foundry, OpenRouter, a gateway), to Bedrock's Converse, to OpenAI's Chat Completions and Responses, and to
Gemini's generateContent; answers in one piece or streamed. Of the headers only those of `HEADERS` are looked at: no
key, no cookie is ever kept.

An exchange does not tell which organization or workspace it belonged to. Nor does a server tell when it wrote a cache
entry: `first_token_s` is when its first byte came. Of betas, interleaved thinking alone changes a prompt.

Converts bodies of Amazon Bedrock's Converse API to the Messages API; its cache points become breakpoints.

Converts bodies of Gemini's generateContent to the Messages API.

Converts the answer of a model API, streamed or not, to the Messages API.

Collects the model calls among the exchanges of a file, the errors in them, and notes on what was skipped.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from hashlib import blake2b
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import json_value
from cachecost.base.times import day_of, iso, seconds
from cachecost.conversations.calls import Iteration, RecordedCall
from cachecost.conversations.input_files import Warn
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.anthropic_batch.results import STATUS, iteration_of
from cachecost.conversations.readers.common.dialects import FAILED, CallBuilder, ParsedCall
from cachecost.conversations.readers.common.json_values import array_at, object_at, object_or_empty
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.http.bodies import (
    NO_CALL,
    UNREAD,
    Misplaced,
    Route,
    answer,
    decode_content,
    join_events,
    json_object,
    parse_array,
    route_of,
    route_of_answer,
)
from cachecost.conversations.readers.openai.chat import from_chat, from_chat_message
from cachecost.conversations.readers.openai.responses import from_responses, from_responses_output
from cachecost.conversations.usage_shapes import usage_from, with_searches
from cachecost.prompts.request import BREAKPOINT, CACHE_POINT, NotAMessage
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

Body = dict[str, Any]
POINT = CACHE_POINT
KINDS = frozenset(
    {"text", "json", "image", "document", "video", "audio", "toolUse", "toolResult", "reasoningContent", POINT}
    | {"guardContent", "citationsContent", "searchResult"}
)
"""The keys of content blocks."""


def from_converse(body: Mapping[str, Any], model: str) -> Body:
    """The Messages body of a Converse request to `model`. Raises NotAMessage with a path in Converse's body."""
    config = object_at(body.get("toolConfig"), "toolConfig")
    inference = object_at(body.get("inferenceConfig"), "inferenceConfig")
    output = object_at(body.get("outputConfig"), "outputConfig")
    told = {
        "model": model,
        "max_tokens": inference.get("maxTokens"),
        "system": from_converse_blocks(body.get("system") or [], "system"),
        "tools": _convert_blocks(config.get("tools") or [], "toolConfig.tools", _tool),
        "tool_choice": _choice(config.get("toolChoice")),
        "output_config": {"format": output["textFormat"]} if output.get("textFormat") else None,
        "messages": [
            _message(one, f"messages.{n}") for n, one in enumerate(array_at(body.get("messages"), "messages"))
        ],
    }
    more = object_at(body.get("additionalModelRequestFields"), "additionalModelRequestFields")
    return {name: value for name, value in (told | dict(more)).items() if value not in (None, [])}


def _message(value: Any, path: str) -> Body:
    message = object_at(value, path)
    return {"role": message.get("role"), "content": from_converse_blocks(message.get("content"), f"{path}.content")}


def from_converse_blocks(items: Any, path: str) -> list[Body]:
    """The blocks of a content, with the cache points as breakpoints. Raises NotAMessage."""
    return _convert_blocks(items, path, _block)


def _convert_blocks(items: Any, path: str, translated: Any, is_inner: bool = False) -> list[Body]:
    blocks: list[Body] = []
    for number, item in enumerate(array_at(items, path)):
        place = f"{path}.{number}"
        kind, value = _kind_and_value(item, place)
        if kind != POINT:
            blocks.append(translated(kind, value, place))
        elif not (blocks or is_inner):
            raise NotAMessage(f"{place}.{POINT}", "a block before it", None)
        else:
            ttl = object_at(value, place).get("ttl")
            if is_inner:
                blocks.append({"type": POINT})
            blocks[-1][BREAKPOINT] = {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}
    return blocks


def _kind_and_value(item: Any, path: str) -> tuple[str, Any]:
    kinds = [(kind, value) for kind, value in object_at(item, path).items() if value is not None]
    if len(kinds) != 1:
        raise NotAMessage(path, "an object with one key", item)
    return kinds[0]


def _block(kind: str, value: Any, path: str) -> Body:
    if kind == "text":
        return {"type": "text", "text": value}
    if kind == "json":  # a result that is JSON reaches the model as text
        return {"type": "text", "text": json.dumps(value)}
    told = object_at(value, f"{path}.{kind}")
    if kind == "toolUse":
        return {"type": "tool_use", "id": told.get("toolUseId"), "name": told.get("name"), "input": told.get("input")}
    if kind == "toolResult":
        return _result(told, f"{path}.{kind}")
    if kind == "reasoningContent":
        return _thinking(told, f"{path}.{kind}")
    if kind in ("image", "document"):
        return _file(kind, told, f"{path}.{kind}")
    return {**told, "type": kind}


def _result(told: Mapping[str, Any], path: str) -> Body:
    content = _convert_blocks(told.get("content") or [], f"{path}.content", _block, is_inner=True)
    error = {"is_error": True} if told.get("status") == "error" else {}
    return {"type": "tool_result", "tool_use_id": told.get("toolUseId"), "content": content, **error}


def _thinking(told: Mapping[str, Any], path: str) -> Body:
    if "redactedContent" in told:
        return {"type": "redacted_thinking", "data": told["redactedContent"]}
    text = object_at(told.get("reasoningText"), f"{path}.reasoningText")
    signed = {"signature": text["signature"]} if text.get("signature") else {}
    return {"type": "thinking", "thinking": text.get("text") or "", **signed}


def _file(kind: str, told: Mapping[str, Any], path: str) -> Body:
    """An image or a document: its bytes are base64, and its media type ends with the format."""
    source = dict(object_at(told.get("source"), f"{path}.source"))
    if isinstance(source.get("bytes"), str):
        media = f"{'image' if kind == 'image' else 'application'}/{told.get('format')}"
        source = {"type": "base64", "media_type": media, "data": source["bytes"]}
    named = {"title": told["name"]} if told.get("name") else {}
    cites = {"citations": told["citations"]} if told.get("citations") else {}
    return {"type": kind, "source": source, **named, **cites}


def _tool(kind: str, value: Any, path: str) -> Body:
    told = object_at(value, f"{path}.{kind}")
    if kind != "toolSpec":
        return {**told, "type": kind}
    schema = object_at(told.get("inputSchema"), f"{path}.{kind}.inputSchema").get("json")
    rest = {name: part for name, part in told.items() if name != "inputSchema"}
    return {**rest, "input_schema": schema}


def _choice(value: Any) -> Body | None:
    if value is None:
        return None
    kind, told = _kind_and_value(value, "toolConfig.toolChoice")
    return {"type": kind, **object_at(told, f"toolConfig.toolChoice.{kind}")}


ROLES = {"user": "user", "function": "user", "model": "assistant", "": "user"}
CHOICES = {"AUTO": "auto", "ANY": "any", "NONE": "none", "VALIDATED": "auto"}
HINTS = ("thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata")
"""Fields of a part besides its content."""
SCHEMAS = ("responseJsonSchema", "responseSchema")
EXPLICIT = "-explicit"
"""What ends the id of a model that is asked with a CachedContent (`providers/rules/gemini.toml`)."""
SNAKE = re.compile(r"_([a-z])")


def from_generate_content(body: Mapping[str, Any], model: str) -> Body:
    """The Messages body of a generateContent request to `model`. Raises NotAMessage with a path in Gemini's body."""
    body, calls = camel_case(body), _CallIds()
    config = object_at(body.get("generationConfig"), "generationConfig")
    contents = _list_at(body.get("contents"), "contents")
    told = {
        "model": f"{model}{EXPLICIT}" if _cached_content(body) else model,
        "max_tokens": config.get("maxOutputTokens"),
        "system": [*_cached_content(body), *_system(body.get("systemInstruction"), calls)],
        "tools": _tools(_list_at(body.get("tools") or [], "tools")),
        "tool_choice": _gemini_choice(object_at(body.get("toolConfig"), "toolConfig")),
        "output_config": _output(config),
        "messages": [_gemini_message(one, f"contents.{number}", calls) for number, one in enumerate(contents)],
    }
    return {name: value for name, value in told.items() if name == "messages" or value not in (None, [], {})}


def from_candidate(whole: Mapping[str, Any]) -> list[Body]:
    """The blocks of an answer's first candidate; empty if it was blocked. Raises NotAMessage."""
    candidates = camel_case(whole).get("candidates") or [{}]
    content = object_at(array_at(candidates, "candidates")[0], "candidates.0").get("content")
    told = object_at(content, "candidates.0.content")
    return _blocks(told.get("parts") or [], "candidates.0.content.parts", _CallIds())


def _list_at(value: Any, path: str) -> list[Any]:
    """An array; the API takes a single object for an array of one, and some clients send it so."""
    return [value] if isinstance(value, Mapping) else array_at(value, path)


class _CallIds:
    """Assigns ids to function calls and results without one: the n-th call of a name."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def id(self, kind: str, told: Mapping[str, Any]) -> str:
        name = str(told.get("name"))
        self._counts[kind, name] += 1
        return str(told.get("id") or f"{name} {self._counts[kind, name]}")


def _cached_content(body: Mapping[str, Any]) -> list[Body]:
    name = body.get("cachedContent")
    return [{"type": "cached_content", "name": name, "cache_control": {"type": "ephemeral"}}] if name else []


def _system(value: Any, calls: _CallIds) -> list[Body]:
    """The system instruction; a text alone is what SDKs take, and some recorders keep."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return _blocks(object_at(value, "systemInstruction").get("parts") or [], "systemInstruction.parts", calls)


def _gemini_message(value: Any, path: str, calls: _CallIds) -> Body:
    message = object_at(value, path)
    role = str(message.get("role") or "")
    if role not in ROLES:
        raise NotAMessage(f"{path}.role", "user, model or function", role)
    return {"role": ROLES[role], "content": _blocks(message.get("parts") or [], f"{path}.parts", calls)}


def _blocks(parts: Any, path: str, calls: _CallIds) -> list[Body]:
    one_or_more = parts if isinstance(parts, list) else [parts]
    return [_gemini_block(object_at(part, f"{path}.{n}"), f"{path}.{n}", calls) for n, part in enumerate(one_or_more)]


def _gemini_block(part: Mapping[str, Any], path: str, calls: _CallIds) -> Body:
    kinds = [name for name, value in part.items() if name not in HINTS and value is not None]
    if not kinds and "thoughtSignature" in part:  # the last piece of a stream
        return {"type": "text", "text": ""}
    if len(kinds) != 1:
        raise NotAMessage(path, "a part with one kind of content", part)
    kind, value = kinds[0], part[kinds[0]]
    if kind == "text":
        return _gemini_thinking(part) if part.get("thought") else {"type": "text", "text": value}
    told = object_at(value, f"{path}.{kind}")
    if kind == "functionCall":
        return {
            "type": "tool_use",
            "id": calls.id(kind, told),
            "name": told.get("name"),
            "input": told.get("args") or {},
        }
    if kind == "functionResponse":
        content = json.dumps(told.get("response"))
        return {"type": "tool_result", "tool_use_id": calls.id(kind, told), "content": content}
    return _gemini_file(kind, told) if kind in ("inlineData", "fileData") else {**told, "type": kind}


def _gemini_thinking(part: Mapping[str, Any]) -> Body:
    signed = {"signature": part["thoughtSignature"]} if part.get("thoughtSignature") else {}
    return {"type": "thinking", "thinking": part.get("text"), **signed}


def _gemini_file(kind: str, told: Mapping[str, Any]) -> Body:
    media = str(told.get("mimeType") or "")
    base64 = {"type": "base64", "media_type": media, "data": told.get("data")}
    source = base64 if kind == "inlineData" else {"type": "url", "url": told.get("fileUri")}
    form = media.partition("/")[0]
    return {"type": form if form in ("image", "video", "audio") else "document", "source": source}


def _tools(tools: list[Any]) -> list[Body]:
    """Each function as a tool, in order; Google's own tools under their names."""
    found: list[Body] = []
    for number, one in enumerate(tools):
        for kind, value in object_at(one, f"tools.{number}").items():
            if kind == "functionDeclarations":
                path = f"tools.{number}.{kind}"
                found += [_function(object_at(each, path)) for each in _list_at(value or [], path)]
            elif value is not None:
                found.append({"type": kind, "name": kind, **(value if isinstance(value, Mapping) else {})})
    return found


def _function(told: Mapping[str, Any]) -> Body:
    schema = told.get("parametersJsonSchema") or told.get("parameters") or {"type": "object"}
    rest = {name: told[name] for name in ("name", "description") if told.get(name) is not None}
    return {**rest, "input_schema": schema}


def _gemini_choice(config: Mapping[str, Any]) -> Body | None:
    told = object_at(config.get("functionCallingConfig"), "toolConfig.functionCallingConfig")
    kind = CHOICES.get(str(told.get("mode")))
    names = array_at(told.get("allowedFunctionNames") or [], "toolConfig.functionCallingConfig.allowedFunctionNames")
    if kind == "any" and len(names) == 1:
        return {"type": "tool", "name": names[0]}
    return {"type": kind} if kind else None


def _output(config: Mapping[str, Any]) -> Body:
    schema = next((config[name] for name in SCHEMAS if config.get(name) is not None), None)
    effort = object_at(config.get("thinkingConfig"), "generationConfig.thinkingConfig").get("thinkingLevel")
    shape = {"format": {"type": "json_schema", "schema": schema}} if schema is not None else {}
    return {**shape, **({"effort": str(effort).lower()} if effort else {})}


def camel_case(value: Any) -> Any:
    """`value` with the names of its own fields in camel case: not those in schemas, arguments and responses."""
    if isinstance(value, list):
        return [camel_case(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    named = {SNAKE.sub(lambda found: found[1].upper(), name): one for name, one in value.items()}
    return {name: one if name in FREE else camel_case(one) for name, one in named.items()}


FREE = ("args", "response", "parameters", "parametersJsonSchema", *SCHEMAS)
"""Fields whose keys are user data."""


SHAPES = {"messages": "anthropic", "converse": "bedrock", "chat": "openai", "responses": "openai", "gemini": "gemini"}
USAGES = ("usage", "usageMetadata", "usage_metadata")
IDS = ("id", "responseId")
MODELS = ("model", "modelVersion")


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A parsed answer. `status` is that of an error after HTTP status 200; `created` is in seconds."""

    content: Sequence[dict[str, Any]] = ()
    usage: Usage | None = None
    iterations: tuple[Iteration, ...] = ()
    id: str = ""
    model: str = ""
    created: float | None = None
    status: int | None = None
    served: Mapping[str, Any] = field(default_factory=dict)
    """The answer with its usage: it may name the service tier and the region."""


def answer_of(data: bytes, headers: Mapping[str, str], at: str, route: Route) -> HttpAnswer:
    """The answer in a body of a route's API; empty if the recorder kept no body. Raises NotAMessage."""
    data = decode_content(data, headers.get("content-encoding", ""), at)
    if not data.strip():
        return HttpAnswer()
    is_array = route.api == "gemini" and data.lstrip().startswith(b"[")
    value = parse_array(data, at) if is_array else answer(data, headers.get("content-type", ""), at)
    try:
        whole = join_events(value, route.api) if isinstance(value, list) else value
        return _error(whole) or _whole(whole, route)
    except NotAMessage as error:
        raise Misplaced(at, error) from None


def _error(whole: Mapping[str, Any]) -> HttpAnswer | None:
    error = whole.get("error")
    if not isinstance(error, Mapping) or whole.get("usage"):
        return None
    code = error.get("code")
    known = STATUS.get(str(error.get("type")), FAILED)
    return HttpAnswer(status=code if isinstance(code, int) and 400 <= code <= 599 else known)


def _whole(whole: Mapping[str, Any], route: Route) -> HttpAnswer:
    """The answer of one API, converted to the Messages API. Raises NotAMessage."""
    usage = _first(whole, USAGES)
    created = whole.get("created") or whole.get("created_at")
    return HttpAnswer(
        _content(whole, route),
        None if usage is None else with_searches(usage_from(usage, "usage", SHAPES[route.api]), whole),
        _iterations(usage) if route.api == "messages" else (),
        str(_first(whole, IDS) or ""),
        str(_first(whole, MODELS) or ""),
        float(created) if isinstance(created, (int, float)) and 0 < created < 1e11 else None,
        served={**usage, **whole} if isinstance(usage, Mapping) else whole,
    )


def _first(whole: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((whole[name] for name in names if whole.get(name) is not None), None)


def _content(whole: Mapping[str, Any], route: Route) -> list[dict[str, Any]]:
    if route.api == "responses":
        return from_responses_output(_at(whole, "output", list))
    if route.api == "converse":
        message = _at(_at(whole, "output", dict), "message", dict)
        return from_converse_blocks(message.get("content") or [], "output.message.content")
    if route.api == "messages":
        return list(_at(whole, "content", list))
    if route.api == "gemini":
        return from_candidate(whole)
    choices = _at(whole, "choices", list)
    message = choices[0].get("message") if choices and isinstance(choices[0], Mapping) else None
    return from_chat_message(message) if isinstance(message, Mapping) else []


def _at(value: Mapping[str, Any], name: str, kind: type) -> Any:
    found = value.get(name)
    if not isinstance(found, kind):
        raise NotAMessage(name, "an array" if kind is list else "an object", found)
    return found


def _iterations(usage: Any) -> tuple[Iteration, ...]:
    passes = object_or_empty(usage).get("iterations")
    usages = [one for one in passes if isinstance(one, Mapping)] if isinstance(passes, list) else []
    return tuple(iteration_of(one, f"usage.iterations.{number}") for number, one in enumerate(usages))


INTERLEAVED = "interleaved-thinking"
NO_ANSWER = "no answer"
REDIRECTED = "redirected"
SESSIONS = ("x-claude-code-session-id", "x-session-id", "session-id", "session_id", "conversation_id")
RESET = "anthropic-ratelimit-requests-reset"
"""When a limit is full again, within minutes of the call: the day where the recorder took the date out."""
BETAS = "anthropic-beta"
HEADERS = frozenset((*SESSIONS, RESET, BETAS, "content-type", "content-encoding", "date"))
ASKED = {"messages": "messages", "converse": "messages", "chat": "messages", "responses": "input", "gemini": "contents"}
"""A field of each API's body. At an unknown address, a body with neither this nor a model is not a model call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpExchange:
    """A request and its answer. `status` is None without an answer, `started` is ISO 8601 or None.

    Headers are by their names in lower case (see `headers_of`). `request_at` and `response_at` are what a fault calls
    the bodies, `line` is where the exchange is in its file.
    """

    url: str
    method: str = "POST"
    request_headers: Mapping[str, str] = field(default_factory=dict)
    request: bytes = b""
    status: int | None = 200
    response_headers: Mapping[str, str] = field(default_factory=dict)
    response: bytes = b""
    started: str | None = None
    first_token_s: float = 0.0
    request_at: str = "request.body"
    response_at: str = "response.body"
    line: int = 0


def headers_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers in `HEADERS`, by their names in lower case; the last of one name wins."""
    return {name.lower(): value for name, value in pairs if name.lower() in HEADERS}


def read(exchange: HttpExchange) -> ParsedCall | str:
    """The model call of an exchange, or why the exchange is skipped. Raises NotAMessage."""
    route = route_of(exchange.method, exchange.url)
    if route == NO_CALL:
        route = route_of_answer(exchange.url, exchange.response) or route
    if isinstance(route, str):
        return route
    if exchange.status is None or 300 <= exchange.status < 400:
        return NO_ANSWER if exchange.status is None else REDIRECTED
    body = _body(exchange, route)
    if isinstance(body, str):
        return body
    if exchange.status >= 400:
        return _parse_call(exchange, route, body, HttpAnswer())
    headers, at = exchange.response_headers, exchange.response_at
    return _parse_call(exchange, route, body, answer_of(exchange.response, headers, at, route))


def _body(exchange: HttpExchange, route: Route) -> dict[str, Any] | str:
    """The body as it was sent, or why the request is skipped."""
    at, headers = exchange.request_at, exchange.request_headers
    data = decode_content(exchange.request, headers.get("content-encoding", ""), at)
    try:
        body = json_object(data, at)
    except NotAMessage:
        if route.host is None and "json" not in headers.get("content-type", ""):
            return NO_CALL
        raise
    if _is_another_models(route, body):
        return UNREAD
    return NO_CALL if route.host is None and not {ASKED[route.api], "model"} & body.keys() else body


def _is_another_models(route: Route, body: Mapping[str, Any]) -> bool:
    """Whether an InvokeModel body, which is in the model's own format, is not a Messages body."""
    if route.host != "bedrock" or route.api != "messages" or not route.model:
        return False
    is_claude = "anthropic" in route.model or "anthropic_version" in body
    return not is_claude or ("prompt" in body and "messages" not in body)


def _parse_call(exchange: HttpExchange, route: Route, sent: Mapping[str, Any], answer: HttpAnswer) -> ParsedCall:
    try:
        listed = [one.strip() for one in exchange.request_headers.get(BETAS, "").split(",")]
        found = [one for one in listed if one.startswith(INTERLEAVED)]
        body, host = _messages_body(sent, route, answer, {"betas": found} if found else {})
    except NotAMessage as error:
        raise Misplaced(exchange.request_at, error) from None
    started = exchange.started or (iso(answer.created) if answer.created is not None else None)
    return ParsedCall(
        body=body,
        usage=answer.usage,
        answer=answer.content,
        timestamp=started,
        first_token_s=exchange.first_token_s,
        host=host,
        status=answer.status or exchange.status,
        iterations=answer.iterations,
        seen_on=_seen_on(exchange.response_headers),
        session=_session(exchange.request_headers, sent),
        id=f"{answer.id} {_digest(exchange.request)}" if answer.id else "",
        line=exchange.line,
        answer_id=answer.id,
        served=answer.served,
    )


def _messages_body(
    sent: Mapping[str, Any], route: Route, answer: HttpAnswer, betas: Mapping[str, Any]
) -> tuple[dict[str, Any], str | None]:
    written = str(sent.get("model") or "") or ("" if route.is_opaque else route.model) or answer.model or route.model
    model, prefix = parse_model_name(written, route.host or "")
    host = route.host_for(model, prefix)
    sent = {**sent, "model": model or None}
    if route.api == "converse":
        return from_converse(sent, model), host
    if route.api == "gemini":
        return from_generate_content(sent, model), host
    if route.api == "messages":
        return {**betas, **sent}, host
    return (from_chat if route.api == "chat" else from_responses)(sent), host


def _digest(request: bytes) -> str:
    """Recorders invent ids, so equal ids alone do not mean that two calls are the same."""
    return blake2b(request, digest_size=8).hexdigest()


def _session(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """The conversation that a client names: in a header, or as Claude Code does within the id of its user."""
    session = next((headers[name] for name in SESSIONS if headers.get(name)), "")
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    if session or not isinstance(user, str):
        return session
    if user.startswith("{"):
        try:
            return str(json_value(user).get("session_id") or "")
        except ValueError:
            return ""
    return user.partition("_session_")[2]


def _seen_on(headers: Mapping[str, str]) -> date | None:
    try:
        return day_of(seconds(headers[RESET]))
    except (KeyError, ValueError, OverflowError):
        return None


REFUSED = "refused by the API, and not a valid request"


ParseEntry = Callable[[JsonObject, JsonObject, JsonObject], HttpExchange]


class ExchangeLog:
    """Makes calls of the exchanges of one file. `faults` also has the errors of the file itself."""

    def __init__(self, path: Path, keep_content: bool) -> None:
        self.path = path
        self.faults: list[Fault] = []
        self.notes = ReaderNotes()
        self._builder = CallBuilder(keep_content)
        self._calls: list[RecordedCall] = []

    def add_entry(self, entry: JsonObject, parse: ParseEntry, answer_required: bool = True) -> None:
        """Add the exchange that `parse` makes of an entry, its request and its response, if none has an error."""
        before = len(entry.faults)
        request = entry.within(entry.mapping("request"), "request")
        response = entry.within(entry.mapping("response", answer_required), "response")
        if len(entry.faults) > before:
            return
        exchange = parse(entry, request, response)
        if len(entry.faults) == before:
            self.add(exchange)

    def add(self, exchange: HttpExchange) -> None:
        try:
            self._add(exchange)
        except NotAMessage as error:
            if (exchange.status or 0) >= 400:
                self.notes.skip("entry", REFUSED)
            else:
                self.faults.append(Fault(str(self.path), str(error), exchange.line or None))

    def _add(self, exchange: HttpExchange) -> None:
        told = read(exchange)
        if isinstance(told, str):
            self.notes.skip("entry", told)
            return
        try:
            self._calls.append(self._builder.build(told))
        except NotAMessage as error:
            is_answers = error.path.startswith("response.")
            raise Misplaced(exchange.response_at if is_answers else exchange.request_at, error) from None

    def end(self, warn: Warn, by_time: bool) -> list[RecordedCall]:
        """The calls, in the order of time or of the file. Raises InputError with every error."""
        if self.faults:
            raise InputError(self.faults)
        without_usage = sum(call.billed is None and not call.has_failed for call in self._calls)
        self.notes.add("call", "whose answer has no usage", without_usage)
        self.notes.report(self.path, warn)
        return sorted(self._calls, key=lambda call: call.start) if by_time else self._calls
