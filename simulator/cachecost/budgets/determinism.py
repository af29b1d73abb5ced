"""Whether the command of a scenario sends the same in both of its runs, and what it costs that it does not.

Where nothing differs, tools and system prompt may still hold what the next run has another of: a name of this machine,
and what `lint` finds in a single request (CC531), unless the second run shows that it stays, as a time under another
clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from cachecost.analysis.lint.excerpts import texts
from cachecost.analysis.lint.volatile import find_volatile_words
from cachecost.base.formatting import count_text, dollars
from cachecost.base.times import day_of, iso_milliseconds
from cachecost.budgets.changes import limit_changes
from cachecost.budgets.compared_calls import compared_calls
from cachecost.budgets.run_differences import RunDifference, align, find_differences
from cachecost.budgets.source_lines import search_texts
from cachecost.budgets.text_differences import excerpt
from cachecost.budgets.verdicts import CostChange, State, Verdict
from cachecost.conversations.calls import RecordedCall
from cachecost.ledger.results import ZERO
from cachecost.prompts.blocks import Layer
from cachecost.scenario.loading import placed_of
from cachecost.scenario.models import AS_RECORDED
from cachecost.scenario.recorded import RecordedScenario
from cachecost.simulation.workload import workload_as_recorded

NAME = "deterministic"
RECORDING = ("conversation", "recording")
PAUSE_S = 2.0
"""Seconds from the last call of the first run to the first of the second, and from one to the next."""


def check_determinism(recorded: RecordedScenario, folder: Path) -> list[Verdict]:
    """The verdict on the two runs of a command; nothing where it ran once or there is none."""
    if not recorded.runs:
        return []
    first, has_two = recorded.runs[0], len(recorded.runs) > 1
    second = align(first, recorded.runs[1]) if has_two else first
    differences = find_differences(first, second)
    if not differences:
        if volatile := list(_find_volatile(recorded)):
            one, rest = volatile[0], len(volatile) - 1
            more = f" and {count_text(rest, 'more place')}" if rest else ""
            message = f"{AS_RECORDED} may send other bytes in the next run: {one.what}{more}."
            return [_verdict(recorded, len(volatile), message, tuple(volatile))]
        clock = f"; the second run's clock: {recorded.clock or 'as the first'}"
        return [_verdict(recorded, 0, f"{AS_RECORDED} sends the same bytes in both runs{clock}.")] if has_two else []
    changes = _changes(differences, _extra_costs(recorded, folder, second))
    return [_verdict(recorded, len(changes), _message(differences, changes), limit_changes(changes))]


def _find_volatile(recorded: RecordedScenario) -> Iterator[CostChange]:
    """What a run alone shows of tools and system prompts, a place each: that another run would send something else."""
    places: dict[str, list[CostChange]] = {}
    for number, call in enumerate(compared_calls(recorded.runs[0]), 1):
        for layer in (Layer.TOOLS, Layer.SYSTEM):
            for block in call.blocks[layer]:
                for inner, text in texts(block.content):
                    if found := _first_volatile(text, recorded):
                        at, kind = found
                        path = f"{block.path}.{inner}"
                        what = f"{path}, character {at:,} ({kind}): “{excerpt(text, at)}”"
                        search = search_texts(text[:at], text, at)
                        change = CostChange(number, 1, ZERO, what, layer=str(layer), block=block.path, search=search)
                        places.setdefault(path, []).append(change)
    yield from (replace(found[0], calls=len(found)) for found in places.values())


def _first_volatile(text: str, recorded: RecordedScenario) -> tuple[int, str] | None:
    """(character, kind) of the first word that is surely of this run, or of this machine."""
    found = [
        (match.start(), kind)
        for kind, name in recorded.machine.items()
        if (match := re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text))
    ]
    has_two = len(recorded.runs) > 1
    for word in find_volatile_words(text):
        is_shown_to_stay = has_two and (word.kind != "time" or recorded.clock)
        if word.strong and not is_shown_to_stay:
            found.append((word.start, word.kind))
    return min(found, default=None)


def _message(differences: Sequence[RunDifference], changes: Sequence[CostChange]) -> str:
    first, rest = differences[0], len(changes) - 1
    more = f" and {count_text(rest, 'more place')}" if rest else ""
    cost = sum((one.cost for one in changes), ZERO)
    words = f"the second costs {dollars(cost)} more for it" if cost > 0 else "here that costs nothing more"
    where = f"{first.path} ({first.kind}) from call {first.call} on{more}"
    return f"{AS_RECORDED} is not deterministic: two runs differ in {where}; {words}."


def _verdict(recorded: RecordedScenario, places: int, message: str, changes: tuple[CostChange, ...] = ()) -> Verdict:
    place = placed_of(recorded.scenario).place(RECORDING)
    state: State = "fail" if places else "pass"
    return Verdict(recorded.scenario.name, AS_RECORDED, NAME, ZERO, Decimal(places), state, message, place, changes)


def _changes(differences: Sequence[RunDifference], costs: Sequence[Decimal]) -> list[CostChange]:
    """A change for each place, the most expensive first. What a call costs more is the effect of the first of its
    differences, in the order of the prompt; all that the others could break is broken by then.
    """
    by_place: dict[str, list[RunDifference]] = {}
    for one in differences:
        by_place.setdefault(one.path, []).append(one)
    lead = {one.call: one.path for one in reversed(differences)}
    changes = []
    for path, found in by_place.items():
        cost = sum((_at(costs, call - 1) for call, led in lead.items() if led == path), ZERO)
        first = found[0]
        changes.append(
            CostChange(
                first.call, len(found), cost, _words(first), layer=first.layer, block=first.block, search=first.search
            )
        )
    return sorted(changes, key=lambda change: (-change.cost, change.call))


def _words(one: RunDifference) -> str:
    return f"{one.path}, character {one.character:,} ({one.kind}): “{one.first}”, then “{one.second}”"


def _extra_costs(recorded: RecordedScenario, folder: Path, second: Sequence[RecordedCall]) -> list[Decimal]:
    """By call of the second run: what it costs more than if it had sent what the first run sent."""
    same, other = (_costs_after_first(recorded, folder, run) for run in (recorded.runs[0], second))
    return [_at(other, number) - _at(same, number) for number in range(max(len(same), len(other)))]


def _costs_after_first(recorded: RecordedScenario, folder: Path, second: Sequence[RecordedCall]) -> list[Decimal]:
    """What each call of `second` costs, right after those of the first run and at their pace."""
    first = recorded.runs[0]
    later = first[-1].start + PAUSE_S
    calls = [*first, *(_at_time(call, later + PAUSE_S * number) for number, call in enumerate(second))]
    simulation = workload_as_recorded(recorded.scenario, folder, calls).simulation()
    return [simulation.simulate(call).row.cost.total for call in calls][len(first) :]


def _at_time(call: RecordedCall, start: float) -> RecordedCall:
    return replace(call, start=start, timestamp=iso_milliseconds(start), day=day_of(start))


def _at(costs: Sequence[Decimal], number: int) -> Decimal:
    return costs[number] if number < len(costs) else ZERO
