"""A scenario whose command ran: what the command sent stands in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cachecost.base.yaml_text import PlacedValue
from cachecost.conversations.calls import RecordedCall
from cachecost.scenario.agent_keys import COMMAND, CONVERSATION, OF_COMMAND
from cachecost.scenario.loading import CheckContext, placed_of, scenario_from
from cachecost.scenario.models import Scenario


@dataclass(frozen=True, slots=True)
class RecordedScenario:
    """A scenario without a command, and the calls of each run of the command that it had.

    `runs` is empty for a scenario that never had one. `kept` is a recording of the first run with the content that
    the scenario keeps, and `kept_calls` are the calls in it. `clock` says how the clock of the second run was another
    one; "" where it was the same. `machine` has names of this machine and its user, by what each is.
    """

    scenario: Scenario
    runs: Sequence[Sequence[RecordedCall]] = ()
    kept: Path | None = None
    kept_calls: Sequence[RecordedCall] = ()
    clock: str = ""
    machine: Mapping[str, str] = field(default_factory=dict)


Record = Callable[[Path, Scenario], RecordedScenario]
"""Makes, of the scenario at a path, one without a command."""


def without_command(path: Path, scenario: Scenario) -> RecordedScenario:
    """The `Record` of scenarios that have no command; one with a command raises InputError where it is replayed."""
    return RecordedScenario(scenario)


def with_recording(scenario: Scenario, folder: Path, recording: Path, calls: Sequence[RecordedCall]) -> Scenario:
    """The scenario with `recording`, which holds `calls`, in the place of its command, at the same line.

    Paths in it start at `folder`. Its model is that of the first call where it names none. Raises InputError for a
    variant that is wrong with it.
    """
    placed = placed_of(scenario)
    place = placed.place(COMMAND)
    conversation = placed.at((CONVERSATION,)).without("command", "turns", *OF_COMMAND)
    conversation = conversation.put(("recording",), PlacedValue(str(recording.resolve()), {(): place}))
    placed = placed.put((CONVERSATION,), conversation)
    if not scenario.model:
        placed = placed.put(("model",), PlacedValue(calls[0].request.model, {(): place}))
    return scenario_from(placed, CheckContext(folder, names=False, is_recorded=True))
