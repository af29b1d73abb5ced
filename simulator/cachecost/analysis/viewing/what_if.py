"""A session as it would have been otherwise: the alternatives of `whatif`, one of each kind, replayed together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property

from cachecost.analysis.viewing.listing import SessionReplay
from cachecost.analysis.whatif.pricing import AlternativePricing, ReplayedSteps
from cachecost.base.errors import CannotEvaluate, nearest
from cachecost.base.structs import replace
from cachecost.changes.catalogue import MainModel, RecordingProfile
from cachecost.changes.option import Option, measure_pauses
from cachecost.changes.steps import NO_CALL, Replays, cost
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.simulation.engine import SimulatedCall
from cachecost.simulation.workload import Workload

AS_SENT = "as sent"
KINDS = {
    "ttl": "ttl",
    "breakpoints": "breakpoints",
    "model": "model",
    "host": "host",
    "keep_alive": "keep-alive",
    "compaction": "compaction",
}
"""What can be chosen, and the kind of its alternatives."""


class WrongChoice(ValueError):
    """A value that cannot be chosen; the text names the nearest."""


def chosen_values(choices: Mapping[str, str]) -> dict[str, str]:
    """The choices that change something, by their names in `KINDS`. Raises WrongChoice for another name."""
    for kind in choices:
        if kind not in KINDS:
            raise WrongChoice(f"expected one of {', '.join(KINDS)}; got '{kind}'{nearest(kind, KINDS)}")
    return {kind: value for kind, value in choices.items() if value not in ("", AS_SENT)}


def check_choices(traffic: Workload, choices: Mapping[str, str], today: date | None = None) -> None:
    """Raises WrongChoice for a value that no replay can make possible; nothing is replayed for it.

    Which model costs most is not known before a replay: what is possible for any of the recording's may be chosen.
    """
    if not choices:
        return
    lengths = {number: call.billed.total_input for number, call in enumerate(traffic.calls, 1) if call.billed}
    profile = RecordingProfile(traffic, None, None, measure_pauses(traffic.calls), lengths, today=today)
    firsts = {(call.host, call.request.model): number for number, call in reversed([*enumerate(traffic.calls, 1)])}
    profiles = [replace(profile, main=MainModel.of(traffic, {number: Decimal(1)})) for number in firsts.values()]
    for kind, value in choices.items():
        errors = []
        for one in profiles:
            try:
                _find_option(one, {option.name: option for option in one.options(reads_prompts=False)}, kind, value)
                break
            except WrongChoice as error:
                errors.append(error)
        else:
            raise errors[0]


def _find_option(profile: RecordingProfile, known: Mapping[str, Option], kind: str, value: str) -> Option:
    name = f"{KINDS[kind]}={value}"
    try:
        found = known.get(name) or profile.build_option(name)
    except CannotEvaluate as error:
        raise WrongChoice(f"{kind}: {error}") from None
    if found is None:
        values = [AS_SENT, *_values(known, kind)]
        raise WrongChoice(f"{kind}: expected one of {', '.join(values)}; got '{value}'{nearest(value, values)}")
    return found


def _values(known: Mapping[str, Option], kind: str) -> list[str]:
    start = f"{KINDS[kind]}="
    return [name.removeprefix(start) for name in known if name.startswith(start)]


@dataclass(frozen=True, slots=True)
class AlternativeCall:
    """A call with the number that it has in the session (0: an extra call), and what the cache did."""

    number: int
    call: Call
    made: SimulatedCall


@dataclass(frozen=True, slots=True)
class ReplayedAlternative:
    """What was chosen, replayed: the calls that count, in the order of time.

    `base` are the rows of the session as sent, from the same start.
    """

    options: Sequence[Option]
    calls: Sequence[AlternativeCall]
    base: Sequence[CallRow]

    @property
    def cost(self) -> Decimal:
        """USD."""
        return cost(one.made.row for one in self.calls)

    @property
    def basis(self) -> Decimal:
        """USD of the session as sent."""
        return cost(self.base)

    @property
    def extra_calls(self) -> int:
        return sum(one.number == NO_CALL for one in self.calls)


@dataclass
class SessionAlternatives:
    """What can be chosen for a session, and replays of it. Losses of its bill that nothing explains are held."""

    replay: SessionReplay
    profile: RecordingProfile
    pricing: AlternativePricing

    @classmethod
    def of(cls, replay: SessionReplay, today: date | None = None) -> SessionAlternatives:
        """What is withdrawn by `today` cannot be chosen (None: what was withdrawn by the session's last day).

        Raises CannotEvaluate, also where the calls are not cached by breakpoints.
        """
        replay.workload.require_support("whatif")
        traffic = replay.held
        replays = Replays(traffic)
        base = replays.rows(replays.recorded)
        profile = RecordingProfile.of(traffic, base, today)
        return cls(replay, profile, AlternativePricing(replays, cost(base), base))

    @cached_property
    def known(self) -> Mapping[str, Option]:
        """The options by name, without presets."""
        return {option.name: option for option in self.profile.options(reads_prompts=False)}

    def values(self, kind: str) -> list[str]:
        """What can be chosen of a kind besides `AS_SENT`."""
        return _values(self.known, kind)

    def evaluate(self, choices: Mapping[str, str]) -> ReplayedAlternative:
        """The session with these choices, by their names in `KINDS`. Raises WrongChoice, CannotEvaluate."""
        chosen = chosen_values(choices)
        options = [_find_option(self.profile, self.known, kind, value) for kind, value in chosen.items()]
        plan = self.pricing.plan(options)
        made = plan.replays.simulate(plan.steps)
        if why := self.pricing.why_not(ReplayedSteps(plan.steps, [one.row for one in made], plan.base)):
            raise CannotEvaluate(why)
        numbers, has_begun, counted = self.replay.numbers, self.replay.counts_all, list[AlternativeCall]()
        for step, one in zip(plan.steps, made, strict=True):
            number = numbers[step.number - 1] if step.number != NO_CALL else NO_CALL
            has_begun = has_begun or number != NO_CALL
            # Extra calls before the first one belong to copies of calls of another session.
            if number != NO_CALL or (step.number == NO_CALL and has_begun):
                counted.append(AlternativeCall(number, step.call, one))
        base = [row for number, row in zip(numbers, plan.base, strict=True) if number]
        return ReplayedAlternative(options, counted, base)
