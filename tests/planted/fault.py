"""One kind of fault: how it is planted, what its fix sends instead, and what the fix nets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Literal

from planted.logs import Body, Log, Sending, in_order
from planted.policies import policies
from planted.prices import cheapest, cost

Change = Callable[[Log], Log]
Edit = Callable[[Body, int], None]
"""Changes the body of a call, whose number it gets."""
State = Literal["planted", "fixed", "spared"]
Range = tuple[Decimal, Decimal]
ORDER = (
    ["CC103", "CC101", "CC102", "CC105", "CC110", "CC120", "CC121", "CC201", "CC205", "CC210", "CC215", "CC220"]
    + ["CC301", "CC305"]
    + ["CC401", "CC402", "CC403", "CC404", "CC211", "CC405"]
)
"""Codes in the order in which explain removes their causes."""


def as_is(log: Log) -> Log:
    return log


@dataclass(frozen=True)
class Fault:
    """`plant` puts the fault into a healthy log. `fix` sends what the finding's fix says, at the most that it costs;
    `spare` is the least that any fix could send. `codes` are the accepted codes, the right one first, `calls` the calls
    with a finding, `echo` those that may have a part of it, `block` the place of the first. `by_policy`: the fix is the
    best policy of `policies` instead.
    """

    name: str
    codes: tuple[str, ...]
    base: str
    calls: tuple[int, ...]
    block: str
    plant: Change
    fix: Change = as_is
    spare: Change | None = None
    by_policy: bool = False
    echo: tuple[int, ...] = ()

    @property
    def rank(self) -> int:
        return ORDER.index(self.codes[0])

    def sends(self, state: State, log: Log) -> Log:
        if state == "planted" or (state == "fixed" and self.by_policy):
            return self.plant(log)
        return self.fix(log) if state == "fixed" or self.spare is None else self.spare(log)


def sent(base: Log, states: Iterable[tuple[Fault, State]]) -> Log:
    """The log with each fault in its state; policies are chosen for what is then sent."""
    states = sorted(states, key=lambda pair: pair[0].rank)
    log = deepcopy(base)
    for fault, state in states:
        log = fault.sends(state, log)
    is_planned = any(fault.by_policy and state == "fixed" for fault, state in states)
    return cheapest(policies(log)) if is_planned else in_order(log)


def nets(base: Log, faults: Sequence[Fault]) -> dict[tuple[str, ...], Range]:
    """The least and the most that the fixes with these codes net in USD, one after another in explain's order."""
    found: dict[tuple[str, ...], Range] = {}
    for number, fault in enumerate(ordered := sorted(faults, key=lambda one: one.rank)):
        before, after = ordered[:number], ordered[number + 1 :]
        low, high = _net(base, before, fault, after)
        known = found.get(fault.codes, (Decimal(), Decimal()))
        found[fault.codes] = known[0] + low, known[1] + high
    return found


def _net(base: Log, before: Sequence[Fault], fault: Fault, after: Sequence[Fault]) -> Range:
    amounts = []
    for states in product(("fixed", "spared"), repeat=len(before)):
        pairs: list[tuple[Fault, State]] = [*zip(before, states, strict=True), *((one, "planted") for one in after)]
        bad = cost(sent(base, [*pairs, (fault, "planted")]))
        amounts += [bad - cost(sent(base, [*pairs, (fault, state)])) for state in ("fixed", "spared")]
    return min(amounts), max(amounts)


# ------------------------------------------------------------------------------------------- where changes begin


def changed(calls: Iterable[int], change: Edit) -> Change:
    """Change the bodies of these calls (from 1, by time)."""
    chosen = set(calls)

    def plant(log: Log) -> Log:
        log = in_order(deepcopy(log))
        for number, sending in enumerate(log, 1):
            if number in chosen:
                change(sending.body, number)
        return log

    return plant


def since(call: int, change: Edit) -> Change:
    return changed(range(call, 1000), change)


def sendings(calls: Iterable[int], change: Callable[[Sending, int], None]) -> Change:
    """As `changed`, of the whole sending."""
    chosen = set(calls)

    def plant(log: Log) -> Log:
        log = in_order(deepcopy(log))
        for number, sending in enumerate(log, 1):
            if number in chosen:
                change(sending, number)
        return in_order(log)

    return plant


def put(**fields: object) -> Edit:
    return lambda body, _: body.update(deepcopy(fields))


def both(*changes: Change) -> Change:
    def plant(log: Log) -> Log:
        for change in changes:
            log = change(log)
        return log

    return plant
