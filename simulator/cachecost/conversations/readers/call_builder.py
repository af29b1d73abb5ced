"""Builds calls from other tools' logs, with their bodies as Messages API bodies, and reads the JSON that tools export:
JSON Lines, one value a file, an array, or values printed one after another."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import OutOfLimits, json_prefix, json_value
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, first_line, read_input
from cachecost.conversations.json_object import JsonObject, json_lines, parse_json, reason
from cachecost.conversations.readers.common.message_threads import MessageThreads
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.start_times import StartTimes
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import NotAMessage, answer_blocks, content_blocks, show_found
from cachecost.providers.hosts import host_of_message
from cachecost.providers.prices import served_params
from cachecost.providers.rules import VIA
from cachecost.providers.usage import Usage

T = TypeVar("T")
AN_HOUR = "-1h"
"""What ends the id of a model that keeps an hour all that it writes: its usage does not tell TTLs apart."""
NOTHING: Mapping[str, Any] = {}
WHITE = re.compile(r"[ \t\r\n]*")
REQUEST = re.compile(rb'"request"\s*:\s*(?=\{)')


class CallBuilder:
    """Builds recorded calls; one instance a file, so that calls share what they repeat."""

    def __init__(self, keep_content: bool = True) -> None:
        self._intake = Intake(keep_content)
        self._keep = keep_content
        self._starts = StartTimes()
        self._threads = MessageThreads()

    def build(
        self,
        body: Mapping[str, Any],
        *,
        usage: Usage | None = None,
        answer: Sequence[Mapping[str, Any]] | str = (),
        timestamp: str | None = None,
        seen_on: date | None = None,
        host: str | None = None,
        answer_id: str = "",
        served: Mapping[str, Any] = NOTHING,
        **fields: Any,
    ) -> Call:
        """The call of a Messages API body. Raises NotAMessage with the path of what is wrong in the body, the answer
        or the time.

        `answer` is the content blocks of the response (a list, or a text). `timestamp` is ISO 8601 (None: unknown),
        `seen_on` the day by which the call was recorded: it picks rules and prices where there is no timestamp. Message
        threads continue from `answer_id`. `served` is the answer with its usage: the service tier and the region that
        it names take the place of those in the body, and the `provider` that it names is the upstream of a gateway,
        which has a cache of its own. `fields` are the other fields of `Call`.
        """
        content = content_blocks(answer if isinstance(answer, str) else list(answer), "response.content")
        start = self._starts.next(timestamp)
        request = self._intake.body(served_params(body, served))
        if usage is not None and request.model.endswith(AN_HOUR):
            usage = replace(usage, write_5m=0, write_1h=usage.write)
        response = answer_blocks(content, request.deferred, self._keep)
        if isinstance(upstream := served.get("provider"), str) and upstream:
            fields["workspace"] = f"{fields.get('workspace', '')}{VIA}{upstream}"
        return Call(
            self._threads.complete(request, start, answer_id, response, usage is not None),
            start,
            seen_on if timestamp is None else None,
            timestamp,
            host or host_of_message(answer_id or fields.get("id", "")),
            response=response,
            billed=usage,
            **fields,
        )


@contextmanager
def errors_at(entry: JsonObject, place: str = "") -> Iterator[None]:
    """As a context: a NotAMessage that is raised within becomes an error at `place` in `entry`."""
    try:
        yield
    except NotAMessage as error:
        entry.faults.append(Fault(entry.file, f"{entry.place}{place}{error}", entry.line))


def sort_by_start(calls: Iterable[Call], traces: Collection[str]) -> list[Call]:
    """The calls by their start. A session that is one of `traces` and that only one call has is none: tracers and
    gateways make up an id for every request, and calls of different sessions never go on from each other."""
    found = sorted(calls, key=attrgetter("start"))
    times = Counter(call.session for call in found)
    return [
        replace(call, session="") if times[call.session] == 1 and call.session in traces else call for call in found
    ]


def parse_json_text(value: Any) -> Any:
    """JSON that stands as text, parsed; anything else, and what is cut off, as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json_value(value)
    except ValueError:
        return value


def first_keys(head: bytes) -> set[str]:
    """The keys of the first object of a file that begins with `head`, also where it stands in an array."""
    return set(top_keys(head.removeprefix(b"\xef\xbb\xbf").lstrip().removeprefix(b"[")))


def request_keys(head: bytes) -> set[str]:
    """The keys of the first object that stands in a field "request"."""
    start = REQUEST.search(head)
    return set(top_keys(head[start.end() :])) if start else set()


def parse_document(path: Path, data: bytes) -> Any:
    """The JSON value of a file. Raises InputError."""
    value = parse_json(data)
    if isinstance(value, ValueError):
        raise InputError([Fault(str(path), reason(value))])
    return value


def objects(path: Path, faults: list[Fault], warn: Warn, expected: str = "") -> Iterator[JsonObject]:
    """The objects of a file, in order; those of an array one by one. JSON Lines are read line by line.

    What is no object, and what is damaged, becomes an error; so does a file with nothing in it where it says what is
    `expected`. Raises InputError if the file cannot be read.
    """
    first = first_line(path)
    is_value = first.startswith(b"[") or first == b"{"
    found = _values(path, faults) if is_value else json_lines(path, faults, warn)
    return expect_any(found, path, faults, expected)


def expect_any(found: Iterable[T], path: Path, faults: list[Fault], expected: str) -> Iterator[T]:
    """The same values; if there are none, and no errors, an error that says what was `expected`."""
    is_empty = True
    for one in found:
        is_empty = False
        yield one
    if expected and is_empty and not faults:
        faults.append(Fault(str(path), f"expected {expected}; got nothing"))


def _values(path: Path, faults: list[Fault]) -> Iterator[JsonObject]:
    file, data = str(path), read_input(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        faults.append(Fault(file, "damaged JSON: not UTF-8", data.count(b"\n", 0, error.start) + 1))
        return
    line, last, at = 1, 0, 0
    while (at := WHITE.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        line, last = line + text.count("\n", last, at), at
        try:
            value, end = json_prefix(text, at)
        except json.JSONDecodeError as error:
            message = f"damaged JSON: {error.msg.removesuffix(' at')} at character {error.colno}"
            faults.append(Fault(file, message, error.lineno))
            return
        except OutOfLimits as error:
            faults.append(Fault(file, str(error), line))
            return
        for number, one in enumerate(value) if isinstance(value, list) else [(-1, value)]:
            place = "" if number < 0 else f"[{number}]"
            if isinstance(one, dict):
                yield JsonObject(one, faults, file, line, place and f"{place}.")
            else:
                faults.append(Fault(file, f"{place and f'{place}: '}expected an object; got {show_found(one)}", line))
        at = end
