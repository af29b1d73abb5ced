"""Values of a settings file as click's options take them, checked by the types that check a command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import click

from cachecost.base.atomic_files import is_yaml
from cachecost.base.errors import Fault, InputError, nearest
from cachecost.configuration.project_settings import (
    ALL,
    OVERRULING,
    REPORTS,
    RULE,
    TOKENS,
    ProjectSettings,
    Setting,
    WrongValue,
    assignments_of,
    assumption_problems,
    count_of,
    flag_of,
    folder_within,
    reports_folder,
    scenario_defaults_of,
    scenario_files,
    word_of,
    words_of,
)
from cachecost.tokens.factory import CALIBRATED, COUNTERS


class CommandDefaults(NamedTuple):
    """Values by the names of click's parameters, their places by option, and errors."""

    values: dict[str, Any]
    places: dict[str, str]
    faults: list[Fault]


def command_defaults(name: str, command: click.Command, settings: ProjectSettings) -> CommandDefaults:
    """What the file states for the options of a command."""
    options = {flag: param for param in command.params for flag in param.opts}
    context = click.Context(command, info_name=name)
    made = CommandDefaults({}, {}, [])
    for key, setting in settings.of(name):
        option = options[f"--{key}"]
        choices = option.type.choices if isinstance(option.type, click.Choice) else ()
        # a source of token counts for all commands may be none for this one, which has fewer of them
        is_general = (setting.command, setting.key) == (ALL, TOKENS) and setting.value in (CALIBRATED, *COUNTERS)
        if is_overruled(setting) or (is_general and setting.value not in choices):
            continue
        try:
            value = _option_value(option, setting, settings)
            option.process_value(context, value)
            made.values[option.name or key] = value
        except (WrongValue, click.BadParameter) as error:
            message = error.message if isinstance(error, click.BadParameter) else str(error)
            made.faults.append(settings.fault(setting, message))
        made.places[f"--{key}"] = settings.place(setting)
    if name != "check":
        return made
    for setting in settings.volumes():
        try:
            made.values.setdefault("volumes", []).append(f"{setting.key}={count_of(setting.value)}")
        except WrongValue as error:
            made.faults.append(settings.fault(setting, str(error)))
        made.places.setdefault("--volume", settings.place(setting))
    for read in (scenario_files, reports_folder, lambda one: scenario_defaults_of(one, os.environ)):
        try:
            read(settings)
        except InputError as error:
            made.faults.extend(error.faults)
    return made


def is_overruled(setting: Setting) -> bool:
    """Whether a variable of the environment wins over the setting."""
    return bool(os.environ.get(OVERRULING.get(setting.key, ""), ""))


def _option_value(option: click.Parameter, setting: Setting, settings: ProjectSettings) -> Any:
    if isinstance(option, click.Option) and option.is_flag:
        return flag_of(setting.value)
    if setting.key == REPORTS:
        return str(folder_within(settings, word_of(setting.value)))
    words = assignments_of(setting.value) if setting.key == RULE else words_of(setting.value, option.multiple)
    if setting.key == RULE and (problem := assumption_problems(words)):
        raise WrongValue(problem)
    if isinstance(option.type, click.Choice) and words[0] not in option.type.choices:
        choices = [str(choice) for choice in option.type.choices]
        raise WrongValue(f"expected one of {', '.join(choices)}; got {words[0]!r}{nearest(words[0], choices)}")
    placed = [
        str(settings.folder / word)
        if isinstance(option.type, click.Path) or ("--strategy" in option.opts and is_yaml(Path(word)))
        else word
        for word in words
    ]
    return placed if option.multiple else placed[0]
