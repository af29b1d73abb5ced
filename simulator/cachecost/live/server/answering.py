"""One call from its body to its answer, whole or as events. It is billed and recorded before a byte is sent."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.live.clock import moment
from cachecost.live.server.model import (
    ApiError,
    CallCharge,
    ClientCall,
    ModelAnswer,
    ResolvedCall,
    body_fault,
    error_body,
    not_a_message,
    of_status,
    unknown_model,
)
from cachecost.live.server.served_api import ReceivedCall, ServedApi, ServedResponse, Wire, encode_json, message_of
from cachecost.live.server.state import ERRORS, InjectedFault, ServerState
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import NotAMessage


def within(answer: ModelAnswer, model: str, most: int, count: Callable[[Mapping[str, Any]], int]) -> ModelAnswer:
    """`answer`, cut to `most` tokens. Raises what `count` raises."""
    if most == 0:
        return replace(answer, content=(), stop_reason="max_tokens", seconds=answer.first_token_s)
    if sum(len(encode_json(block)) for block in answer.content) <= most:
        return answer
    question = {"role": "user", "content": "?"}
    bare = count({"model": model, "messages": [question]})

    def fits(blocks: Sequence[Mapping[str, Any]]) -> bool:
        said = {"role": "assistant", "content": [dict(block) for block in blocks]}
        return count({"model": model, "messages": [question, said]}) - bare <= most

    if fits(answer.content):
        return answer
    kept: list[Mapping[str, Any]] = []
    for block in answer.content:
        if fits([*kept, block]):
            kept.append(block)
            continue
        text = str(block["text"]) if block.get("type") == "text" else ""
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            is_short = fits([*kept, {"type": "text", "text": text[:middle]}])
            low, high = (middle, high) if is_short else (low, middle - 1)
        if low:
            kept.append({"type": "text", "text": text[:low]})
        break
    return replace(answer, content=kept, stop_reason="max_tokens")


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
        fault = served.faults.for_call(call.number)
        if fault is not None and fault.kind in ERRORS:
            headers = {"retry-after": f"{fault.seconds:g}"} if fault.kind == "429" else {}
            return _refuse(served, call, of_status(ERRORS[fault.kind], headers=headers))
        refused = resolved if isinstance(resolved, ApiError) else api.fault(arrived, resolved)
        return _refuse(served, call, refused) if refused else _bill_and_answer(served, call, fault)


def _resolve(served: ServerState, api: ServedApi, arrived: ReceivedCall, start: float) -> ResolvedCall | ApiError:
    try:
        return api.resolve(served, arrived, start)
    except NotAMessage as error:
        return not_a_message(error)


def _bill_and_answer(served: ServerState, call: _Call, fault: InjectedFault | None) -> ServedResponse:
    metered: CallCharge | ApiError
    try:
        asked = _client_call(call)
        answer = _answer_within_limit(served, call.api, asked, fault)
        metered = answer if isinstance(answer, ApiError) else served.meters.charge(asked, answer)
    except NotAMessage as error:
        metered = not_a_message(error)
    except CannotEvaluate:
        metered = unknown_model(call.resolved.body["model"])
    except Exception as error:
        served.say(f"internal error: {''.join(traceback.format_exception_only(error)).strip()}")
        metered = of_status(500)
    if isinstance(metered, ApiError):
        return _refuse(served, call, metered)
    assert not isinstance(answer, ApiError)
    message = message_of(asked, answer, metered)
    response = ServedResponse(
        "req_" + call.id,
        message,
        call.api,
        call.arrived.body,
        call.start,
        call.api.is_streamed(call.arrived.body),
        answer.first_token_s,
        answer.seconds,
        fault,
        metered.thinking_tokens,
    )
    call.api.keep(served, call.arrived, call.resolved, response)
    fields = {"fault": fault.kind if fault else None, "first_token_s": answer.first_token_s}
    _record(served, call, 200, message, {**fields, "usage": metered.usage.wire()})
    return response


def _client_call(call: _Call) -> ClientCall:
    body = call.resolved.body
    diagnostics = body.get("diagnostics")
    previous = diagnostics.get("previous_message_id") if isinstance(diagnostics, Mapping) else None
    said = [one for one in body["messages"] if isinstance(one, Mapping) and one.get("role") == "assistant"]
    return ClientCall(
        call.api.id_prefix + call.id,
        body,
        call.arrived.workspace,
        call.start,
        len(said),
        call.arrived.retry,
        isinstance(diagnostics, Mapping),
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
    try:
        Intake().body(call.resolved.body)
    except NotAMessage:  # readers reject a log with such a body
        served.unreadable += 1
    else:
        _record(served, call, call.api.status(refused), error_body(refused, "req_" + call.id))
    return ServedResponse("req_" + call.id, refused, call.api)


def _record(
    served: ServerState, call: _Call, status: int, response: Mapping[str, Any], answer_fields: Wire | None = None
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
        **(answer_fields or {}),
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
    fault = body_fault(arrived.body, arrived.version, is_count=True)
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
