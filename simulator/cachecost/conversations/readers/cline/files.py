"""Files of tasks and sessions, decoded; errors are collected, not raised."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from cachecost.base import limits
from cachecost.base.errors import Fault, InputError
from cachecost.conversations.input_files import open_input, read_input
from cachecost.conversations.readers.cline.records import TaskItem

Kind = TypeVar("Kind")
DAMAGED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode(data: bytes | str, kind: type[Kind], file: Path, faults: list[Fault], place: str = "") -> Kind | None:
    """A typed value of JSON; None and an error where it is damaged."""
    try:
        return msgspec.json.decode(data, type=kind)
    except DAMAGED as error:
        reason = "too many levels of nesting" if isinstance(error, RecursionError) else error
        faults.append(Fault(str(file), f"{place}damaged record: {reason}"))
        return None


def read_json(file: Path, kind: type[Kind], faults: list[Fault]) -> Kind | None:
    """The typed value of a file that may be missing: None, without an error, if it is."""
    if not file.is_file():
        return None
    try:
        data = read_input(file)
    except InputError as error:
        faults += error.faults
        return None
    return decode(data, kind, file, faults) if data.strip() else None


def content_blocks(raw: msgspec.Raw) -> list[Any]:
    """The content of a message as blocks. Raises ValueError where it is beyond a limit."""
    found = limits.json_value(bytes(raw)) if bytes(raw) else []
    return [{"type": "text", "text": found}] if isinstance(found, str) else found if isinstance(found, list) else []


def count_blocks(raw: msgspec.Raw) -> int:
    """How many blocks the content of a message has; a text is one, and so is what is damaged."""
    try:
        return len(msgspec.json.decode(raw, type=list[msgspec.Raw]))
    except DAMAGED:
        return 1


def read_start(file: Path, size: int) -> bytes:
    """The beginning of a file; nothing where it cannot be read."""
    try:
        with open_input(file) as stream:
            start: bytes = stream.read(size)
            return start
    except InputError:
        return b""


def task_items(file: Path) -> dict[str, TaskItem]:
    """Cline's list of tasks, by their ids; empty where it is missing or damaged."""
    try:
        state = file.stat()
    except OSError:
        return {}
    return _task_items(file, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _task_items(file: Path, _changed: int, _size: int) -> dict[str, TaskItem]:
    """The same for one state of the file: it is large, and every task has to look there."""
    found = read_json(file, list[TaskItem], [])
    return {item.id: item for item in found or []}
