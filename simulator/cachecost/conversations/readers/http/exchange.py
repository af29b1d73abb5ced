"""Converts an HTTP exchange, recorded by a proxy, a browser or a test recorder, to a model call if it is one.

What is read: requests to the Messages API on any host (Anthropic, InvokeModel on Bedrock, rawPredict on Google
Cloud, Foundry, OpenRouter, a gateway), to Bedrock's Converse, to OpenAI's Chat Completions and Responses, and to
Gemini's generateContent; answers in one piece or streamed. Of the headers only those of `HEADERS` are looked at: no
key, no cookie is ever kept.

An exchange does not tell which organization or workspace it belonged to. Nor does a server tell when it wrote a cache
entry: `first_token_s` is when its first byte came. Of betas, interleaved thinking alone changes a prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from hashlib import blake2b
from typing import Any

from cachecost.base.limits import json_value
from cachecost.base.times import day_of, iso, seconds
from cachecost.conversations.readers.common.parsed_call import ParsedCall
from cachecost.conversations.readers.http.answers import HttpAnswer, answer_of
from cachecost.conversations.readers.http.bodies import Misplaced, decode_content, json_object
from cachecost.conversations.readers.http.converse import from_converse
from cachecost.conversations.readers.http.gemini import from_generate_content
from cachecost.conversations.readers.http.routes import NO_CALL, UNREAD, Route, route_of, route_of_answer
from cachecost.conversations.readers.openai.chat import from_chat
from cachecost.conversations.readers.openai.responses import from_responses
from cachecost.prompts.wire import NotAMessage
from cachecost.providers.hosts import parse_model_name

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
        body, host = _messages_body(sent, route, answer, _betas(exchange.request_headers))
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


def _betas(headers: Mapping[str, str]) -> dict[str, Any]:
    """Betas that add tokens to a prompt, as SDKs name them in a body."""
    listed = [one.strip() for one in headers.get(BETAS, "").split(",")]
    found = [one for one in listed if one.startswith(INTERLEAVED)]
    return {"betas": found} if found else {}


def _messages_body(
    sent: Mapping[str, Any], route: Route, answer: HttpAnswer, betas: Mapping[str, Any]
) -> tuple[dict[str, Any], str | None]:
    """(the Messages body, the host); the model is the body's own, the URL's, or the answer's."""
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
