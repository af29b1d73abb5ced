"""Writes advice into Claude Code's settings file, after showing the difference."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cachecost.base.atomic_files import open_whole
from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import json_value
from cachecost.commands.diagnostics import print_diagnostic

if TYPE_CHECKING:
    from cachecost.analysis.bill.advice import Advice

TTL_SETTINGS = ("main_ttl", "side_ttl")


def apply_advice(advice: Sequence[Advice], is_confirmed: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Show what the advice changes in the settings file, and write it if that is confirmed; whether it was.

    Raises InputError if the file is no JSON object; CannotWrite.
    """
    path = settings_path(environment)
    before = _read(path)
    after = with_advice(before, advice)
    if after == before:
        print_diagnostic(f"{path}: nothing to change")
        return False
    sys.stdout.write(_difference(path, before, after))
    for warning in ineffective_settings(after, advice, environment):
        print_diagnostic(warning)
    if not is_confirmed and not _confirms(path):
        print_diagnostic(f"{path}: not written; --yes writes it without asking")
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_whole(path) as stream:
        stream.write(_text(after).encode())
    print_diagnostic(f"{path} written")
    return True


def settings_path(environment: Mapping[str, str]) -> Path:
    """The user's settings file of Claude Code."""
    moved = environment.get("CLAUDE_CONFIG_DIR", "")
    return (Path(moved) if moved else Path.home() / ".claude") / "settings.json"


def with_advice(settings: Mapping[str, Any], advice: Sequence[Advice]) -> dict[str, Any]:
    """The settings with what the advice sets: by its key, else by its variable in `env`."""
    changed = deepcopy(dict(settings))
    for one in advice:
        if one.setting is None or one.value is None:
            continue
        if one.setting.key:
            changed[one.setting.key] = one.value
        else:
            changed["env"] = {**(changed.get("env") or {}), one.setting.variable: str(one.value)}
    return changed


def ineffective_settings(
    settings: Mapping[str, Any], advice: Sequence[Advice], environment: Mapping[str, str]
) -> Iterator[str]:
    """Why a setting of the advice does not hold: a variable in the environment wins over the file."""
    from cachecost.providers.clients.settings import effective_ttl, merge_environment, variable_value

    variables = merge_environment(settings, environment)
    for one in advice:
        if one.setting is None or not one.setting.key:
            continue
        if one.setting.name in TTL_SETTINGS:
            found = effective_ttl(settings, environment, one.setting.name == "main_ttl", is_subscription=False)
            if found.ttl != one.value:
                decides = found.reason.replace("_", " ")
                yield f"{one.setting.key}: the TTL stays {found.ttl or 'off'}, as the environment decides ({decides})"
        elif variable_value(one.setting, variables) not in (None, one.value):
            yield f"{one.setting.variable} is set in the environment and wins over {one.setting.key}"


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json_value(path.read_bytes())
    except ValueError as error:
        raise InputError(
            [Fault(str(path), f"expected a JSON object; got a file that cannot be read: {error}")]
        ) from None
    if not isinstance(found, dict):
        raise InputError([Fault(str(path), f"expected a JSON object; got {type(found).__name__}")])
    return found


def _text(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def _difference(path: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    old, new = (_text(one).splitlines(keepends=True) for one in (before, after))
    return "".join(unified_diff(old, new, str(path), str(path)))


def _confirms(path: Path) -> bool:
    """Whether the person at the terminal agrees; without a terminal nobody does."""
    return sys.stdin.isatty() and click.confirm(f"Write {path}?", err=True)
