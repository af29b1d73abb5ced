"""Local search: small changes to a plan, kept if the simulation is cheaper, within a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from cachecost.analysis.optimum.plan_evaluator import (
    Breakpoints,
    PlanEvaluator,
    PlanStep,
    StepResult,
    accepts_breakpoints,
)
from cachecost.analysis.optimum.plan_run import PlanRun
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import BreakpointPrefix
from cachecost.providers.quotes import PER_TOKEN

LEAST, MOST, CALLS = 40, 600, 150_000
TriedPlan = Callable[[str, int], None]
"""Called for each plan that was tried: what was tried, and how many such plans there are at most."""


def rounds(calls: int) -> int:
    """How many changed plans to try: at most 600, fewer for long recordings."""
    return max(LEAST, min(MOST, CALLS // max(1, calls)))


def improve_plan(
    evaluator: PlanEvaluator, steps: Sequence[PlanStep], lower_bound: Decimal, progress: TriedPlan
) -> tuple[list[PlanStep], Decimal]:
    """The plan after all changes that helped, and its USD. Stops at the lower bound."""
    run = PlanRun(evaluator, steps)
    left = most = rounds(len(steps))
    found = True
    while found and left and run.usd > lower_bound:
        found = False
        for number, changed in plan_changes(run):
            left -= 1
            tried = run.cost_with({float(number): changed})
            progress("improvements", most)
            if tried < run.usd:
                run, found = PlanRun(evaluator, _with_change(run.steps, number, changed)), True
                break
            if not left:
                break
    return run.steps, run.usd


def _with_change(steps: Sequence[PlanStep], number: int, changed: PlanStep | None) -> list[PlanStep]:
    return [*steps[:number], *([] if changed is None else [changed]), *steps[number + 1 :]]


def plan_changes(run: PlanRun) -> Iterator[tuple[int, PlanStep | None]]:
    """Changed steps by their numbers, those first that paid most for what they did not read; None: not made."""
    order = sorted(range(len(run.done)), key=lambda number: -_unread_usd(run.done[number]))
    for number in order:
        step = run.done[number].step
        if step.sent.is_extra:
            yield number, None
        for breakpoints in _other_breakpoints(step):
            yield number, PlanStep(step.sent, breakpoints)


def _unread_usd(done: StepResult) -> Decimal:
    return done.usd - done.step.sent.output_usd - done.usage.read * done.step.sent.prices.read.scaleb(PER_TOKEN)


def _other_breakpoints(step: PlanStep) -> Iterator[Breakpoints]:
    """One breakpoint fewer, another TTL up to or from one, one a block further up, or one more at the end."""
    breakpoints, accepted = step.breakpoints, step.sent.rules.accepted_ttls
    for number in range(len(breakpoints)):
        yield (*breakpoints[:number], *breakpoints[number + 1 :])
    for number, breakpoint in enumerate(breakpoints):
        if breakpoint.ttl == "5m" and "1h" in accepted:
            yield tuple(BreakpointPrefix(one.prefix, "1h") if n <= number else one for n, one in enumerate(breakpoints))
        if breakpoint.ttl == "1h" and "5m" in accepted:
            yield tuple(BreakpointPrefix(one.prefix, "5m") if n >= number else one for n, one in enumerate(breakpoints))
    yield from _move_breakpoints(step)


def _move_breakpoints(step: PlanStep) -> Iterator[Breakpoints]:
    breakpoints = step.breakpoints
    end = _up(step.sent.prompt.end)
    if (
        end is not None
        and len(breakpoints) < step.sent.rules.maximum_breakpoints
        and all(one.prefix is not end for one in breakpoints)
    ):
        yield (*breakpoints, BreakpointPrefix(end, "5m" if "5m" in step.sent.rules.accepted_ttls else "1h"))
    for number, breakpoint in enumerate(breakpoints):
        above = _up(breakpoint.prefix.parent)
        if above is not None and all(one.prefix is not above for one in breakpoints):
            yield (*breakpoints[:number], BreakpointPrefix(above, breakpoint.ttl), *breakpoints[number + 1 :])


def _up(node: Prefix | None) -> Prefix | None:
    while node is not None and not accepts_breakpoints(node):
        node = node.parent
    return node
