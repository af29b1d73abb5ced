"""Prices options: each is replayed, and only the difference to the replay of the recording counts; which of them turn
from a gain into a loss, or back, under other assumptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from cachecost.analysis.whatif.results import NO_CHANGE, NOT_EVALUATED, NOT_SUPPORTED, YES, Alternative
from cachecost.base.formatting import count_text, dollars, percent, rough_dollars
from cachecost.base.structs import replace
from cachecost.changes.catalogue import RecordingProfile
from cachecost.changes.offers import cause_changes, who_can
from cachecost.changes.option import Option
from cachecost.changes.steps import NO_CALL, PricedSimulation, Replays, ReplayStep, TrackedReplay, cost
from cachecost.conversations.calls import Call
from cachecost.ledger.findings import count_margin, open_usd
from cachecost.ledger.rows import NOT_EVALUATED as ROW_NOT_EVALUATED
from cachecost.ledger.rows import WARM_START, CallRow
from cachecost.prompts.blocks import TOOL_RUNS
from cachecost.prompts.request import sent_breakpoints
from cachecost.providers.listing import assumption_rows
from cachecost.providers.usage import ZERO, Usage
from cachecost.simulation.engine import Simulation
from cachecost.simulation.workload import Workload

LEAST = Decimal("0.001")
"""Share of the dollars: where token counts are estimates, what is less may be one token here and there."""
KEPT = (("ttl=5m",), ("ttl=1h",))
"""What the break-even of the 1h TTL is found from."""


@dataclass(frozen=True, slots=True)
class ReplayedSteps:
    """The replay of some options together."""

    steps: Sequence[ReplayStep]
    rows: Sequence[CallRow]
    base: Sequence[CallRow]
    """The rows of the recording to compare with: both sides start warm, or both cold."""

    @property
    def saving(self) -> Decimal:
        """USD that they save."""
        return cost(self.base) - self.cost

    @property
    def cost(self) -> Decimal:
        return cost(self.rows)

    @property
    def most(self) -> Decimal | None:
        """USD if no hit of a batch comes; None: none is in a batch."""
        if all(row.cost_if_missed is None for row in self.rows):
            return None
        return sum((row.cost.total if row.cost_if_missed is None else row.cost_if_missed for row in self.rows), ZERO)

    @property
    def extra_calls(self) -> int:
        return sum(step.number == NO_CALL for step in self.steps)


@dataclass(frozen=True, slots=True)
class PlannedReplay:
    """The steps of some options together, what replays them, and the rows of the recording to compare with."""

    steps: Sequence[ReplayStep]
    replays: Replays
    base: Sequence[CallRow]


class KnownReplay(NamedTuple):
    """What a replay saves in USD, its first error ("": none), and for those of `KEPT` the usage of each call."""

    saving: Decimal
    error: str
    usage: list[Usage]


def _ordered(options: Iterable[Option]) -> list[Option]:
    return sorted(options, key=lambda option: (option.rank, option.order, option.name))


def _names(options: Iterable[Option]) -> tuple[str, ...]:
    return tuple(option.name for option in options)


@dataclass(slots=True)
class AlternativePricing:
    """What options come to on one recording. `now` is what it costs, in USD: what was billed, else as simulated.

    What was cached before the recording began is so with other breakpoints, TTLs and keep-alives. Nobody knows whether
    other prompts, models or hosts would have been warm: these are compared with the recording from a cold start.
    """

    replays: Replays
    now: Decimal
    base: list[CallRow] = field(default_factory=list)
    distrust: str = ""
    """Why no alternative is supported; "": the simulation is close enough to the bill."""
    earlier: TrackedReplay | None = None
    """The recording as sent, if keep-alives are to be added to that."""
    _known: dict[tuple[str, ...], KnownReplay] = field(default_factory=dict)
    """By the names of the options; a replay itself takes too much memory to be kept."""
    _cold: Replays | None = None
    _cold_rows: list[CallRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.base:
            self.earlier, self.base = self.replays.recorded_rows()

    def replay(self, options: Iterable[Option]) -> ReplayedSteps:
        """The options together, in the order of their ranks."""
        ordered = _ordered(options)
        plan, names = self.plan(ordered), _names(ordered)
        replays, steps, what = plan.replays, plan.steps, " + ".join(names)
        if not replays.are_as_sent(steps):  # no bill determines what rests on token counts
            rows = replays.rows(steps, what, PricedSimulation)
        elif self.earlier is None or replays is not self.replays:
            rows = replays.rows(steps, what)
        else:
            rows = replays.changed_rows(steps, self.earlier, what, Simulation)
        made = ReplayedSteps(steps, rows, plan.base)
        error = next((row.error for row in made.rows if row.error and row.error_type), "")
        usage = [row.usage for row in made.rows] if names in KEPT else []
        self._known[names] = KnownReplay(made.saving, error, usage)
        return made

    def plan(self, options: Iterable[Option]) -> PlannedReplay:
        """What a replay of the options together sends, before it is made."""
        ordered = _ordered(options)
        steps: Sequence[ReplayStep] = self.replays.recorded
        for option in ordered:
            steps = option.change(steps)
        if all(option.keeps_prompts for option in ordered):
            return PlannedReplay(steps, self.replays, self.base)
        cold = self._cold_replays()
        if cold is self.replays:
            return PlannedReplay(steps, cold, self.base)
        self._cold_rows = self._cold_rows or cold.rows(cold.recorded, kind=PricedSimulation)
        return PlannedReplay(steps, cold, self._cold_rows)

    def replay_once(self, options: Iterable[Option]) -> KnownReplay:
        """What is known of the options together, both sides simulated."""
        ordered = _ordered(options)
        names = _names(ordered)
        if names not in self._known:
            self.replay(ordered)
        return self._known[names]

    def usage(self, option: Option) -> list[Usage]:
        """The usage of each call with an option of `KEPT`."""
        return [row.usage for row in self.base] if option.unchanged else self.replay_once([option]).usage

    def saving(self, options: Iterable[Option]) -> Decimal:
        """How much less than as recorded the options cost, USD."""
        return self.replay_once(options).saving

    def _cold_replays(self) -> Replays:
        self._cold = self._cold or self.replays.cold()
        return self._cold

    def expected_replays(self, options: Sequence[Option]) -> int:
        """How many replays it takes to price each of the options."""
        changing = [option for option in options if not option.unchanged]
        has_cold = not all(option.keeps_prompts for option in changing) and self._cold_replays() is not self.replays
        return len(changing) + has_cold

    def price_option(self, option: Option) -> Alternative:
        """The option with its dollars, and whether the data support them."""
        unpriced = Alternative(
            option.name,
            option.kind,
            option.does,
            None,
            None,
            assumption=option.assumption,
            keeps_answers=option.keeps_answers,
            who=who_can(option.kind),
        )
        if option.unchanged:
            why = NO_CHANGE + option.unchanged
            return replace(unpriced, cost=self.now, saving=ZERO, share=ZERO, supported=why)
        made = self.replay([option])
        if why := self.why_not(made):
            return replace(unpriced, supported=why)
        saving = made.saving
        then = self.replays.by_call(made.steps, made.rows)
        changes = [
            then[row.call].cost.total - row.cost.total if row.call in then else -row.cost.total for row in made.base
        ]
        if option.unsupported and not any(changes) and not made.extra_calls:
            return replace(unpriced, supported=NOT_SUPPORTED + option.unsupported)
        error = self.error(option, made, changes)
        return replace(
            unpriced,
            cost=self.now - saving,
            saving=saving,
            share=saving / self.now if self.now else None,
            calls_changed=sum(change != 0 for change in changes),
            extra_calls=made.extra_calls,
            supported=self._check_support(option, made, saving, error, changes),
            most=self.now + made.most - cost(made.base) if option.is_batch and made.most is not None else None,
            error=error,
        )

    def why_not(self, made: ReplayedSteps) -> str:
        """Why there are no dollars: something is not known, or the API refuses it. "": there are."""
        known = {row.call for row in self.base if row.error is None}
        for step, row in zip(made.steps, made.rows, strict=True):
            if row.error is not None and (step.number in known or step.number == NO_CALL):
                if row.error_type == ROW_NOT_EVALUATED:
                    return NOT_EVALUATED + row.error
                refused = sum(one.error == row.error for one in made.rows)
                return f"{NOT_EVALUATED}the API refuses {count_text(refused, 'call')}: {row.error}"
        return ""

    def error(self, option: Option, made: ReplayedSteps, changes: Sequence[Decimal]) -> Decimal:
        """What the token counts may do to the saving, USD: their error margin on what changes, gains and losses alike,
        as far as no bill determines it.

        Where other tokenizers count, the error of all that is sent is its own.
        """
        error_margin = Decimal(str(count_margin(made.rows, self.replays.traffic.setup.error_margin)))
        if option.counts_anew:
            return error_margin * sum((row.cost.total - row.cost.output for row in made.rows), ZERO)
        beside = [row.cost.total for step, row in zip(made.steps, made.rows, strict=True) if step.number == NO_CALL]
        changed = sum(map(abs, [*changes, *beside]), ZERO)
        return error_margin * (min(changed, open_usd(made.rows)) if self.replays.are_as_sent(made.steps) else changed)

    def _check_support(
        self, option: Option, made: ReplayedSteps, saving: Decimal, error: Decimal, changes: Sequence[Decimal]
    ) -> str:
        if option.unsupported or self.distrust:
            return NOT_SUPPORTED + (option.unsupported or self.distrust)
        if not any(changes) and not made.extra_calls:
            return NO_CHANGE + "no call changes in cost"
        if error and abs(saving) <= error:
            return f"{NOT_SUPPORTED}it is below the error margin of the token counts, ±{rough_dollars(error)}"
        if error and abs(saving) < LEAST * self.now:
            return (
                f"{NOT_SUPPORTED}it is below {percent(LEAST)} of the cost, which rounding of token counts can explain"
            )
        if option.is_batch and made.most is not None and (made.most - cost(made.base)) * -saving < 0 < saving:
            return f"{NOT_SUPPORTED}whether it saves depends on how many hits a batch has"
        return YES


PLAYS: dict[str, Callable[[Call], bool]] = {
    "tool_choice_invalidation": lambda call: "tool_choice" in call.request.params,
    "thinking_rendered_at": lambda call: bool({"thinking", "output_config"} & call.request.params.keys()),
    "structured_output_at": lambda call: bool({"output_config", "output_format"} & call.request.params.keys()),
    "lookback_runs": lambda call: any(
        one and other
        for one, other in pairwise(
            block.kind in TOOL_RUNS
            for node in call.request.thread.back()
            if node.message
            for block in node.message.blocks
        )
    ),
    "shallow_breakpoints": lambda call: (
        len(sent_breakpoints(call.request).breakpoints) > 1 or bool(call.request.system.blocks)
    ),
    WARM_START: lambda call: False,  # what was cached before is so under every alternative
}
"""Which calls an assumption can matter to; one that is not listed can matter to all."""
NEAR, FAR = Decimal("0.05"), Decimal("0.25")
"""Shares of the dollars of a recording: alternatives that cost more than the first are not tried, nor those that
save more than the second by their price alone."""
BY_PRICE = frozenset({"model", "batch", "us"})


def other_assumptions(traffic: Workload) -> Iterator[tuple[str, str]]:
    """Every other value of an assumption that can matter to some call, as (assumption, value)."""
    for switch in assumption_rows(*traffic.hosts):
        if switch.number is None and any(map(PLAYS.get(switch.name, lambda call: True), traffic.calls)):
            now = str(getattr(traffic.setup.rules.assumptions, switch.name)).lower()
            yield from ((switch.name, one.value) for one in switch.readings if one.value.lower() != now)


def find_reversals(
    pricing: AlternativePricing, options: Sequence[Option], alternatives: Sequence[Alternative]
) -> list[Alternative]:
    """The alternatives, each with the assumptions under which its saving changes sign, in words.

    Asked are those that save, or cost so little more that they might.
    """
    known = {option.name: option for option in options}
    asked = [
        one
        for one in alternatives
        if not known[one.name].unchanged and one.saving is not None and one.saving > -NEAR * pricing.now
        if one.kind not in BY_PRICE or one.saving < FAR * pricing.now
    ]
    fixes = not {one.name for one in asked}.isdisjoint(change.name for change in cause_changes())
    found: dict[str, list[str]] = {}
    for switch, value in other_assumptions(pricing.replays.traffic):
        traffic = pricing.replays.traffic.with_assumptions({switch: value})
        other = AlternativePricing(pricing.replays.with_workload(traffic), pricing.now)
        profile = RecordingProfile.of(other.replays.traffic, other.base)
        again = {option.name: option for option in profile.options(fixes=fixes)}
        for alternative in asked:
            saving = other.saving([again[alternative.name]]) if alternative.name in again else alternative.saving
            if _sign(saving) != _sign(alternative.saving):
                words = "saves nothing"
                if saving:
                    words = f"saves {dollars(saving)}" if saving > 0 else f"costs {dollars(-saving)} more"
                found.setdefault(alternative.name, []).append(f"with {switch}={value} it {words}")
    return [replace(alternative, depends_on=tuple(found.get(alternative.name, ()))) for alternative in alternatives]


def _sign(saving: Decimal | None) -> int:
    return 0 if not saving else 1 if saving > 0 else -1
