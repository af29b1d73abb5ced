"""Makes a call of a logged OpenAI request and its answer.

The two files of a batch of OpenAI's: requests and results, joined by `custom_id`.

Events of a session of OpenAI's Realtime API, one JSON object a line: each `response.done` is a call with its usage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from cachecost.base.errors import Fault
from cachecost.base.formatting import count_text
from cachecost.base.times import iso
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.anthropic_batch.results import NOT_RUN
from cachecost.conversations.readers.common.dialects import CallBuilder, ParsedCall, objects
from cachecost.conversations.readers.common.json_values import array_at
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.http.bodies import Route, route_of
from cachecost.conversations.readers.openai.chat import from_chat, from_chat_message
from cachecost.conversations.readers.openai.responses import from_responses, from_responses_output
from cachecost.conversations.usage_shapes import usage_from, with_searches
from cachecost.prompts.request import NotAMessage, show_found
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
    error = answer.get("error")
    if not isinstance(error, Mapping):
        return None
    told = [error.get(name) for name in ("code", "status", "type")]
    number = next((one for one in told if isinstance(one, int) and one >= REFUSED), None)
    return number or next((STATUS[one] for one in told if isinstance(one, str) and one in STATUS), REFUSED)


def _host(model: str, one: OpenAIExchange) -> tuple[str, str | None]:
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


RESULTS = re.compile(r"outputs?|errors?|results?")


class OpenAIBatch:
    """A batch while it is read."""

    def __init__(self, path: Path, warn: Warn) -> None:
        self.path, self.warn = path, warn
        self.requests: dict[str, JsonObject] = {}
        self.results: dict[str, JsonObject] = {}

    def add(self, line: JsonObject) -> None:
        """Take a line: a request if it has a body, else a result."""
        name = line.text("custom_id")
        known = self.requests if "body" in line.data else self.results
        if name in known:
            line.fault("custom_id", f"expected a unique id; got {show_found(name)} again")
        known.setdefault(name, line)

    def exchanges(self, faults: list[Fault]) -> Iterator[OpenAIExchange]:
        """Each request with its result, in the order of the answers; requests without a result come last."""
        if self.results and not self.requests:
            self._read_request_file(faults)
        found = [one for name, line in self.requests.items() if (one := self._exchange(name, line)) is not None]
        yield from sorted(found, key=lambda one: time_of(one.answer))
        self._report_unmatched()

    def _read_request_file(self, faults: list[Fault]) -> None:
        request_file = self.path.with_name(RESULTS.sub("input", self.path.name))
        if request_file == self.path or not request_file.is_file():
            where = f"; expected them in {request_file.name}" if request_file != self.path else ""
            faults.append(Fault(str(self.path), f"contains batch results without their requests{where}"))
            return
        for line in objects(request_file, faults, self.warn):
            if "body" in line.data:
                self.add(line)

    def _exchange(self, name: str, line: JsonObject) -> OpenAIExchange | None:
        body = line.mapping("body")
        result = self.results.get(name)
        response = result.mapping("response", required=False) if result else {}
        answer: Any = response.get("body")
        status = response.get("status_code")
        if body is not line.data["body"]:
            return None
        if result and not response:
            status = NOT_RUN
        return OpenAIExchange(
            entry=line,
            body=body,
            body_at="body.",
            answer_in=result or line,
            answer=answer if isinstance(answer, dict) else {},
            answer_at="response.body.",
            status=status if isinstance(status, int) and status >= 400 else None,
            is_batch=True,
        )

    def _report_unmatched(self) -> None:
        if not self.requests:
            return
        for name, line in self.results.items():
            if name not in self.requests:
                line.fault("custom_id", f"no request has the id {show_found(name)}")
        unanswered = len(self.requests.keys() - self.results.keys())
        if self.results and unanswered:
            self.warn(f"{self.path}: {count_text(unanswered, 'request')} without a result: no usage")


Item = Mapping[str, Any]
EVENT = re.compile(
    r"(session|conversation|response|input_audio_buffer|output_audio_buffer|rate_limits)\.[a-z_.]+|error"
)
FIRST = re.compile(rb'"type"\s*:\s*"(session\.(created|update|updated)|conversation\.(created|item\.[a-z]+))"')
ADDED = ("conversation.item.created", "conversation.item.added", "conversation.item.done")
SESSION = ("session.created", "session.updated")
STATED = ("model", "instructions", "tools", "tool_choice", "max_output_tokens")
AUDIO = "with audio, which has its own prices"


def is_event(row: JsonObject) -> bool:
    """Whether a row is an event of a session."""
    kind = row.data.get("type")
    return isinstance(kind, str) and EVENT.fullmatch(kind) is not None and "request" not in row.data


class RealtimeSession:
    """The sessions of a log while it is read: `session.created` begins another."""

    def __init__(self, notes: ReaderNotes) -> None:
        self._notes = notes
        self._stated: dict[str, Any] = {}
        self._own: dict[str, Any] = {}
        self._items: dict[str, Item] = {}

    def exchanges(self, row: JsonObject) -> Iterator[OpenAIExchange]:
        """Take an event; the call that it ends, if it does."""
        kind = row.data["type"]
        if kind in SESSION:
            self._state(row, begins=kind == "session.created")
        elif kind == "response.create":
            self._own = _stated_in(row.mapping("response", required=False))
        elif kind in ADDED:
            self._add(row.mapping("item"), row.data.get("previous_item_id"))
        elif kind == "conversation.item.deleted":
            self._items.pop(row.text("item_id", ""), None)
        elif kind == "response.done":
            yield self._answer(row)

    def _state(self, row: JsonObject, begins: bool) -> None:
        if begins:
            self._items, self._own = {}, {}
        self._stated = _stated_in(row.mapping("session"))

    def _add(self, item: Item, before: Any) -> None:
        """Put an item after the one `before`, in place of one with its id, or at the end."""
        name = str(item.get("id") or f"item {len(self._items)}")
        if name in self._items or before not in self._items:
            self._items[name] = item
            return
        known, self._items = self._items, {}
        for key, one in known.items():
            self._items[key] = one
            if key == before:
                self._items[name] = item

    def _answer(self, row: JsonObject) -> OpenAIExchange:
        response = row.mapping("response")
        output = [one for one in response.get("output") or [] if isinstance(one, Mapping)]
        said = {str(one.get("id")) for one in output}
        stated, self._own = {**self._stated, **self._own}, {}
        asked = [item for name, item in self._items.items() if name not in said]
        for one in output:
            self._add(one, None)
        if _has_audio(response.get("usage")):
            self._notes.add("call", AUDIO)
        return OpenAIExchange(
            entry=row,
            body={"model": response.get("model"), **stated, "input": asked},
            answer_in=row,
            answer={**response, "object": "response", "output": output},
            answer_at="response.",
            time=row.moment("timestamp"),
            session=str(response.get("conversation_id") or ""),
        )


def _stated_in(told: Item) -> dict[str, Any]:
    return {name: told[name] for name in STATED if told.get(name) is not None}


def _has_audio(usage: Any) -> bool:
    places = ("input_token_details", "output_token_details")
    details = [usage.get(place) for place in places] if isinstance(usage, Mapping) else []
    return any(isinstance(one, Mapping) and one.get("audio_tokens") for one in details)
