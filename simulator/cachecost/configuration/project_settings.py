"""The settings of a project as its file states them: names checked, values not yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from cachecost.base.errors import Fault, InputError, nearest
from cachecost.base.limits import MOST_ERRORS
from cachecost.configuration.discovery import MOST_BYTES, OWN, SHARED, FoundFiles, may_be_ours
from cachecost.configuration.key_lines import key_lines, line_of
from cachecost.configuration.option_classes import (
    ALL,
    GENERAL,
    REFUSED,
    REFUSED_VALUES,
    SETTABLE,
    VOLUMES,
    commands,
    keys_for,
)
from cachecost.providers.toml_text import read_toml_text

TABLE = ("tool", "cachecost")


class Setting(NamedTuple):
    """A key of the file: the command of its table ("": all commands), its name with hyphens, and its way there."""

    command: str
    key: str
    value: Any
    way: tuple[str, ...]


class ProjectSettings:
    """The settings of one file. Without a file there are none."""

    def __init__(self, path: Path | None = None, text: str = "", table: Mapping[str, Any] | None = None) -> None:
        """`table` is ours in the file `path`, whose text is `text`. Raises InputError for names that are not known."""
        self.path = path
        self._text = text
        self._faults: list[Fault] = []
        self.settings = tuple(self._read(table or {}))
        if self._faults:
            raise InputError(sorted(self._faults, key=lambda fault: fault.line or 0))

    @property
    def folder(self) -> Path:
        """The folder that paths in the file start at."""
        return self.path.parent if self.path else Path()

    def of(self, command: str) -> Iterator[tuple[str, Setting]]:
        """(option, setting) of a command: those of its own table, and those for all commands that it does not have."""
        own = {one.key: one for one in self.settings if one.command == command}
        general = {one.key: one for one in self.settings if one.command == ALL}
        shared = {option: general[key] for key, option in keys_for(command) if key in general}
        yield from ({**shared, **own} if command else general).items()

    def general(self, key: str) -> Setting | None:
        """A key for all commands."""
        return next((one for one in self.settings if one.command == ALL and one.key == key), None)

    def line(self, setting: Setting) -> int | None:
        """The line of a setting."""
        return line_of(self._lines, setting.way)

    def place(self, setting: Setting) -> str:
        """The file and line of a setting, as errors have them."""
        return f"{self.path}:{self.line(setting)}"

    def volumes(self) -> list[Setting]:
        """Sessions a day by scenario."""
        return [one for one in self.settings if one.command == VOLUMES]

    def fault(self, setting: Setting, message: str) -> Fault:
        """What is wrong with the value of a setting."""
        return self._fault(setting.way, message)

    @cached_property
    def _lines(self) -> dict[tuple[str, ...], int]:
        return key_lines(self._text)

    @property
    def _top(self) -> tuple[str, ...]:
        return TABLE if self.path and self.path.name == SHARED else ()

    def _fault(self, way: tuple[str, ...], message: str) -> Fault:
        return Fault(str(self.path), f"{'.'.join(way)}: {message}", line_of(self._lines, way))

    def _report(self, way: tuple[str, ...], message: str) -> None:
        self._faults.append(self._fault(way, message))

    def _entries(self, table: Mapping[str, Any], way: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
        """(key with hyphens, way, value) of a table, as long as there are not too many errors."""
        seen = set[str]()
        for name, value in table.items():
            key, inner = name.replace("_", "-"), (*way, name)
            if key in seen:
                self._report(inner, f"is set twice, as {key.replace('-', '_')} and as {key}")
            if len(self._faults) >= MOST_ERRORS:
                return
            seen.add(key)
            yield key, inner, value

    def _read(self, table: Mapping[str, Any]) -> Iterator[Setting]:
        groups = {name.split()[0] for name in commands()}
        for key, way, value in self._entries(table, self._top):
            is_general = key in GENERAL and not (key in groups and isinstance(value, dict))
            if key == VOLUMES:
                yield from self._read_volumes(way, value)
            elif is_general:
                yield from self._allowed(Setting(ALL, key, value, way))
            elif key in groups:
                yield from self._read_command(key, way, value)
            else:
                self._report(way, _unknown(key, groups))

    def _allowed(self, setting: Setting) -> Iterator[Setting]:
        """The setting, unless only the command line may have its value."""
        reason = REFUSED_VALUES.get((setting.key, setting.value)) if isinstance(setting.value, str) else None
        if reason:
            self._report(setting.way, f"{setting.value} cannot be set in a file: {reason}")
        else:
            yield setting

    def _read_volumes(self, way: tuple[str, ...], value: Any) -> Iterator[Setting]:
        if isinstance(value, dict):
            yield from (Setting(VOLUMES, name, number, (*way, name)) for name, number in value.items())
        else:
            self._report(way, "expected a table, SCENARIO = SESSIONS PER DAY a line")

    def _read_command(self, command: str, way: tuple[str, ...], table: Any) -> Iterator[Setting]:
        """The keys of a command's table, and those of its subcommands."""
        if not isinstance(table, dict):
            self._report(way, f"expected a table, [{'.'.join(way)}]")
            return
        subcommands = {one.partition(" ")[2] for one in commands() if one.startswith(f"{command} ")}
        for key, inner, value in self._entries(table, way):
            if key in subcommands:
                yield from self._read_command(f"{command} {key}", inner, value)
            elif reason := REFUSED.get(command, {}).get(key):
                self._report(inner, f"cannot be set in a file: {reason}")
            elif key in SETTABLE.get(command, ()):
                yield from self._allowed(Setting(command, key, value, inner))
            else:
                self._report(inner, _unknown_of(key, [*SETTABLE.get(command, ()), *sorted(subcommands)]))


def read_settings(found: FoundFiles) -> ProjectSettings:
    """The settings of the nearest file that has any. Raises InputError."""
    for files in found.folders:
        tables = [(path, *_table(path)) for path in files]
        own = [(path, text, table) for path, text, table in tables if table is not None]
        if len(own) > 1:
            both = f"{OWN} and [{'.'.join(TABLE)}] of {SHARED} both hold settings"
            raise InputError([Fault(str(path), f"{both}; keep one of them") for path, _, _ in own])
        if own:
            return ProjectSettings(*own[0])
    return ProjectSettings()


def _table(path: Path) -> tuple[str, Mapping[str, Any] | None]:
    """The text of a file, and our table in it; None where it has none. Raises InputError."""
    if path.is_file() and not may_be_ours(path):
        return "", None
    value, text = read_toml_text(path, MOST_BYTES)
    if path.name != SHARED:
        return text, value
    tool = value.get("tool", {})
    table = tool.get("cachecost") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise InputError([Fault(str(path), f"{'.'.join(TABLE)}: expected a table", line_of(key_lines(text), TABLE))])
    return text, table


def _unknown_of(key: str, known: list[str]) -> str:
    if key in (*GENERAL, VOLUMES):
        return "is for all commands; set it at the top"
    return f"unknown key{_named(key, known)}" if known else "unknown key; nothing of this command is set in a file"


def _unknown(key: str, groups: set[str]) -> str:
    if where := [command for command in commands() if key in SETTABLE.get(command, ())]:
        return f"is not for all commands; set it in the table of one: {', '.join(where)}"
    if reasons := {table[key] for table in REFUSED.values() if key in table}:
        return f"cannot be set in a file: {reasons.pop()}"
    return f"unknown key{_named(key, [*GENERAL, VOLUMES, *sorted(groups)])}"


def _named(key: str, known: list[str]) -> str:
    """The nearest known name, and all of them where none is near."""
    return nearest(key, known) or f"; expected one of {', '.join(known)}"
