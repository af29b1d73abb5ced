"""One call from its body to its answer. It is billed and recorded before a byte is sent."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cachecost.base.errors import CannotEvaluate
from cachecost.live.log import moment
from cachecost.live.server.arrival import ReceivedCall
from cachecost.live.server.checks import count_fault
from cachecost.live.server.errors import error_body, not_a_message, of_status, unknown_model
from cachecost.live.server.faults import ERRORS, InjectedFault
from cachecost.live.server.max_tokens import within
from cachecost.live.server.message import encode_json, message_of
from cachecost.live.server.model import ApiError, CallCharge, ClientCall, ModelAnswer
from cachecost.live.server.served_api import ServedApi, ServedResponse
from cachecost.live.server.state import ServerState
from cachecost.live.server.threads import ResolvedCall
from cachecost.prompts.intake import Intake
from cachecost.prompts.wire import NotAMessage


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
        whole = _unresolved(api, arrived) if isinstance(resolved, ApiError) else resolved
        call = _start_call(served, api, arrived, whole, start)
        fault = served.faults.of(call.number)
        early = _error(fault) or (resolved if isinstance(resolved, ApiError) else api.fault(arrived, resolved))
        return _refuse(served, call, early) if early else _answer(served, call, fault)


def _resolve(served: ServerState, api: ServedApi, arrived: ReceivedCall, start: float) -> ResolvedCall | ApiError:
    try:
        return api.resolve(served, arrived, start)
    except NotAMessage as error:
        return not_a_message(error)


def _unresolved(api: ServedApi, arrived: ReceivedCall) -> ResolvedCall:
    """A call that is refused: only a Messages body can be recorded as it is."""
    return ResolvedCall(arrived.body if api.name is None else {})


def _start_call(
    served: ServerState, api: ServedApi, arrived: ReceivedCall, resolved: ResolvedCall, start: float
) -> _Call:
    served.calls += 1
    name = served.ids.next(arrived.workspace.encode(), arrived.data)
    data = arrived.data if resolved.body is arrived.body else encode_json(resolved.body)
    return _Call(api, arrived, name, served.calls, start, resolved, data)


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
    response = _response(call, message, billed, fault)
    call.api.keep(served, call.arrived, call.resolved, response)
    _record(served, call, 200, message, billed, fault)
    return response


def _response(
    call: _Call, message: Mapping[str, Any], billed: _BilledAnswer, fault: InjectedFault | None
) -> ServedResponse:
    return ServedResponse(
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
