"""Converts an HTTP exchange, recorded by a proxy, a browser or a test recorder, to a model call if it is one.

What is read: requests to the Messages API on any host (Anthropic, InvokeModel on Bedrock, rawPredict on Google
Cloud, Foundry, OpenRouter, a gateway), to Bedrock's Converse, to OpenAI's Chat Completions and Responses, and to
Gemini's generateContent; answers in one piece or streamed. Of the headers only those of `HEADERS` are looked at: no
key, no cookie is ever kept. The API is known from a request's path, the host from its machine.

Bodies are decoded to JSON: one value, or the events of a stream (RFC 9110 for content codings, WHATWG HTML for
server-sent events, Amazon's pages on event stream encoding; November 2026). Recorders disagree whether they keep a body
as it came or unpacked, and leave the header as it was: bytes that are plainly text are taken as unpacked.

An exchange has neither an organization nor a workspace, nor the time when a cache entry was written:
`first_token_s` is when the first byte came. Of betas, interleaved thinking alone changes a prompt.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import unquote

from cachecost.base.limits import LINE, OutOfLimits, json_value
from cachecost.base.times import day_of, iso, seconds
from cachecost.conversations.input_files import GZIP
from cachecost.conversations.readers.apis.formats import APIS, FAILED, STATUS, Api, Events, iteration_of
from cachecost.conversations.readers.apis.gemini import service_tier
from cachecost.conversations.readers.call_builder import parse_json_text
from cachecost.conversations.readers.common.json_values import object_or_empty, objects_in
from cachecost.conversations.usage_shapes import usage_from, with_searches
from cachecost.prompts.exact_json import out_of_limits
from cachecost.prompts.request import BareWord, NotAMessage
from cachecost.providers.hosts import host_at, host_names, parse_model_name, served_model, serving_host

DECODERS = {"br": ("brotli", "brotlicffi"), "zstd": ("compression.zstd", "backports.zstd", "pyzstd")}
"""Optional modules with a `decompress` function."""
SENT = (b"event:", b"data:", b"id:", b"retry:", b":")
"""How server-sent events begin."""


class Misplaced(NotAMessage):
    """An error inside a body, with the place of the body."""

    def __init__(self, place: str, error: NotAMessage) -> None:
        Exception.__init__(self, f"{place}.{str(error).removeprefix('response.')}")
        self.path = f"{place}.{error.path.removeprefix('response.')}"


def decode_content(data: bytes, encoding: str, at: str) -> bytes:
    """`data` without its content coding. Raises NotAMessage where it is damaged or cannot be decoded here."""
    if data.lstrip().startswith((b"{", b"[", *SENT)):
        try:
            data.decode()
            return data
        except UnicodeDecodeError:
            pass
    codings = [one.strip().lower() for one in encoding.split(",")]
    if data.startswith(GZIP) and not {"gzip", "x-gzip"} & set(codings):
        codings.append("gzip")
    for coding in reversed(codings):
        if coding in ("gzip", "x-gzip", "deflate"):
            data = _inflate(data, coding, at)
        elif coding in DECODERS:
            data = _decompress(data, coding, at)
    return data


def _inflate(data: bytes, coding: str, at: str) -> bytes:
    """A truncated stream is decompressed as far as it goes. Some servers call raw deflate "deflate"."""
    most = LINE.value()
    for window in (47, -15):
        try:
            found = zlib.decompressobj(window).decompress(data, most + 1)
        except zlib.error:
            continue
        if len(found) > most:
            raise out_of_limits(at, LINE.error())
        return found
    raise NotAMessage(at, f"a body in {coding}", BareWord("damaged bytes"))


def _decompress(data: bytes, coding: str, at: str) -> bytes:
    for name in DECODERS[coding]:
        try:
            decompress = import_module(name).decompress
        except ImportError:
            continue
        try:
            return bytes(decompress(data))
        except Exception:
            raise NotAMessage(at, f"a body in {coding}", BareWord("damaged bytes")) from None
    expected = f"a body that can be decompressed ({coding} requires {DECODERS[coding][0]})"
    raise NotAMessage(at, expected, BareWord("bytes"))


def json_object(data: bytes, at: str) -> dict[str, Any]:
    """The object in a body. Raises NotAMessage."""
    value = _value(data, at)
    if not isinstance(value, dict):
        raise NotAMessage(at, "a JSON object", value)
    return value


def _value(data: bytes, at: str) -> Any:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotAMessage(at, "JSON", BareWord("bytes that are not UTF-8")) from None
    try:
        return json_value(text)
    except OutOfLimits as error:
        raise out_of_limits(at, error) from None
    except ValueError:
        raise NotAMessage(at, "JSON", text.strip() or BareWord("nothing")) from None


def answer(data: bytes, content_type: str, at: str) -> dict[str, Any] | Events:
    """What an answer is: an object, or the events of a stream. Raises NotAMessage."""
    if "vnd.amazon.eventstream" in content_type or (len(data) >= 16 and _has_frame_at(data, 0)):
        return list(_frame_events(data, at))
    return list(_sent_events(data, at)) if data.lstrip().startswith(SENT) else json_object(data, at)


def parse_array(data: bytes, at: str) -> Events:
    """The objects of an array: how Gemini streams without server-sent events. Raises NotAMessage."""
    value = _value(data, at)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise NotAMessage(at, "an array of JSON objects", value)
    return value


def _sent_events(data: bytes, at: str) -> Iterator[dict[str, Any]]:
    """Server-sent events that are JSON objects, each up to an empty line. An incomplete last one is dropped."""
    sent: list[bytes] = []
    lines: list[bytes] = []
    for line in [*data.splitlines(), b""]:
        if line.startswith(b"data:"):
            lines.append(line[5:])
        elif not line and lines:
            sent.append(b"\n".join(lines))
            lines = []
    is_whole = data.endswith((b"\n\n", b"\r\n\r\n"))
    for number, one in enumerate(sent, 1):
        if not one.strip().startswith(b"{"):
            continue
        try:
            yield json_object(one, at)
        except NotAMessage:
            if is_whole or number < len(sent):
                raise


def _has_frame_at(data: bytes, start: int) -> bool:
    """Whether a frame of one of Amazon's event streams begins here, by the checksum of its lengths."""
    return zlib.crc32(data[start : start + 8]) == int.from_bytes(data[start + 8 : start + 12], "big")


def _frame_events(data: bytes, at: str) -> Iterator[dict[str, Any]]:
    """The payloads of the frames; InvokeModel packs the model's own event into each. The last may be cut off."""
    start = 0
    while start + 16 <= len(data):
        whole, headers = (int.from_bytes(data[place : place + 4], "big") for place in (start, start + 4))
        frame, is_known = data[start : start + whole], _has_frame_at(data, start)
        if is_known and start + whole > len(data):
            return
        if not is_known or whole < headers + 16 or zlib.crc32(frame[:-4]) != int.from_bytes(frame[-4:], "big"):
            raise NotAMessage(at, "an event stream", BareWord(f"a damaged frame at byte {start}"))
        payload = json_object(frame[12 + headers : -4], at) if whole > headers + 16 else {}
        packed = payload.get("bytes")
        if isinstance(packed, str):
            try:
                payload = json_object(b64decode(packed, validate=True), at)
            except ValueError:
                raise NotAMessage(at, "base64 in a frame", packed) from None
        yield payload
        start += whole


NO_CALL = "not a model call"
UNREAD = "unsupported model API"

URL = re.compile(r"(?:[a-z][a-z0-9+.-]*://(?P<name>[^/?#]*))?(?P<path>[^?#]*)", re.IGNORECASE)
"""A scrubbed address is not a valid URL (`https://[KEY]/…`), so this is not stricter."""
LEFT_OUT = {
    "token counting": re.compile(r".*/(count[_-]tokens|input_tokens)|.*/count-tokens(@\w+)?:rawPredict|.*:countTokens"),
    "batch API": re.compile(r".*/(messages/batches|v1/batches|model-invocation-job)(/.*)?|.*:batchGenerateContent"),
    UNREAD: re.compile(
        r".*/publishers/(?!anthropic/).*:(rawPredict|streamRawPredict)"
        r"|.*/v1/(complete|completions|interactions)|.*/api/(chat|generate)|.*/v2/chat|.*/responses/compact"
    ),
}
CLOUD = r"(?P<model>(?:locations/[^/]+/)?publishers/anthropic/models/[^/:]+):(?:rawPredict|streamRawPredict)"
CALLS: tuple[tuple[Api, str | None, re.Pattern[str]], ...] = (
    ("messages", None, re.compile(r".*/v1/messages")),
    ("messages", "bedrock", re.compile(r".*/model/(?P<model>.+)/invoke(?:-with-response-stream)?")),
    ("messages", "google-cloud", re.compile(rf".*?{CLOUD}")),
    ("converse", "bedrock", re.compile(r".*/model/(?P<model>.+)/converse(?:-stream)?")),
    ("chat", None, re.compile(r"(?:.*/deployments/(?P<model>[^/]+)|.*)/chat/completions")),
    ("responses", None, re.compile(r".*/responses")),
    ("gemini", None, re.compile(r".*/(?P<model>[^/:]+):(?:generateContent|streamGenerateContent)")),
)
"""(API, host if the path shows it, path) of model calls."""


ANSWERS: tuple[tuple[Api, re.Pattern[bytes]], ...] = (
    ("messages", re.compile(rb'event: message_start|"type": ?"message"')),
    ("chat", re.compile(rb'"object": ?"chat\.completion')),
    ("responses", re.compile(rb'"object": ?"response"')),
)
"""(API, what the beginning of its answers has)."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where a model call went. `model` is "" if not in the URL, `machine` the name there, `host` None if unknown."""

    api: Api
    host: str | None
    model: str = ""
    machine: str = ""

    def host_for(self, model: str, prefix: str | None = None) -> str | None:
        """The host of a call of `model`, whose name may have a host's `prefix`; an unknown machine has its own name."""
        if self.host is not None:
            return serving_host(self.host, model) or self.machine
        return prefix or host_at(self.machine, model)


def route_of(method: str, url: str) -> Route | str:
    """The route of a model call; for any other request, why it is skipped."""
    found = URL.match(url)
    path = found["path"].rstrip("/") if found else ""
    if found is None or method.upper() != "POST":
        return NO_CALL
    if kind := next((kind for kind, pattern in LEFT_OUT.items() if pattern.fullmatch(path)), ""):
        return kind
    machine = found["name"] or ""
    for api, host, pattern in CALLS:
        if match := pattern.fullmatch(path):
            at = host_at(machine)
            model = unquote(match.groupdict().get("model") or "")
            return Route(api, at if at in host_names() else host, model, machine)
    return NO_CALL


def route_of_answer(url: str, answer: bytes) -> Route | None:
    """The route of a model call whose address a recorder has removed, by the answer. Its host is unknown."""
    if "/" in url:
        return None
    return next((Route(api, None) for api, pattern in ANSWERS if pattern.search(answer, 0, 4096)), None)


T = TypeVar("T")


def parameters_in(headers: Mapping[str, str]) -> dict[str, Any]:
    """The parameters that headers state, as a body has them."""
    stated: dict[str, Any] = {
        name: headers[header] for header, name in PARAMETER_HEADERS.items() if headers.get(header)
    }
    is_cached = headers.get(SESSION_CACHE, "").lower() == "enable"
    return {**stated, "cache_control": {"type": "ephemeral"}} if is_cached else stated


SESSIONS = ("x-claude-code-session-id", "x-session-id", "session-id", "session_id", "conversation_id")
RESET = "anthropic-ratelimit-requests-reset"
"""When a limit is full again, within minutes of the call: the day where the recorder took the date out."""
BETAS = "anthropic-beta"
PARAMETER_HEADERS = {
    "x-grok-conv-id": "prompt_cache_key",
    "x-amzn-bedrock-service-tier": "service_tier",
    "x-amzn-bedrock-performanceconfig-latency": "speed",
    "x-gemini-service-tier": "service_tier",
    "x-vertex-ai-llm-shared-request-type": "service_tier",
}
"""What clients and hosts state in headers, by the parameter that a body has for it (xAI's docs on prompt caching,
botocore's InvokeModel, Gemini's docs on priority inference, Google Cloud's on Priority PayGo; November 2026)."""
SESSION_CACHE = "x-dashscope-session-cache"
"""Alibaba's Responses API caches at the end of each conversation if this says `enable`."""
HEADERS = frozenset(
    (*SESSIONS, *PARAMETER_HEADERS, RESET, BETAS, SESSION_CACHE, "content-type", "content-encoding", "date")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpExchange:
    """A request and its answer, headers as of `headers_of`. `status` is None without an answer, `started` ISO 8601.
    `request_at` and `response_at` are what a fault calls the bodies, `line` is where the exchange is in its file."""

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
        model = served_model(route.host_for(model, prefix), model, answered_by) if answered_by else model
        body = {**parameters_in(exchange.request_headers), **APIS[route.api].body(sent, model)}
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
        served = {**object_or_empty(usage), **whole}
        tier = parameters_in(headers).get("service_tier") or service_tier(served)
        billed = None if usage is None else with_searches(usage_from(usage, "usage", api.usage), whole)
        passes = objects_in(object_or_empty(usage).get("iterations")) if route.api == "messages" else []
        return {
            "answer": content,
            "usage": billed,
            "iterations": tuple(iteration_of(one, f"usage.iterations.{n}") for n, one in enumerate(passes)),
            "answer_id": str(id_ or ""),
            "served": {**served, **({"service_tier": tier} if tier else {})},
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
    return str(object_or_empty(parse_json_text(user)).get("session_id") or "")
