"""Sends calls within a budget: reserve the upper bound, send by the official SDK, settle by the bill, retry if that may
help. Answers are read up to a limit, as an upstream may send without end.

The journal of a run has a line before each attempt and after, so that a run that was killed does not pay twice. JSON
Lines, each line one write. `run` names the run, its plan's digest and the scenario; `reserved` stands before an
attempt, with the most it can cost; then `done`, `released` (not billed), `lost` (perhaps billed), `failed` (no retry).
A `done` line whose usage cannot be what was billed has `doubt`, why, and `unknown_usd`, what more counts as spent.
A reservation without a later line was interrupted: it counts as spent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import anthropic
import httpx2
from anthropic import AsyncAnthropic, AsyncStream

from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.formatting import exact, exact_dollars
from cachecost.base.limits import MOST_TOKENS, json_value
from cachecost.base.structs import replace
from cachecost.base.times import day_of
from cachecost.conversations.calls import parse_usage
from cachecost.live.clock import Clock, moment
from cachecost.live.driver.budget import (
    AnsweredCall,
    CallFailed,
    CallPricing,
    DollarBudget,
    OverBilled,
    Reservation,
    TokenBounds,
    bounds_of_bytes,
    bounds_of_count,
    find_doubts,
    unbounded_reason,
)
from cachecost.live.keys import redact_text
from cachecost.live.request_log import CallLog, LineFile, input_errors, last_line_end, message_of_events
from cachecost.prompts.request import NotAMessage
from cachecost.providers.usage import ZERO

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
        self._client, self._now = client, now
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
                if (name := DELTAS.get(delta["type"])) is None:
                    continue
                if number not in blocks:
                    raise ValueError(f"a delta of block {number}, which has not begun")
                text = str(delta[name])
                size += len(text)
                self._deltas.setdefault((number, name), []).append(text)
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
        for (number, name), parts in self._deltas.items():
            delta = {"type": "content_block_delta", "index": number, "delta": {name: "".join(parts)}}
            self._events.append(delta)
        response = message_of_events(self._events)
        usage = parse_usage(response["usage"], "usage")
        return AnsweredCall(usage, self.start, self.begun.first_token_s, response)


@dataclass(slots=True)
class RunState:
    """The state of a run: calls by label, and dollars. `unknown` is the upper bound of attempts without a bill."""

    run: str = ""
    digest: str = ""
    at: float = 0.0
    done: dict[str, AnsweredCall] = field(default_factory=dict)
    dollars: dict[str, Decimal] = field(default_factory=dict)
    begun: list[tuple[str, PartialAnswer]] = field(default_factory=list)
    unknown_calls: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    unknown: Decimal = ZERO
    open: dict[str, Decimal] = field(default_factory=dict)

    @property
    def billed_usd(self) -> Decimal:
        return sum(self.dollars.values(), ZERO)

    @property
    def cached_tokens(self) -> int:
        """Tokens that the calls so far may have cached; no limit where a bill is unknown."""
        if self.unknown:
            return MOST_TOKENS
        return sum(sent.usage.write for sent in self.done.values())

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply one line. Raises KeyError, ValueError, TypeError, NotAMessage if it is damaged."""
        kind = line["kind"]
        if kind == "run":
            self.run, self.digest, self.at = str(line["id"]), str(line["digest"]), float(line["planned_at"])
            return
        call = str(line["call"])
        if kind == "reserved":
            self._cut_off(call)
            self.open[call] = Decimal(line["usd"])
        elif kind == "done":
            self.open.pop(call, None)
            self.done[call] = AnsweredCall(
                parse_usage(line["usage"], "usage"),
                float(line["start"]),
                float(line["first_token_s"]),
                line["response"],
                str(line.get("doubt", "")),
                Decimal(line.get("unknown_usd", 0)),
            )
            self.dollars[call] = Decimal(line["usd"])
            self.unknown += self.done[call].unknown_usd
            self.failed.pop(call, None)
        elif kind == "released":
            self.open.pop(call, None)
        elif kind == "lost":
            self._cut_off(call)
            if line["start"] is not None:
                self.begun.append((call, PartialAnswer(float(line["start"]), float(line["first_token_s"]))))
        elif kind == "failed":
            self.failed[call] = str(line["message"])
        else:
            raise ValueError(f"kind: got '{kind}'")

    def _cut_off(self, call: str) -> None:
        if call in self.open:
            self.unknown += self.open.pop(call)
            self.unknown_calls[call] = self.unknown_calls.get(call, 0) + 1

    def close(self) -> None:
        for call in list(self.open):
            self._cut_off(call)


def read_journal(path: Path) -> RunState:
    """The state in a journal; an incomplete last line is ignored. Raises InputError with every error."""
    state, faults = RunState(), []
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Fault(str(path), f"cannot be read: {error}")]) from None
    for number, line in enumerate(lines[:-1], 1):
        try:
            state.apply(json_value(line))
        except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation, NotAMessage) as error:
            faults.append(Fault(str(path), f"expected a line of a journal; got a damaged one ({error})", number))
    if not faults and not state.run:
        faults.append(Fault(str(path), "expected the journal of a run; got a file without one"))
    if faults:
        raise InputError(faults)
    state.close()
    return state


def recorded_fields(label: str, sent: AnsweredCall | PartialAnswer) -> dict[str, Any]:
    """The fields of a call in the recording. Each strategy is a workspace and a session of its own.

    An answer that was cut off has no usage: it affects the cache and is not compared."""
    name = label.rpartition("/")[0]
    record = {
        "call": label,
        "timestamp": moment(sent.start),
        "first_token_s": round(sent.first_token_s, 6),
        "workspace": name,
        "session": name,
    }
    if isinstance(sent, PartialAnswer):
        return record
    return {**record, "usage": sent.usage.wire(), "response": {**sent.response, "usage": sent.usage.wire()}}


def recorded_body(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


class Journal:
    """Writes the journal at `path`, or continues it; `state` is what it holds.

    It is notified of each attempt, before it is sent and after. `log` is the recording of a run: each answered call is
    written there, after its line in the journal.
    """

    def __init__(self, path: Path, run: str, digest: str, scenario: str, options: Mapping[str, Any], at: float) -> None:
        self.path = path
        self.log: CallLog | None = None
        with input_errors(path, "another `cachecost live` continues this run"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = LineFile(path)
        try:
            is_old = self._file.size > 0
            self.state = read_journal(path) if is_old else RunState(run, digest, at)
            if self.state.digest != digest:
                problem = "expected the same scenario, options and version as when the run started"
                raise InputError([Fault(str(path), problem)])
            with path.open("rb") as stream:
                self._file.truncate(last_line_end(stream, self._file.size))
        except BaseException:
            self._file.close()
            raise
        if not is_old:
            self._add("run", id=run, format=1, scenario=scenario, digest=digest, planned_at=at, options=dict(options))

    def on_reserved(self, label: str, retry: int, dollars: Decimal) -> None:
        self._add("reserved", call=label, retry=retry, usd=exact(dollars))

    def on_answered(
        self, label: str, retry: int, sent: AnsweredCall, dollars: Decimal, body: Mapping[str, Any]
    ) -> None:
        times = {"start": sent.start, "first_token_s": sent.first_token_s}
        answer = {"usage": sent.usage.wire(), "usd": exact(dollars), "response": sent.response}
        doubt = {"doubt": sent.doubt, "unknown_usd": exact(sent.unknown_usd)} if sent.doubt else {}
        self._add("done", call=label, retry=retry, **times, **answer, **doubt)
        self._record(label, sent, body)

    def on_released(self, label: str, retry: int, fault: AttemptFailed) -> None:
        self._add("released", call=label, retry=retry, status=fault.status, message=str(fault))

    def on_lost(self, label: str, retry: int, fault: AttemptFailed, dollars: Decimal, body: Mapping[str, Any]) -> None:
        begun = fault.begun
        times = {name: getattr(begun, name, None) for name in ("start", "first_token_s")}
        self._add("lost", call=label, retry=retry, usd=exact(dollars), status=fault.status, message=str(fault), **times)
        if begun:
            self._record(label, begun, body)

    def on_failed(self, label: str, fault: CallFailed) -> None:
        self._add("failed", call=label, status=fault.status, message=str(fault))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _record(self, label: str, sent: AnsweredCall | PartialAnswer, body: Mapping[str, Any]) -> None:
        if self.log is not None:
            self.log.append(recorded_fields(label, sent), recorded_body(body))

    def _add(self, kind: str, **fields: Any) -> None:
        line = {"kind": kind, **fields}
        self._file.append_lines(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self.state.apply(line)


AGAIN = frozenset({408, 409, 429})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `most` retries of a call; waits are drawn from `seed`, so the same run waits the same."""

    most: int = 4
    seed: str = ""

    def wait(self, fault: AttemptFailed, retry: int, label: str, now: float) -> float | None:
        """Seconds to wait before the `retry`-th retry (from 1) of a call; None: do not retry."""
        header = fault.headers.get("x-should-retry")
        is_worth_it = fault.status is None or fault.status in AGAIN or fault.status >= 500
        if fault.status is not None and header in ("true", "false"):
            is_worth_it = header == "true"
        if retry > self.most or not is_worth_it:
            return None
        asked = asked_for(fault.headers, now)
        if asked is not None:
            return asked if asked <= 900.0 else None  # a call is not retried if the server asks for a longer wait
        wait = min(0.5 * 2.0 ** (retry - 1), 60.0)  # doubled each time, at most a minute
        drawn = int.from_bytes(blake2b(f"{self.seed}/{label}/{retry}".encode(), digest_size=4).digest()) / 2**32
        return wait * (1 - 0.25 * drawn)  # so that parallel calls do not retry together


def asked_for(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that `retry-after-ms` or `retry-after` (seconds, or a date) ask for; None where they do not."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        return max(0.0, seconds) if seconds == seconds else None
    try:
        date = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    zoned = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (zoned - datetime.fromtimestamp(now, UTC)).total_seconds())


class BudgetedSender:
    """A Sender. Calls may be sent in parallel; each reserves the most it can cost.

    `cached` are the tokens that calls of the same run may have cached before.
    """

    def __init__(
        self,
        wire: Wire,
        pricing: CallPricing,
        budget: DollarBudget,
        clock: Clock,
        retries: RetryPolicy,
        journal: Journal | None = None,
        cached: int = 0,
    ) -> None:
        self.budget, self.pricing = budget, pricing
        self._wire, self._clock, self._retries, self._journal = wire, clock, retries, journal
        self._cached = cached
        """With all tokens of attempts that are under way or whose bill is unknown."""

    async def send(self, body: Mapping[str, Any], label: str = "") -> AnsweredCall:
        """Send one call. Raises OverBudget before an attempt, CallFailed after the last, OverBilled at once."""
        if why := unbounded_reason(body):
            raise CallFailed(f"not sent: {why}", None, "unbounded")
        try:
            counted = await self.count(body)
        except CallFailed as fault:
            if fault.status in (401, 403):
                raise
            bounds, why = bounds_of_bytes(body), f"failed, and the size of images gives no token count ({fault})"
        else:
            why = f"says {counted:,}, too few for so much text, and the size of images gives no token count"
            bounds = bounds_of_count(counted, body) or bounds_of_bytes(body)
        if bounds is None:
            raise CallFailed(f"not sent: count_tokens {why}", None, "unbounded")
        try:
            worst = self.pricing.worst(body, bounds.most, day_of(self._clock.now()))
        except CannotEvaluate as error:
            raise CallFailed(f"not sent: {error}", None, "unpriced") from None
        for retry in range(self._retries.most + 1):
            reservation = await self.budget.reserve(worst)
            try:
                return await self._attempt(body, label, retry, reservation, bounds)
            except AttemptFailed as fault:
                await self._wait(fault, retry + 1, label)
        raise AssertionError("the last retry is not waited for")

    async def count(self, body: Mapping[str, Any]) -> int:
        """Input tokens by the count_tokens endpoint. Raises CallFailed."""
        for retry in range(self._retries.most + 1):
            try:
                return await self._wire.count(body, retry)
            except AttemptFailed as fault:
                await self._wait(fault, retry + 1, "count_tokens")
        raise AssertionError("the last retry is not waited for")

    async def _attempt(
        self, body: Mapping[str, Any], label: str, retry: int, reservation: Reservation, bounds: TokenBounds
    ) -> AnsweredCall:
        """One attempt. In any case its reservation is settled, or stays charged."""
        if self._journal:
            self._journal.on_reserved(label, retry, reservation.dollars)
        self._cached += bounds.most
        try:
            sent = await self._wire.post(body, retry)
        except AttemptFailed as fault:
            if fault.is_billable:
                self.budget.keep(reservation)
                if self._journal:
                    self._journal.on_lost(label, retry, fault, reservation.dollars, body)
            else:
                self.budget.release(reservation)
                if self._journal:
                    self._journal.on_released(label, retry, fault)
                self._cached -= bounds.most
            raise
        except BaseException:
            self.budget.keep(reservation)
            raise
        try:
            dollars = self.pricing.cost(body, sent.usage, day_of(sent.start))
        except CannotEvaluate as error:
            self.budget.keep(reservation)
            raise OverBilled(f"a bill that cannot be priced: {error}") from None
        doubts = "; ".join(find_doubts(sent, body, bounds, self._cached - bounds.most))
        if doubts:
            most = reservation.dollars
            doubt = f"the usage is not believed ({doubts}), so {exact_dollars(most)} counts as spent"
            sent = replace(sent, doubt=doubt, unknown_usd=max(ZERO, most - dollars))
        else:
            self._cached += sent.usage.write - bounds.most
        self.budget.settle(reservation, dollars, sent.unknown_usd)
        if self._journal:
            self._journal.on_answered(label, retry, sent, dollars, body)
        return sent

    async def _wait(self, fault: AttemptFailed, retry: int, label: str) -> None:
        """Wait before the next attempt. Raises CallFailed if there is none."""
        wait = self._retries.wait(fault, retry, label, self._clock.now())
        if wait is None:
            raise CallFailed(str(fault), fault.status, fault.kind) from None
        await self._clock.sleep(wait)


TIMEOUT_S = 300.0
"""Seconds without a byte after which an answer is given up."""


@asynccontextmanager
async def sender_to(
    key: str,
    base_url: str | None,
    pricing: CallPricing,
    budget: DollarBudget,
    clock: Clock,
    retries: RetryPolicy,
    journal: Journal | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
    betas: tuple[str, ...] = (),
    timeout_s: float = TIMEOUT_S,
    cached: int = 0,
) -> AsyncIterator[BudgetedSender]:
    """A BudgetedSender while the body runs. `base_url` None is the API itself; tests give a `transport`.

    Redirects are not followed: they would carry the key elsewhere.
    """
    timeout = httpx2.Timeout(timeout_s, connect=10.0)
    hooks = {"response": [bound_answer]}
    async with (
        httpx2.AsyncClient(transport=transport, timeout=timeout, follow_redirects=False, event_hooks=hooks) as http,
        AsyncAnthropic(api_key=key, base_url=base_url, max_retries=0, timeout=timeout, http_client=http) as client,
    ):
        yield BudgetedSender(Wire(client, clock.now, betas), pricing, budget, clock, retries, journal, cached)
