"""Many files as one stream of calls: all files of a folder, in time order, each call once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import merge
from itertools import chain
from pathlib import Path

from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn
from cachecost.conversations.readers.detect import (
    CALLS,
    UNRECOGNIZED,
    Unrecognized,
    calls_in_time,
    detect,
    is_companion,
)

NEVER_LOGS = (
    *(".md", ".txt", ".png", ".jpg", ".py", ".toml", ".lock", ".html", ".css", ".js", ".sh", ".part"),
    *("sessions-index.json", ".meta.json", "-wal", "-shm"),
    *("api_conversation_history.json", "task_metadata.json", "history_item.json", "context_history.json"),
    *("taskHistory.json", ".compaction.json"),
)
"""Endings of files in a log folder that are no logs; they are not opened."""


@dataclass(frozen=True)
class InputFile:
    """A file to read. `format_` is the value of --format ("auto": detect it)."""

    path: Path
    format_: str = "auto"

    @cached_property
    def format(self) -> tuple[str, str]:
        """(name of its format, why). Raises InputError if no reader knows it."""
        return detect(self.path, self.format_)

    @property
    def is_empty(self) -> bool:
        return not self.path.stat().st_size

    def calls(self, warn: Warn) -> Iterator[RecordedCall]:
        """Its calls in time order. Raises InputError with every fault, and where it holds a conversation."""
        name, reason = self.format
        if name not in CALLS:
            what = f"is a conversation ({name}: {reason})"
            raise InputError([Fault(str(self.path), f"{what}: choose a folder for the output, not one file")])
        return calls_in_time(self.path, name, warn, says=warn)


def find_input_files(paths: Sequence[Path], format_: str, warn: Warn, skipped: list[Fault]) -> Iterator[InputFile]:
    """The files among `paths`, and those below its folders that a reader knows.

    Files in folders that no reader knows are added to `skipped`, with a warning; empty files are ignored.
    """
    for path in paths:
        if path.is_dir():
            yield from _files_in(path, format_, warn, skipped)
        else:
            yield InputFile(path, format_)


def _files_in(folder: Path, format_: str, warn: Warn, skipped: list[Fault]) -> Iterator[InputFile]:
    for path in sorted(folder.rglob("*")):
        found = InputFile(path, format_)
        if not path.is_file() or path.name.startswith(".") or path.name.endswith(NEVER_LOGS) or found.is_empty:
            continue
        try:
            if is_companion(path, found.format[0], folder):
                continue
        except Unrecognized as error:
            skipped += error.faults
            warn(f"{path}: {UNRECOGNIZED}, skipped ({error.hint})")
            continue
        yield found


def merge_calls(streams: Sequence[Iterator[RecordedCall]], warn: Warn) -> Iterator[RecordedCall]:
    """The calls of all streams in the order they start. A call that several streams hold comes once.

    Copies share id and input. The copy with the most output counts: a session that was copied during an answer has
    less of it.
    """
    if len(streams) == 1:
        yield from streams[0]
        return
    found = [sorted(stream, key=_start) for stream in streams]
    whole: dict[tuple[object, ...], RecordedCall] = {}
    for call in chain.from_iterable(found):
        known = whole.setdefault(_shared_key(call), call) if call.id else call
        if _output(call) > _output(known):
            whole[_shared_key(call)] = call
    copies = 0
    for call in merge(*found, key=_start):
        if not call.id or whole[_shared_key(call)] is call:
            yield call
        else:
            copies += 1
    if copies:
        warn(f"{count_text(copies, 'repeated call')} in several files: each call is counted once")


def _start(call: RecordedCall) -> float:
    return call.start


def _shared_key(call: RecordedCall) -> tuple[object, ...]:
    """Equal for all copies of a call."""
    billed = call.billed
    return (call.id, replace(billed, output_tokens=0) if billed else None)


def _output(call: RecordedCall) -> int:
    return call.billed.output_tokens if call.billed else 0
