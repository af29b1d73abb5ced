"""`cachecost config`: the settings in force, and where each comes from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from cachecost.base.errors import ExitCode, InputError
from cachecost.base.formatting import inert
from cachecost.commands.catalogue import load_named_commands
from cachecost.commands.option_values import CommandDefaults, command_defaults, is_overruled
from cachecost.commands.options import json_option
from cachecost.configuration.discovery import OWN, SHARED, FoundFiles, found_files
from cachecost.configuration.project_settings import (
    OVERRULING,
    SETTABLE,
    TABLE,
    ProjectSettings,
    keys_for,
    read_settings,
)
from cachecost.configuration.variables import VARIABLES
from cachecost.views.tables.table import print_table

FORMAT = 1
DEFAULT = "default"
COLUMNS = ("setting", "value", "from")


class SettingInForce(NamedTuple):
    """A setting: its command (None: all commands), its value as JSON has it, and its file and line or its variable.

    `origin` is file, environment or default; `overruled_by` a variable that wins over the file.
    """

    command: str | None
    key: str
    value: Any
    origin: str
    place: str | None = None
    overruled_by: str | None = None


@click.command()
@click.option("--all", "shows_all", is_flag=True, help="Also show every option that a file may set, with its default.")
@json_option
def config(shows_all: bool, as_json: bool) -> int:
    """Show the settings in force, and where each comes from: a settings file, the environment or the defaults.

    A settings file is cachecost.toml, or [tool.cachecost] in pyproject.toml, in the current folder or the nearest one
    above it.
    """
    found = found_files()
    settings = read_settings(found)
    checked = _checked(settings)
    rows = list(_of_options(settings, checked) if shows_all else _of_file(settings))
    rows += _of_environment(shows_all)
    if as_json:
        click.echo(json.dumps(_as_object(settings, found, rows), indent=2, ensure_ascii=False, default=str))
        return ExitCode.OK
    click.echo(inert(_about(settings, found)))
    if rows:
        print_table("", COLUMNS, [_cells(row) for row in rows])
    return ExitCode.OK


def _checked(settings: ProjectSettings) -> dict[str, tuple[click.Command, CommandDefaults]]:
    """What the file states for each command. Raises InputError with every error of a value."""
    checked = {name: (one, command_defaults(name, one, settings)) for name, one in load_named_commands(SETTABLE)}
    faults = dict.fromkeys(fault for _, one in checked.values() for fault in one.faults)
    if faults:
        raise InputError(sorted(faults, key=lambda fault: fault.line or 0))
    return checked


def _of_file(settings: ProjectSettings) -> Iterator[SettingInForce]:
    for setting in settings.settings:
        overruled = OVERRULING[setting.key] if is_overruled(setting) else None
        command = setting.command or None
        yield SettingInForce(command, setting.key, setting.value, "file", settings.place(setting), overruled)


def _of_options(
    settings: ProjectSettings, checked: dict[str, tuple[click.Command, CommandDefaults]]
) -> Iterator[SettingInForce]:
    yield from (
        one
        for one in _of_file(settings)
        if not (one.command in SETTABLE or any(one.key == key for name in SETTABLE for key, _ in keys_for(name)))
    )
    for name, (command, made) in checked.items():
        context = click.Context(command, info_name=name)
        for param in command.params:
            key = param.opts[0].removeprefix("--")
            if isinstance(param, click.Option) and key in SETTABLE[name]:
                place = made.places.get(f"--{key}")
                is_set = param.name in made.values
                value = made.values[param.name or ""] if is_set else _default(param, context)
                yield SettingInForce(name, key, value, "file" if is_set else DEFAULT, place if is_set else None)


def _default(option: click.Option, context: click.Context) -> Any:
    """What an option is without a word about it; None where that is nothing, or what its help says."""
    value = option.get_default(context)
    if isinstance(value, Path):
        return str(value)
    return value if isinstance(value, (bool, int, float, str)) else None


def _of_environment(shows_all: bool) -> Iterator[SettingInForce]:
    """The variables that are set, or all of them."""
    for one in VARIABLES:
        if value := os.environ.get(one.name):
            yield SettingInForce(None, one.name, value, "environment", one.name)
        elif shows_all:
            yield SettingInForce(None, one.name, one.default, DEFAULT)


def _as_object(settings: ProjectSettings, found: FoundFiles, rows: list[SettingInForce]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "file": None if settings.path is None else str(settings.path),
        "looked_in": [str(folder) for folder in found.looked],
        "settings": [row._asdict() for row in rows],
    }


def _about(settings: ProjectSettings, found: FoundFiles) -> str:
    if settings.path:
        return f"Settings file: {settings.path}"
    if not found.looked:
        return "No settings file: CACHECOST_CONFIG is off."
    where = ", ".join(map(str, found.looked))
    return f"No settings file: there is neither {OWN} nor [{'.'.join(TABLE)}] in {SHARED} in {where}"


def _cells(row: SettingInForce) -> tuple[str, str, str]:
    name = f"{row.command}.{row.key}".replace(" ", ".") if row.command else row.key
    overruled = f", overruled by {row.overruled_by}" if row.overruled_by else ""
    return name, _shown(row.value), f"{row.place if row.origin == 'file' else row.origin}{overruled}"


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ", ".join(f"{name} = {_shown(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_shown, value))
    return str(value)
