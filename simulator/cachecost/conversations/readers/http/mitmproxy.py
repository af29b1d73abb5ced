"""Flows that mitmproxy, mitmdump and mitmweb save (`-w FILE`): what any client behind the proxy sent.

Read in November 2026: the source of mitmproxy 12.3 (flow format 21) and its migrations of older flows. What is read of
a flow has had the same names since format 4 (2018): `type`; of `request` and `response` `headers`, `content` as it
came, `timestamp_start`; `method`, `scheme`, `authority`, `host`, `path`; `status_code`. Flows stand in the file as they
ended; calls are sorted by when the request came.

A last flow that is cut off is left out. Flows without an answer (the client hung up) tell nothing of what was billed
and are left out; so do bodies that the proxy was told to stream tell no usage. The workspace is not told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.base.times import iso
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn, open_input, quiet
from cachecost.conversations.json_object import JsonObject, are_pairs
from cachecost.conversations.readers.http.bare_body import DamagedNetstring, TruncatedNetstring, values
from cachecost.conversations.readers.http.bodies import NO_CALL
from cachecost.conversations.readers.http.exchange import ExchangeLog, HttpExchange, headers_of
from cachecost.prompts.request import show_found

FLOW = re.compile(
    rb"\d{2,12}:(?:7:version|4:type|2:id|5:error|11:client_conn|11:server_conn|11:intercepted|9:is_replay|6:marked"
    rb"|8:metadata|7:comment|17:timestamp_created|7:request|8:response|9:websocket|6:backup|4:mode)[;,]"
)
"""The first of a flow's keys, which differs from version to version."""


def sniff(head: bytes) -> str | None:
    """Why the first bytes of a file look like flows; None if they do not."""
    return "it begins with a mitmproxy flow" if FLOW.match(head) else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[RecordedCall]:
    """The calls in the order they started. Raises InputError with every error, each with its flow."""
    log = ExchangeLog(path, keep_content)
    for number, flow in enumerate(_flows(path, log.faults, warn)):
        if not isinstance(flow, dict):
            log.faults.append(Fault(str(path), f"flows[{number}]: expected an object; got {show_found(flow)}"))
        elif _text(flow.get("type", "http")) != "http":
            log.notes.skip("entry", NO_CALL)
        else:
            entry = JsonObject(flow, log.faults, str(path), None, f"flows[{number}].")
            log.add_entry(entry, _exchange, answer_required=False)
    yield from log.end(warn, by_time=True)


def _flows(path: Path, faults: list[Fault], warn: Warn) -> Iterator[Any]:
    with open_input(path) as stream:
        try:
            yield from values(stream)
        except TruncatedNetstring:
            warn(f"{path}: skipped the last flow: incomplete (still being written?)")
        except DamagedNetstring as error:
            faults.append(Fault(str(path), f"damaged flows: {error}; the rest of the file cannot be read"))


def _exchange(_: JsonObject, request: JsonObject, response: JsonObject) -> HttpExchange:
    headers = list(_pairs(request))
    start, first = request.epoch("timestamp_start"), response.epoch("timestamp_start")
    name = next((value for key, value in headers if key.lower() == "host"), "") or _word(request, "authority", "")
    return HttpExchange(
        url=f"{_word(request, 'scheme', 'https')}://{name or _word(request, 'host', '')}{_word(request, 'path', '')}",
        method=_word(request, "method"),
        request_headers=headers_of(headers),
        request=_bytes(request),
        status=response.whole("status_code", None, bool(response.data)),
        response_headers=headers_of(_pairs(response)),
        response=_bytes(response),
        started=None if start is None else iso(start),
        first_token_s=0.0 if start is None or first is None else round(max(0.0, first - start), 6),
        request_at=f"{request.place}content",
        response_at=f"{response.place}content",
    )


def _pairs(half: JsonObject) -> Iterator[tuple[str, str]]:
    for one in half.get("headers", "an array of names and values", are_pairs, [], required=False):
        yield _text(one[0]), _text(one[1])


def _word(half: JsonObject, name: str, default: str | None = None) -> str:
    return _text(
        half.get(name, "a text", lambda value: isinstance(value, (str, bytes)), default or "", default is None)
    )


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _bytes(half: JsonObject) -> bytes:
    value: bytes = half.get("content", "bytes", lambda value: isinstance(value, bytes), b"", required=False)
    return value
