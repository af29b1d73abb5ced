"""What no single key of a scenario can tell: errors between keys, and between the file and the disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cachecost.base import yaml_text
from cachecost.base.errors import Fault
from cachecost.base.schema_errors import one_of, show_value
from cachecost.base.yaml_text import PlacedValue, Way
from cachecost.conversations.input_files import is_url
from cachecost.providers.assumptions import read_assumptions
from cachecost.scenario.agent_keys import agent_faults, has_command
from cachecost.scenario.models import AS_RECORDED, CLAIM, FIGURE
from cachecost.scenario.ways import get, item_names


def check_across_keys(placed: PlacedValue, folder: Path) -> Iterator[Fault]:
    """Faults between keys, and between the file and the disk. Values may be of any type here."""
    names = item_names(placed, "strategies")
    yield from _duplicate_names(placed, names)
    yield from _duplicate_names(placed, item_names(placed, "variants"))
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
    yield from _unknown_in_conclusions(placed, strategies)
    for way in [("compare_to",), *asked, *((*way, "strategy") for way in budgets)]:
        name = get(placed, way)
        known = [*strategies, *(recorded if way[0] == "budget" else ())]
        is_checked = strategies or "strategies" not in placed.value
        if isinstance(name, str) and known and is_checked and name not in known:
            yield placed.fault(way, one_of(known, name))


def _unknown_in_conclusions(placed: PlacedValue, strategies: Sequence[str]) -> Iterator[Fault]:
    """Where a conclusion is about a strategy or a variant that there is not."""
    found = get(placed, ("conclusion",))
    variants = list(item_names(placed, "variants").values())
    for number, item in enumerate(found if isinstance(found, list) else ()):
        way: Way = ("conclusion", number)
        say, holds = (get(placed, (*way, key)) for key in ("say", "holds"))
        for _, name in FIGURE.findall(say) if isinstance(say, str) and isinstance(item, dict) else ():
            if name not in strategies:
                yield placed.fault((*way, "say"), one_of(strategies, name))
        for place, text in enumerate(holds if isinstance(holds, list) else ()):
            match = CLAIM.fullmatch(text) if isinstance(text, str) else None
            variant, one, _, other = match.groups("") if match else ("", "", "", "")
            named = [(strategies, one), (strategies, other), (variants, variant)] if match else []
            for known, name in named:
                if name and known and name not in known:  # without variants, as under --set, a claim does not hold
                    yield placed.fault((*way, "holds", place), one_of(known, name))
