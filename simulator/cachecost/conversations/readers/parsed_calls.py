"""Calls from other tools' logs, with their bodies as Messages API bodies: most readers build their calls here.

The JSON that tools export: JSON Lines, one value a file, an array, or values printed one after another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import OutOfLimits, json_prefix, json_value
from cachecost.conversations.calls import Iteration, Call
from cachecost.conversations.input_files import Warn, first_line, read_input
from cachecost.conversations.json_object import JsonObject, json_lines
from cachecost.conversations.readers.common.message_threads import MessageThreads
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.start_times import StartTimes
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import answer_blocks, content_blocks, show_found
from cachecost.providers.hosts import host_of_message
from cachecost.providers.prices import served_params
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCall:
    """What a log says of one call.

    `body` is a Messages API body, `answer` the content blocks of the response (a list, or a text). `timestamp` is
    ISO 8601 (None: unknown), `seen_on` the day by which the call was recorded: it picks rules and prices where there is
    no timestamp. Message threads continue from `answer_id`. `served` is the answer with its usage: the service
    tier and the region that it names take the place of those in the body. The other fields are those of `Call`.
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

    def build(self, parsed: ParsedCall) -> Call:
        """The call. Raises NotAMessage with the path of what is wrong in the body, the answer or the time."""
        answer = parsed.answer if isinstance(parsed.answer, str) else list(parsed.answer)
        content = content_blocks(answer, "response.content")
        start, request = (
            self._starts.next(parsed.timestamp),
            self._intake.body(served_params(parsed.body, parsed.served)),
        )
        response = answer_blocks(content, request.deferred, self._keep)
        return Call(
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
    data = read_input(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        faults.append(Fault(str(path), "damaged JSON: not UTF-8", data.count(b"\n", 0, error.start) + 1))
        return
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
        items = enumerate(value) if isinstance(value, list) else [(-1, value)]
        for number, one in items:
            if isinstance(one, dict):
                yield JsonObject(one, faults, str(path), line, "" if number < 0 else f"[{number}].")
            else:
                place = "" if number < 0 else f"[{number}]: "
                faults.append(Fault(str(path), f"{place}expected an object; got {show_found(one)}", line))
        at = _next(text, end)


def _next(text: str, at: int) -> int:
    """Where the next value begins."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def must_hold(path: Path, expected: str, found: int, faults: list[Fault]) -> None:
    """Raises InputError with the faults; with one that the file is empty, where nothing at all was found."""
    if not found and not faults:
        faults.append(Fault(str(path), f"expected {expected}; got nothing"))
    if faults:
        raise InputError(faults)
