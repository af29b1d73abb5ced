"""Scenario files: read whole, with every error at once, each at its line.

Values are found by their path from the top, and others put in their place: those of `--set`, of variants, of sweeps and
of assumptions. A command, of which a scenario is what it sends, is replaced by a recording.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from cachecost.base import yaml_text
from cachecost.base.errors import CannotEvaluate, Fault, InputError, NamesNotKnown
from cachecost.base.limits import MOST_SWEPT
from cachecost.base.structs import replace
from cachecost.base.yaml_text import PlacedValue, SourcePlace, Way, faults_of, one_of, show_kind, show_value, value_at
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import is_url
from cachecost.providers.assumptions import read_assumptions
from cachecost.providers.hosts import AUTO_HOST, catalogue, host_of, hosts
from cachecost.scenario.models import AS_RECORDED, CLAIM, FIGURE, Scenario, schema
from cachecost.strategies.spec import StrategySpec

NO_COST = (
    *("name", "question", "question_about", "compare_to", "conclusion", "variants", "published_figures"),
    *("assumptions", "budget"),
)
"""Keys of a scenario that no cost depends on."""


def get(placed: PlacedValue, way: Way, default: Any = None) -> Any:
    """The value at `way`; `default` where there is none."""
    try:
        return value_at(placed.value, way)
    except LookupError:
        return default


STRATEGIES = "strategies."


def numbered_path(dotted: str, names: Sequence[str]) -> str:
    """A dotted path with the strategy that it names by its name (which may contain dots) named by its number.

    Raises LookupError for a path that changes no cost, or to a strategy that there is not.
    """
    if dotted.partition(".")[0] in NO_COST:
        raise LookupError(f"expected a path to what changes a cost; got {dotted!r}, which is only reported")
    rest = dotted.removeprefix(STRATEGIES)
    found = [name for name in names if rest.startswith(f"{name}.")] if rest != dotted else []
    if not found and rest != dotted and names and not rest.partition(".")[0].isdecimal():
        raise LookupError(one_of([*names, *map(str, range(len(names)))], rest))
    if not found:
        return dotted
    name = max(found, key=len)
    return f"{STRATEGIES}{names.index(name)}{rest[len(name) :]}"


def item_names(placed: PlacedValue, key: str) -> dict[Way, str]:
    """Where each item of the list at `key` has its name."""
    items = get(placed, (key,))
    names: dict[Way, str] = {}
    for number, item in enumerate(items if isinstance(items, list) else ()):
        own = "name" if isinstance(item, dict) and "name" in item else "preset"
        way: Way = (key, number, own) if isinstance(item, dict) else (key, number)
        if isinstance(name := get(placed, way), str):
            names[way] = name
    return names


def numbered_paths(scenario: Scenario, paths: Sequence[str]) -> list[str]:
    """Dotted paths with strategies named by their numbers. Raises LookupError."""
    return [numbered_path(path, [strategy.name for strategy in scenario.strategies]) for path in paths]


def value_as_written(scenario: Scenario, path: str) -> Any:
    """The value at a dotted path, as `numbered_paths` has it: that of the file, else its default; None if unknown."""
    assert scenario._placed is not None
    way: Way = tuple(int(word) if word.isdecimal() else word for word in path.split("."))
    if (written := get(scenario._placed, way)) is not None:
        return written
    value: Any = scenario
    for step in way:  # of a strategy that is a preset, the preset's default
        if isinstance(value, StrategySpec):
            value = value.resolve()
        if isinstance(value, list):
            value = value[step] if isinstance(step, int) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else getattr(value, str(step), None)
    return value if isinstance(value, str | int | float | bool) else None


CONVERSATION = "conversation"
COMMAND = (CONVERSATION, "command")
OF_COMMAND = ("answers", "cwd", "env", "timeout", "runs", "content")
"""Keys of a conversation that say how its command runs; `turns` also has a meaning without one."""
TURN = "{turn}"
"""What a turn replaces in the words of a command, which then runs once per turn."""
PROJECT_FILES = ("pyproject.toml", "cachecost.toml", "package.json", ".git")
"""What the folder of a project has."""


def has_command(placed: PlacedValue) -> bool:
    """Whether the conversation is what a command sends."""
    return get(placed, COMMAND) is not None


def agent_faults(placed: PlacedValue, folder: Path) -> Iterator[Fault]:
    """Faults between a command and the keys beside it. Values may be of any type here."""
    way = (CONVERSATION, "turns")
    turns = get(placed, way)
    if has_command(placed):
        if turns is not None and not isinstance(turns, list):
            yield placed.fault(way, f"expected a list of what a person says; got {show_value(turns)}")
        if not turns and TURN in str(get(placed, COMMAND)):
            yield placed.fault(COMMAND, f"expected turns for {TURN}: what a person says, a text per turn")
        cwd = get(placed, (CONVERSATION, "cwd"))
        if isinstance(cwd, str) and not (folder / cwd).is_dir():
            expected = f"expected a folder; got {show_value(cwd)}, and there is no {folder / cwd}"
            yield placed.fault((CONVERSATION, "cwd"), expected)
        return
    if isinstance(turns, list):
        yield placed.fault(way, f"expected a whole number without a command; got {show_value(turns)}")
    conversation = get(placed, (CONVERSATION,))
    for key in OF_COMMAND:
        if isinstance(conversation, dict) and key in conversation:
            yield placed.fault((CONVERSATION, key), "expected only with a command")


def project_folder(folder: Path) -> Path:
    """The nearest folder from `folder` up that looks like a project; `folder` itself if none does."""
    whole = folder.resolve()
    return next((one for one in (whole, *whole.parents) if any((one / name).exists() for name in PROJECT_FILES)), whole)


ALTERNATIVES = (("recording", "synthetic", "command"), ("tokens", "blocks"))
"""Keys of which a variant's replaces the scenario's other one."""


def with_set(placed: PlacedValue, text: str, faults: list[Fault]) -> PlacedValue:
    """`placed` under one `--set`; what is wrong with that is added to `faults`."""
    place = SourcePlace(f"--set {text}:")
    dotted, equals, value = text.partition("=")
    try:
        if not equals:
            raise LookupError("expected a.b=VALUE")
        part = yaml_text.parse(value, place.file) if value.strip() else PlacedValue(None, {(): place})
        faults += [Fault(place.file, fault.message) for fault in part.faults]
        return put(placed, dotted, replace(part, places=dict.fromkeys(part.places, place)))
    except LookupError as error:
        faults.append(Fault(place.file, str(error.args[0])))
    except InputError as error:
        faults += [Fault(place.file, fault.message) for fault in error.faults]
    return placed


MOST_NAME = 100
"""Characters of a name at most: folders may have 255 bytes."""
DIGEST_LETTERS = 8
UNSAFE = re.compile(r"[^\w.+=,@-]+")
"""What a folder should not be called, on any system."""


def name_with_sets(name: str, sets: Sequence[str]) -> str:
    """ "NAME@a.b=V,c=W": by path, the last value of each, in any order of `sets`; NAME alone without any.

    Where characters of a value are no part of a folder's name, or the name is long, a digest of the values ends it.
    """
    values = {path.strip(): value.strip() for path, _, value in (text.partition("=") for text in sets)}
    values.pop("name", None)  # it is `name` already
    exact = ",".join(f"{path}={value}" for path, value in sorted(values.items()))
    shown = UNSAFE.sub("-", exact)
    if shown != exact or len(shown) > MOST_NAME:
        shown = f"{shown[:MOST_NAME]}-{sha256(exact.encode()).hexdigest()[:DIGEST_LETTERS]}"
    return f"{name}@{shown}" if shown else name


def put(placed: PlacedValue, dotted: str, part: PlacedValue) -> PlacedValue:
    """`part` at a dotted path; a strategy that is a bare preset opens to take options. Raises LookupError."""
    way = placed.way_of(".".join(dotted.split(".")[:2]))
    preset = get(placed, way)
    if way[0] == "strategies" and isinstance(preset, str) and dotted.count(".") > 1:
        placed = placed.put(way, PlacedValue({"preset": preset}, {(): placed.place(way)}))
    return placed.put(placed.way_of(dotted), part)


def merge(base: PlacedValue, changes: PlacedValue, way: Way = ()) -> PlacedValue:
    """`changes` over `base`: mappings key by key, everything else as a whole."""
    for key, value in get(changes, way).items():
        inner = (*way, key)
        others = {name for group in ALTERNATIVES if key in group for name in group} - {key}
        base = base.put(way, base.at(way).without(*others)) if way and others & set(get(base, way)) else base
        both = isinstance(value, dict) and isinstance(get(base, inner), dict)
        base = merge(base, changes, inner) if both else base.put(inner, changes.at(inner))
    return base


def put_all(placed: PlacedValue, paths: Sequence[str], part: PlacedValue) -> PlacedValue:
    """`part` at each path, whose strategy may be named by its name. Raises LookupError."""
    for path in paths:
        items, names = get(placed, ("strategies",)), item_names(placed, "strategies")
        by_number = {way[1]: name for way, name in names.items()}
        named = [by_number.get(number, "") for number in range(len(items) if isinstance(items, list) else 0)]
        placed = put(placed, numbered_path(path, named), part)
    return placed


def unknown_names(placed: PlacedValue) -> Iterator[Fault]:
    """A fault for the host, if there are no rules for it, else one for each model that it does not have."""
    host = get(placed, ("host",), AUTO_HOST)
    if host == AUTO_HOST:
        host = host_of(None, AUTO_HOST, str(get(placed, ("model",), "")))
    if not isinstance(host, str):
        return
    if host not in hosts():
        yield placed.fault(("host",), one_of(hosts(), host))
        return
    book, strategies = catalogue(host), get(placed, ("strategies",))
    ways: list[Way] = [("model",)]
    for number in range(len(strategies) if isinstance(strategies, list) else 0):
        ways += [("strategies", number, "model"), ("strategies", number, "inquiry", "model")]
    for way in ways:
        name = get(placed, way)
        try:
            if isinstance(name, str) and name:
                book.model(name)
        except CannotEvaluate as error:
            yield placed.fault(way, str(error))


FileDefaults = Mapping[Way, PlacedValue]
"""Values by their way in a scenario; paths in them start at the current folder."""
NO_DEFAULTS: FileDefaults = {}
PATHS = frozenset({("prices",)})
MISSING = object()


def with_defaults(placed: PlacedValue, defaults: FileDefaults, folder: Path) -> PlacedValue:
    """The scenario of a file in `folder`, with each default that it has no value for."""
    for way, part in defaults.items():
        above = get(placed, way[:-1], {}) if len(way) > 1 else {}
        if isinstance(above, dict) and get(placed, way, MISSING) is MISSING:
            is_path = way in PATHS
            shown = Path(os.path.relpath(part.value, folder)).as_posix() if is_path else part.value
            placed = placed.put(way, PlacedValue(shown, part.places) if is_path else part)
    return placed


def check_across_keys(placed: PlacedValue, folder: Path) -> Iterator[Fault]:
    """Faults between keys, and between the file and the disk. Values may be of any type here."""
    names = item_names(placed, "strategies")
    yield from _duplicate_names(placed, names)
    yield from _duplicate_names(placed, item_names(placed, "variants"))
    yield from _unknown_names(placed, sorted(set(names.values())))
    yield from agent_faults(placed, folder)
    for way in (("conversation", "recording"), ("prices",)):
        path = get(placed, way)
        is_remote = way[0] == "conversation" and isinstance(path, str) and is_url(path)  # looked at when it is read
        if not isinstance(path, str) or is_remote:
            continue
        is_there = False
        with suppress(OSError, ValueError):  # a name that is too long, or holds a null
            is_there = (folder / path).is_file()
        if not is_there:
            yield placed.fault(way, f"expected a file; got {show_value(path)}, and there is no {folder / path}")
    rules = get(placed, ("rules",))
    if isinstance(rules, dict):
        for name, problem in read_assumptions(rules)[1].items():
            yield placed.fault(("rules", name), problem.removeprefix(f"{name}: "))


def _duplicate_names(placed: PlacedValue, names: Mapping[Way, str]) -> Iterator[Fault]:
    first: dict[str, Way] = {}
    for way, name in names.items():
        if first.setdefault(name, way) != way:
            earlier = yaml_text.spell(first[name][:2])
            yield placed.fault(way, f"expected a name of its own; got {show_value(name)}, as {earlier}")


def _unknown_names(placed: PlacedValue, strategies: Sequence[str]) -> Iterator[Fault]:
    """Where a strategy, or in a conclusion a variant, is named that there is not."""
    budget = get(placed, ("budget",))
    budgets: list[Way] = [("budget", n) for n in range(len(budget))] if isinstance(budget, list) else [("budget",)]
    has_calls = has_command(placed) or isinstance(get(placed, ("conversation", "recording")), str)
    recorded = [AS_RECORDED] if has_calls else []
    named = get(placed, ("question_about",))
    asked: list[Way] = [("question_about", n) for n in range(len(named))] if isinstance(named, list) else []
    found = get(placed, ("conclusion",))
    variants = list(item_names(placed, "variants").values())
    for number, item in enumerate(found if isinstance(found, list) else ()):
        here: Way = ("conclusion", number)
        say, holds = (get(placed, (*here, key)) for key in ("say", "holds"))
        for _, name in FIGURE.findall(say) if isinstance(say, str) and isinstance(item, dict) else ():
            if name not in strategies:
                yield placed.fault((*here, "say"), one_of(strategies, name))
        for place, text in enumerate(holds if isinstance(holds, list) else ()):
            match = CLAIM.fullmatch(text) if isinstance(text, str) else None
            variant, one, _, other = match.groups("") if match else ("", "", "", "")
            for known, name in ((strategies, one), (strategies, other), (variants, variant)):
                if name and known and name not in known:  # without variants, as under --set, a claim does not hold
                    yield placed.fault((*here, "holds", place), one_of(known, name))
    for way in [("compare_to",), *asked, *((*way, "strategy") for way in budgets)]:
        name = get(placed, way)
        known = [*strategies, *(recorded if way[0] == "budget" else ())]
        is_checked = strategies or "strategies" not in placed.value
        if isinstance(name, str) and known and is_checked and name not in known:
            yield placed.fault(way, one_of(known, name))


ONLY_ABOUT_THE_WHOLE = ("variants", "sweep", "budget", "assumptions", "conclusion")
"""What a variant does not inherit."""
SIGNS_OF_A_SCENARIO = {"format", "conversation", "strategies"}
NO_SCENARIO = "expected a scenario, a mapping with the keys format, name and conversation; found none of its keys"
"""The one error of a file without these keys: it may be a foreign one with secrets in it, and is not quoted."""


def load(path: str | Path, sets: Sequence[str] = (), defaults: FileDefaults = NO_DEFAULTS) -> Scenario:
    """The scenario at `path`, with each of `sets` ("a.b=V", V in YAML, a list's item by its number) put over it.

    `defaults` stand where the file states nothing (`scenario/loading.py`).

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
    folder = Path(path).parent
    try:
        return scenario_from(placed, CheckContext(folder), list(faults))
    except InputError as error:
        all_faults = error.faults
    scenario_from(placed, CheckContext(folder, False), list(faults), all_faults)
    raise NamesNotKnown(all_faults)


def from_mapping(value: Mapping[str, Any], folder: Path, file: str = "scenario") -> Scenario:
    """A scenario from plain values, as `load` makes it from a file; its host and models are not looked up.

    Raises InputError.
    """
    return scenario_from(PlacedValue(dict(value), {(): SourcePlace(file)}), CheckContext(folder, False))


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


def scenario_from(
    placed: PlacedValue, context: CheckContext, faults: Sequence[Fault] = (), shown_faults: Sequence[Fault] = ()
) -> Scenario:
    """The scenario of these values, whose text has these faults.

    Raises InputError, with the faults in `shown_faults` if there are any.
    """
    scenario, own = _check(placed, context)
    stated, base = get(placed, ("variants",)), placed.without(*ONLY_ABOUT_THE_WHOLE)
    own_places = {_where(fault) for fault in own}
    variants, found = list[tuple[str, Scenario]](), list(own)
    for number, item in enumerate(stated if isinstance(stated, list) else ()):
        if isinstance(item, dict):
            variant, wrong = _check(merge(base, placed.at(("variants", number)).without("name")), context)
            wrong = [one for one in wrong if one not in own and (one.line is None or _where(one) not in own_places)]
            found += [replace(one, message=f"variants[{number}].{one.message}") for one in wrong]
            variants += [(str(item.get("name")), variant)] if variant is not None else []
    found += [*_sweep_faults(placed, context, own), *_assumption_faults(placed, context, own)]
    misread = {_where(fault) for fault in placed.faults}
    new = [fault for fault in found if _where(fault) not in misread]
    if faults or new or scenario is None:
        raise InputError(
            shown_faults
            or sorted(
                dict.fromkeys([*faults, *new]),
                key=lambda fault: (fault.line is None, fault.line or 0, fault.column or 0),
            )
        )
    scenario._loaded_variants = tuple(variants)
    return scenario


def _where(fault: Fault) -> SourcePlace:
    return SourcePlace(fault.file, fault.line, fault.column)


def _check(placed: PlacedValue, context: CheckContext) -> tuple[Scenario | None, list[Fault]]:
    faults = [*check_across_keys(placed, context.folder), *(unknown_names(placed) if context.names else ())]
    if not (context.is_recorded or has_command(placed)):
        needed = (("model", "text"), ("strategies", "a list"))  # which may be left out with a command only
        faults += [
            placed.fault((key,), f"expected {kind}; got nothing") for key, kind in needed if key not in placed.value
        ]
    try:
        scenario = Scenario.model_validate(placed.value)
    except ValidationError as error:
        return None, faults_of(error, placed, schema()) + faults
    scenario._placed = placed
    return scenario, faults


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
    return scenario_from(
        put_all(placed, paths, PlacedValue(value, {(): SourcePlace(scenario.name)})), CheckContext(folder, False)
    )


def _assumption_faults(placed: PlacedValue, context: CheckContext, known: list[Fault]) -> list[Fault]:
    """Faults that the values of assumptions make; those of paths that lead nowhere, or to what no cost depends on."""
    assumptions = get(placed, ("assumptions",))
    base = placed.without(*ONLY_ABOUT_THE_WHOLE)
    wrong = {_where(fault) for fault in known}
    faults: list[Fault] = []
    for number in range(len(assumptions) if isinstance(assumptions, list) else 0):
        here: Way = ("assumptions", number)
        stated = get(placed, (*here, "set"))
        paths = [stated] if isinstance(stated, str) else stated
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            continue
        values = {key: get(placed, (*here, key)) for key in ("range", "values")}
        sizes = {key: len(listed) for key, listed in values.items() if isinstance(listed, list)}
        ways: list[Way] = [(*here, key, place) for key, size in sizes.items() for place in range(size)]
        for way in ways:
            try:
                found = _check(put_all(base, paths, placed.at(way)), context)[1]
                new = [fault for fault in found if fault not in known and placed.place(way) not in wrong]
                faults += [placed.fault(way, fault.message) for fault in new]
            except LookupError as error:
                faults.append(placed.fault((*here, "set"), str(error.args[0])))
                break
    return faults


@dataclass(frozen=True, slots=True)
class RecordedScenario:
    """A scenario without a command, and the calls of each run of the command that it had.

    `runs` is empty for a scenario that never had one. `kept` is a recording of the first run with the content that
    the scenario keeps, and `kept_calls` are the calls in it. `clock` says how the clock of the second run was another
    one; "" where it was the same. `machine` has names of this machine and its user, by what each is.
    """

    scenario: Scenario
    runs: Sequence[Sequence[Call]] = ()
    kept: Path | None = None
    kept_calls: Sequence[Call] = ()
    clock: str = ""
    machine: Mapping[str, str] = field(default_factory=dict)


Record = Callable[[Path, Scenario], RecordedScenario]
"""Makes, of the scenario at a path, one without a command."""


def without_command(path: Path, scenario: Scenario) -> RecordedScenario:
    """The `Record` of scenarios that have no command; one with a command raises InputError where it is replayed."""
    return RecordedScenario(scenario)


def with_recording(scenario: Scenario, folder: Path, recording: Path, calls: Sequence[Call]) -> Scenario:
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
