"""Reads logs of OpenAI's Chat Completions and Responses APIs.

Source: OpenAI's API reference (chat completions, responses, batches; November 2026). Such a log has rows of

- `{"request": body, "response": answer}`, which clients write themselves, with fields as in our own request log;
  without an answer, the endpoint in "url" or the form of a tool shows the API;
- stored completions and responses as the API returns them, with their "messages" or "input" put in, which the API has
  at another address (…/messages, …/input_items);
- the two files of a batch: requests and results, joined by `custom_id`;
- events of a session of the Realtime API: each `response.done` is a call with its usage;
- what OpenHands writes with `log_completions` (llm.py of its server and telemetry.py of its SDK, 2025 and 2026): an
  object a file with "messages" or "input", "response", "kwargs", "timestamp" of the answer and "latency_sec".

A response that goes on from another (`previous_response_id`, `conversation`) gets the items of that one before its
own, where the file has it. The time is the log's, else the answer's `created`, which is in whole seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text
from cachecost.base.times import iso
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.apis.formats import CODES, NOT_RUN, REFUSED, chat_answer
from cachecost.conversations.readers.apis.openai import from_chat, from_responses, from_responses_output
from cachecost.conversations.readers.call_builder import CallBuilder, errors_at, first_keys, objects, request_keys
from cachecost.conversations.readers.common.json_values import array_at, object_or_empty, objects_in
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.http.exchange import Route, route_of
from cachecost.conversations.usage_shapes import usage_from, with_searches
from cachecost.prompts.request import show_found
from cachecost.providers.hosts import maker_of, parse_model_name, served_model

Body = Mapping[str, Any]
CHAT, RESPONSE, MESSAGE = "chat.completion", "response", "message"
ANSWER = re.compile(rb'"object"\s*:\s*"(chat\.completion|response)"')
ENDPOINT = re.compile(rb'"url"\s*:\s*"[^"]*/(chat/completions|responses)"')
OpenAIExchange = tuple[JsonObject, JsonObject, dict[str, Any]]
"""A request, its answer, and what the log has beside them: "url", and fields of `CallBuilder.build`."""
FIRST_EVENT = re.compile(rb'"type"\s*:\s*"(session\.(created|update|updated)|conversation\.(created|item\.[a-z]+))"')
SESSIONS = ("session_id", "conversation_id", "thread_id")


def sniff(head: bytes) -> str | None:
    text, keys = head, first_keys(head)
    if "custom_id" in keys:
        if {"url", "body"} <= keys and ENDPOINT.search(text):
            return 'its first line has a "custom_id" and the "url" of an endpoint'
        is_output = "response" in keys and b'"status_code"' in text
        return 'its first line has a "custom_id" and a "status_code"' if is_output else None
    if "request" in keys:
        body_keys = request_keys(text)
        if {"input", "instructions"} & body_keys and "messages" not in body_keys:
            return 'its first "request" has an "input"'
        if "messages" not in body_keys:
            return None
        if ANSWER.search(text):
            return 'its first answer is a "chat.completion"'
        if "url" in keys and ENDPOINT.search(text):
            return 'its first "url" is that of Chat Completions'
        # a tool of another API may have a parameter with the name `function`
        has_function = re.search(rb'"function"\s*:\s*\{\s*"(name|description|parameters|strict)"', text)
        has_function = has_function and re.search(rb'"type"\s*:\s*"function"', text)
        return 'its first "request" has a tool of OpenAI\'s form' if has_function else None
    if "event_id" in keys and FIRST_EVENT.search(text):
        return "its first object is an event of a Realtime session"
    is_stored = "object" in keys
    signs = {
        'its first object is a "chat.completion" or a "response"': is_stored and {"choices", "output"} & keys,
        "it is a list of stored answers": is_stored and "data" in keys,
        'its first object has messages and a "response"': (
            "response" in keys and {"messages", "input"} & keys and "call_type" not in keys  # which LiteLLM's rows have
        ),
    }
    return next((why for why, holds in signs.items() if holds and ANSWER.search(text)), None)


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls in the order of the file, those of a batch in the order of time. After the first error, the rest is
    only checked. Raises InputError with every error."""
    faults: list[Fault] = []
    parser = _ExchangeParser(CallBuilder(keep_content))
    for exchange in _exchanges(path, warn, faults, parser.notes):
        call = parser.call(*exchange)
        if call is not None and not faults:
            yield call
    if faults:
        raise InputError(sorted(faults, key=lambda fault: (fault.file != str(path), fault.line or 0)))
    parser.notes.report(path, warn)


def _exchanges(path: Path, warn: Warn, faults: list[Fault], notes: ReaderNotes) -> Iterator[OpenAIExchange]:
    batch, realtime = _OpenAIBatch(path, warn), _RealtimeSession(notes)
    for row in objects(path, faults, warn, "an OpenAI log"):
        if "custom_id" in row.data:
            batch.add(row)
        elif "request" in row.data:
            body, answer = row.mapping("request"), row.mapping("response", required=False)
            if body is not row.data["request"]:
                continue
            usage = {"usage": row.mapping("usage")} if row.has("usage") and "usage" not in answer else {}
            fields = {
                "timestamp": row.moment("timestamp"),
                "first_token_s": row.number("first_token_s") or 0.0,
                "status": row.whole("status"),
                **{name: row.text(name, "") for name in ("host", "url", "session", "workspace")},
            }
            yield row.within(body, "request"), row.within({**answer, **usage}, "response"), fields
        elif "response" in row.data and ("messages" in row.data or "input" in row.data):
            yield _completion(row)
        elif is_event(row):
            yield from realtime.exchanges(row)
        else:
            entries = row.objects("data") if row.data.get("object") == "list" else [row]
            is_newest_first = bool(entries) and time_of(entries[0].data) > time_of(entries[-1].data)
            for entry in entries[::-1] if is_newest_first else entries:
                kind = entry.data.get("object")
                if kind not in (CHAT, RESPONSE):
                    words = f"expected '{CHAT}' or '{RESPONSE}' (or a \"request\"); got {show_found(kind)}"
                    entry.fault("object", words)
                elif ("messages" if kind == CHAT else "input") not in entry.data:
                    notes.skip("stored answer", "its messages or input are not in the file")
                else:  # an answer as the API returns it, with its request put in
                    yield entry, entry, {}
    yield from batch.exchanges(faults)


def _completion(row: JsonObject) -> OpenAIExchange:
    """A call as OpenHands logs it when its answer has come; its parameters are what the client passed on."""
    answer, passed = row.mapping("response"), row.mapping("kwargs", required=False)
    asked = {name: row.data[name] for name in ("messages", "input", "tools") if row.data.get(name)}
    ended, took = row.number("timestamp"), row.number("latency_sec") or 0.0
    body = row.within({"model": answer.get("model"), **passed, **asked}, "request")
    fields = {"timestamp": None if ended is None else iso(ended - took)}
    return body, row.within(answer, "response"), fields


class _ExchangeParser:
    def __init__(self, builder: CallBuilder) -> None:
        self._builder = builder
        self._earlier: dict[str, list[Any]] = {}
        self.notes = ReaderNotes()

    def call(self, asked: JsonObject, answered: JsonObject, fields: Mapping[str, Any]) -> Call | None:
        sent, answer = asked.data, answered.data
        kind = kind_of(sent, answer)
        if not kind:
            self.notes.skip("entry", "not a model call")
            return None
        billed, blocks = None, list[dict[str, Any]]()
        if answer.get("usage") is not None:
            with errors_at(answered):
                billed = with_searches(usage_from(answer["usage"], "usage", "openai"), answer)
        with errors_at(answered, "choices.0." if kind == CHAT else ""):
            if kind == MESSAGE:
                blocks = array_at(answer.get("content") or [], "content")
            elif kind == CHAT:
                blocks = chat_answer(answer["choices"] if isinstance(answer.get("choices"), list) else [])
            elif answer.get("output") is not None:
                blocks = from_responses_output(answer["output"])
        created = _created_at(answered)
        metadata = [object_or_empty(place.get("metadata")) for place in (sent, answer)]
        named = [stated[name] for stated in metadata for name in SESSIONS if isinstance(stated.get(name), str)]
        sessions = [fields.get("session"), _conversation_id(sent), _conversation_id(answer), *named]
        with errors_at(asked):
            body = self._body(sent, answer, kind)
            name = body["model"] or answer.get("model")
            url = fields.get("url", "")
            model, host = _model_and_host(name, answer, url) if isinstance(name, str) else (name, None)
            if isinstance(model, str) and isinstance(answer.get("model"), str):
                model = served_model(fields.get("host") or host, model, answer["model"])
            more = {
                "timestamp": fields.get("timestamp") or created,
                "host": fields.get("host") or host,
                "status": fields.get("status") or _error_status(answer),
                "session": next(filter(None, sessions), ""),
            }
            return self._builder.build(
                {**body, "model": model},
                usage=billed,
                answer=blocks,
                served=answer,
                id=str(answer.get("id") or ""),
                line=asked.line or 0,
                **{name: value for name, value in {**fields, **more}.items() if name != "url"},
            )

    def _body(self, body: Body, answer: Body, kind: str) -> dict[str, Any]:
        """The Messages body; a Responses request is preceded by the items of the response that it continues."""
        if kind != RESPONSE:
            return {"model": None, **body} if kind == MESSAGE else from_chat(body)
        before, conversation = body.get("previous_response_id"), _conversation_id(body) or _conversation_id(answer)
        earlier = self._earlier.get(str(before or conversation), [])
        if before and not earlier:
            self.notes.add("call", "continuing a response that is not in the file: earlier messages are missing")
        own, output = body.get("input"), answer.get("output")
        items = [{"role": "user", "content": own}] if isinstance(own, str) else own
        if not isinstance(items, list):
            return from_responses(body)
        if items[: len(earlier)] != earlier:
            items = [*earlier, *items]
        if isinstance(output, list):
            names = [str(name) for name in (answer.get("id"), conversation) if name]
            self._earlier.update({name: [*items, *output] for name in names})
        return from_responses({**body, "input": items} if earlier else body)


def kind_of(body: Body, answer: Body) -> str:
    """CHAT or RESPONSE, MESSAGE for a call of the Messages API; "" for no model call (embeddings, moderation …)."""
    kind = answer.get("object")
    if answer.get("type") == MESSAGE or (kind is None and {"messages", "system"} <= body.keys()):
        return MESSAGE
    if kind in (CHAT, RESPONSE):
        return str(kind)
    if kind is not None or re.match(r"text-embedding-|(omni|text)-moderation-", str(body.get("model"))):
        return ""
    if "messages" in body:
        return CHAT
    return RESPONSE if "input" in body or "instructions" in body else ""


def time_of(answer: Body) -> float:
    found = answer.get("created", answer.get("created_at"))
    return float(found) if isinstance(found, (int, float)) else inf


def _created_at(answer: JsonObject) -> str | None:
    name = "created" if "created" in answer.data else "created_at"
    at = answer.number(name)
    if at is None or at <= 253_402_300_799:  # the last second of the year 9999
        return None if at is None else iso(at)
    answer.fault(name, f"expected seconds since the epoch; got {show_found(answer.data[name])}")
    return None


def _error_status(answer: Body) -> int | None:
    error = answer.get("error")
    if not isinstance(error, Mapping):
        return None
    stated = [error.get(name) for name in ("code", "status", "type")]
    number = next((one for one in stated if isinstance(one, int) and one >= REFUSED), None)
    return number or next((CODES[one] for one in stated if isinstance(one, str) and one in CODES), REFUSED)


def _model_and_host(model: str, answer: Body, url: str) -> tuple[str, str | None]:
    if "prompt_filter_results" in answer:
        return parse_model_name(model, "azure" if maker_of(model) == "openai" else "foundry")
    if str(answer.get("id")).startswith("gen-") and "provider" in answer:
        return parse_model_name(model, "openrouter")
    own, prefix = parse_model_name(model)
    route = route_of("POST", url)
    return own, route.host_for(own, prefix) if isinstance(route, Route) else prefix


def _conversation_id(body: Body) -> str:
    found = body.get("conversation")
    return str((found.get("id") if isinstance(found, Mapping) else found) or "")


class _OpenAIBatch:
    def __init__(self, path: Path, warn: Warn) -> None:
        self.path, self.warn = path, warn
        self.requests, self.results = dict[str, JsonObject](), dict[str, JsonObject]()

    def add(self, line: JsonObject) -> None:
        """Add a line: a request if it has a body, else a result."""
        name = line.text("custom_id")
        known = self.requests if "body" in line.data else self.results
        if name in known:
            line.fault("custom_id", f"expected a unique id; got {show_found(name)} again")
        known.setdefault(name, line)

    def exchanges(self, faults: list[Fault]) -> Iterator[OpenAIExchange]:
        """Each request with its result, in the order of the answers; requests without a result come last."""
        request_file = self.path.with_name(re.sub(r"outputs?|errors?|results?", "input", self.path.name))
        if self.results and not self.requests and (request_file == self.path or not request_file.is_file()):
            where = f"; expected them in {request_file.name}" if request_file != self.path else ""
            faults.append(Fault(str(self.path), f"contains batch results without their requests{where}"))
        elif self.results and not self.requests:
            for line in objects(request_file, faults, self.warn):
                if "body" in line.data:
                    self.add(line)
        found = []
        for name, line in self.requests.items():
            body, result = line.mapping("body"), self.results.get(name)
            response = result.mapping("response", required=False) if result else {}
            answer, status = response.get("body"), NOT_RUN if result and not response else response.get("status_code")
            if body is line.data["body"]:
                answered = (result or line).within(answer if isinstance(answer, dict) else {}, "response.body")
                fields = {"status": status if isinstance(status, int) and status >= 400 else None, "is_batch": True}
                found.append((line.within(body, "body"), answered, fields))
        yield from sorted(found, key=lambda one: time_of(one[1].data))
        for name, line in self.results.items() if self.requests else ():
            if name not in self.requests:
                line.fault("custom_id", f"no request has the id {show_found(name)}")
        unanswered = len(self.requests.keys() - self.results.keys())
        if self.results and unanswered:
            self.warn(f"{self.path}: {count_text(unanswered, 'request')} without a result: no usage")


EVENT = re.compile(
    r"(session|conversation|response|input_audio_buffer|output_audio_buffer|rate_limits)\.[a-z_.]+|error"
)
STATED = ("model", "instructions", "tools", "tool_choice", "max_output_tokens")


def is_event(row: JsonObject) -> bool:
    kind = row.data.get("type")
    return isinstance(kind, str) and EVENT.fullmatch(kind) is not None and "request" not in row.data


class _RealtimeSession:
    """The sessions of a log while it is read: `session.created` begins another."""

    def __init__(self, notes: ReaderNotes) -> None:
        self._notes = notes
        self._stated, self._own, self._items = dict[str, Any](), dict[str, Any](), dict[str, Body]()

    def exchanges(self, row: JsonObject) -> Iterator[OpenAIExchange]:
        """Read an event; the call that it ends, if it does."""
        kind = row.data["type"]
        if kind in ("session.created", "session.updated"):
            if kind == "session.created":
                self._items, self._own = {}, {}
            self._stated = _stated_in(row.mapping("session"))
        elif kind == "response.create":
            self._own = _stated_in(row.mapping("response", required=False))
        elif kind in ("conversation.item.created", "conversation.item.added", "conversation.item.done"):
            self._add(row.mapping("item"), str(row.data.get("previous_item_id")))
        elif kind == "conversation.item.deleted":
            self._items.pop(row.text("item_id", ""), None)
        elif kind == "response.done":
            yield self._answer(row)

    def _add(self, item: Body, before: str = "") -> None:
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
        output = objects_in(response.get("output"))
        ids = {str(one.get("id")) for one in output}
        stated, self._own = {**self._stated, **self._own}, {}
        items = [item for name, item in self._items.items() if name not in ids]
        for one in output:
            self._add(one)
        usage = object_or_empty(response.get("usage"))
        details = [object_or_empty(usage.get(f"{name}_token_details")) for name in ("input", "output")]
        if any(one.get("audio_tokens") for one in details):
            self._notes.add("call", "with audio, which has its own prices")
        body = {"model": response.get("model"), **stated, "input": items}
        asked = JsonObject(body, row.faults, row.file, row.line, row.place)
        answered = row.within({**response, "object": "response", "output": output}, "response")
        session = str(response.get("conversation_id") or "")
        return asked, answered, {"timestamp": row.moment("timestamp"), "session": session}


def _stated_in(session: Mapping[str, Any]) -> dict[str, Any]:
    return {name: session[name] for name in STATED if session.get(name) is not None}
