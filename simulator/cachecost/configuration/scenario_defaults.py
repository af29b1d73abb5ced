"""What a settings file states for scenarios that do not state it themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cachecost.base.errors import InputError
from cachecost.base.yaml_text import PlacedValue, SourcePlace, Way
from cachecost.configuration.option_classes import OVERRULING, RULE, TOKENS
from cachecost.configuration.project_settings import ProjectSettings, Setting
from cachecost.configuration.values import WrongValue, assignments_of, word_of
from cachecost.providers.assumptions import read_assumptions

KEYS = {"host": "host", "prices": "prices", "as-of": "as_of", TOKENS: "tokens"}
"""Keys for all commands, and the keys of a scenario that win over them. Those of `rule` are `rules`."""


def scenario_defaults_of(project: ProjectSettings, environment: Mapping[str, str]) -> dict[Way, PlacedValue]:
    """Values by their way in a scenario, with their places in the file; paths from the current folder.

    Raises InputError.
    """
    made, faults = dict[Way, PlacedValue](), []
    for setting in filter(None, map(project.general, (*KEYS, RULE))):
        if environment.get(OVERRULING.get(setting.key, "")):
            continue
        try:
            made.update(_placed_values(project, setting))
        except WrongValue as error:
            faults.append(project.fault(setting, str(error)))
    if faults:
        raise InputError(faults)
    return made


def assumption_problems(words: Sequence[str]) -> str:
    """What is wrong with NAME=VALUE words; empty if nothing is."""
    if bare := [word for word in words if "=" not in word]:
        return f"expected NAME=VALUE; got {bare[0]!r}"
    _, problems = read_assumptions(dict(word.split("=", 1) for word in words))
    return "; ".join(problems.values())


def _placed_values(project: ProjectSettings, setting: Setting) -> Iterator[tuple[Way, PlacedValue]]:
    """Raises WrongValue."""
    place: dict[Way, SourcePlace] = {(): SourcePlace(str(project.path), project.line(setting))}
    if setting.key != RULE:
        word = word_of(setting.value)
        word = str(project.folder / word) if setting.key == "prices" else word
        yield (KEYS[setting.key],), PlacedValue(word, place)
        return
    words = assignments_of(setting.value)
    if problem := assumption_problems(words):
        raise WrongValue(problem)
    read, _ = read_assumptions(dict(word.split("=", 1) for word in words))
    yield from ((("rules", name), PlacedValue(getattr(read, name), place)) for name in sorted(read.given))
