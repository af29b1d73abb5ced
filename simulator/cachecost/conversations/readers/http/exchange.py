"""Converts an HTTP exchange, recorded by a proxy, a browser or a test recorder, to a model call if it is one.

What is read: requests to the Messages API on any host (Anthropic, InvokeModel on Bedrock, rawPredict on Google
Cloud, Foundry, OpenRouter, a gateway), to Bedrock's Converse, to OpenAI's Chat Completions and Responses, and to
Gemini's generateContent; answers in one piece or streamed. Of the headers only those of `HEADERS` are looked at: no
key, no cookie is ever kept.

An exchange has neither an organization nor a workspace, nor the time when a cache entry was written:
`first_token_s` is when the first byte came. Of betas, interleaved thinking alone changes a prompt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import json_value
from cachecost.base.times import day_of, iso, seconds
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.apis.formats import APIS, FAILED, STATUS, iteration_of
from cachecost.conversations.readers.call_builder import CallBuilder
from cachecost.conversations.readers.common.json_values import object_or_empty, objects_in
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.http.bodies import (
    NO_CALL,
    UNREAD,
    Misplaced,
    Route,
    answer,
    decode_content,
    json_object,
    parse_array,
    route_of,
    route_of_answer,
)
from cachecost.conversations.usage_shapes import usage_from, with_searches
from cachecost.prompts.request import NotAMessage, show_found
from cachecost.providers.hosts import parse_model_name

T = TypeVar("T")
SESSIONS = ("x-claude-code-session-id", "x-session-id", "session-id", "session_id", "conversation_id")
RESET = "anthropic-ratelimit-requests-reset"
"""When a limit is full again, within minutes of the call: the day where the recorder took the date out."""
BETAS = "anthropic-beta"
HEADERS = frozenset((*SESSIONS, RESET, BETAS, "content-type", "content-encoding", "date"))


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


def headers_of(headers: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> dict[str, str]:
    """The headers in `HEADERS`, by their names in lower case; the last of one name, and of its values, wins."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    last = ((name.lower(), value[-1] if isinstance(value, list) else value) for name, value in pairs if value != [])
    return {name: str(value) for name, value in last if name in HEADERS}


def read(exchange: HttpExchange, build: Callable[..., T]) -> T | str:
    """What `build`, which takes what `CallBuilder.build` does, makes of the model call of an exchange; or why the
    exchange is skipped. Raises NotAMessage."""
    route = route_of(exchange.method, exchange.url)
    if route == NO_CALL:
        route = route_of_answer(exchange.url, exchange.response) or route
    if isinstance(route, str):
        return route
    if exchange.status is None or 300 <= exchange.status < 400:
        return "no answer" if exchange.status is None else "redirected"
    sent = _body(exchange, route)
    if isinstance(sent, str):
        return sent
    found = {} if exchange.status >= 400 else _answer(exchange, route)
    answer_id, created = found.get("answer_id", ""), found.pop("created", None)
    is_profile = route.host == "bedrock" and ":application-inference-profile/" in route.model  # names no model
    own, answered_by = "" if is_profile else route.model, found.pop("model", "")
    named = str(sent.get("model") or "") or own or answered_by or route.model
    betas = [one.strip() for one in exchange.request_headers.get(BETAS, "").split(",")]
    betas = [one for one in betas if one.startswith("interleaved-thinking")] if route.api == "messages" else []
    seen_on = None
    with suppress(KeyError, ValueError, OverflowError):
        seen_on = day_of(seconds(exchange.response_headers[RESET]))
    digest = blake2b(exchange.request, digest_size=8).hexdigest()  # recorders invent ids, also equal ones
    try:
        model, prefix = parse_model_name(named, route.host or "")
        body = APIS[route.api].body(sent, model)
        return build(
            {"betas": betas, **body} if betas else body,
            **{"status": exchange.status, **found},
            timestamp=exchange.started or created,
            first_token_s=exchange.first_token_s,
            host=route.host_for(model, prefix),
            seen_on=seen_on,
            session=_session(exchange.request_headers, sent),
            id=f"{answer_id} {digest}" if answer_id else "",
            line=exchange.line,
        )
    except NotAMessage as error:
        is_answers = error.path.startswith("response.")
        raise Misplaced(exchange.response_at if is_answers else exchange.request_at, error) from None


def _body(exchange: HttpExchange, route: Route) -> dict[str, Any] | str:
    at, headers = exchange.request_at, exchange.request_headers
    data = decode_content(exchange.request, headers.get("content-encoding", ""), at)
    try:
        body = json_object(data, at)
    except NotAMessage:
        if route.host is None and "json" not in headers.get("content-type", ""):
            return NO_CALL
        raise
    if route.host == "bedrock" and route.api == "messages" and route.model:  # InvokeModel has the model's own format
        is_claude = "anthropic" in route.model or "anthropic_version" in body
        if not is_claude or ("prompt" in body and "messages" not in body):
            return UNREAD
    asked = {"messages" if route.api == "converse" else APIS[route.api].asked, "model"}
    return NO_CALL if route.host is None and not asked & body.keys() else body


def _answer(exchange: HttpExchange, route: Route) -> dict[str, Any]:
    """What `build` takes of the answer of a route's API, and its `model` and when it was `created`; empty if the
    recorder kept no body, the status alone of an error after HTTP status 200. Raises NotAMessage."""
    headers, at, api = exchange.response_headers, exchange.response_at, APIS[route.api]
    data = decode_content(exchange.response, headers.get("content-encoding", ""), at)
    if not data.strip():
        return {}
    is_array = route.api == "gemini" and data.lstrip().startswith(b"[")
    value = parse_array(data, at) if is_array else answer(data, headers.get("content-type", ""), at)
    try:
        whole = api.join(value) if isinstance(value, list) else value
        error = whole.get("error")
        if isinstance(error, Mapping) and not whole.get("usage"):
            code = error.get("code")
            known = STATUS.get(str(error.get("type")), FAILED)
            return {"status": code if isinstance(code, int) and 400 <= code <= 599 else known}
        usage, id_, model = (
            next((whole[name] for name in names if whole.get(name) is not None), None)
            for names in (("usage", "usageMetadata", "usage_metadata"), ("id", "responseId"), ("model", "modelVersion"))
        )
        content, created = api.answer(whole), whole.get("created") or whole.get("created_at")
        billed = None if usage is None else with_searches(usage_from(usage, "usage", api.usage), whole)
        passes = objects_in(object_or_empty(usage).get("iterations")) if route.api == "messages" else []
        return {
            "answer": content,
            "usage": billed,
            "iterations": tuple(iteration_of(one, f"usage.iterations.{n}") for n, one in enumerate(passes)),
            "answer_id": str(id_ or ""),
            "served": {**object_or_empty(usage), **whole},
            "model": str(model or ""),
            "created": iso(created) if isinstance(created, (int, float)) and 0 < created < 1e11 else None,
        }
    except NotAMessage as error:
        raise Misplaced(at, error) from None


def _session(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """The conversation that a client names: in a header, or as Claude Code does within the id of its user."""
    session = next((headers[name] for name in SESSIONS if headers.get(name)), "")
    user = object_or_empty(body.get("metadata")).get("user_id")
    if session or not isinstance(user, str):
        return session
    if not user.startswith("{"):
        return user.partition("_session_")[2]
    try:
        return str(json_value(user).get("session_id") or "")
    except ValueError:
        return ""


def encode_body(half: JsonObject, name: str, value: Any, is_json: bool = False) -> bytes:
    """The bytes of a body: a text or bytes as they are, anything else, and all with `is_json`, as JSON. Bytes within
    become an error."""
    if not is_json and (value is None or isinstance(value, bytes)):
        return value or b""
    if not is_json and isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    try:
        return json.dumps(value).encode()
    except TypeError:
        half.fault(name, "expected values of JSON; got bytes")
        return b""


def is_status(value: Any, *others: int) -> bool:
    """Whether it is an HTTP status, or one of `others`, which stand for none."""
    return isinstance(value, int) and not isinstance(value, bool) and (100 <= value <= 599 or value in others)


class ExchangeLog:
    """Makes calls of the exchanges of one file. `faults` also has the errors of the file itself."""

    def __init__(self, path: Path, keep_content: bool) -> None:
        self.path = path
        self.faults: list[Fault] = []
        self.notes = ReaderNotes()
        self._builder = CallBuilder(keep_content)
        self._calls: list[Call] = []
        self._faults_before = 0

    def entries(
        self, items: Any, place: str, lines: Mapping[int, int] | None = None, what: str = "entries"
    ) -> Iterator[JsonObject]:
        """The entries of an array at `place`, with their lines by `id()`; what is no array, and an entry that is no
        object, becomes an error."""
        if not isinstance(items, list):
            at = f"{place}: " if place else ""
            self.faults.append(Fault(str(self.path), f"{at}expected an array of {what}; got {show_found(items)}"))
            return
        for number, item in enumerate(items):
            line = lines.get(id(item)) if lines else None
            if isinstance(item, dict):
                yield JsonObject(item, self.faults, str(self.path), line, f"{place}[{number}].")
            else:
                message = f"{place}[{number}]: expected an object; got {show_found(item)}"
                self.faults.append(Fault(str(self.path), message))

    def halves(
        self, entries: Iterable[JsonObject], names: tuple[str, str] = ("request", "response"), answers: bool = True
    ) -> Iterator[tuple[JsonObject, JsonObject, JsonObject]]:
        """Each entry without an error so far, with its request and its response, whose `names` are "" for the entry
        itself. With `answers` each must have a response."""
        for entry in entries:
            self._faults_before = len(self.faults)
            request, response = (
                entry.within(entry.mapping(name, required), name) if name else entry
                for name, required in zip(names, (True, answers), strict=True)
            )
            if len(self.faults) == self._faults_before:
                yield entry, request, response

    def add(self, exchange: HttpExchange) -> None:
        """Add an exchange, unless its entry had an error since `halves` gave it."""
        if len(self.faults) > self._faults_before:
            return
        try:
            found = read(exchange, self._builder.build)
        except NotAMessage as error:
            if (exchange.status or 0) >= 400:
                self.notes.skip("entry", "refused by the API, and not a valid request")
            else:
                self.faults.append(Fault(str(self.path), str(error), exchange.line or None))
            return
        if isinstance(found, str):
            self.notes.skip("entry", found)
        else:
            self._calls.append(found)

    def end(self, warn: Warn, by_time: bool) -> list[Call]:
        """The calls, in the order of time or of the file. Raises InputError with every error."""
        if self.faults:
            raise InputError(self.faults)
        without_usage = sum(call.billed is None and not call.has_failed for call in self._calls)
        self.notes.add("call", "whose answer has no usage", without_usage)
        self.notes.report(self.path, warn)
        return sorted(self._calls, key=lambda call: call.start) if by_time else self._calls
