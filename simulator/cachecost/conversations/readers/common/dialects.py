"""Bodies and answers of which a log does not say whose API they are for -> the Messages API's.

Calls from other tools' logs, with their bodies as Messages API bodies: most readers build their calls here.

JSON that tools export: JSON Lines, one value a file, an array, or values printed one after another.

What exports of tracers have in common: entries with a parent, failures told in words, contents of any form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from operator import attrgetter
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import OutOfLimits, json_prefix, json_value
from cachecost.base.times import seconds
from cachecost.conversations.calls import Iteration, RecordedCall
from cachecost.conversations.input_files import Warn, first_line, read_input
from cachecost.conversations.json_object import JsonObject, json_lines
from cachecost.conversations.readers.common.json_values import objects_in
from cachecost.conversations.readers.common.message_threads import MessageThreads
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.openai.chat import from_chat, from_chat_message
from cachecost.conversations.readers.openai.responses import from_responses, from_responses_output
from cachecost.conversations.start_times import StartTimes
from cachecost.prompts.blocks import compact
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import NotAMessage, answer_blocks, content_blocks, show_found
from cachecost.providers.hosts import host_of_message
from cachecost.providers.prices import served_params
from cachecost.providers.usage import Usage

Body = dict[str, Any]


def parse_json_text(value: Any) -> Any:
    """JSON that stands as text, parsed; anything else, and what is cut off, as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json_value(value)
    except ValueError:
        return value


def body_from(body: Mapping[str, Any]) -> Body:
    """The Messages body of a request to whichever API. Raises NotAMessage."""
    if "messages" not in body and "input" in body:
        return from_responses(body)
    if (
        "system" in body
        or any("input_schema" in tool for tool in objects_in(body.get("tools")))
        or is_anthropic(body["messages"])
    ):
        return from_messages(body)
    return from_chat(body)


def is_anthropic(messages: Any) -> bool:
    """Whether tools are spoken of in Anthropic's blocks."""
    blocks = [block for message in objects_in(messages) for block in objects_in(message.get("content"))]
    return any(block.get("type") in ("tool_use", "tool_result") for block in blocks)


def from_messages(body: Mapping[str, Any]) -> Body:
    """A Messages body whose system prompt may have been logged as its first messages."""
    system: list[Any] = []
    messages = list(body["messages"])
    while messages and isinstance(messages[0], Mapping) and messages[0].get("role") == "system":
        system += content_blocks(messages.pop(0).get("content") or [], "system")
    return {**body, "messages": messages, **({"system": system} if system else {})}


def answer_of(response: Any) -> list[Body] | str:
    """The blocks of an answer of whichever API; none where there is none. Raises NotAMessage."""
    if not isinstance(response, Mapping):
        return response if isinstance(response, str) else []
    if isinstance(response.get("output"), list):
        return from_responses_output(response["output"])
    choices = objects_in(response.get("choices"))
    if choices:
        message = choices[0].get("message")
        return from_chat_message(message) if isinstance(message, Mapping) else []
    content = response.get("content") or []
    return (
        content
        if isinstance(content, str)
        else [
            (
                {name: value for name, value in block.items() if value is not None}
                if isinstance(block, Mapping)
                else block
            )
            for block in content
        ]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCall:
    """What a log says of one call.

    `body` is a Messages API body, `answer` the content blocks of the response (a list, or a text). `timestamp` is
    ISO 8601 (None: unknown), `seen_on` the day by which the call was recorded: it picks rules and prices where there is
    no timestamp. Message threads continue from `answer_id`. `served` is the answer with its usage: the service
    tier and the region that it names take the place of those in the body. The other fields are those of `RecordedCall`.
    """

    body: Mapping[str, Any]
    usage: Usage | None = None
    answer: Sequence[Mapping[str, Any]] | str = ()
    timestamp: str | None = None
    first_token_s: float = 0.0
    host: str | None = None
    workspace: str = ""
    status: int | None = None
    is_batch: bool = False
    iterations: tuple[Iteration, ...] = ()
    source: str = ""
    seen_on: date | None = None
    session: str = ""
    id: str = ""
    line: int = 0
    answer_id: str = ""
    served: Mapping[str, Any] = field(default_factory=dict)


class CallBuilder:
    """Builds recorded calls from parsed ones; one instance a file, so that calls share what they repeat."""

    def __init__(self, keep_content: bool = True) -> None:
        self._intake = Intake(keep_content)
        self._keep = keep_content
        self._starts = StartTimes()
        self._threads = MessageThreads()

    def build(self, parsed: ParsedCall) -> RecordedCall:
        """The call. Raises NotAMessage with the path of what is wrong in the body, the answer or the time."""
        answer = parsed.answer if isinstance(parsed.answer, str) else list(parsed.answer)
        content = content_blocks(answer, "response.content")
        start, request = (
            self._starts.next(parsed.timestamp),
            self._intake.body(served_params(parsed.body, parsed.served)),
        )
        response = answer_blocks(content, request.deferred, self._keep)
        return RecordedCall(
            self._threads.complete(request, start, parsed.answer_id, response, parsed.usage is not None),
            start,
            parsed.seen_on if parsed.timestamp is None else None,
            parsed.timestamp,
            parsed.host or host_of_message(parsed.answer_id or parsed.id),
            parsed.workspace,
            parsed.first_token_s,
            response=response,
            is_batch=parsed.is_batch,
            billed=parsed.usage,
            iterations=parsed.iterations,
            status=parsed.status,
            source=parsed.source,
            session=parsed.session,
            id=parsed.id,
            line=parsed.line,
        )


def objects(path: Path, faults: list[Fault], warn: Warn) -> Iterator[JsonObject]:
    """The objects of a file, in order; those of an array one by one. JSON Lines are read line by line.

    What is no object, and what is damaged, becomes a fault. Raises InputError if the file cannot be read.
    """
    first = first_line(path)
    if first.startswith(b"[") or first == b"{":
        yield from _values(path, faults)
    else:
        yield from json_lines(path, faults, warn)


def _values(path: Path, faults: list[Fault]) -> Iterator[JsonObject]:
    """The objects of one value, or of values that were printed one after another."""
    text = _text(path, faults)
    line = 1
    at = last = _next(text, 0)
    while at < len(text):
        line, last = line + text.count("\n", last, at), at
        try:
            value, end = json_prefix(text, at)
        except json.JSONDecodeError as error:
            reason = f"damaged JSON: {error.msg.removesuffix(' at')} at character {error.colno}"
            faults.append(Fault(str(path), reason, error.lineno))
            return
        except OutOfLimits as error:
            faults.append(Fault(str(path), str(error), line))
            return
        yield from _json_objects(value, faults, path, line)
        at = _next(text, end)


def _text(path: Path, faults: list[Fault]) -> str:
    data = read_input(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        faults.append(Fault(str(path), "damaged JSON: not UTF-8", data.count(b"\n", 0, error.start) + 1))
        return ""


def _next(text: str, at: int) -> int:
    """Where the next value begins."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _json_objects(value: Any, faults: list[Fault], path: Path, line: int) -> Iterator[JsonObject]:
    if isinstance(value, dict):
        yield JsonObject(value, faults, str(path), line)
        return
    if not isinstance(value, list):
        faults.append(Fault(str(path), f"expected an object; got {show_found(value)}", line))
        return
    for number, one in enumerate(value):
        if isinstance(one, dict):
            yield JsonObject(one, faults, str(path), line, f"[{number}].")
        else:
            faults.append(Fault(str(path), f"[{number}]: expected an object; got {show_found(one)}", line))


def must_hold(path: Path, expected: str, found: int, faults: list[Fault]) -> None:
    """Raises InputError with the faults; with one that the file is empty, where nothing at all was found."""
    if not found and not faults:
        faults.append(Fault(str(path), f"expected {expected}; got nothing"))
    if faults:
        raise InputError(faults)


FAILED = 500
"""The status of a failure whose own the trace does not tell."""
STATUS = re.compile(r"(?:Error code|status_code|HTTP)\W{0,3}([45]\d\d)\b")
"""How the SDKs' errors, as texts, tell it."""


def status_in(error: str) -> int:
    """The HTTP status that the text of an error names."""
    found = STATUS.search(error)
    return int(found[1]) if found else FAILED


def as_text(value: Any) -> list[Body]:
    """The messages of an input that is none: one text, so that the same input is the same prompt."""
    text = value if isinstance(value, str) else compact(value).decode()
    return [{"role": "user", "content": text}]


def first_token(start: str | None, first: str | None) -> float:
    """Seconds from one ISO 8601 time to another; 0 where they are not told or the wrong way round."""
    return max(0.0, round(seconds(first) - seconds(start), 6)) if start and first else 0.0


@dataclass(slots=True)
class Tracing:
    """An export while it is read. An entry is a model call if its field `kind` has one of the values `kinds`."""

    builder: CallBuilder
    kind: str
    kinds: tuple[str, ...]
    notes: ReaderNotes = field(default_factory=ReaderNotes)
    _found: list[tuple[RecordedCall, str]] = field(default_factory=list)

    def read(
        self, path: Path, expected: str, entries_of: EntriesOf, add_call: AddCall, warn: Warn
    ) -> list[RecordedCall]:
        """The calls of a file. `entries_of` yields the entries in a row, `add_call` adds one that is a model call.

        Raises InputError with every error. What was skipped, and what the export does not contain, goes to `warn`.
        """
        faults: list[Fault] = []
        rows = 0
        for row in objects(path, faults, warn):
            rows += 1
            for entry in entries_of(row):
                self._take(entry, add_call)
        must_hold(path, expected, rows, faults)
        calls = self._calls()
        self.notes.report(path, warn)
        return calls

    def _take(self, entry: JsonObject, add_call: AddCall) -> None:
        kind = entry.text(self.kind)
        if kind.lower() not in self.kinds:
            self.notes.skip("entry", f"{self.kind} '{kind}' is not a model call")
            return
        try:
            add_call(self, entry)
        except NotAMessage as fault:
            entry.faults.append(Fault(entry.file, f"{entry.place}{fault}", entry.line))

    def add(self, told: ParsedCall, parent: str) -> None:
        """One model call; `parent` is the id of the entry around it."""
        if told.usage is None and told.status is None:
            self.notes.add("call", "without usage")
        self._found.append((self.builder.build(told), parent))

    def _calls(self) -> list[RecordedCall]:
        """The calls by when they began, each once: exports have no order and pages of them overlap."""
        kept: dict[object, tuple[RecordedCall, str]] = {}
        for number, one in enumerate(self._found):
            key = one[0].id or number
            if key not in kept or (kept[key][0].billed is None and one[0].billed is not None):
                kept[key] = one
        own = list(kept.values())
        self.notes.skip("entry", "same id as another entry", len(self._found) - len(own))
        by_id = {call.id: call for call, _ in own if call.id}
        frames = {parent for call, parent in own if parent in by_id and by_id[parent].billed is None}
        inner = {parent for _, parent in own if parent in by_id} - frames
        calls = [call for call, parent in own if call.id not in frames and parent not in inner]
        self.notes.skip("model call", "recorded twice, by nested entries", len(own) - len(calls))
        return sorted(calls, key=attrgetter("start"))


EntriesOf = Callable[[JsonObject], Iterable[JsonObject]]
AddCall = Callable[[Tracing, JsonObject], None]
