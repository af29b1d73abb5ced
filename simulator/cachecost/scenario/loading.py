"""Scenario files: read whole, with every error at once, each at its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from cachecost.base import yaml_text
from cachecost.base.errors import Fault, InputError, NamesNotKnown
from cachecost.base.limits import MOST_SWEPT
from cachecost.base.schema_errors import faults_of, show_kind
from cachecost.base.yaml_text import PlacedValue, SourcePlace, Way
from cachecost.scenario.agent_keys import has_command, missing_faults
from cachecost.scenario.cross_checks import check_across_keys
from cachecost.scenario.edits import merge, put, put_all, with_set
from cachecost.scenario.file_defaults import NO_DEFAULTS, FileDefaults, with_defaults
from cachecost.scenario.models import Scenario
from cachecost.scenario.names import unknown_names
from cachecost.scenario.text import schema
from cachecost.scenario.ways import get

ONLY_ABOUT_THE_WHOLE = ("variants", "sweep", "budget", "assumptions", "conclusion")
"""What a variant does not inherit."""
SIGNS_OF_A_SCENARIO = {"format", "conversation", "strategies"}
NO_SCENARIO = "expected a scenario, a mapping with the keys format, name and conversation; found none of its keys"
"""The one error of a file without these keys: it may be a foreign one with secrets in it, and is not quoted."""


# ---------------------------------------------------------------------------------------- reading


def load(path: str | Path, sets: Sequence[str] = (), defaults: FileDefaults = NO_DEFAULTS) -> Scenario:
    """The scenario at `path`, with each of `sets` ("a.b=V", V in YAML, a list's item by its number) put over it.

    `defaults` stand where the file states nothing (`scenario/file_defaults.py`).

    Paths in it start at its folder. Raises InputError with every fault: of the text, of each key and
    value, of the variants and sweeps too, in the order of the file, those of `sets` last; NamesNotKnown where
    nothing else is wrong than hosts and models that are not known.
    """
    placed = yaml_text.read(path)
    faults = list(placed.faults)
    if not isinstance(placed.value, dict):
        raise InputError([placed.fault((), f"expected a mapping; got {show_kind(placed.value)}")])
    if not SIGNS_OF_A_SCENARIO & placed.value.keys():
        raise InputError([placed.fault((), NO_SCENARIO)])
    placed = with_defaults(placed, defaults, Path(path).parent)
    for text in sets:
        placed = with_set(placed, text, faults)
    return _with_known_names(placed, Path(path).parent, faults)


def from_mapping(value: Mapping[str, Any], folder: Path, file: str = "scenario") -> Scenario:
    """A scenario from plain values, as `load` makes it from a file; its host and models are not looked up.

    Raises InputError.
    """
    return _scenario(PlacedValue(dict(value), {(): SourcePlace(file)}), CheckContext(folder, False), [])


class CheckContext(NamedTuple):
    """What a scenario is checked against: the folder of its paths, whether its host and models must be known, and
    whether its recording is what a command sent.
    """

    folder: Path
    names: bool = True
    is_recorded: bool = False


def placed_of(scenario: Scenario) -> PlacedValue:
    """The values of a scenario, each with its place."""
    return scenario._placed or PlacedValue(None, {(): SourcePlace(scenario.name)})


def scenario_from(placed: PlacedValue, context: CheckContext) -> Scenario:
    """The scenario of these values. Raises InputError."""
    return _scenario(placed, context, [])


def _with_known_names(placed: PlacedValue, folder: Path, faults: Sequence[Fault]) -> Scenario:
    """The scenario. Raises InputError: NamesNotKnown where it would be fine if its host and models were known."""
    try:
        return _scenario(placed, CheckContext(folder), list(faults))
    except InputError as error:
        all_faults = error.faults
    _scenario(placed, CheckContext(folder, False), list(faults), all_faults)
    raise NamesNotKnown(all_faults)


def _scenario(
    placed: PlacedValue, context: CheckContext, faults: list[Fault], shown_faults: Sequence[Fault] = ()
) -> Scenario:
    """Raises InputError, with the faults in `shown_faults` if there are any."""
    scenario, own = _check(placed, context)
    variants = list(_variants(placed, context, own))
    found = own + [fault for _, _, new in variants for fault in new]
    found += [*_sweep_faults(placed, context, own), *_assumption_faults(placed, context, own)]
    misread = {_where(fault) for fault in placed.faults}
    faults += [fault for fault in found if _where(fault) not in misread]
    if faults or scenario is None:
        raise InputError(shown_faults or sorted(dict.fromkeys(faults), key=_order))
    scenario._loaded_variants = tuple((name, variant) for name, variant, _ in variants if variant is not None)
    return scenario


def _order(fault: Fault) -> tuple[bool, int, int]:
    return (fault.line is None, fault.line or 0, fault.column or 0)


def _where(fault: Fault) -> SourcePlace:
    return SourcePlace(fault.file, fault.line, fault.column)


def _check(placed: PlacedValue, context: CheckContext) -> tuple[Scenario | None, list[Fault]]:
    """The scenario, None where there are faults, and the faults."""
    faults = [*check_across_keys(placed, context.folder), *(unknown_names(placed) if context.names else ())]
    if not (context.is_recorded or has_command(placed)):
        faults += missing_faults(placed)
    try:
        scenario = Scenario.model_validate(placed.value)
    except ValidationError as error:
        return None, faults_of(error, placed, schema()) + faults
    scenario._placed = placed
    return scenario, faults


# ---------------------------------------------------------------------- what no single key can tell


# ------------------------------------------------------------------------------ variants and sweeps


def _variants(
    placed: PlacedValue, context: CheckContext, known: list[Fault]
) -> Iterator[tuple[str, Scenario | None, list[Fault]]]:
    """Each variant's name, scenario and those faults that the scenario itself does not have."""
    variants = get(placed, ("variants",))
    base = placed.without(*ONLY_ABOUT_THE_WHOLE)
    known_places = {_where(fault) for fault in known}
    for number, variant in enumerate(variants if isinstance(variants, list) else ()):
        if isinstance(variant, dict):
            changes = placed.at(("variants", number)).without("name")
            scenario, faults = _check(merge(base, changes), context)
            new = [
                fault
                for fault in faults
                if fault not in known and (fault.line is None or _where(fault) not in known_places)
            ]
            lead = f"variants[{number}]."
            yield str(variant.get("name")), scenario, [replace(fault, message=lead + fault.message) for fault in new]


def _sweep_faults(placed: PlacedValue, context: CheckContext, known: list[Fault]) -> list[Fault]:
    """Faults that each swept value makes by itself; those of paths that lead nowhere."""
    sweep = get(placed, ("sweep",))
    base = placed.without("sweep")
    faults: list[Fault] = []
    for dotted, values in sweep.items() if isinstance(sweep, dict) else ():
        if isinstance(values, list) and len(values) > MOST_SWEPT:
            expected = f"expected at most {MOST_SWEPT:,} values on an axis; got {len(values):,}"
            faults.append(placed.fault(("sweep", dotted), expected))
            continue
        for number in range(len(values)) if isinstance(values, list) else ():
            here: Way = ("sweep", dotted, number)
            try:
                found = _check(put(base, dotted, placed.at(here)), context)[1]
                faults += [placed.fault(here, fault.message) for fault in found if fault not in known]
            except LookupError as error:
                faults.append(placed.fault(here[:2], str(error.args[0])))
                break
    return faults


def scenario_at(scenario: Scenario, paths: Sequence[str], value: Any, folder: Path) -> Scenario:
    """The scenario, without its variants, with `value` at dotted paths (`AssumptionSpec.set`).

    Raises InputError for a value that cannot stand there.
    """
    assert scenario._placed is not None
    placed = scenario._placed.without(*ONLY_ABOUT_THE_WHOLE)
    return _scenario(
        put_all(placed, paths, PlacedValue(value, {(): SourcePlace(scenario.name)})), CheckContext(folder, False), []
    )


def _assumption_faults(placed: PlacedValue, context: CheckContext, known: list[Fault]) -> list[Fault]:
    """Faults that the values of assumptions make; those of paths that lead nowhere, or to what no cost depends on."""
    assumptions = get(placed, ("assumptions",))
    base = placed.without(*ONLY_ABOUT_THE_WHOLE)
    wrong = {_where(fault) for fault in known}
    faults: list[Fault] = []
    for number in range(len(assumptions) if isinstance(assumptions, list) else 0):
        for way, paths in _assumed_values(placed, number):
            try:
                found = _check(put_all(base, paths, placed.at(way)), context)[1]
                new = [fault for fault in found if fault not in known and placed.place(way) not in wrong]
                faults += [placed.fault(way, fault.message) for fault in new]
            except LookupError as error:
                faults.append(placed.fault(("assumptions", number, "set"), str(error.args[0])))
                break
    return faults


def _assumed_values(placed: PlacedValue, number: int) -> Iterator[tuple[Way, list[str]]]:
    """Where the values of an assumption stand, and the paths that they are for; nothing where its text is wrong."""
    here: Way = ("assumptions", number)
    given = get(placed, (*here, "set"))
    paths = [given] if isinstance(given, str) else given
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        return
    for key in ("range", "values"):
        values = get(placed, (*here, key))
        yield from (((*here, key, place), paths) for place in range(len(values) if isinstance(values, list) else 0))


# ------------------------------------------------------------------------------- the conversation
