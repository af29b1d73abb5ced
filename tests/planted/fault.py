"""One kind of fault: how it is planted, what its fix sends instead, and what the fix nets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, product
from typing import Literal

from planted.logs import Body, Log, Sending, copied, in_order
from planted.policies import bridges, policies
from planted.prices import cheapest, cost

Change = Callable[[Log], Log]
Edit = Callable[[Body, int], None]
"""Changes the body of a call, whose number it gets."""
State = Literal["planted", "fixed", "spared"]
Range = tuple[Decimal, Decimal]
Codes = tuple[str, ...]
ZERO = Decimal()
ORDER = (
    *(
        "CC103",
        "CC101",
        "CC102",
        "CC105",
        "CC110",
        "CC120",
        "CC121",
        "CC122",
        "CC201",
        "CC205",
        "CC210",
        "CC215",
        "CC220",
    ),
    *("CC301", "CC305", "CC302"),
    *("CC401", "CC402", "CC403", "CC404", "CC211", "CC405"),
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
    codes: Codes
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
        if state == "planted" or self.by_policy:
            return self.plant(log)
        return self.spare(log) if state == "spared" and self.spare else self.fix(log)

    @property
    def fixes(self) -> tuple[State, ...]:
        return ("fixed", "spared") if self.spare or self.by_policy else ("fixed",)


def sent(base: Log, states: Iterable[tuple[Fault, State]]) -> Log:
    """The log with each fault in its state; policies are chosen for what is then sent."""
    states = sorted(states, key=lambda pair: pair[0].rank)
    log = copied(base)
    for fault, state in states:
        log = fault.sends(state, log)
    policy = next((state for fault, state in states if fault.by_policy), "planted")
    if policy == "fixed":
        return cheapest(policies(log))
    return cheapest(bridges(log)) if policy == "spared" else in_order(log)


@dataclass(frozen=True)
class Expected:
    """What the fixes net in USD: at least and at most, all together and by codes where the order is sure."""

    total: Range
    by_codes: Mapping[Codes, Range]
    is_exact: bool
    """Whether each code must have its own dollars. Not so if a fix alone nets less than nothing, if faults are in the
    same call, or if breakpoints are placed after a policy was chosen."""


def expected(base: Log, faults: Sequence[Fault], is_interlaced: bool = False) -> Expected:
    """One fix after another, in explain's order. Faults of the same call hide one another there: their sum is sure.

    `is_interlaced`: which fix is best depends on the others.
    """
    ordered = sorted(faults, key=lambda one: one.rank)
    nets = _Nets(base, ordered)
    found: dict[Codes, Range] = {}
    for number, fault in enumerate(ordered):
        known, more = found.get(fault.codes, (ZERO, ZERO)), nets.in_order(number)
        found[fault.codes] = known[0] + more[0], known[1] + more[1]
    are_gains = all(low >= 0 for low, _ in found.values())
    is_hidden = any(set(one.calls) & set(other.calls) for one, other in combinations(faults, 2))
    is_exact = are_gains and not is_hidden and not any(fault.by_policy for fault in ordered[:-1])
    is_sure = len(faults) == 1 or (are_gains and not is_interlaced)
    return Expected(nets.together() if is_sure else nets.some(), found, is_exact and is_sure)


class _Nets:
    """What fixes of these faults net, each log priced once."""

    def __init__(self, base: Log, faults: Sequence[Fault]) -> None:
        self._base = base
        self._faults = faults
        self._costs: dict[tuple[State, ...], Decimal] = {}

    def in_order(self, number: int) -> Range:
        """Of one fault, where those before it are fixed and those after it are not."""
        before, after = self._faults[:number], self._faults[number + 1 :]
        states = product(*(fault.fixes for fault in before), ("planted",), *(("planted",) for _ in after))
        return _range(amount for state in states for amount in self._amounts(state, number))

    def together(self) -> Range:
        """Of all faults."""
        bad = self._cost(tuple("planted" for _ in self._faults))
        return _range(bad - self._cost(states) for states in product(*(fault.fixes for fault in self._faults)))

    def some(self) -> Range:
        """Where one fix alone costs more than it saves: at least the best one alone, at most any."""
        planted: tuple[State, ...] = tuple("planted" for _ in self._faults)
        alone = [_range(self._amounts(planted, number)) for number in range(len(self._faults))]
        low, high = self.together()
        return min(max(ZERO, *(one for one, _ in alone)), low), max(high, *(one for _, one in alone))

    def _amounts(self, states: tuple[State, ...], number: int) -> Iterator[Decimal]:
        for state in self._faults[number].fixes:
            yield self._cost(states) - self._cost((*states[:number], state, *states[number + 1 :]))

    def _cost(self, states: tuple[State, ...]) -> Decimal:
        if states not in self._costs:
            self._costs[states] = cost(sent(self._base, zip(self._faults, states, strict=True)))
        return self._costs[states]


def _range(amounts: Iterable[Decimal]) -> Range:
    listed = list(amounts)
    return min(listed), max(listed)


# ------------------------------------------------------------------------------------------- where changes begin


def changed(calls: Iterable[int], change: Edit) -> Change:
    """Change the bodies of these calls (from 1, by time)."""
    chosen = set(calls)

    def plant(log: Log) -> Log:
        log = in_order(copied(log))
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
        log = in_order(copied(log))
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


ALL = tuple(range(2, 11))
"""Every call of a loop or a chat that an earlier one could have written for."""


def last_message(call: int) -> int:
    """The index of the last message of a call, from 1, of a loop or a chat."""
    return 2 * call - 2
