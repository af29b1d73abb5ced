"""HAR 1.2 archives: HTTP exchanges as browsers, Charles, Fiddler, Proxyman, mitmproxy and Polly.js save them.

Read in November 2026: the HAR 1.2 specification (Odvarko; the copy at ahmadnassri/har-spec). One JSON object,
`log.entries`; an entry has `startedDateTime`, `request` (`postData.text`), `response` (`content.text`, base64 where
`content.encoding` is "base64") and `timings` in milliseconds, -1 where one does not apply. Calls are sorted by start.

The first byte comes after blocked + dns + connect + send + wait (`ssl` is within `connect`). Browsers drop the bodies
of streams and of large answers: then a call has no usage. There are no sessions and no workspaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cachecost.base.errors import Fault, InputError
from cachecost.base.times import iso
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet, read_input
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.call_builder import parse_document
from cachecost.conversations.readers.http.exchange import (
    ExchangeLog,
    HttpExchange,
    decode_base64,
    encode_body,
    headers_of,
    is_status,
)
from cachecost.prompts.request import show_found


def sniff(head: bytes) -> str | None:
    """Why the first bytes of a file look like an archive; None if they do not."""
    begins = rb'\s*\{\s*"log"\s*:\s*\{\s*"(version|creator|browser|pages|entries|comment|_\w+)"\s*:'
    found = re.match(begins, head.removeprefix(b"\xef\xbb\xbf"))
    return 'it begins with the "log" of a HAR archive' if found else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls in the order they started. Raises InputError with every error, each with its entry."""
    log = ExchangeLog(path, keep_content)
    value = parse_document(path, read_input(path))
    if not isinstance(value, dict):
        raise InputError([Fault(str(path), f"expected an object; got {show_found(value)}")])
    whole = JsonObject(value, log.faults, str(path))
    archive = whole.within(whole.mapping("log"), "log")
    archive.get("entries", "an array", lambda entries: isinstance(entries, list), [])
    for entry, request, response in log.halves(archive.objects("entries")):
        posted, content = (
            half.within(half.mapping(name, required=False), name)
            for half, name in ((request, "postData"), (response, "content"))
        )
        status: int = response.get("status", "an HTTP status", lambda value: is_status(value, 0, -1), 0)
        timings = entry.mapping("timings", required=False)
        spent = [timings.get(name) for name in ("blocked", "dns", "connect", "send", "wait")]
        exchange = HttpExchange(
            url=request.text("url"),
            method=request.text("method"),
            request_headers=_headers(request),
            request=_bytes(posted),
            status=status if status > 0 else None,
            response_headers=_headers(response),
            response=_bytes(content),
            started=iso(entry.time("startedDateTime")),
            first_token_s=sum(float(one) for one in spent if isinstance(one, (int, float)) and one > 0) / 1000,
            request_at=f"{posted.place}text",
            response_at=f"{content.place}text",
        )
        log.add(exchange)
    yield from log.end(warn, by_time=True)


def _headers(half: JsonObject) -> dict[str, str]:
    return headers_of((str(one.data.get("name")), str(one.data.get("value"))) for one in half.objects("headers"))


def _bytes(body: JsonObject) -> bytes:
    text = body.text("text", "")
    is_coded = body.text("encoding", "") == "base64"
    return decode_base64(body, "text", text) if is_coded else encode_body(body, "text", text)
