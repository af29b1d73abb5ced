"""The calls of a plan as a request log: whole bodies with the plan's breakpoints, in time order.

The log has no usage, since nothing of it was sent. The token lengths that the recording's bills showed still hold, so
each line states those (conversations/known_lengths.py): a replay of it then costs what the plan does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cachecost.analysis.optimum.plan_evaluator import BareCall, PlanStep, build_call
from cachecost.base.times import iso
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.conversations.known_lengths import KnownLengths, billed_lengths
from cachecost.prompts.blocks import Block
from cachecost.prompts.body import Body, body_of
from cachecost.prompts.refusals import wire_path
from cachecost.prompts.request import Request

THREAD = "thread"
"""The body's field of a message thread: what is written is the whole request, which needs none."""


def request_lines(plan: Sequence[PlanStep], calls: Sequence[Call], outputs: Sequence[int]) -> Iterator[dict[str, Any]]:
    """A line of the log for each call of the plan; `outputs` are the tokens of their answers.

    `calls` are those that were planned, as they were sent: their bills show lengths up to their own breakpoints. Raises
    CannotEvaluate for a call whose content was not recorded.
    """
    as_sent = _calls_as_sent(plan, calls)
    for step, output in zip(plan, outputs, strict=True):
        call = build_call(step)
        fields = {
            "timestamp": _timestamp(step, call),
            "request": _body(call.request),
            "lengths": _lengths(as_sent.get(step.sent), output).wire() or None,
            "most_read": call.most_read,
            "response": _response(call.response),
            "first_token_s": call.first_token_s or None,
            "host": call.host,
            "workspace": call.workspace or None,
            "session": call.session or None,
            "service": "batch" if call.is_batch else None,
            "commit_date": call.day.isoformat() if call.day and call.timestamp is None else None,
        }
        yield {name: value for name, value in fields.items() if value is not None}


def breakpoint_lines(plan: Sequence[PlanStep]) -> Iterator[dict[str, Any]]:
    """Where the breakpoints of each call go, by path: what a plan says of calls without content."""
    for step in plan:
        call = build_call(step)
        request = call.request
        places = [{"path": wire_path(request, one), "ttl": one.ttl} for one in request.breakpoints]
        origin = {"file": call.file, "line": call.line} if call.file else {}
        yield {"timestamp": _timestamp(step, call), "purpose": call.purpose, "breakpoints": places, **origin}


def _calls_as_sent(plan: Sequence[PlanStep], calls: Sequence[Call]) -> dict[BareCall, Call]:
    """The call that each planned one was, with the breakpoints that it had. Both are in the same order."""
    found, waiting = dict[BareCall, Call](), iter(calls)
    for sent in (step.sent for step in plan if not step.sent.is_extra):
        same = (call for call in waiting if (call.request.thread, call.start) == (sent.call.request.thread, sent.start))
        if (call := next(same, None)) is not None:
            found[sent] = call
    return found


def _timestamp(step: PlanStep, call: Call) -> str | None:
    """As recorded; that of an additional call to the microsecond, since it must not come after an expiry."""
    return iso(call.start) if step.sent.is_extra and call.timestamp else call.timestamp


def _body(request: Request) -> Body:
    return {name: value for name, value in body_of(request).items() if name != THREAD}


def _lengths(call: Call | None, output: int) -> KnownLengths:
    if isinstance(call, RecordedCall) and call.billed is not None:
        return billed_lengths(call)
    if isinstance(call, RecordedCall) and call.lengths is not None:
        return call.lengths
    return KnownLengths(output=output or None)


def _response(blocks: Sequence[Block]) -> dict[str, Any] | None:
    """The answer, which makes a call with server tools several passes."""
    content = [dict(block.content) for block in blocks if block.content is not None]
    return {"content": content} if content else None
