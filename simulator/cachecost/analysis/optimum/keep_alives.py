"""Keep-alives of a rule: sent in every pause, as a client that knows only the past sends them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cachecost.analysis.optimum.plan_evaluator import (
    BareCall,
    PlanEvaluator,
    PlanStep,
    build_call,
    rendered_breakpoints,
)
from cachecost.conversations.calls import Call, PlannedCall, derive_call
from cachecost.prompts.blocks import Thread
from cachecost.strategies.changes.keepalive import KeepAlive


def keep_alive_steps(evaluator: PlanEvaluator, steps: Sequence[PlanStep], habit: KeepAlive) -> list[PlanStep]:
    """The steps, and the keep-alives of each conversation, in order of start."""
    pings = [ping for conversation in _conversations(steps) for ping in _pings(evaluator, conversation, habit)]
    return sorted([*steps, *pings], key=lambda step: step.sent.start)


def _conversations(steps: Sequence[PlanStep]) -> list[list[PlanStep]]:
    """The steps of each session and agent; without a session's name, those whose messages begin alike."""
    found: dict[tuple[object, ...], list[PlanStep]] = {}
    for step in steps:
        call = step.sent.call
        named = (call.session, call.agent) if call.session else (_first_message(call.request.thread),)
        found.setdefault((call.host, call.workspace, *named), []).append(step)
    return list(found.values())


def _first_message(thread: Thread) -> Thread:
    return thread.up_to(1)


def _pings(evaluator: PlanEvaluator, conversation: Sequence[PlanStep], habit: KeepAlive) -> Iterator[PlanStep]:
    """The keep-alives after each call of one conversation, as the strategy's change plans them."""
    sent: Call | None = None
    calls = iter(conversation)
    for planned in habit.plan_calls(map(_as_planned, conversation)):
        if planned.purpose != "ping":
            sent = next(calls).sent.call
        elif sent is not None and (made := _render_ping(evaluator, sent, planned)) is not None:
            yield PlanStep(made, rendered_breakpoints(made, planned.request))


def _as_planned(step: PlanStep) -> PlannedCall:
    call = build_call(step)
    return PlannedCall(call.request, call.start, host=call.host, workspace=call.workspace, is_batch=call.is_batch)


def _render_ping(evaluator: PlanEvaluator, sent: Call, ping: PlannedCall) -> BareCall | None:
    """The keep-alive as the provider sees it; None where the API refuses it."""
    call = derive_call(sent, ping.request, ping.start, ping.output_tokens, "ping")
    found = evaluator.render_call(replace(call, is_batch=False), is_extra=True)
    return found if isinstance(found, BareCall) else None
