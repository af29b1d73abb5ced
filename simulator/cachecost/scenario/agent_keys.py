"""Keys of a scenario whose conversation is what a command sends: which of them go together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cachecost.base.errors import Fault
from cachecost.base.schema_errors import show_value
from cachecost.base.yaml_text import PlacedValue
from cachecost.scenario.ways import get

CONVERSATION = "conversation"
COMMAND = (CONVERSATION, "command")
OF_COMMAND = ("answers", "cwd", "env", "timeout", "runs", "content")
"""Keys of a conversation that say how its command runs; `turns` also has a meaning without one."""
TURN = "{turn}"
"""What a turn replaces in the words of a command, which then runs once per turn."""
PROJECT_FILES = ("pyproject.toml", "cachecost.toml", "package.json", ".git")
"""What the folder of a project has."""


def has_command(placed: PlacedValue) -> bool:
    """Whether the conversation is what a command sends."""
    return get(placed, COMMAND) is not None


def agent_faults(placed: PlacedValue, folder: Path) -> Iterator[Fault]:
    """Faults between a command and the keys beside it. Values may be of any type here."""
    way = (CONVERSATION, "turns")
    turns = get(placed, way)
    if has_command(placed):
        if turns is not None and not isinstance(turns, list):
            yield placed.fault(way, f"expected a list of what a person says; got {show_value(turns)}")
        if not turns and TURN in str(get(placed, COMMAND)):
            yield placed.fault(COMMAND, f"expected turns for {TURN}: what a person says, a text per turn")
        yield from _cwd_fault(placed, folder)
        return
    if isinstance(turns, list):
        yield placed.fault(way, f"expected a whole number without a command; got {show_value(turns)}")
    conversation = get(placed, (CONVERSATION,))
    for key in OF_COMMAND:
        if isinstance(conversation, dict) and key in conversation:
            yield placed.fault((CONVERSATION, key), "expected only with a command")


def _cwd_fault(placed: PlacedValue, folder: Path) -> Iterator[Fault]:
    way = (CONVERSATION, "cwd")
    inner = get(placed, way)
    if isinstance(inner, str) and not (folder / inner).is_dir():
        yield placed.fault(way, f"expected a folder; got {show_value(inner)}, and there is no {folder / inner}")


def missing_faults(placed: PlacedValue) -> Iterator[Fault]:
    """Faults for what may be left out with a command only."""
    for key, kind in (("model", "text"), ("strategies", "a list")):
        if key not in placed.value:
            yield placed.fault((key,), f"expected {kind}; got nothing")


def project_folder(folder: Path) -> Path:
    """The nearest folder from `folder` up that looks like a project; `folder` itself if none does."""
    whole = folder.resolve()
    return next((one for one in (whole, *whole.parents) if _is_project(one)), whole)


def _is_project(folder: Path) -> bool:
    return any((folder / name).exists() for name in PROJECT_FILES)
