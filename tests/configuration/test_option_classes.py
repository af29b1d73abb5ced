"""Every option of every command is either one that a settings file may set, or refused with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import cachecost as cachecost_package
from cachecost.cli import cachecost
from cachecost.configuration.project_settings import (
    GENERAL,
    NOT_FROM_FILE,
    REFUSED,
    REPORTS,
    SCENARIOS,
    SETTABLE,
    TOKENS_AS,
    WITHOUT_OPTIONS,
    keys_for,
    reads_settings,
)
from cachecost.configuration.variables import VARIABLES


def commands(group: click.Group = cachecost, before: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


SET_FOR_COMMANDS = {"CACHECOST_TURNS", "CACHECOST_CLOCK_SEEN", "CACHECOST_CLOCK_SHIFT"}
"""Variables that cachecost sets for the command of a scenario, and does not read."""
EVERY = dict(commands())


def options_of(name: str) -> set[str]:
    return {
        next(flag for flag in option.opts if flag.startswith("--")).removeprefix("--")
        for option in EVERY[name].params
        if isinstance(option, click.Option)
    }


@pytest.mark.parametrize("name", EVERY)
def test_every_option_is_classified_once(name: str) -> None:
    """A new option: may a cloned repository set it? Then SETTABLE, else REFUSED with the reason."""
    classified = [*SETTABLE.get(name, ()), *REFUSED.get(name, {}), *NOT_FROM_FILE.get(name, ())]
    assert sorted(classified) == sorted(options_of(name))


def test_no_table_names_a_command_that_there_is_not() -> None:
    assert {*SETTABLE, *REFUSED, *NOT_FROM_FILE, *WITHOUT_OPTIONS} == set(EVERY)


def test_a_path_to_write_is_in_no_table_of_settable_options_but_the_reports() -> None:
    """An option whose file or folder need not exist is one that is written."""
    written = {
        (name, flag)
        for name in SETTABLE
        for option in EVERY[name].params
        for flag in (one.removeprefix("--") for one in option.opts)
        if flag in SETTABLE[name] and isinstance(option.type, click.Path) and not option.type.exists
    }
    assert written == {("check", REPORTS)}


@pytest.mark.parametrize(
    ("name", "option"),
    [
        *((name, option) for name in ("bill", "sweep") for option in ("backend", "scheduler", "jobs")),
        *(("live", option) for option in ("max-usd", "base-url", "yes", "prices", "rule", "set", "strategy")),
        ("record", "upstream"),
        ("record", "out"),
        ("bill", "apply"),
        ("bill", "yes"),
        ("serve", "answers"),
        ("run", "set"),
        ("sweep", "grid"),
        ("check", "update"),
        ("view", "against"),
        ("import", "key"),
    ],
)
def test_what_writes_sends_runs_or_pays_is_refused(name: str, option: str) -> None:
    assert REFUSED[name][option]


def test_a_key_for_all_commands_is_an_option_of_some() -> None:
    used = {key for name in SETTABLE for key, _ in keys_for(name)}
    assert used | {SCENARIOS} == set(GENERAL)
    assert TOKENS_AS == {"next": "counter"}
    assert ("tokens", "counter") in [*keys_for("next")]
    assert ("tokens", "tokens") not in [*keys_for("next")]


@pytest.mark.parametrize("name", ["statusline", "hook", "mcp", "init", "config"])
def test_commands_that_read_no_file(name: str) -> None:
    assert not reads_settings(name)


def test_every_variable_that_is_read_is_in_the_list() -> None:
    folder = Path(cachecost_package.__file__).parent
    read = {
        found
        for path in folder.rglob("*.py")
        for found in re.findall(r"CACHECOST_[A-Z_]+", path.read_text(encoding="utf-8"))
    }
    assert {one.name for one in VARIABLES} == read - SET_FOR_COMMANDS
