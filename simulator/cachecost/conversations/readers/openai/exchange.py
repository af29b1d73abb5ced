"""Makes a call of a logged OpenAI request and its answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, TypeVar

from cachecost.base.errors import Fault
from cachecost.base.times import iso
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.json_values import array_at
from cachecost.conversations.readers.common.notes import ReaderNotes
from cachecost.conversations.readers.common.parsed_call import CallBuilder, ParsedCall
from cachecost.conversations.readers.http.routes import Route, route_of
from cachecost.conversations.readers.openai.chat import from_chat, from_chat_message
from cachecost.conversations.readers.openai.responses import from_responses, from_responses_output
from cachecost.conversations.usage_shapes import usage_from, with_searches
from cachecost.prompts.wire import NotAMessage, show_found
from cachecost.providers.hosts import maker_of, parse_model_name
from cachecost.providers.usage import Usage

T = TypeVar("T")
Body = Mapping[str, Any]
CHAT, RESPONSE, MESSAGE = "chat.completion", "response", "message"
LATEST = 253_402_300_799
"""The last second of the year 9999, the upper bound of a time in seconds."""
NO_CHAT = re.compile(r"text-embedding-|(omni|text)-moderation-")
REFUSED = 400
STATUS = {"rate_limit_exceeded": 429, "insufficient_quota": 429, "server_error": 500, "invalid_api_key": 401}
"""The HTTP status of an error code, for logs without the status itself."""
SESSIONS = ("session_id", "conversation_id", "thread_id")
UNKNOWN_START = "continuing a response that is not in the file: earlier messages are missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIExchange:
    """A request and its answer, the log entries that contain them, and where (`body_at`, `answer_at`).

    `time` is ISO 8601, by the log's own clock; None: the answer's `created` counts.
    """

    entry: JsonObject
    body: Body
    answer_in: JsonObject
    answer: Body
    body_at: str = ""
    answer_at: str = ""
    time: str | None = None
    first_token_s: float = 0.0
    status: int | None = None
    host: str = ""
    url: str = ""
    session: str = ""
    workspace: str = ""
    is_batch: bool = False

    @property
    def session_name(self) -> str:
        """The session in the log, else the conversation, else the session in the metadata."""
        places = (self.body, self.answer)
        told = [self.session, *map(_conversation_id, places), *map(_session_of_metadata, places)]
        return next(filter(None, told), "")


class ExchangeParser:
    """Makes calls of exchanges; one instance per file. `notes` are for the user."""

    def __init__(self, builder: CallBuilder) -> None:
        self._builder = builder
        self._earlier: dict[str, list[Any]] = {}
        self.notes = ReaderNotes()

    def call(self, one: OpenAIExchange) -> RecordedCall | None:
        """The call; None if it is not a model call, or if there are errors in it."""
        kind = kind_of(one.body, one.answer)
        if not kind:
            self.notes.skip("entry", "not a model call")
            return None
        usage, answer, time = _usage(one), _answer_blocks(one, kind), _created_at(one)
        body = _try(one.entry, one.body_at, lambda: self._body(one, kind))
        if body is None:
            return None
        told_model = body["model"] or one.answer.get("model")
        model, host = _host(told_model, one) if isinstance(told_model, str) else (told_model, None)
        told = ParsedCall(
            body={**body, "model": model},
            usage=usage,
            answer=answer or (),
            timestamp=one.time or time,
            first_token_s=one.first_token_s,
            host=one.host or host,
            workspace=one.workspace,
            status=one.status or _status(one.answer),
            is_batch=one.is_batch,
            served=one.answer,
            session=one.session_name,
            id=str(one.answer.get("id") or ""),
            line=one.entry.line or 0,
        )
        return _try(one.entry, one.body_at, lambda: self._builder.build(told))

    def _body(self, one: OpenAIExchange, kind: str) -> dict[str, Any]:
        if kind == MESSAGE:
            return {"model": None, **one.body}
        return from_chat(one.body) if kind == CHAT else from_responses(self._with_earlier_items(one.body, one.answer))

    def _with_earlier_items(self, body: Body, answer: Body) -> Body:
        """A Responses request, preceded by the items of the response that it continues."""
        before, conversation = body.get("previous_response_id"), _conversation_id(body) or _conversation_id(answer)
        earlier = self._earlier.get(str(before or conversation), [])
        if before and not earlier:
            self.notes.add("call", UNKNOWN_START)
        own = body.get("input")
        items = [{"role": "user", "content": own}] if isinstance(own, str) else own
        if not isinstance(items, list):
            return body
        if items[: len(earlier)] != earlier:
            items = [*earlier, *items]
        output = answer.get("output")
        names = [str(name) for name in (answer.get("id"), conversation) if name]
        if isinstance(output, list):
            self._earlier.update({name: [*items, *output] for name in names})
        return {**body, "input": items} if earlier else body


def kind_of(body: Body, answer: Body) -> str:
    """CHAT or RESPONSE, MESSAGE for a call of the Messages API; "" for no model call (embeddings, moderation …)."""
    kind = answer.get("object")
    if answer.get("type") == MESSAGE or (kind is None and {"messages", "system"} <= body.keys()):
        return MESSAGE
    if kind in (CHAT, RESPONSE):
        return str(kind)
    if kind is not None or NO_CHAT.match(str(body.get("model"))):
        return ""
    if "messages" in body:
        return CHAT
    return RESPONSE if "input" in body or "instructions" in body else ""


def time_of(answer: Body) -> float:
    """The time of the answer, to sort by; infinite if unknown."""
    told = answer.get("created", answer.get("created_at"))
    return float(told) if isinstance(told, (int, float)) else inf


def _created_at(one: OpenAIExchange) -> str | None:
    """The answer's own time, ISO 8601: whole seconds."""
    place = f"{one.answer_in.place}{one.answer_at}"
    answer = JsonObject(one.answer, one.answer_in.faults, one.answer_in.file, one.answer_in.line, place)
    name = "created" if "created" in one.answer else "created_at"
    at = answer.number(name)
    if at is None or at <= LATEST:
        return None if at is None else iso(at)
    answer.fault(name, f"expected seconds since the epoch; got {show_found(one.answer[name])}")
    return None


def _usage(one: OpenAIExchange) -> Usage | None:
    raw = one.answer.get("usage")
    if raw is None:
        return None
    return _try(one.answer_in, one.answer_at, lambda: with_searches(usage_from(raw, "usage", "openai"), one.answer))


def _answer_blocks(one: OpenAIExchange, kind: str) -> list[dict[str, Any]] | None:
    """The blocks of the answer; of several choices those of the first."""
    if kind == MESSAGE:
        return _try(one.answer_in, one.answer_at, lambda: array_at(one.answer.get("content") or [], "content"))
    if kind == RESPONSE:
        output = one.answer.get("output")
        return None if output is None else _try(one.answer_in, one.answer_at, lambda: from_responses_output(output))
    choices = one.answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, Mapping) else None
    if not isinstance(message, Mapping):
        return None
    return _try(one.answer_in, f"{one.answer_at}choices.0.", lambda: from_chat_message(message))


def _try(entry: JsonObject, place: str, make: Callable[[], T]) -> T | None:
    """The result of `make`; its NotAMessage becomes an error at `place` in `entry`."""
    try:
        return make()
    except NotAMessage as fault:
        entry.faults.append(Fault(entry.file, f"{entry.place}{place}{fault}", entry.line))
        return None


def _status(answer: Body) -> int | None:
    """That of an answer which is an error."""
    error = answer.get("error")
    if not isinstance(error, Mapping):
        return None
    told = [error.get(name) for name in ("code", "status", "type")]
    number = next((one for one in told if isinstance(one, int) and one >= REFUSED), None)
    return number or next((STATUS[one] for one in told if isinstance(one, str) and one in STATUS), REFUSED)


def _host(model: str, one: OpenAIExchange) -> tuple[str, str | None]:
    """(the model's own id, the host if the address, the answer or the id shows it)."""
    if "prompt_filter_results" in one.answer:
        return parse_model_name(model, "azure" if maker_of(model) == "openai" else "foundry")
    if str(one.answer.get("id")).startswith("gen-") and "provider" in one.answer:
        return parse_model_name(model, "openrouter")
    own, prefix = parse_model_name(model)
    route = route_of("POST", one.url)
    return own, route.host_for(own, prefix) if isinstance(route, Route) else prefix


def _conversation_id(body: Body) -> str:
    told = body.get("conversation")
    return str((told.get("id") if isinstance(told, Mapping) else told) or "")


def _session_of_metadata(body: Body) -> str:
    notes = body.get("metadata")
    told = [notes.get(name) for name in SESSIONS] if isinstance(notes, Mapping) else []
    return next((one for one in told if isinstance(one, str)), "")
