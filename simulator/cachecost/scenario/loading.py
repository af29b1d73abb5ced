"""Scenario files: read whole, every fault at once, each at its line; and the conversation they ask about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from cachecost.base import yaml_text
from cachecost.base.errors import Fault, InputError, NamesNotKnown
from cachecost.base.formatting import count_text
from cachecost.base.limits import BLOCKS, MOST_SWEPT, OutOfLimits
from cachecost.base.schema_errors import faults_of, one_of, show_value
from cachecost.base.yaml_text import PlacedValue, SourcePlace, Way
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn, input_path, is_url, quiet
from cachecost.conversations.model import Conversation, Event, Human
from cachecost.conversations.sessions import read_conversations
from cachecost.conversations.synthetic import SyntheticSpec, synthetic
from cachecost.prompts.blocks import NOTHING, Part, given_block
from cachecost.providers.assumptions import read_assumptions
from cachecost.scenario.adjusting import begin_at_turn, stretch_pauses
from cachecost.scenario.agent_keys import COMMAND, agent_faults, has_command, missing_faults
from cachecost.scenario.file_defaults import NO_DEFAULTS, FileDefaults, with_defaults
from cachecost.scenario.models import AS_RECORDED, Head, Scenario
from cachecost.scenario.names import unknown_names
from cachecost.scenario.text import schema
from cachecost.scenario.ways import get, numbered_path
from cachecost.strategies.spec import StrategySpec

ONLY_ABOUT_THE_WHOLE = ("variants", "sweep", "budget", "assumptions")
"""What a variant does not inherit."""
ALTERNATIVES = (("recording", "synthetic", "command"), ("tokens", "blocks"))
"""Keys of which a variant's replaces the scenario's other one."""
NOT_RUN = "expected a recording or a synthetic conversation here, as a variant or a swept value runs no command"


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
        raise InputError([*faults, placed.fault((), f"expected a mapping; got {show_value(placed.value)}")])
    placed = with_defaults(placed, defaults, Path(path).parent)
    for text in sets:
        placed = _with_set(placed, text, faults)
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


def _with_set(placed: PlacedValue, text: str, faults: list[Fault]) -> PlacedValue:
    """`placed` under one `--set`; what is wrong with that is added to `faults`."""
    place = SourcePlace(f"--set {text}:")
    dotted, equals, value = text.partition("=")
    try:
        if not equals:
            raise LookupError("expected a.b=VALUE")
        part = yaml_text.parse(value, place.file) if value.strip() else PlacedValue(None, {(): place})
        faults += [Fault(place.file, fault.message) for fault in part.faults]
        return _put(placed, dotted, replace(part, places=dict.fromkeys(part.places, place)))
    except LookupError as error:
        faults.append(Fault(place.file, str(error.args[0])))
    except InputError as error:
        faults += [Fault(place.file, fault.message) for fault in error.faults]
    return placed


def _put(placed: PlacedValue, dotted: str, part: PlacedValue) -> PlacedValue:
    """`part` at a dotted path; a strategy that is a bare preset opens to take options. Raises LookupError."""
    way = placed.way_of(".".join(dotted.split(".")[:2]))
    preset = get(placed, way)
    if way[0] == "strategies" and isinstance(preset, str) and dotted.count(".") > 1:
        placed = placed.put(way, PlacedValue({"preset": preset}, {(): placed.place(way)}))
    return placed.put(placed.way_of(dotted), part)


def _scenario(
    placed: PlacedValue, context: CheckContext, faults: list[Fault], shown_faults: Sequence[Fault] = ()
) -> Scenario:
    """Raises InputError, with the faults in `shown_faults` if there are any."""
    scenario, own = _check(placed, context)
    readings = list(_variants(placed, context, own))
    found = own + [fault for _, _, new in readings for fault in new]
    found += [*_sweep_faults(placed, context, own), *_assumption_faults(placed, context, own)]
    misread = {_where(fault) for fault in placed.faults}
    faults += [fault for fault in found if _where(fault) not in misread]
    if faults or scenario is None:
        raise InputError(shown_faults or sorted(dict.fromkeys(faults), key=_order))
    scenario._readings = tuple((name, variant) for name, variant, _ in readings if variant is not None)
    return scenario


def _order(fault: Fault) -> tuple[bool, int, int]:
    return (fault.line is None, fault.line or 0, fault.column or 0)


def _where(fault: Fault) -> SourcePlace:
    return SourcePlace(fault.file, fault.line, fault.column)


def _check(placed: PlacedValue, context: CheckContext) -> tuple[Scenario | None, list[Fault]]:
    """The scenario, None where there are faults, and the faults."""
    faults = [*_check_across_keys(placed, context.folder), *(unknown_names(placed) if context.names else ())]
    if not (context.is_recorded or has_command(placed)):
        faults += missing_faults(placed)
    try:
        scenario = Scenario.model_validate(placed.value)
    except ValidationError as error:
        return None, faults_of(error, placed, schema()) + faults
    scenario._placed = placed
    return scenario, faults


# ---------------------------------------------------------------------- what no single key can tell


def _check_across_keys(placed: PlacedValue, folder: Path) -> Iterator[Fault]:
    """Faults between keys, and between the file and the disk. Values may be of any type here."""
    names = _names(placed, "strategies")
    yield from _duplicate_names(placed, names)
    yield from _duplicate_names(placed, _names(placed, "variants"))
    yield from _unknown_strategies(placed, sorted(set(names.values())))
    yield from agent_faults(placed, folder)
    for way in (("conversation", "recording"), ("prices",)):
        path = get(placed, way)
        is_remote = way[0] == "conversation" and isinstance(path, str) and is_url(path)  # looked at when it is read
        if isinstance(path, str) and not is_remote and not _is_file(folder / path):
            yield placed.fault(way, f"expected a file; got {show_value(path)}, and there is no {folder / path}")
    rules = get(placed, ("rules",))
    if isinstance(rules, dict):
        for name, problem in read_assumptions(rules)[1].items():
            yield placed.fault(("rules", name), problem.removeprefix(f"{name}: "))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, or holds a null
        return False


def _names(placed: PlacedValue, key: str) -> dict[Way, str]:
    """Where each item of the list at `key` has its name."""
    items = get(placed, (key,))
    names: dict[Way, str] = {}
    for number, item in enumerate(items if isinstance(items, list) else ()):
        own = "name" if isinstance(item, dict) and "name" in item else "preset"
        way: Way = (key, number, own) if isinstance(item, dict) else (key, number)
        if isinstance(name := get(placed, way), str):
            names[way] = name
    return names


def _duplicate_names(placed: PlacedValue, names: Mapping[Way, str]) -> Iterator[Fault]:
    first: dict[str, Way] = {}
    for way, name in names.items():
        if first.setdefault(name, way) != way:
            earlier = yaml_text.spell(first[name][:2])
            yield placed.fault(way, f"expected a name of its own; got {show_value(name)}, as {earlier}")


def _unknown_strategies(placed: PlacedValue, strategies: Sequence[str]) -> Iterator[Fault]:
    """Where a strategy is named that there is not."""
    budget = get(placed, ("budget",))
    budgets: list[Way] = [("budget", n) for n in range(len(budget))] if isinstance(budget, list) else [("budget",)]
    has_calls = has_command(placed) or isinstance(get(placed, ("conversation", "recording")), str)
    recorded = [AS_RECORDED] if has_calls else []
    named = get(placed, ("question_about",))
    asked: list[Way] = [("question_about", n) for n in range(len(named))] if isinstance(named, list) else []
    for way in [("compare_to",), *asked, *((*way, "strategy") for way in budgets)]:
        name = get(placed, way)
        known = [*strategies, *(recorded if way[0] == "budget" else ())]
        is_checked = strategies or "strategies" not in placed.value
        if isinstance(name, str) and known and is_checked and name not in known:
            yield placed.fault(way, one_of(known, name))


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
            scenario, faults = _check(_merge(base, changes), context)
            new = [
                fault
                for fault in faults
                if fault not in known and (fault.line is None or _where(fault) not in known_places)
            ]
            lead = f"variants[{number}]."
            yield str(variant.get("name")), scenario, [replace(fault, message=lead + fault.message) for fault in new]


def _merge(base: PlacedValue, changes: PlacedValue, way: Way = ()) -> PlacedValue:
    """`changes` over `base`: mappings key by key, everything else as a whole."""
    for key, value in get(changes, way).items():
        inner = (*way, key)
        others = {name for group in ALTERNATIVES if key in group for name in group} - {key}
        base = base.put(way, base.at(way).without(*others)) if way and others & set(get(base, way)) else base
        both = isinstance(value, dict) and isinstance(get(base, inner), dict)
        base = _merge(base, changes, inner) if both else base.put(inner, changes.at(inner))
    return base


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
                found = _check(_put(base, dotted, placed.at(here)), context)[1]
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
        _put_all(placed, paths, PlacedValue(value, {(): SourcePlace(scenario.name)})), CheckContext(folder, False), []
    )


def _put_all(placed: PlacedValue, paths: Sequence[str], part: PlacedValue) -> PlacedValue:
    """`part` at each path, whose strategy may be named by its name. Raises LookupError."""
    for path in paths:
        placed = _put(placed, numbered_path(path, _strategy_names(placed)), part)
    return placed


def numbered_paths(scenario: Scenario, paths: Sequence[str]) -> list[str]:
    """Dotted paths with strategies named by their numbers. Raises LookupError."""
    return [numbered_path(path, [strategy.name for strategy in scenario.strategies]) for path in paths]


def value_as_written(scenario: Scenario, path: str) -> Any:
    """The value at a dotted path, as `numbered_paths` has it: that of the file, else its default; None if unknown."""
    assert scenario._placed is not None
    way: Way = tuple(int(word) if word.isdecimal() else word for word in path.split("."))
    written = get(scenario._placed, way)
    return _default(scenario, way) if written is None else written


def _default(scenario: Scenario, way: Way) -> Any:
    """What a scenario has where its file has nothing: of a strategy that is a preset, the preset's."""
    value: Any = scenario
    for step in way:
        if isinstance(value, StrategySpec):
            value = value.resolve()
        value = _item(value, step)
    return value if isinstance(value, str | int | float | bool) else None


def _item(value: Any, step: str | int) -> Any:
    """An item of a list or a mapping, or an attribute; None where there is none."""
    if isinstance(value, list):
        return value[step] if isinstance(step, int) and step < len(value) else None
    return value.get(step) if isinstance(value, Mapping) else getattr(value, str(step), None)


def _strategy_names(placed: PlacedValue) -> list[str]:
    """The names of the strategies by their numbers; "" for one without."""
    items = get(placed, ("strategies",))
    names = {way[1]: name for way, name in _names(placed, "strategies").items()}
    return [names.get(number, "") for number in range(len(items) if isinstance(items, list) else 0)]


def _assumption_faults(placed: PlacedValue, context: CheckContext, known: list[Fault]) -> list[Fault]:
    """Faults that the values of assumptions make; those of paths that lead nowhere, or to what no cost depends on."""
    assumptions = get(placed, ("assumptions",))
    base = placed.without(*ONLY_ABOUT_THE_WHOLE)
    wrong = {_where(fault) for fault in known}
    faults: list[Fault] = []
    for number in range(len(assumptions) if isinstance(assumptions, list) else 0):
        for way, paths in _assumed_values(placed, number):
            try:
                found = _check(_put_all(base, paths, placed.at(way)), context)[1]
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


def head_parts(head: Head) -> tuple[Part, Part]:
    """The tools and the system prompt of `head`, without text; their tokens sum exactly to what it says."""
    sizes = _split_evenly(head.tools.tokens, head.tools.count) if head.tools else []
    system = head.system.blocks or [head.system.tokens or 0] if head.system else []
    return _part("tool", "", "tool", sizes), _part("text", "system", "system", system)


def _split_evenly(tokens: int, parts: int) -> list[int]:
    """`tokens` in `parts`, as equal as whole numbers can be."""
    each, rest = divmod(tokens, parts)
    return [each + (number < rest) for number in range(parts)]


def _part(kind: str, role: str, name: str, sizes: Sequence[int]) -> Part:
    blocks = [given_block(kind, role, f"{name} {number}:{size}", size) for number, size in zip(count(1), sizes)]
    return Part(tuple(blocks)) if blocks else NOTHING


class ScenarioTalks(NamedTuple):
    """What a scenario replays: conversations, and the calls with their bills that they were found in, if any."""

    conversations: list[Conversation]
    bills: list[RecordedCall]


def load_conversations(scenario: Scenario, base_dir: Path, warn: Warn = quiet) -> ScenarioTalks:
    """The scenario's conversations, with their head and parameters; paths start at `base_dir`.

    `warn` is called for a recording that is still being written. Raises InputError: a recording that
    cannot be read, or that has itself what the head would add.
    """
    source = scenario.conversation
    _check_head(scenario)
    if source.command is not None:
        raise InputError([scenario.fault(COMMAND, NOT_RUN)])
    if source.recording is None:
        return ScenarioTalks([_add_head(scenario, _make_synthetic(scenario))], [])
    conversations, bills = read_conversations(input_path(source.recording, base_dir), "auto", warn)
    headed = [_add_head(scenario, conversation) for conversation in conversations]
    if not any(conversation.replies for conversation in conversations):
        fault = scenario.fault(("conversation", "recording"), "expected a recording with calls; it has none")
        raise InputError([fault])
    return ScenarioTalks(headed, bills)


def _check_head(scenario: Scenario) -> None:
    tools = scenario.conversation.head.tools
    if tools and tools.count > BLOCKS.value():
        way = ("conversation", "head", "tools", "count")
        raise InputError([scenario.fault(way, str(BLOCKS.error(f"{tools.count:,}")))])


def _make_synthetic(scenario: Scenario) -> Conversation:
    """The synthetic conversation. Raises InputError where it would be beyond a limit."""
    try:
        spec = scenario.conversation.synthetic or SyntheticSpec()
        return synthetic(replace(spec, name=scenario.name, model=scenario.model))
    except OutOfLimits as error:
        raise InputError([scenario.fault(("conversation", "synthetic"), str(error))]) from None


def _add_head(scenario: Scenario, conversation: Conversation) -> Conversation:
    """A conversation with the head, the parameters and the turns that the scenario asks for."""
    source = scenario.conversation
    tools, system = head_parts(source.head)
    begun = stretch_pauses(begin_at_turn(conversation, source.from_turn), source.pause_factor)
    return replace(
        begun,
        events=_turns(begun.events, source.turns if isinstance(source.turns, int) else None),
        tools=_pick_part(scenario, "tools", conversation.tools, tools),
        system=_pick_part(scenario, "system", conversation.system, system),
        params={**conversation.params, **source.params.model_dump(exclude_none=True)},
    )


def _pick_part(scenario: Scenario, layer: str, recorded: Part, given: Part) -> Part:
    """The part that is there. Two would mean that the head, or a sweep over it, is silently without effect."""
    if recorded.blocks and given.blocks:
        message = f"expected nothing, as the recording has its own; got {count_text(len(given.blocks), 'block')}"
        raise InputError([scenario.fault(("conversation", "head", layer), message)])
    return given if given.blocks else recorded


def _turns(events: Sequence[Event], turns: int | None) -> tuple[Event, ...]:
    """The events of the first human turns; all of them without a number."""
    starts = [number for number, event in enumerate(events) if isinstance(event, Human)]
    cut = turns is not None and len(starts) > turns
    return tuple(events[: starts[turns]] if cut and turns is not None else events)
