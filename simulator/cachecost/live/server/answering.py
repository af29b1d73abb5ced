"""One call from its body to its answer, whole or as events. It is billed and recorded before a byte is sent."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cachecost.base.errors import CannotEvaluate
from cachecost.live.clock import moment
from cachecost.live.server.model import (
    ApiError,
    CallCharge,
    ClientCall,
    ModelAnswer,
    ResolvedCall,
    count_fault,
    error_body,
    not_a_message,
    of_status,
    unknown_model,
)
from cachecost.live.server.served_api import ReceivedCall, ServedApi, ServedResponse, Wire, encode_json, pieces
from cachecost.live.server.state import ERRORS, InjectedFault, ServerState
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import NotAMessage


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
        begun = {**block, **GROWING.get(str(block.get("type")), {})}
        if begun.get("citations"):
            begun["citations"] = []
        yield {"type": "content_block_start", "index": index, "content_block": begun}
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
        why = f"internal error: {type(error).__name__}"
        if isinstance(error, OSError):
            why = f"the file cannot be written: {error.strerror}"
        served.say(f"call {call.number} is not recorded: {why}")


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
