"""Parses a captured answer: the message, its usage, an error, and the time of its first token."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachecost.conversations.readers.anthropic_batch.results import STATUS
from cachecost.conversations.readers.http.bodies import answer, decode_content
from cachecost.conversations.readers.http.streams import join_events
from cachecost.live.recorder.capture import MOST_BYTES, BodyCopy
from cachecost.prompts.wire import BareWord, NotAMessage

FIRST_CONTENT = b"event: content_block_start"
FIRST_CONTENT_TYPE = b'"content_block_start"'
INFLATED = ("gzip", "x-gzip", "deflate")


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An answer. `message` has no usage; `status` is that of an error inside a stream.

    `first_content_at` is when the first content of a stream came, in seconds since the epoch (None: not a stream, or no
    content). `is_whole`: the stream was complete.
    """

    message: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] | None = None
    error: str | None = None
    status: int | None = None
    first_content_at: float | None = None
    is_whole: bool = False


def parse_answer(copy: BodyCopy, headers: Mapping[str, str]) -> ParsedAnswer:
    """Parse an answer. Raises NotAMessage if it is damaged or its encoding is unknown."""
    encoding = headers.get("content-encoding", "")
    data = decode_body(copy.data, encoding, "response")
    if not data.strip():
        return ParsedAnswer()
    body = answer(data, headers.get("content-type", ""), "response")
    if isinstance(body, list):
        return _parse_stream(body, _first_content(copy.chunks, encoding))
    return _parse_message(body, None, is_whole=True)


def decode_body(data: bytes, encoding: str, at: str) -> bytes:
    """A body without its content coding. Raises NotAMessage if damaged, unknown, or longer than MOST_BYTES."""
    coding = encoding.strip().lower()
    if not coding or coding == "identity":
        return data
    if coding not in INFLATED:
        return decode_content(data, encoding, at)
    inflating = _inflating(coding, data)
    try:
        plain = inflating.decompress(data, MOST_BYTES)
    except zlib.error:
        raise NotAMessage(at, f"a body in {coding}", BareWord("damaged bytes")) from None
    if inflating.unconsumed_tail:
        raise NotAMessage(at, f"at most {MOST_BYTES:,} bytes", BareWord("more"))
    return plain


def _inflating(coding: str, head: bytes) -> zlib._Decompress:
    """A decompressor for gzip and both kinds of deflate: with and without zlib's header."""
    return zlib.decompressobj(-15 if coding == "deflate" and head[:1] != b"\x78" else 47)


def _parse_stream(events: list[dict[str, Any]], first_content_at: float | None) -> ParsedAnswer:
    is_whole = any(event.get("type") == "message_stop" for event in events)
    failed = next((event for event in events if event.get("type") == "error"), {})
    return _parse_message({**_message(events), **_error_of(failed)}, first_content_at, is_whole)


def _message(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The message of a stream, with the fields of its last events (`stop_reason` …)."""
    message = join_events(events, "messages")
    for event in events:
        if event.get("type") == "message_delta" and isinstance(event.get("delta"), Mapping):
            message |= event["delta"]
    return message


def _error_of(event: Mapping[str, Any]) -> dict[str, Any]:
    return {"error": event["error"]} if "error" in event else {}


def _parse_message(body: Mapping[str, Any], first_content_at: float | None, is_whole: bool) -> ParsedAnswer:
    error = body.get("error")
    kind = str(error.get("type") or "unknown") if isinstance(error, Mapping) else None
    usage = body.get("usage")
    is_message = isinstance(body.get("content"), list)
    return ParsedAnswer(
        {name: value for name, value in body.items() if name not in ("usage", "error")} if is_message else None,
        usage if isinstance(usage, Mapping) else None,
        kind,
        None if kind is None or is_message else STATUS.get(kind),
        first_content_at,
        is_whole,
    )


def _first_content(chunks: Sequence[tuple[float, bytes]], encoding: str) -> float | None:
    """When the first event with content came; the first bytes, if the encoding cannot be decoded in pieces."""
    coding = encoding.strip().lower()
    if coding and coding != "identity" and coding not in INFLATED:
        return chunks[0][0] if chunks else None
    inflating = _inflating(coding, chunks[0][1]) if coding in INFLATED and chunks else None
    seen = b""
    for at, data in chunks:
        try:
            seen += inflating.decompress(data, MOST_BYTES) if inflating else data
        except zlib.error:
            return None
        if FIRST_CONTENT in seen or FIRST_CONTENT_TYPE in seen:
            return at
        seen = seen[-len(FIRST_CONTENT) :]
    return None
