"""Bodies of HTTP messages as servers, recorders and clients read them: compressed ones, and answers in events."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from cachecost.conversations.readers.apis.formats import join_message

COMPRESSIONS = ("gzip", "x-gzip", "deflate")


def decompressor(compression: str, head: bytes) -> zlib._Decompress:
    """What decompresses a body in one of COMPRESSIONS that begins with `head`. Some clients send deflate without its
    header, which gives the method 8 in its low bits (RFC 1950, 2.2).
    """
    is_raw = compression == "deflate" and head[:1] != b"" and head[0] & 15 != 8
    return zlib.decompressobj(-zlib.MAX_WBITS if is_raw else 32 + zlib.MAX_WBITS)


def message_of_events(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The Messages answer that a stream makes, with the fields of its last events (`stop_reason` …)."""
    message = join_message(events)
    for event in events:
        if event.get("type") == "message_delta" and isinstance(event.get("delta"), Mapping):
            message |= event["delta"]
    return message
