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
from cachecost.commands.options import json_option, option
from cachecost.configuration.discovery import OWN, SHARED, found_files
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
PLAIN = (bool, int, float, str)
"""Types of defaults that are shown; of others the help says what they are."""


class SettingInForce(NamedTuple):
    """A setting: its command (None: all), its value as JSON has it, and its file and line or its variable. `origin` is
    file, environment or default; `overruled_by` a variable that wins over the file."""

    command: str | None
    key: str
    value: Any
    origin: str
    place: str | None = None
    overruled_by: str | None = None

    @property
    def cells(self) -> tuple[str, str, str]:
        name = f"{self.command}.{self.key}".replace(" ", ".") if self.command else self.key
        overruled = f", overruled by {self.overruled_by}" if self.overruled_by else ""
        return name, _value_text(self.value), f"{self.place if self.origin == 'file' else self.origin}{overruled}"


@click.command()
@option("--all shows_all", "Also show every option that a file may set, with its default.", is_flag=True)
@json_option
def config(shows_all: bool, as_json: bool) -> int:
    """Show the settings in force, and where each comes from: a settings file, the environment or the defaults.

    A settings file is cachecost.toml, or [tool.cachecost] in pyproject.toml, in the current folder or the nearest one
    above it.
    """
    found = found_files()
    settings = read_settings(found)
    checked = {name: (one, command_defaults(name, one, settings)) for name, one in load_named_commands(SETTABLE)}
    if faults := dict.fromkeys(fault for _, one in checked.values() for fault in one.faults):
        raise InputError(sorted(faults, key=lambda fault: fault.line or 0))
    rows = list(_option_settings(settings, checked) if shows_all else _file_settings(settings))
    for one in VARIABLES:
        if value := os.environ.get(one.name):
            rows.append(SettingInForce(None, one.name, value, "environment", one.name))
        elif shows_all:
            rows.append(SettingInForce(None, one.name, one.default, DEFAULT))
    if as_json:
        file = None if settings.path is None else str(settings.path)
        looked = [str(folder) for folder in found.looked]
        document = {"format": FORMAT, "file": file, "looked_in": looked, "settings": [row._asdict() for row in rows]}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))  # of dates and paths their text
        return ExitCode.OK
    if settings.path:
        about = f"Settings file: {settings.path}"
    elif found.looked:
        where = ", ".join(map(str, found.looked))
        about = f"No settings file: there is neither {OWN} nor [{'.'.join(TABLE)}] in {SHARED} in {where}"
    else:
        about = "No settings file: CACHECOST_CONFIG is off."
    click.echo(inert(about))
    if rows:
        print_table("", ("setting", "value", "from"), [row.cells for row in rows])
    return ExitCode.OK


def _file_settings(settings: ProjectSettings) -> Iterator[SettingInForce]:
    for setting in settings.settings:
        overruled = OVERRULING[setting.key] if is_overruled(setting) else None
        command = setting.command or None
        yield SettingInForce(command, setting.key, setting.value, "file", settings.place(setting), overruled)


def _option_settings(
    settings: ProjectSettings, checked: dict[str, tuple[click.Command, CommandDefaults]]
) -> Iterator[SettingInForce]:
    yield from (
        one
        for one in _file_settings(settings)
        if not (one.command in SETTABLE or any(one.key == key for name in SETTABLE for key, _ in keys_for(name)))
    )
    for name, (command, made) in checked.items():
        context = click.Context(command, info_name=name)
        for param in command.params:
            key = param.opts[0].removeprefix("--")
            if isinstance(param, click.Option) and key in SETTABLE[name]:
                place = made.places.get(f"--{key}")
                is_set = param.name in made.values
                default = param.get_default(context)
                shown = str(default) if isinstance(default, Path) else default
                value = made.values[param.name or ""] if is_set else shown if isinstance(shown, PLAIN) else None
                yield SettingInForce(name, key, value, "file" if is_set else DEFAULT, place if is_set else None)


def _value_text(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ", ".join(f"{name} = {_value_text(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_value_text, value))
    return str(value)
