"""Converts an HTTP exchange, recorded by a proxy, a browser or a test recorder, to a model call if it is one.

What is read: requests to the Messages API on any host (Anthropic, InvokeModel on Bedrock, rawPredict on Google
Cloud, Foundry, OpenRouter, a gateway), to Bedrock's Converse, to OpenAI's Chat Completions and Responses, and to
Gemini's generateContent; answers in one piece or streamed. Of the headers only those of `HEADERS` are looked at: no
key, no cookie is ever kept.

An exchange does not tell which organization or workspace it belonged to. Nor does a server tell when it wrote a cache
entry: `first_token_s` is when its first byte came. Of betas, interleaved thinking alone changes a prompt.

Collects the model calls among the exchanges of a file, the errors in them, and notes on what was skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from hashlib import blake2b
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import json_value
from cachecost.base.times import day_of, iso, seconds
from cachecost.conversations.calls import Iteration, Call
from cachecost.conversations.input_files import Warn
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.apis.formats import APIS, FAILED, STATUS, iteration_of
from cachecost.conversations.readers.common.json_values import object_or_empty
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
from cachecost.conversations.readers.parsed_calls import CallBuilder, ParsedCall
from cachecost.conversations.usage_shapes import usage_from, with_searches
from cachecost.prompts.request import NotAMessage, show_found
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

USAGES = ("usage", "usageMetadata", "usage_metadata")
IDS = ("id", "responseId")
MODELS = ("model", "modelVersion")
INTERLEAVED = "interleaved-thinking"
NO_ANSWER = "no answer"
REDIRECTED = "redirected"
REFUSED = "refused by the API, and not a valid request"
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


def headers_of(headers: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> dict[str, str]:
    """The headers in `HEADERS`, by their names in lower case; the last of one name, and of its values, wins."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    last = ((name.lower(), value[-1] if isinstance(value, list) else value) for name, value in pairs if value != [])
    return {name: str(value) for name, value in last if name in HEADERS}


def read(exchange: HttpExchange) -> ParsedCall | str:
    """The model call of an exchange, or why the exchange is skipped. Raises NotAMessage."""
    route = route_of(exchange.method, exchange.url)
    if route == NO_CALL:
        route = route_of_answer(exchange.url, exchange.response) or route
    if isinstance(route, str):
        return route
    if exchange.status is None or 300 <= exchange.status < 400:
        return NO_ANSWER if exchange.status is None else REDIRECTED
    sent = _body(exchange, route)
    if isinstance(sent, str):
        return sent
    found = HttpAnswer() if exchange.status >= 400 else _answer(exchange, route)
    named = str(sent.get("model") or "") or ("" if route.is_opaque else route.model) or found.model or route.model
    try:
        model, prefix = parse_model_name(named, route.host or "")
        body = APIS[route.api].body(sent, model)
    except NotAMessage as error:
        raise Misplaced(exchange.request_at, error) from None
    betas = [one.strip() for one in exchange.request_headers.get(BETAS, "").split(",")]
    betas = [one for one in betas if one.startswith(INTERLEAVED)]
    if betas and route.api == "messages":
        body = {"betas": betas, **body}
    created = None if found.created is None else iso(found.created)
    digest = blake2b(exchange.request, digest_size=8).hexdigest()  # recorders invent ids, also equal ones
    return ParsedCall(
        body=body,
        usage=found.usage,
        answer=found.content,
        timestamp=exchange.started or created,
        first_token_s=exchange.first_token_s,
        host=route.host_for(model, prefix),
        status=found.status or exchange.status,
        iterations=found.iterations,
        seen_on=_seen_on(exchange.response_headers),
        session=_session(exchange.request_headers, sent),
        id=f"{found.id} {digest}" if found.id else "",
        line=exchange.line,
        answer_id=found.id,
        served=found.served,
    )


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
    if route.host == "bedrock" and route.api == "messages" and route.model:  # InvokeModel has the model's own format
        is_claude = "anthropic" in route.model or "anthropic_version" in body
        if not is_claude or ("prompt" in body and "messages" not in body):
            return UNREAD
    asked = {"messages" if route.api == "converse" else APIS[route.api].asked, "model"}
    return NO_CALL if route.host is None and not asked & body.keys() else body


def _answer(exchange: HttpExchange, route: Route) -> HttpAnswer:
    """The answer of a route's API; empty if the recorder kept no body. Raises NotAMessage."""
    headers, at, api = exchange.response_headers, exchange.response_at, APIS[route.api]
    data = decode_content(exchange.response, headers.get("content-encoding", ""), at)
    if not data.strip():
        return HttpAnswer()
    is_array = route.api == "gemini" and data.lstrip().startswith(b"[")
    value = parse_array(data, at) if is_array else answer(data, headers.get("content-type", ""), at)
    try:
        whole = api.join(value) if isinstance(value, list) else value
        error = whole.get("error")
        if isinstance(error, Mapping) and not whole.get("usage"):
            code = error.get("code")
            known = STATUS.get(str(error.get("type")), FAILED)
            return HttpAnswer(status=code if isinstance(code, int) and 400 <= code <= 599 else known)
        usage, id_, model = (
            next((whole[name] for name in names if whole.get(name) is not None), None)
            for names in (USAGES, IDS, MODELS)
        )
        created = whole.get("created") or whole.get("created_at")
        return HttpAnswer(
            api.answer(whole),
            None if usage is None else with_searches(usage_from(usage, "usage", api.usage), whole),
            _iterations(usage) if route.api == "messages" else (),
            str(id_ or ""),
            str(model or ""),
            float(created) if isinstance(created, (int, float)) and 0 < created < 1e11 else None,
            served={**usage, **whole} if isinstance(usage, Mapping) else whole,
        )
    except NotAMessage as error_at:
        raise Misplaced(at, error_at) from None


def _iterations(usage: Any) -> tuple[Iteration, ...]:
    passes = object_or_empty(usage).get("iterations")
    usages = [one for one in passes if isinstance(one, Mapping)] if isinstance(passes, list) else []
    return tuple(iteration_of(one, f"usage.iterations.{number}") for number, one in enumerate(usages))


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


def _seen_on(headers: Mapping[str, str]) -> date | None:
    try:
        return day_of(seconds(headers[RESET]))
    except (KeyError, ValueError, OverflowError):
        return None


# ------------------------------------------------------------------------------------------ what recorders write


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


ParseEntry = Callable[[JsonObject, JsonObject, JsonObject], HttpExchange]


class ExchangeLog:
    """Makes calls of the exchanges of one file. `faults` also has the errors of the file itself."""

    def __init__(self, path: Path, keep_content: bool) -> None:
        self.path = path
        self.faults: list[Fault] = []
        self.notes = ReaderNotes()
        self._builder = CallBuilder(keep_content)
        self._calls: list[Call] = []

    def entries(self, items: Sequence[Any], place: str, lines: Mapping[int, int] | None = None) -> Iterable[JsonObject]:
        """The entries of an array at `place`, with their lines by `id()`; one that is no object becomes an error."""
        for number, item in enumerate(items):
            line = lines.get(id(item)) if lines else None
            if isinstance(item, dict):
                yield JsonObject(item, self.faults, str(self.path), line, f"{place}[{number}].")
            else:
                message = f"{place}[{number}]: expected an object; got {show_found(item)}"
                self.faults.append(Fault(str(self.path), message))

    def add_entry(
        self,
        entry: JsonObject,
        parse: ParseEntry,
        halves: tuple[str, str] = ("request", "response"),
        answers: bool = True,
    ) -> None:
        """Add the exchange that `parse` makes of an entry, its request and its response, if none has an error.

        `halves` are the names of the two; "" is the entry itself. With `answers` each entry must have a response.
        """
        before = len(entry.faults)
        request, response = (
            entry.within(entry.mapping(name, required), name) if name else entry
            for name, required in zip(halves, (True, answers), strict=True)
        )
        if len(entry.faults) > before:
            return
        exchange = parse(entry, request, response)
        if len(entry.faults) == before:
            self.add(exchange)

    def add(self, exchange: HttpExchange) -> None:
        try:
            found = read(exchange)
            if isinstance(found, str):
                self.notes.skip("entry", found)
                return
            try:
                self._calls.append(self._builder.build(found))
            except NotAMessage as error:
                is_answers = error.path.startswith("response.")
                raise Misplaced(exchange.response_at if is_answers else exchange.request_at, error) from None
        except NotAMessage as error:
            if (exchange.status or 0) >= 400:
                self.notes.skip("entry", REFUSED)
            else:
                self.faults.append(Fault(str(self.path), str(error), exchange.line or None))

    def end(self, warn: Warn, by_time: bool) -> list[Call]:
        """The calls, in the order of time or of the file. Raises InputError with every error."""
        if self.faults:
            raise InputError(self.faults)
        without_usage = sum(call.billed is None and not call.has_failed for call in self._calls)
        self.notes.add("call", "whose answer has no usage", without_usage)
        self.notes.report(self.path, warn)
        return sorted(self._calls, key=lambda call: call.start) if by_time else self._calls
