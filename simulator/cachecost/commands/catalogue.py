"""All commands by name, and the defaults of their options from the project's settings file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cachecost.base.errors import InputError
from cachecost.configuration.discovery import found_files

if TYPE_CHECKING:
    from cachecost.base.yaml_text import PlacedValue, Way
    from cachecost.configuration.project_settings import ProjectSettings


class CommandPlace(NamedTuple):
    """Where a command is, as `module:function` in `cachecost.commands`, and the first sentence of its help."""

    place: str
    summary: str


SUMMARIES = {
    "Understand a bill": {
        "bill": "Show what sessions cost, which of it was spent re-caching cached content, and why.",
        "demo": "Show the bill of a demo session with the change that pays, and a comparison of designs.",
        "view": "Browse sessions: each call's prompt, what was written again and why; try what-ifs.",
        "explain": "Find the avoidable cost of LOG or SCENARIO.yaml: each cause, where it occurs and its dollars.",
    },
    "While you work": {
        "next": "Show what the next message of a session costs, until when its cache is warm, and what a change would "
        "do.",
        "watch": "Show a running session as it goes on: its calls, until when the cache is warm, the next message, "
        "alarms.",
        "statusline": "Print one line for Claude Code's status line: the cache, the next message warm and cold, "
        "dollars.",
        "hook": "Warn before an expensive message, compaction, resume or model switch (a hook of Claude Code).",
        "mcp": "Answer agents over the Model Context Protocol: bill, explain, next_message, what_if, lint_request, "
        "models.",
    },
    "Find a cheaper design": {
        "replay": "Predict the usage and cost of each call of LOG.",
        "whatif": "Price alternative ways to send LOG: TTLs, keep-alives, breakpoints, models, hosts, batches and "
        "compaction.",
        "optimize": "Find the cheapest legal breakpoints, TTLs, keep-alives and pre-warming for LOG or SCENARIO.yaml.",
        "run": "Simulate every strategy of SCENARIO.yaml, compare their costs and write a report.",
        "sweep": "Compute the cost of every strategy of SCENARIO.yaml at each point of a grid.",
        "strategies": "List the strategies by name: what they do, who uses them, and when that was checked.",
    },
    "Keep it cheap": {
        "init": "Write a scenario and a GitHub workflow to DIR (default: the current folder).",
        "check": "Check the costs of scenarios against their budgets and baselines.",
        "lint": "Check requests without simulating a cache: what the API refuses, and what costs money.",
    },
    "Measure a client or the API": {
        "serve": "Serve simulated APIs on this machine, to see what the caching of a client costs.",
        "record": "Record the calls between a client and the API, with their billed usage and times.",
        "live": "Send the strategies of SCENARIO.yaml to the real API, and compare predicted with billed usage.",
        "validate": "Compare the predicted usage of each call of LOG with its billed usage.",
    },
    "Recordings and reference": {
        "import": "Convert logs of any known format to recordings.",
        "recording": "Concatenate, cut and split recordings.",
        "models": "List the models of a host with their rules and prices (USD per 10^6 tokens) on one day.",
        "rules": "List every rule by host and model: its value, the days it applies, and its source.",
        "config": "Show the settings in force, and where each comes from: a settings file, the environment or the "
        "defaults.",
    },
}
"""The first sentence of each command's help, by heading and name."""
PLACES = {
    "import": "recording:import_",
    "next": "next_message:next_",
    "hook": "statusline:hook",
    "strategies": "listings:strategies",
    "models": "listings:models",
    "rules": "listings:rules",
}
"""Commands that are not the function of their name in the module of their name."""
COMMAND_GROUPS = {
    heading: {name: CommandPlace(PLACES.get(name, f"{name}:{name}"), summary) for name, summary in rows.items()}
    for heading, rows in SUMMARIES.items()
}


def load_named_commands(names: Iterable[str]) -> Iterator[tuple[str, click.Command]]:
    """Commands and subcommands by the words that call them, "recording cut"."""
    places = {name: row.place for rows in COMMAND_GROUPS.values() for name, row in rows.items()}
    for name in names:
        first, *rest = name.split()
        command: Any = load_command(places[first])
        yield name, command.commands[rest[0]] if rest else command


def load_command(place: str) -> click.Command:
    """The command at a place of the catalogue; imports its module."""
    module, _, name = place.partition(":")
    command: click.Command = getattr(import_module(f"cachecost.commands.{module}"), name)
    return command


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
    if ctx.resilient_parsing or {"-h", "--help"} & set(words):
        return
    ctx.obj = project_defaults(name, command)
    ctx.default_map = {name: ctx.obj.defaults}


def project_defaults(name: str, command: click.Command) -> ProjectDefaults:
    """The defaults of a command. Raises InputError with every error of the file."""
    found = found_files()
    if not found.may_have_settings:
        return ProjectDefaults()
    from cachecost.commands.option_values import command_defaults
    from cachecost.configuration.project_settings import read_settings, reads_settings

    if not reads_settings(name):
        return ProjectDefaults()
    settings = read_settings(found)
    if not settings.settings:
        return ProjectDefaults(settings)
    inner = command.commands if isinstance(command, click.Group) else {}
    parts = {name: command, **{f"{name} {key}": one for key, one in inner.items()}}
    made = {part: command_defaults(part, one, settings) for part, one in parts.items()}
    if faults := [fault for one in made.values() for fault in one.faults]:
        raise InputError(sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0))
    inner_defaults = {part.removeprefix(f"{name} "): one.values for part, one in made.items() if part != name}
    places = {option: place for one in made.values() for option, place in one.places.items()}
    return ProjectDefaults(settings, {**made[name].values, **inner_defaults}, places)


def current_defaults() -> ProjectDefaults:
    """Those of the command that runs; none outside of a command."""
    context = click.get_current_context(silent=True)
    return context.obj if context and isinstance(context.obj, ProjectDefaults) else ProjectDefaults()


def is_from_file(parameter: str) -> bool:
    """Whether the value of a parameter of the command that runs comes from the file."""
    context = click.get_current_context(silent=True)
    return context is not None and _is_set_by_file(context, parameter)


def scenario_defaults() -> Mapping[Way, PlacedValue]:
    """What the file states for scenarios that do not, by its way in a scenario. Raises InputError."""
    settings = current_defaults().settings
    if settings is None:
        return {}
    from cachecost.configuration.project_settings import WITHOUT_SCENARIO_DEFAULTS, scenario_defaults_of

    if click.get_current_context().command.name in WITHOUT_SCENARIO_DEFAULTS:
        return {}
    return scenario_defaults_of(settings, os.environ)


def with_places(error: click.UsageError, places: Mapping[str, str]) -> click.UsageError:
    """The error, with the places of the options that it names and the file sets."""
    if error.ctx is None or not places:
        return error
    words = error.format_message().replace(":", " ").replace(",", " ").split()
    named = [
        f"{option} is set at {places[option]}"
        for param in error.ctx.command.params
        if _is_set_by_file(error.ctx, param.name or "")
        for option in param.opts
        if option in words
    ]
    return click.UsageError("; ".join([error.format_message(), *named]), error.ctx) if named else error


def _is_set_by_file(context: click.Context, parameter: str) -> bool:
    return context.get_parameter_source(parameter) is click.core.ParameterSource.DEFAULT_MAP
