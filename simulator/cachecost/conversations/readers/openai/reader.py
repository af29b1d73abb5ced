"""Reads logs of OpenAI's Chat Completions and Responses APIs.

Source: OpenAI's API reference (chat completions, responses, batches; November 2026). Such a log is, as JSON Lines,
as one object or as an array:

- `{"request": body, "response": answer}`, which clients write themselves; "timestamp", "first_token_s", "status",
  "host", "url", "session" and "workspace" are optional, as in our own request log; without an answer, the endpoint in
  "url" or the form of a tool tells the API;
- stored completions and responses as the API returns them (`object` is "chat.completion", "response", or a "list" of
  them), with their "messages" or "input" put in. The API has those at another address (…/messages, …/input_items);
  an entry without them is skipped, with a note;
- the two files of a batch: batch.py;
- events of a session of the Realtime API: realtime.py.

A log may also hold calls of the Messages API, as one of several providers does: they are read as they were sent.

A response that goes on from another (`previous_response_id`, `conversation`) gets the items of that one before its
own, where the file has it. The time is the log's, else the answer's `created`, which is in whole seconds. The log
cannot tell where OpenAI put its implicit breakpoints, which machine answered, or what its own tools brought in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cachecost.base.errors import Fault
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.dialects import CallBuilder, must_hold, objects
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.readers.openai.exchange import (
    CHAT,
    FIRST,
    RESPONSE,
    ExchangeParser,
    OpenAIBatch,
    OpenAIExchange,
    RealtimeSession,
    is_event,
    time_of,
)
from cachecost.prompts.request import show_found

ANSWER = re.compile(rb'"object"\s*:\s*"(chat\.completion|response)"')
REQUEST = re.compile(rb'"request"\s*:\s*(?=\{)')
ENDPOINT = re.compile(rb'"url"\s*:\s*"[^"]*/(chat/completions|responses)"')
FUNCTION = re.compile(rb'"function"\s*:\s*\{\s*"(name|description|parameters|strict)"')
FUNCTION_TYPE = re.compile(rb'"type"\s*:\s*"function"')
"""Beside it: a tool of another API may have a parameter with the name `function`."""
EXPECTED = "an OpenAI log"


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is a log of OpenAI's API; None if it is not."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().removeprefix(b"[")
    keys = set(top_keys(text))
    if "custom_id" in keys:
        if {"url", "body"} <= keys and ENDPOINT.search(text):
            return 'its first line has a "custom_id" and the "url" of an endpoint'
        is_output = "response" in keys and b'"status_code"' in text
        return 'its first line has a "custom_id" and a "status_code"' if is_output else None
    if "request" in keys:
        start = REQUEST.search(text)
        request_keys = set(top_keys(text[start.end() :])) if start else set()
        if {"input", "instructions"} & request_keys and "messages" not in request_keys:
            return 'its first "request" has an "input"'
        if "messages" not in request_keys:
            return None
        if ANSWER.search(text):
            return 'its first answer is a "chat.completion"'
        if "url" in keys and ENDPOINT.search(text):
            return 'its first "url" is that of Chat Completions'
        return (
            'its first "request" has a tool of OpenAI\'s form'
            if bool(FUNCTION.search(text) and FUNCTION_TYPE.search(text))
            else None
        )
    if "event_id" in keys and FIRST.search(text):
        return "its first object is an event of a Realtime session"
    if ({"object", "choices"} <= keys or {"object", "output"} <= keys) and ANSWER.search(text):
        return 'its first object is a "chat.completion" or a "response"'
    return "it is a list of stored answers" if {"object", "data"} <= keys and ANSWER.search(text) else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[RecordedCall]:
    """The calls in the order of the file, those of a batch in the order of time. After the first error, the rest is
    only checked. Raises InputError with every error."""
    log = _OpenAILog(path, warn, keep_content)
    for call in log.calls():
        if not log.faults:
            yield call
    log.faults.sort(key=lambda fault: (fault.file != str(path), fault.line or 0))
    must_hold(path, EXPECTED, log.rows, log.faults)
    log.exchanges.notes.report(path, warn)


class _OpenAILog:
    """A log while it is read."""

    def __init__(self, path: Path, warn: Warn, keep_content: bool) -> None:
        self.path, self.warn = path, warn
        self.faults: list[Fault] = []
        self.rows = 0
        self.exchanges = ExchangeParser(CallBuilder(keep_content))
        self.batch = OpenAIBatch(path, warn)
        self.realtime = RealtimeSession(self.exchanges.notes)

    def calls(self) -> Iterator[RecordedCall]:
        for row in objects(self.path, self.faults, self.warn):
            self.rows += 1
            yield from self._build_calls(self._exchanges_in(row))
        yield from self._build_calls(self.batch.exchanges(self.faults))

    def _build_calls(self, found: Iterator[OpenAIExchange]) -> Iterator[RecordedCall]:
        return (call for one in found if (call := self.exchanges.call(one)) is not None)

    def _exchanges_in(self, row: JsonObject) -> Iterator[OpenAIExchange]:
        """What a row holds."""
        if "custom_id" in row.data:
            self.batch.add(row)
        elif "request" in row.data:
            yield from _logged_exchange(row)
        elif is_event(row):
            yield from self.realtime.exchanges(row)
        elif row.data.get("object") == "list":
            entries = row.objects("data")
            is_newest_first = bool(entries) and time_of(entries[0].data) > time_of(entries[-1].data)
            for entry in entries[::-1] if is_newest_first else entries:
                yield from self._stored_answer(entry)
        else:
            yield from self._stored_answer(row)

    def _stored_answer(self, entry: JsonObject) -> Iterator[OpenAIExchange]:
        kind = entry.data.get("object")
        if kind not in (CHAT, RESPONSE):
            entry.fault("object", f"expected '{CHAT}' or '{RESPONSE}' (or a \"request\"); got {show_found(kind)}")
        elif ("messages" if kind == CHAT else "input") not in entry.data:
            self.exchanges.notes.skip("stored answer", "its messages or input are not in the file")
        else:
            yield OpenAIExchange(entry=entry, body=entry.data, answer_in=entry, answer=entry.data)


def _logged_exchange(row: JsonObject) -> Iterator[OpenAIExchange]:
    body, answer = row.mapping("request"), row.mapping("response", required=False)
    if body is not row.data["request"]:
        return
    usage = {"usage": row.mapping("usage")} if row.has("usage") and "usage" not in answer else {}
    yield OpenAIExchange(
        entry=row,
        body=body,
        body_at="request.",
        answer_in=row,
        answer={**answer, **usage},
        answer_at="response.",
        time=row.moment("timestamp"),
        first_token_s=row.number("first_token_s") or 0.0,
        status=row.whole("status"),
        host=row.text("host", ""),
        url=row.text("url", ""),
        session=row.text("session", ""),
        workspace=row.text("workspace", ""),
    )
