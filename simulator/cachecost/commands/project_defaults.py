"""Defaults of a command's options from the project's settings file, as click's `default_map`.

The command line wins over the environment, that over the file, and that over the built-in defaults.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from cachecost.base.errors import InputError
from cachecost.configuration.discovery import found_files

if TYPE_CHECKING:
    from cachecost.base.yaml_text import PlacedValue, Way
    from cachecost.configuration.project_settings import ProjectSettings

HELP = frozenset({"-h", "--help"})


@dataclass(frozen=True, slots=True)
class ProjectDefaults:
    """What the settings file states for the command that runs."""

    settings: ProjectSettings | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values by the names of click's parameters; of a group, by subcommand."""
    places: Mapping[str, str] = field(default_factory=dict)
    """File and line of each option in `defaults`, `--host`."""


def apply_project_defaults(ctx: click.Context, name: str, command: click.Command, words: list[str]) -> None:
    """Give the subcommand `name` of `ctx` its defaults, unless it is to print its help. Raises InputError."""
    if ctx.resilient_parsing or HELP & set(words):
        return
    ctx.obj = project_defaults(name, command)
    ctx.default_map = {name: ctx.obj.defaults}


def project_defaults(name: str, command: click.Command) -> ProjectDefaults:
    """The defaults of a command. Raises InputError with every error of the file."""
    found = found_files()
    if not found.may_have_settings:
        return ProjectDefaults()
    from cachecost.commands.option_values import command_defaults
    from cachecost.configuration.option_classes import reads_settings
    from cachecost.configuration.project_settings import read_settings

    if not reads_settings(name):
        return ProjectDefaults()
    settings = read_settings(found)
    if not settings.settings:
        return ProjectDefaults(settings)
    made = {part: command_defaults(part, inner, settings) for part, inner in commands_under(name, command)}
    if faults := [fault for one in made.values() for fault in one.faults]:
        raise InputError(sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0))
    inner_defaults = {part.removeprefix(f"{name} "): one.values for part, one in made.items() if part != name}
    places = {option: place for one in made.values() for option, place in one.places.items()}
    return ProjectDefaults(settings, {**made[name].values, **inner_defaults}, places)


def commands_under(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """A command and its subcommands, by the words that call them."""
    yield name, command
    if isinstance(command, click.Group):
        yield from ((f"{name} {key}", inner) for key, inner in command.commands.items())


def current_defaults() -> ProjectDefaults:
    """Those of the command that runs; none outside of a command."""
    context = click.get_current_context(silent=True)
    return context.obj if context and isinstance(context.obj, ProjectDefaults) else ProjectDefaults()


def is_from_file(parameter: str) -> bool:
    """Whether the value of a parameter of the command that runs comes from the file."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(parameter) is click.core.ParameterSource.DEFAULT_MAP


def scenario_defaults() -> Mapping[Way, PlacedValue]:
    """What the file states for scenarios that do not, by its way in a scenario. Raises InputError."""
    settings = current_defaults().settings
    if settings is None:
        return {}
    from cachecost.configuration.option_classes import WITHOUT_SCENARIO_DEFAULTS
    from cachecost.configuration.scenario_defaults import scenario_defaults_of

    if click.get_current_context().command.name in WITHOUT_SCENARIO_DEFAULTS:
        return {}
    return scenario_defaults_of(settings, os.environ)


def with_places(error: click.UsageError, places: Mapping[str, str]) -> click.UsageError:
    """The error, with the places of the options that it names and the file sets."""
    if error.ctx is None or not places:
        return error
    words = error.format_message().replace(":", " ").replace(",", " ").split()
    named = [f"{option} is set at {places[option]}" for option in _set_by_file(error.ctx) if option in words]
    return click.UsageError("; ".join([error.format_message(), *named]), error.ctx) if named else error


def _set_by_file(context: click.Context) -> list[str]:
    """The options of a command whose values come from the file."""
    return [
        option
        for param in context.command.params
        for option in param.opts
        if context.get_parameter_source(param.name or "") is click.core.ParameterSource.DEFAULT_MAP
    ]
