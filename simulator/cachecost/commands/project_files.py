"""Files of a project: its sources by git, and Claude Code's settings file, into which advice is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from cachecost.base.atomic_files import OthersFile, write_text
from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import json_value
from cachecost.commands.diagnostics import print_diagnostic

if TYPE_CHECKING:
    from cachecost.analysis.bill.advice import Advice
    from cachecost.budgets.check import BudgetResult
    from cachecost.budgets.history import HistoryEntry
    from cachecost.budgets.source_lines import SourceLine


LARGEST = 512 * 1024
"""Bytes of a file that prompts are looked for in."""
MOST = 5_000
"""Files that are read."""
NOT_SOURCE = frozenset({".jsonl", ".lock", ".svg", ".csv"})
NOT_SEARCHED = frozenset({"node_modules", "dist", "build", "__pycache__"})
"""Folders without a source, where git does not say which files belong to the project."""
DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])
ENVIRONMENT = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)


def read_project_files(folder: Path, without: Path) -> dict[str, str]:
    """The text of each file that git knows and does not ignore in the project of `folder`, by its path as a command in
    the working folder writes it; without git, of the files in `folder`. Those in `without` are left out."""
    found: list[Path] = []
    if output := _git(folder, "rev-parse", "--show-toplevel"):
        root = Path(os.fsdecode(output).rstrip("\r\n"))
        listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard") or b""
        found = [root / os.fsdecode(name) for name in sorted(listed.split(b"\0")) if name]
    else:
        for place, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in NOT_SEARCHED)
            found += (Path(place) / name for name in sorted(names))
    left_out = without.resolve()
    texts: dict[str, str] = {}
    for path in found:
        if len(texts) == MOST:
            break
        if path.suffix in NOT_SOURCE or left_out in path.resolve().parents:
            continue
        with suppress(OSError):
            content = path.read_bytes() if path.is_file() and path.stat().st_size <= LARGEST else b"\0"
            if b"\0" not in content:
                with suppress(ValueError):  # another drive of Windows
                    path = Path(os.path.relpath(path.resolve(), Path.cwd().resolve()))
                texts[path.as_posix()] = content.decode("utf-8", "replace")
    return texts


def head_commit(folder: Path) -> str | None:
    """The commit that is checked out; None without git, or before the first commit."""
    output = _git(folder, "rev-parse", "--verify", "HEAD")
    return output.decode("ascii", "replace").strip() if output else None


def _git(folder: Path, *words: str) -> bytes | None:
    """What git says; None where it cannot be asked or fails."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def project_folder(paths: Sequence[Path]) -> Path:
    """The folder that the scenarios share, or the one above where it is called `scenarios`."""
    shared = Path(os.path.commonpath([path.resolve().parent for path in paths]))
    return shared.parent if shared.name == "scenarios" else shared


def apply_advice(advice: Sequence[Advice], is_confirmed: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Show what the advice changes in the settings file, and write it if that is confirmed; whether it was. Of the file
    only the changed values are shown. Raises InputError if it is no JSON object; CannotWrite."""
    path = settings_path(environment)
    file = OthersFile(path)
    content = file.content if file.content.strip() else b"{}"
    try:
        json_value(content)
        before = dict(DECODER.decode(content))  # each top-level value as the bytes that stand in the file
    except (ValueError, msgspec.DecodeError) as error:
        raise InputError([Fault(str(file.path), f"expected a JSON object; got something else: {error}")]) from None
    after = with_advice(before, advice)
    changes = list(_changes(before, after))
    if not changes:
        print_diagnostic(f"{path}: nothing to change")
        return False
    sys.stdout.write(f"{path}\n{''.join(changes)}")
    for warning in ineffective_settings(json_value(_settings_file_text(after)), advice, environment):
        print_diagnostic(warning)
    if not is_confirmed and not _confirms(path):
        print_diagnostic(f"{path}: not written; --yes writes it without asking")
        return False
    file.replace(_settings_file_text(after))
    print_diagnostic(f"{path} written")
    return True


def settings_path(environment: Mapping[str, str]) -> Path:
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
        if one.setting.name in ("main_ttl", "side_ttl"):
            found = effective_ttl(settings, environment, one.setting.name == "main_ttl", is_subscription=False)
            if found.ttl != one.value:
                decides = found.reason.replace("_", " ")
                yield f"{one.setting.key}: the TTL stays {found.ttl or 'off'}, as the environment decides ({decides})"
        elif variable_value(one.setting, variables) not in (None, one.value):
            yield f"{one.setting.variable} is set in the environment and wins over {one.setting.key}"


def _settings_file_text(settings: Mapping[str, Any]) -> bytes:
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


def find_lines(result: BudgetResult, scenarios: Sequence[Path], reports: Path) -> Mapping[tuple[str, ...], SourceLine]:
    """The source lines of all changes that have one; files are read only if something changed."""
    from cachecost.budgets.source_lines import find_source_line

    wanted = {change.search for one in result.comparisons for change in one.changes if change.search}
    wanted |= {change.search for one in result.budgets for change in one.changes if change.search}
    if not wanted:
        return {}
    files = read_project_files(project_folder(scenarios), without=reports)
    found = ((search, find_source_line(search, files)) for search in wanted)
    return {search: line for search, line in found if line is not None}


def read_history(path: Path) -> list[HistoryEntry]:
    """The accepted costs so far. Raises InputError."""
    from cachecost.budgets.history import parse_history

    if not path.exists():
        return []
    try:
        return parse_history(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Fault(str(path), f"cannot be read: {error}")]) from None


def update_history(path: Path, result: BudgetResult, scenarios: Sequence[Path], today: date) -> bool:
    """Add today's costs to the history unless it has them already. True: written. Raises InputError."""
    from cachecost.budgets.history import add_entries, entries_of, history_text

    before = read_history(path)
    entries = add_entries(before, entries_of(result, head_commit(project_folder(scenarios)), today))
    if len(entries) == len(before):
        return False
    write_text(path, history_text(entries))
    return True


def write_history_chart(path: Path, history: Path) -> None:
    """Raises InputError, also where there is no history to draw."""
    from cachecost.views.check.history_chart import history_svg

    entries = read_history(history)
    if not entries:
        raise InputError([Fault(str(history), "expected accepted costs; there are none: write them with `--update`")])
    write_text(path, history_svg(entries))
