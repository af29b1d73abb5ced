"""Many files as one stream of calls: what lies in a folder, in the order of time, each call once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import merge
from itertools import chain
from pathlib import Path

from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import counted
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.checked import Warn
from cachecost.conversations.readers.detect import CALLS, UNRECOGNIZED, Unrecognized, calls_in_time, detect

NEVER_LOGS = (
    *(".md", ".txt", ".png", ".jpg", ".py", ".toml", ".lock", ".html", ".css", ".js", ".sh", ".part"),
    *("sessions-index.json", ".meta.json"),
)
"""How names of files end that lie beside logs in a folder and are none; they are not even opened."""


@dataclass(frozen=True)
class Found:
    """A file to be read. `named` is the format it was said to be in ("auto": it is looked at)."""

    path: Path
    named: str = "auto"

    @cached_property
    def format(self) -> tuple[str, str]:
        """(name of its format, why). Raises InputError where no reader knows it."""
        return detect(self.path, self.named)

    @property
    def is_empty(self) -> bool:
        return not self.path.stat().st_size

    def calls(self, warn: Warn) -> Iterator[RecordedCall]:
        """Its calls in time order. Raises InputError with every fault, and where it holds a conversation."""
        name, reason = self.format
        if name not in CALLS:
            what = f"holds a conversation ({name}: {reason})"
            raise InputError([Fault(str(self.path), f"{what}: name a folder for it, not a file for all")])
        return calls_in_time(self.path, name, warn, says=warn)


def found_in(paths: Sequence[Path], named: str, warn: Warn, skipped: list[Fault]) -> Iterator[Found]:
    """The files among `paths`, and those below its folders that a reader knows.

    What no reader knows there is added to `skipped` and said to `warn`; an empty file is none.
    """
    for path in paths:
        if path.is_dir():
            yield from _known(path, named, warn, skipped)
        else:
            yield Found(path, named)


def _known(folder: Path, named: str, warn: Warn, skipped: list[Fault]) -> Iterator[Found]:
    for path in sorted(folder.rglob("*")):
        found = Found(path, named)
        if not path.is_file() or path.name.startswith(".") or path.name.endswith(NEVER_LOGS) or found.is_empty:
            continue
        try:
            _ = found.format
        except Unrecognized as error:
            skipped += error.faults
            warn(f"{path}: {UNRECOGNIZED}, skipped ({error.hint})")
            continue
        yield found


def merged(streams: Sequence[Iterator[RecordedCall]], warn: Warn) -> Iterator[RecordedCall]:
    """The calls of all streams in the order they start; a call that several hold comes once, with its whole bill.

    Copies share id and input: a session that was copied while an answer came has less of its output.
    """
    if len(streams) == 1:
        yield from streams[0]
        return
    found = [sorted(stream, key=_start) for stream in streams]
    whole: dict[tuple[object, ...], RecordedCall] = {}
    for call in chain.from_iterable(found):
        known = whole.setdefault(_copies(call), call) if call.id else call
        if _output(call) > _output(known):
            whole[_copies(call)] = call
    copies = 0
    for call in merge(*found, key=_start):
        if not call.id or whole[_copies(call)] is call:
            yield call
        else:
            copies += 1
    if copies:
        warn(f"{counted(copies, 'repeated call')} in several files: each call is counted once")


def _start(call: RecordedCall) -> float:
    return call.start


def _copies(call: RecordedCall) -> tuple[object, ...]:
    """What all copies of a call share."""
    billed = call.billed
    return (call.id, replace(billed, output_tokens=0) if billed else None)


def _output(call: RecordedCall) -> int:
    return call.billed.output_tokens if call.billed else 0
