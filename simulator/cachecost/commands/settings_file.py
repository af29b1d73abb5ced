"""Writes advice into Claude Code's settings file, after showing the difference."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from cachecost.base.atomic_files import OthersFile
from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import json_value
from cachecost.commands.diagnostics import print_diagnostic

if TYPE_CHECKING:
    from cachecost.analysis.bill.advice import Advice

DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])
ENVIRONMENT = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
TTL_SETTINGS = ("main_ttl", "side_ttl")


def apply_advice(advice: Sequence[Advice], is_confirmed: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Show what the advice changes in the settings file, and write it if that is confirmed; whether it was.

    Of the file only the changed values are shown. Raises InputError if it is no JSON object; CannotWrite.
    """
    path = settings_path(environment)
    file = OthersFile(path)
    before = _parse(file)
    after = with_advice(before, advice)
    changes = list(_changes(before, after))
    if not changes:
        print_diagnostic(f"{path}: nothing to change")
        return False
    sys.stdout.write(f"{path}\n{''.join(changes)}")
    for warning in ineffective_settings(json_value(_text(after)), advice, environment):
        print_diagnostic(warning)
    if not is_confirmed and not _confirms(path):
        print_diagnostic(f"{path}: not written; --yes writes it without asking")
        return False
    file.replace(_text(after))
    print_diagnostic(f"{path} written")
    return True


def settings_path(environment: Mapping[str, str]) -> Path:
    """The user's settings file of Claude Code."""
    moved = environment.get("CLAUDE_CONFIG_DIR", "")
    return (Path(moved) if moved else Path.home() / ".claude") / "settings.json"


def with_advice(settings: Mapping[str, Any], advice: Sequence[Advice]) -> dict[str, Any]:
    """The settings with what the advice sets: by its key, else by its variable in `env`."""
    changed = dict(settings)
    for one in advice:
        if one.setting is None or one.value is None:
            continue
        if one.setting.key:
            changed[one.setting.key] = one.value
        else:
            env = changed.get("env") or {}
            if isinstance(env, msgspec.Raw):
                env = ENVIRONMENT.decode(env) or {}
            changed["env"] = {**env, one.setting.variable: str(one.value)}
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


def _parse(file: OthersFile) -> dict[str, Any]:
    """The settings, each top-level value as the bytes that stand in the file. Raises InputError."""
    if not file.content.strip():
        return {}
    try:
        json_value(file.content)
        return dict(DECODER.decode(file.content))
    except (ValueError, msgspec.DecodeError) as error:
        raise InputError([Fault(str(file.path), f"expected a JSON object; got something else: {error}")]) from None


def _text(settings: Mapping[str, Any]) -> bytes:
    """The file's text: values that are not ours are as they stood in it, to the byte."""
    rows = (f"  {json.dumps(key)}: ".encode() + _value_text(value) for key, value in settings.items())
    return b"{\n" + b",\n".join(rows) + b"\n}\n"


def _value_text(value: object) -> bytes:
    if isinstance(value, msgspec.Raw):
        return bytes(value)
    if isinstance(value, Mapping):
        rows = (f"    {json.dumps(key)}: ".encode() + _value_text(inner) for key, inner in value.items())
        return b"{\n" + b",\n".join(rows) + b"\n  }"
    return json.dumps(value).encode()


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """A line for each value that changes. No other value of the file is shown: it may hold keys and tokens."""
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, Mapping):
            inner = DECODER.decode(old) if isinstance(old, msgspec.Raw) else {}
            yield from _changes(inner, value, f"{key}.")
        elif not isinstance(value, msgspec.Raw):
            was = bytes(old).decode("utf-8", "replace") if isinstance(old, msgspec.Raw) else "not set"
            if was != json.dumps(value):
                yield f"  {place}{key}: {was} -> {json.dumps(value)}\n"


def _confirms(path: Path) -> bool:
    """Whether the person at the terminal agrees; without a terminal nobody does."""
    return sys.stdin.isatty() and click.confirm(f"Write {path}?", err=True)
