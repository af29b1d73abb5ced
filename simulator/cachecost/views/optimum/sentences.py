"""A plan in words: where breakpoints are, their TTL, and which extra calls are sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cachecost.analysis.optimum.plan_evaluator import PlanStep, build_call
from cachecost.analysis.optimum.tree import BlockTree
from cachecost.base.formatting import count_text
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.request import Breakpoint, Request, place_as_sent

END = "the end of the last message"
EARLIER = "the end of what an earlier call sent"
NO_GAP = float("inf")


@dataclass(slots=True)
class Habit:
    """How often a place has a breakpoint of which TTL, in which calls, and how long until it is read (seconds)."""

    place: str
    hours: list[float] = field(default_factory=list)
    fives: list[float] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)

    @property
    def calls(self) -> int:
        return len(self.numbers)

    @property
    def breakpoints(self) -> int:
        return len(self.hours) + len(self.fives)


def plan_words(plan: Sequence[PlanStep]) -> str:
    """One sentence: what to do."""
    real = [step for step in plan if not step.sent.is_extra]
    habits = habits_of(real)
    parts = [_habit_words(habit, len(real)) for habit in habits.values() if _matters(habit, len(real))]
    others = [habit for habit in habits.values() if habit.place != EARLIER and not _matters(habit, len(real))]
    rare = sum(habit.breakpoints for habit in others)
    if rare:
        parts.append(f"{count_text(rare, 'more breakpoint')} elsewhere")
    if EARLIER in habits:
        parts.append(f"and {EARLIER}, in {habits[EARLIER].calls:,} calls, so that it is found and stays")
    uncached = sum(not step.breakpoints for step in real)
    if not parts:
        return "Place no breakpoint: no block is read again soon enough to pay for its write."
    sentence = "Place breakpoints at " + "; ".join(parts) + "."
    if uncached:
        sentence += f" {count_text(uncached, 'call')} without a breakpoint."
    return sentence + "".join(f" {words}" for words in extra_words(plan))


def _matters(habit: Habit, calls: int) -> bool:
    return habit.place != EARLIER and habit.calls * 50 >= calls


def _habit_words(habit: Habit, calls: int) -> str:
    where = habit.place if habit.calls >= calls * 0.98 else f"{habit.place} (in {habit.calls:,} of {calls:,} calls)"
    if not habit.hours or not habit.fives:
        return f"{where} with TTL {'1h' if habit.hours else '5m'}"
    read = [gap for gap in habit.hours if gap < NO_GAP]
    shorter = max((gap for gap in habit.fives if gap < NO_GAP), default=0.0)
    few = f"{len(habit.hours):,} of {habit.breakpoints:,}"
    if read and min(read) > shorter:
        return f"{where} with TTL 5m, and with 1h before pauses over {_minutes(shorter)} ({few})"
    return f"{where} with TTL 5m, in {few} calls with 1h"


def _minutes(seconds: float) -> str:
    return f"{max(300.0, seconds) / 60:.0f} min"


def extra_words(plan: Sequence[PlanStep]) -> Iterator[str]:
    """The extra calls."""
    pings = sum(step.sent.call.purpose == "ping" for step in plan)
    warms = sum(step.sent.call.purpose == "warm" for step in plan)
    if pings:
        yield f"Send {count_text(pings, 'keep-alive')} during pauses."
    if warms:
        yield f"Send {count_text(warms, 'pre-warming call')} before parallel ones."


def habits_of(real: Sequence[PlanStep]) -> dict[str, Habit]:
    """Where the calls are marked, the beginning of the prompt first."""
    tree = BlockTree([step.sent for step in real])
    found: dict[str, Habit] = {}
    for number, step in enumerate(real):
        request = build_call(step).request
        for breakpoint, placed in zip(request.breakpoints, step.breakpoints, strict=True):
            habit = found.setdefault(place_of(request, breakpoint), Habit(place_of(request, breakpoint)))
            habit.numbers.add(number)
            gaps = habit.hours if breakpoint.ttl == "1h" else habit.fives
            gaps.append(_gap(tree, step, placed.prefix) if breakpoint.layer is Layer.MESSAGES else NO_GAP)
    order = ("tool", "system", "the end of what", END)
    return dict(sorted(found.items(), key=lambda item: next((n for n, part in enumerate(order) if part in item[0]), 2)))


def _gap(tree: BlockTree, step: PlanStep, prefix: Prefix) -> float:
    """Seconds until the next call that contains what was marked."""
    node = tree.nodes.get(prefix)
    for tail in node.above if node is not None and node.above is not None else ():
        if tail.event.start > step.sent.start:
            return tail.event.start - step.sent.start
    return NO_GAP


def place_of(request: Request, breakpoint: Breakpoint) -> str:
    """A breakpoint's place in words."""
    number = place_as_sent(request, breakpoint)[2] + 1
    if breakpoint.layer is Layer.TOOLS:
        return "the last tool" if breakpoint.index == len(request.tools.blocks) - 1 else f"tool {number}"
    if breakpoint.layer is Layer.SYSTEM:
        last = breakpoint.index == len(request.system.blocks) - 1
        return "the last system block" if last else f"system block {number}"
    return END if breakpoint.node is request.thread else EARLIER
