"""An incoming request: its workspace, API version, and decoded body.

What each API that the server speaks must have. Between its ends, every call is a Messages call.

The answer to a call, as one object and as a stream of events.

An answer cut to `max_tokens`.

One call from its body to its answer. It is billed and recorded before a byte is sent.
"""

from __future__ import annotations

import json
import math
import re
import traceback
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from cachecost.base.errors import CannotEvaluate
from cachecost.live.clock import moment
from cachecost.live.keys import query_secrets, remove_secrets, secrets_in, secrets_of, workspace_of
from cachecost.live.server.model import (
    INVALID,
    ApiError,
    CallCharge,
    ClientCall,
    DetailedError,
    ModelAnswer,
    ResolvedCall,
    count_fault,
    error_body,
    invalid,
    not_a_message,
    of_status,
    unknown_model,
)
from cachecost.live.server.state import ERRORS, InjectedFault, ServerState
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import NotAMessage

if TYPE_CHECKING:
    from cachecost.live.server.state import ServerState


Wire = dict[str, Any]
EVENTS = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ServedResponse:
    """What goes to the client of `api`: an answer or an error, when, and a fault to inject.

    `message` is an answer of the Messages API, `sent` the body as the client sent it. `start` is when the call began,
    in seconds since the epoch; `thinking_tokens` are part of the output.
    """

    request_id: str
    message: Mapping[str, Any] | ApiError
    api: ServedApi
    sent: Mapping[str, Any] = field(default_factory=dict)
    start: float = 0.0
    streams: bool = False
    first_token_s: float = 0.0
    seconds: float = 0.0
    fault: InjectedFault | None = None
    thinking_tokens: int = 0


class ServedApi(Protocol):
    """How an API words its calls, answers and errors; each inherits from it what it does not do otherwise.

    `name` is what a record calls it (None: the Messages API), `id_prefix` begins the ids of its answers, and
    `stream_type` is the content type of a stream.
    """

    @property
    def name(self) -> str | None: ...
    @property
    def id_prefix(self) -> str: ...
    @property
    def stream_type(self) -> str: ...

    def header_fault(self, headers: Mapping[str, str]) -> ApiError | None:
        """Why these headers are refused."""
        ...

    def resolve(self, served: ServerState, arrived: ReceivedCall, start: float) -> ResolvedCall | ApiError:
        """The complete Messages call of a body. Raises NotAMessage."""
        ...

    def fault(self, arrived: ReceivedCall, resolved: ResolvedCall) -> ApiError | None:
        """The first error in a complete call, apart from its prompt."""
        return None

    def is_streamed(self, sent: Mapping[str, Any]) -> bool:
        """Whether the answer to a valid body is a stream."""
        return bool(sent.get("stream"))

    def with_own_ids(self, content: list[Mapping[str, Any]], body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The blocks of an answer, with ids of tool calls as this API writes them. `body` is the Messages call."""
        return content

    def keep(self, served: ServerState, arrived: ReceivedCall, resolved: ResolvedCall, answer: ServedResponse) -> None:
        """Store what later calls may refer to."""
        return

    def status(self, refused: ApiError) -> int:
        """The HTTP status of an error."""
        return refused.status

    def error(self, refused: ApiError, request_id: str) -> Wire:
        """The body of an error."""
        ...

    def whole(self, answer: ServedResponse) -> Mapping[str, Any]:
        """The answer as one object."""
        ...

    def events(self, answer: ServedResponse) -> Iterator[bytes]:
        """The answer as a stream."""
        ...


MOST_PIECES = 40
LETTERS = 24
"""The usual length of a piece of streamed text; a long text comes in MOST_PIECES."""


def message_of(asked: ClientCall, answer: ModelAnswer, metered: CallCharge) -> Wire:
    """The Messages API's answer."""
    message: Wire = {
        "id": asked.id,
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": [dict(block) for block in answer.content],
        "stop_reason": answer.stop_reason,
        "stop_sequence": None,
        "stop_details": None,
        "usage": _usage(asked.body, metered),
    }
    if asked.wants_diagnostics:
        message["diagnostics"] = metered.diagnostics
    if isinstance(asked.body.get("context_management"), Mapping):
        message["context_management"] = {"applied_edits": []}
    return message


def _usage(body: Mapping[str, Any], metered: CallCharge) -> Wire:
    geo = "us" if body.get("inference_geo") == "us" else "global"
    usage = {**metered.usage.wire(), "service_tier": "standard", "inference_geo": geo}
    return {**usage, "speed": body["speed"]} if body.get("speed") else usage


def events_of(message: Mapping[str, Any]) -> Iterator[Wire]:
    """The events of the same answer as it streams; the `ping` comes once the answer has begun."""
    usage = message["usage"]
    head = {name: value for name, value in message.items() if name != "context_management"}
    first = min(1, usage["output_tokens"])
    begun = {**head, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": first}}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": _begin_block(block)}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield _end(message)
    yield {"type": "message_stop"}


def _end(message: Mapping[str, Any]) -> Wire:
    """The last delta. Its usage does not split writes by TTL."""
    stops = ("stop_reason", "stop_sequence", "stop_details")
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    event: Wire = {
        "type": "message_delta",
        "delta": {name: message[name] for name in stops},
        "usage": {name: message["usage"][name] for name in names},
    }
    if "context_management" in message:
        event["context_management"] = message["context_management"]
    return event


GROWING: dict[str, Wire] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
    "server_tool_use": {"input": {}},
    "mcp_tool_use": {"input": {}},
}
"""The fields of a block that are streamed in pieces, and their first value. Other blocks come whole."""


def _begin_block(block: Mapping[str, Any]) -> Wire:
    begun = {**block, **GROWING.get(str(block.get("type")), {})}
    if begun.get("citations"):
        begun["citations"] = []
    return begun


def _deltas(block: Mapping[str, Any]) -> Iterator[Wire]:
    kind = str(block.get("type"))
    if kind == "text":
        yield from ({"type": "citations_delta", "citation": one} for one in block.get("citations") or ())
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(block["text"]))
    elif kind == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"]))
        yield {"type": "signature_delta", "signature": block.get("signature") or ""}
    elif kind in GROWING:
        text = json.dumps(block.get("input") or {}, ensure_ascii=False)
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(text)))


def pieces(text: str) -> Iterator[str]:
    """The pieces of a streamed text: at least three if it has as many characters."""
    parts = min(MOST_PIECES, max(3, len(text) // LETTERS))
    size = max(1, -(-len(text) // parts))
    return (text[start : start + size] for start in range(0, len(text), size))


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Compact JSON; a lone surrogate is escaped, since it cannot be encode_record."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def as_bytes(events: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Server-sent events."""
    for event in events:
        yield b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), encode_json(event))


LARGEST = 32 * 1024 * 1024
"""Bytes of a Messages body, as sent and unpacked (Anthropic's request size limits)."""
RETRY = "x-stainless-retry-count"
PLACEHOLDER = "anything"
"""The key that `serve` suggests. It is an ordinary word, not a secret."""
MOST_NESTED = 200
"""Levels of a body. A schema has about ten; functions that walk a body recurse once or twice per level."""
MOST_RETRIES = 10**9
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
NO_JSON = "The request body is not valid JSON"
TOO_LARGE = "Request exceeds the maximum size"
WINDOW = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


@dataclass(frozen=True, slots=True)
class ReceivedCall:
    """A call with valid headers and body. `data` is the decoded body as bytes, `body` the parsed object.

    The call's API key and its credentials for other servers are removed from the body: everything that is shown,
    recorded or answered comes from here.
    """

    body: Mapping[str, Any]
    data: bytes
    version: str
    workspace: str
    retry: int


async def receive_call(
    api: ServedApi, headers: Mapping[str, str], chunks: AsyncIterator[bytes], query: str = ""
) -> ReceivedCall | ApiError:
    """Read a call of `api` to its end and parse it. `query` is that of its URL, which may hold the key."""
    sent = await _collect_body(chunks)
    if fault := api.header_fault(headers):
        return fault
    data = of_status(413, TOO_LARGE) if sent is None else unpack_body(sent, headers.get("content-encoding", ""))
    if isinstance(data, ApiError):
        return data
    clean = remove_secrets(data, secrets_of([*keys_in(headers), *query_secrets(query)], data))
    body, retry = _parse_body(clean), _retry(headers)
    if isinstance(body, ApiError):
        return body
    if isinstance(retry, ApiError):
        return retry
    return ReceivedCall(body, clean, headers.get("anthropic-version", ""), workspace_of(headers), retry)


def keys_in(headers: Mapping[str, str]) -> list[str]:
    """The call's keys, which must not be shown or stored."""
    return [secret for secret in secrets_in(headers.items()) if secret != PLACEHOLDER]


async def _collect_body(chunks: AsyncIterator[bytes]) -> bytes | None:
    """The body, or None if it is too large. It is read to its end either way, because clients answer only then."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size <= LARGEST:
            parts.append(chunk)
    return b"".join(parts) if size <= LARGEST else None


def unpack_body(data: bytes, encodings: str) -> bytes | ApiError:
    """Decode a body's content encodings, the last one first. At most LARGEST bytes are produced."""
    for encoding in reversed([name.strip().lower() for name in encodings.split(",")]):
        if encoding in ("", "identity"):
            continue
        if encoding not in WINDOW:
            return _encoding("unsupported", f"content-encoding: '{encoding}' is not supported; use gzip or deflate")
        try:
            window = WINDOW[encoding]
            unpacker = zlib.decompressobj(window)
            try:
                made = unpacker.decompress(data, LARGEST + 1)
            except zlib.error:
                if window != zlib.MAX_WBITS:
                    raise
                unpacker = zlib.decompressobj(-zlib.MAX_WBITS)  # some clients send deflate without its header
                made = unpacker.decompress(data, LARGEST + 1)
            if not unpacker.eof and len(made) <= LARGEST:
                raise zlib.error("incomplete")
            data = made
        except zlib.error:
            return _encoding("invalid", f"The request body is not valid for its content-encoding '{encoding}'")
        if len(data) > LARGEST:
            code = {"error_code": "request_body_too_large_after_decoding"}
            return DetailedError(413, "request_too_large", TOO_LARGE, details=code)
    return data


def _encoding(code: str, message: str) -> ApiError:
    return DetailedError(400, INVALID, message, details={"error_code": f"request_body_encoding_{code}"})


def _parse_body(data: bytes) -> Mapping[str, Any] | ApiError:
    try:
        body = json.loads(data.decode(), parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        return invalid(NO_JSON)
    if not isinstance(body, Mapping):
        return invalid("Input should be a valid dictionary")
    if _is_nested_deeper(body, MOST_NESTED):
        return invalid(f"{NO_JSON}: nested more than {MOST_NESTED} levels deep")
    if SURROGATE.search(data) and _has_lone_surrogate(body):
        return invalid(f"{NO_JSON}: lone surrogate in a string")
    return body


def _no_number(word: str) -> None:
    """Python parses `NaN` and `Infinity` as numbers. JSON does not, and they would damage a log."""
    raise ValueError(word)


def _finite(word: str) -> float:
    """Python parses a number beyond the range of floats, like 1e400, as infinite, which JSON cannot express."""
    if math.isinf(number := float(word)):
        raise ValueError(word)
    return number


def _is_nested_deeper(value: Any, most: int) -> bool:
    """Whether `value` has more than `most` levels of objects and lists."""
    level = [value]
    for _ in range(most):
        level = [inner for one in level for inner in _inner(one)]
        if not level:
            return False
    return True


def _inner(value: Any) -> Iterable[Any]:
    inner = value.values() if isinstance(value, dict) else value
    return (one for one in inner if isinstance(one, dict | list))


def _has_lone_surrogate(body: Mapping[str, Any]) -> bool:
    """Python parses half of a surrogate pair, but it cannot be encode_record."""
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _retry(headers: Mapping[str, str]) -> int | ApiError:
    """The number in the header; 0 without one."""
    value = headers.get(RETRY, "")
    if not (value.isascii() and value.isdecimal()):
        return 0
    count = int(value[: len(str(MOST_RETRIES)) + 1])
    return count if count < MOST_RETRIES else invalid(f"{RETRY}: expected fewer than {MOST_RETRIES:,} retries")


Blocks = Sequence[Mapping[str, Any]]
Count = Callable[[Mapping[str, Any]], int]


def within(answer: ModelAnswer, model: str, most: int, count: Count) -> ModelAnswer:
    """`answer`, cut to `most` tokens. Raises what `count` raises."""
    if most == 0:
        return replace(answer, content=(), stop_reason="max_tokens", seconds=answer.first_token_s)
    if sum(len(encode_json(block)) for block in answer.content) <= most:
        return answer
    measure = _Measure(model, count)
    if measure.tokens(answer.content) <= most:
        return answer
    return replace(answer, content=_fitting(answer.content, most, measure), stop_reason="max_tokens")


class _Measure:
    """Tokens of blocks as the meter counts them."""

    def __init__(self, model: str, count: Count) -> None:
        self._model = model
        self._count = count
        self._bare = self._of([])

    def tokens(self, blocks: Blocks) -> int:
        return self._of(blocks) - self._bare

    def _of(self, blocks: Blocks) -> int:
        said = [{"role": "assistant", "content": [dict(block) for block in blocks]}] if blocks else []
        asks: list[Mapping[str, Any]] = [{"role": "user", "content": "?"}]
        return self._count({"model": self._model, "messages": asks + said})


def _fitting(blocks: Blocks, most: int, measure: _Measure) -> list[Mapping[str, Any]]:
    taken: list[Mapping[str, Any]] = []
    for block in blocks:
        if measure.tokens([*taken, block]) <= most:
            taken.append(block)
            continue
        if block.get("type") == "text" and (text := _longest(block, taken, most, measure)):
            taken.append({"type": "text", "text": text})
        break
    return taken


def _longest(block: Mapping[str, Any], taken: Blocks, most: int, measure: _Measure) -> str:
    text, low, high = str(block["text"]), 0, len(block["text"])
    while low < high:
        middle = (low + high + 1) // 2
        fits = measure.tokens([*taken, {"type": "text", "text": text[:middle]}]) <= most
        low, high = (middle, high) if fits else (low, middle - 1)
    return text[:low]


@dataclass(frozen=True, slots=True)
class _Call:
    """A running call. `data` is the body as the log keeps it."""

    api: ServedApi
    arrived: ReceivedCall
    id: str
    number: int
    start: float
    resolved: ResolvedCall
    data: bytes


@dataclass(frozen=True, slots=True)
class _BilledAnswer:
    """An answered call."""

    asked: ClientCall
    answer: ModelAnswer
    metered: CallCharge


def answer_call(served: ServerState, api: ServedApi, arrived: ReceivedCall) -> ServedResponse:
    """Answer a call of `api`. Calls are billed one at a time, in the order they start."""
    with served.lock:
        start = served.clock.now()
        resolved = _resolve(served, api, arrived, start)
        whole = ResolvedCall(arrived.body if api.name is None else {}) if isinstance(resolved, ApiError) else resolved
        served.calls += 1
        name = served.ids.next(arrived.workspace.encode(), arrived.data)
        data = arrived.data if whole.body is arrived.body else encode_json(whole.body)
        call = _Call(api, arrived, name, served.calls, start, whole, data)
        fault = served.faults.of(call.number)
        early = _error(fault) or (resolved if isinstance(resolved, ApiError) else api.fault(arrived, resolved))
        return _refuse(served, call, early) if early else _answer(served, call, fault)


def _resolve(served: ServerState, api: ServedApi, arrived: ReceivedCall, start: float) -> ResolvedCall | ApiError:
    try:
        return api.resolve(served, arrived, start)
    except NotAMessage as error:
        return not_a_message(error)


def _error(fault: InjectedFault | None) -> ApiError | None:
    """The error that the fault stands for, if it replaces the whole answer."""
    if fault is None or fault.kind not in ERRORS:
        return None
    headers = {"retry-after": f"{fault.seconds:g}"} if fault.kind == "429" else {}
    return of_status(ERRORS[fault.kind], headers=headers)


def _answer(served: ServerState, call: _Call, fault: InjectedFault | None) -> ServedResponse:
    try:
        billed = _bill_call(served, call, fault)
    except Exception as error:
        served.say(f"internal error: {''.join(traceback.format_exception_only(error)).strip()}")
        billed = of_status(500)
    if isinstance(billed, ApiError):
        return _refuse(served, call, billed)
    message = message_of(billed.asked, billed.answer, billed.metered)
    response = ServedResponse(
        "req_" + call.id,
        message,
        call.api,
        call.arrived.body,
        call.start,
        call.api.is_streamed(call.arrived.body),
        billed.answer.first_token_s,
        billed.answer.seconds,
        fault,
        billed.metered.thinking_tokens,
    )
    call.api.keep(served, call.arrived, call.resolved, response)
    _record(served, call, 200, message, billed, fault)
    return response


def _bill_call(served: ServerState, call: _Call, fault: InjectedFault | None) -> _BilledAnswer | ApiError:
    asked = _client_call(call)
    try:
        answer = _answer_within_limit(served, call.api, asked, fault)
        metered = answer if isinstance(answer, ApiError) else served.meters.take(asked, answer)
    except NotAMessage as error:
        return not_a_message(error)
    except CannotEvaluate:
        return unknown_model(asked.body["model"])
    if isinstance(answer, ApiError):
        return answer
    return metered if isinstance(metered, ApiError) else _BilledAnswer(asked, answer, metered)


def _client_call(call: _Call) -> ClientCall:
    body = call.resolved.body
    told = body.get("diagnostics")
    wants = isinstance(told, Mapping)
    previous = told.get("previous_message_id") if isinstance(told, Mapping) else None
    said = [one for one in body["messages"] if isinstance(one, Mapping) and one.get("role") == "assistant"]
    return ClientCall(
        call.api.id_prefix + call.id,
        body,
        call.arrived.workspace,
        call.start,
        len(said),
        call.arrived.retry,
        wants,
        previous if isinstance(previous, str) else None,
        call.resolved.thread,
        call.resolved.host,
    )


def _answer_within_limit(
    served: ServerState, api: ServedApi, asked: ClientCall, fault: InjectedFault | None
) -> ModelAnswer | ApiError:
    """The answer, cut to `max_tokens`, with its times."""
    answer = served.answerer.answer(asked)
    if isinstance(answer, ApiError):
        return answer
    late = fault.seconds if fault and fault.kind == "slow" else 0.0
    first = (answer.first_token_s or served.first_token_s) + late
    content = api.with_own_ids(list(answer.content), asked.body)
    timed = replace(answer, content=content, first_token_s=first, seconds=max(first, answer.seconds + late))
    most = asked.body.get("max_tokens")
    return timed if most is None else within(timed, asked.body["model"], most, _counter(served, asked.host))


def _refuse(served: ServerState, call: _Call, refused: ApiError) -> ServedResponse:
    body = error_body(refused, "req_" + call.id)
    if _is_request(call.resolved.body):
        _record(served, call, call.api.status(refused), body)
    else:
        served.unreadable += 1
    return ServedResponse("req_" + call.id, refused, call.api)


def _is_request(body: Mapping[str, Any]) -> bool:
    """Whether a request log can hold this body; readers reject a log with anything else."""
    try:
        Intake().body(body)
    except NotAMessage:
        return False
    return True


def _record(
    served: ServerState,
    call: _Call,
    status: int,
    response: Mapping[str, Any],
    billed: _BilledAnswer | None = None,
    fault: InjectedFault | None = None,
) -> None:
    """Write the call's line before the first byte is sent, so that aborted calls are recorded too."""
    if served.log is None:
        return
    fields = {
        "timestamp": moment(call.start),
        "host": call.resolved.host,
        "api": call.api.name,
        "workspace": call.arrived.workspace,
        "status": status,
        "retry": call.arrived.retry or None,
        "fault": fault.kind if fault else None,
        "first_token_s": billed.answer.first_token_s if billed else None,
        "usage": billed.metered.usage.wire() if billed else None,
        "response": response,
    }
    try:
        served.log.append(fields, call.data)
    except Exception as error:  # the call is billed, so it is answered in any case
        served.say(f"call {call.number} is not recorded: {_why_not_written(error)}")


def _why_not_written(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"the file cannot be written: {error.strerror}"
    return f"internal error: {type(error).__name__}"


def count_tokens(served: ServerState, arrived: ReceivedCall) -> dict[str, Any] | ApiError:
    """The answer of count_tokens: free of charge, without effect on the cache."""
    fault = count_fault(arrived.body, arrived.version)
    count = fault or _count(served, ResolvedCall(arrived.body))
    return count if isinstance(count, ApiError) else {"input_tokens": count}


def count_call(served: ServerState, api: ServedApi, arrived: ReceivedCall) -> int | ApiError:
    """Input tokens of a call of `api`: free of charge, without effect on the cache."""
    with served.lock:
        resolved = _resolve(served, api, arrived, 0.0)
    return resolved if isinstance(resolved, ApiError) else _count(served, resolved)


def _count(served: ServerState, resolved: ResolvedCall) -> int | ApiError:
    try:
        with served.lock:
            return _counter(served, resolved.host)(resolved.body)
    except NotAMessage as error:
        return not_a_message(error)
    except CannotEvaluate:
        return unknown_model(resolved.body["model"])


def _counter(served: ServerState, host: str | None) -> Callable[[Mapping[str, Any]], int]:
    """What counts the tokens of a body by the rules of a host (None: that of the meter's setup)."""
    return served.meters.count if host is None else partial(served.meters.count, host=host)
