"""The results of `whatif`: alternatives, combinations, actions, and the break-even of the 1h TTL with its pauses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from cachecost.changes.option import RecordedPauses, pings_worth
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import ZERO, Usage


@dataclass(frozen=True, slots=True)
class TTLBreakEven:
    """When the 1h TTL breaks even (the formula is in `rewrites_to_break_even`), and the recording's pauses.

    `needed` is how many tokens must be written again after pauses of 5 to 60 minutes for each token that is new, in
    tokens per token; `here` what that is in the recording. `needed_pauses` says the same as a number of such pauses,
    `pauses` how many there are: shorter than 5 minutes, up to an hour, an hour and longer. `longest_s` is the longest.
    `pings` may bridge a pause before they cost more than writing again.
    """

    model: str
    needed: Decimal
    here: Decimal | None
    needed_pauses: Decimal | None
    pauses: tuple[int, int, int]
    longest_s: float
    hours: float
    pings: int | None

    @property
    def needed_an_hour(self) -> Decimal | None:
        """Pauses of 5 to 60 minutes per hour at which the 1h TTL breaks even."""
        return self.needed_pauses / Decimal(str(self.hours)) if self.needed_pauses is not None and self.hours else None


def rewrites_to_break_even(prices: Prices) -> Decimal | None:
    """How many tokens must be written again after a pause, for each token that is new, before an hour pays.

    Per token, five minutes cost `write_5m` when it is new and `write_5m` instead of `read` each time that a pause of 5
    minutes to an hour lets it expire; an hour costs `write_1h` once. With `n` tokens new and `e` written again:

        n * write_1h + e * read < (n + e) * write_5m   <=>   e / n > (write_1h - write_5m) / (write_5m - read)

    With the usual multipliers 1.25, 2 and 0.1 it is 0.75 / 1.15 = 0.652. None where writing costs no more than reading.
    """
    gain = prices.write_5m - prices.read
    return (prices.write_1h - prices.write_5m) / gain if gain > 0 else None


def break_even(
    rules: ModelRules, prices: Prices, found: RecordedPauses, at_5m: Sequence[Usage], at_1h: Sequence[Usage]
) -> TTLBreakEven | None:
    """The edge for a model, and where the recording stands: it is replayed with all breakpoints at 5m, and all at 1h.

    What is written more at five minutes than at an hour was written again after a pause. None where nothing is cached,
    or not for an hour.
    """
    limit = rewrites_to_break_even(prices)
    if limit is None or "1h" not in rules.accepted_ttls:
        return None
    short, hour = rules.ttl_s["5m"], rules.ttl_s["1h"]
    new = sum(usage.write for usage in at_1h)
    again = sum(usage.write for usage in at_5m) - new
    counts = (found.between(float("-inf"), short), found.between(short, hour), found.between(hour))
    # What one pause has written again here; else what one would have, the mean cached prefix.
    cached = [usage.read + usage.write for usage in at_5m if usage.read + usage.write]
    usual = Decimal(sum(cached)) / len(cached) if cached else ZERO
    mean = Decimal(again) / counts[1] if counts[1] and again > 0 else usual
    return TTLBreakEven(
        rules.model,
        limit,
        Decimal(again) / new if new else None,
        limit * new / mean if mean > 0 else None,
        counts,
        found.longest,
        found.hours,
        pings_worth(prices),
    )


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
    who: str = ""
    """Who can make it: where in a request or in code, and the setting of a client."""

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
