"""The results of `whatif`: alternatives with their dollars, combinations, and the cost of actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from cachecost.analysis.whatif.pauses import TTLBreakEven

YES = "yes"
NO_CHANGE = "no change: "
NOT_SUPPORTED = "not supported by the data: "
NOT_EVALUATED = "not evaluated: "


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another way to send the recording.

    `cost` is what it comes to in USD (None: not evaluated), `saving` how much less that is than now; a batch has
    `most`, if none of its best-effort hits come. `calls_changed` counts recorded calls whose dollars differ,
    `extra_calls` the calls that it adds. `error` is what the token counts may do to the saving, in USD.
    `supported` is "yes", or begins with "no change: ", "not supported by the data: " or "not evaluated: " and goes on
    with why. `depends_on` are the assumptions about open rules under which it turns from a gain into a loss, or back.
    `keeps_answers`: the model is sent the same words, in the same order or in an order that was arbitrary.
    """

    name: str
    kind: str
    does: str
    cost: Decimal | None
    saving: Decimal | None
    share: Decimal | None = None
    calls_changed: int = 0
    extra_calls: int = 0
    assumption: str = ""
    supported: str = YES
    most: Decimal | None = None
    error: Decimal = Decimal(0)
    keeps_answers: bool = True
    depends_on: tuple[str, ...] = ()

    @property
    def is_gain(self) -> bool:
        """Whether the data say that it saves money."""
        return self.supported == YES and self.saving is not None and self.saving > 0


@dataclass(frozen=True, slots=True)
class Combination:
    """Several alternatives replayed together, in USD, and the sum of what each saves alone. `why`: in words."""

    names: tuple[str, ...]
    cost: Decimal | None
    saving: Decimal | None
    sum_of_parts: Decimal
    best_part: Decimal
    why: str = ""
    supported: str = YES


@dataclass(frozen=True, slots=True)
class Action:
    """What the next call costs with and without a change before it, in USD.

    `at` is the recorded call after which it is switched. `lost` are tokens that would have been read and are not.
    `then` are the dollars of a later call, with and without. `pays_after` counts the calls, the switched one included,
    after which it has paid for itself; None: it never does. `session`, `file` and `line` are those of the call `at`.
    """

    name: str
    at: int
    cost: Decimal
    cost_without: Decimal
    lost: int
    then: Decimal
    then_without: Decimal
    pays_after: int | None
    assumption: str = ""
    session: str = ""
    file: str = ""
    line: int | None = None

    @property
    def price(self) -> Decimal:
        """What the change costs at the next call, in USD."""
        return self.cost - self.cost_without


@dataclass(frozen=True, slots=True)
class WhatifReport:
    """All alternatives for a recording.

    `cost` is that of the recording as sent, USD: `billed` if it has all bills and the simulation is near them, else
    `simulated`. `assumptions` are the other ones about open rules that could matter, as NAME=VALUE, if they were tried.
    """

    name: str
    calls: int
    cost: Decimal
    simulated: Decimal
    billed: Decimal | None
    alternatives: list[Alternative] = field(default_factory=list)
    break_even: TTLBreakEven | None = None
    jointly: Combination | None = None
    asked: Combination | None = None
    actions: list[Action] = field(default_factory=list)
    token_source: str = ""
    error_margin: float = 0.0
    has_tried_assumptions: bool = False
    assumptions: list[str] = field(default_factory=list)
    retired_models: Mapping[str, date] = field(default_factory=dict)
    """Models that are no alternatives since they were retired after the recording, and the last day of each."""
    day: date | None = None
    """The last day of the most expensive model's calls: on it, all of these are served."""
    held_losses: int = 0
    """Calls whose bill shows a loss that nothing explains; it is the same under every alternative."""

    def find(self, name: str) -> Alternative:
        """The alternative called `name`. Raises KeyError."""
        return {one.name: one for one in self.alternatives}[name]
