"""One attempt through the official SDK: its answer, or its error and whether it may have been billed.

Answers are read up to a limit: an upstream may send without end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2
from anthropic import AsyncAnthropic, AsyncStream

from cachecost.base.structs import replace
from cachecost.conversations.calls import parse_usage
from cachecost.live.bodies import message_of_events
from cachecost.live.driver.budget import AnsweredCall
from cachecost.live.keys import redact_text

NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
"""Errors after which nothing can have reached the API."""
MAYBE_ANSWERED = frozenset({408, 502, 504, 520, 522, 524})
"""Statuses of a gateway: the API may have answered, and billed."""
COUNTED = (
    *("model", "system", "tools", "messages", "tool_choice", "thinking", "output_config", "output_format"),
    *("context_management", "cache_control", "speed"),
)
"""What count_tokens takes of a body."""
LONGEST_MESSAGE = 400
LARGEST_ANSWER = 32 << 20
"""Characters in the blocks of an answer. The longest real ones have less than a megabyte."""
DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""The field that a delta of each kind adds to its block."""
MOST_ANSWER_BYTES = 64 << 20
"""Of the body of one answer, as sent."""


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MOST_ANSWER_BYTES:
                raise httpx2.ReadError(f"the answer has more than {MOST_ANSWER_BYTES:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def bound_answer(response: httpx2.Response) -> None:
    """Give up an answer of more than MOST_ANSWER_BYTES with httpx2.ReadError. It is a hook of a client: a transport of
    its own would do so, too, but without the proxies of the environment.
    """
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _BoundedStream(response.stream)


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """An answer that started and did not end: when the call was sent, and seconds until its answer started."""

    start: float
    first_token_s: float


class AttemptFailed(Exception):
    """An attempt without a usable answer. `status` is None where there was none.

    `is_billable`: it may still have been billed. `begun`: it was answered in part. `headers` are those of the answer,
    with names in lower case.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        kind: str = "",
        headers: Mapping[str, str] | None = None,
        is_billable: bool = False,
        begun: PartialAnswer | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.headers = status, kind, headers or {}
        self.is_billable, self.begun = is_billable, begun


class Wire:
    """Sends bodies unchanged, once each. `now` is the time in seconds since the epoch.

    The client must not retry by itself. `betas` go into the header `anthropic-beta`.
    """

    def __init__(self, client: AsyncAnthropic, now: Callable[[], float], betas: tuple[str, ...] = ()) -> None:
        self._client = client
        self._now = now
        self._headers = {"anthropic-beta": ",".join(betas)} if betas else {}

    async def post(self, body: Mapping[str, Any], retry: int = 0) -> AnsweredCall:
        """One Messages call, streamed. Raises AttemptFailed."""
        reading = _StreamReader(self._now(), self._now)
        try:
            async with asyncio.timeout(3600.0):  # seconds of one answer, in which a byte may come again and again
                stream = await self._client.post(
                    "/v1/messages",
                    cast_to=object,
                    body={**body, "stream": True},
                    options={"headers": self._at_retry(retry)},
                    stream=True,
                    stream_cls=AsyncStream[Any],
                )
                await reading.read(aiter(stream))
            sent = reading.answered_call()
            return replace(sent, response=json.loads(self._without_key(json.dumps(sent.response))))
        except Exception as error:  # with any answer the call may have been billed
            raise self._fault(error, reading) from None

    async def count(self, body: Mapping[str, Any], retry: int = 0) -> int:
        """Input tokens of a body, free of charge. Raises AttemptFailed."""
        counted = {name: body[name] for name in COUNTED if name in body}
        try:
            answer: Any = await self._client.post(
                "/v1/messages/count_tokens", cast_to=object, body=counted, options={"headers": self._at_retry(retry)}
            )
            return parse_usage({"input_tokens": int(answer["input_tokens"])}, "usage").input_tokens
        except Exception as error:
            raise self._fault(error, None) from None

    def _at_retry(self, retry: int) -> dict[str, str]:
        return {**self._headers, "x-stainless-retry-count": str(retry)}

    def _fault(self, error: Exception, reading: _StreamReader | None) -> AttemptFailed:
        began = reading.begun if reading else None
        why = self._harmless(str(error) or type(error).__name__)
        if isinstance(error, anthropic.APIStatusError):
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            status = error.status_code
            body = error.body.get("error") if isinstance(error.body, Mapping) else None
            named = body if isinstance(body, Mapping) else {}
            kind, words = str(named.get("type") or ""), str(named.get("message") or "")
            message = self._harmless(words) if words else why
            if status < 300:  # an error event inside a stream that had begun
                return AttemptFailed(message, None, kind, headers, True, began)
            return AttemptFailed(message, status, kind, headers, status in MAYBE_ANSWERED, began)
        if isinstance(error, anthropic.APITimeoutError | TimeoutError):
            why = "no answer in time"
        elif isinstance(error, anthropic.APIConnectionError):
            why = self._harmless(f"no connection: {error.__cause__ or error}")
        sent = not isinstance(error.__cause__, NEVER_SENT)
        return AttemptFailed(why, None, "connection" if not sent else "lost", {}, sent, began)

    def _harmless(self, text: str) -> str:
        """`text` without the key, on one line and not too long: network errors may quote anything."""
        line = " ".join(self._without_key(text).split())
        return line if len(line) <= LONGEST_MESSAGE else line[: LONGEST_MESSAGE - 1] + "…"

    def _without_key(self, text: str) -> str:
        return redact_text(text, [key] if (key := self._client.api_key) else [])


class _StreamReader:
    """Reads a stream: its message, and the time it started.

    Deltas are joined at the end: added one by one, the 20,000 of a long answer would take minutes.
    """

    def __init__(self, start: float, now: Callable[[], float]) -> None:
        self.start = start
        self.begun: PartialAnswer | None = None
        self._now = now
        self._events: list[dict[str, Any]] = []
        self._deltas: dict[tuple[int, str], list[str]] = {}
        self._is_whole = False

    async def read(self, events: AsyncIterator[Any]) -> None:
        """Read every event, also after the end of the message, so that the stream is closed. Raises ValueError."""
        size, blocks = 0, set()
        async for event in events:
            kind = event["type"]
            if kind == "content_block_delta":
                number, delta = int(event["index"]), event["delta"]
                if (field := DELTAS.get(delta["type"])) is None:
                    continue
                if number not in blocks:
                    raise ValueError(f"a delta of block {number}, which has not begun")
                text = str(delta[field])
                size += len(text)
                self._deltas.setdefault((number, field), []).append(text)
            elif kind == "content_block_start":
                blocks.add(int(event["index"]))
                size += len(json.dumps(event["content_block"]))
                self._events.append(event)
            elif kind in ("message_start", "message_delta"):
                self._add(kind, event)
            if size > LARGEST_ANSWER:
                raise ValueError(f"the answer has more than {LARGEST_ANSWER:,} characters")
            self._is_whole = self._is_whole or kind == "message_stop"

    def _add(self, kind: str, event: dict[str, Any]) -> None:
        usage_place = event
        if kind == "message_start":
            if self.begun is not None:
                raise ValueError("a second message begins in the answer")
            self.begun = PartialAnswer(self.start, max(0.0, self._now() - self.start))
            usage_place = event["message"]
        if not isinstance(usage_place.get("usage"), dict):
            raise ValueError(f"{kind} has no usage")
        self._events.append(event)

    def answered_call(self) -> AnsweredCall:
        """The answer. Raises ValueError if the stream ended before the message did."""
        if self.begun is None or not self._is_whole:
            raise ValueError("the answer was cut off" if self.begun else "the answer is no stream of a message")
        for (number, field), parts in self._deltas.items():
            delta = {"type": "content_block_delta", "index": number, "delta": {field: "".join(parts)}}
            self._events.append(delta)
        response = message_of_events(self._events)
        usage = parse_usage(response["usage"], "usage")
        return AnsweredCall(usage, self.start, self.begun.first_token_s, response)
