"""Many files as one stream of calls: what lies in a folder, in the order of time, each call once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from pathlib import Path

from cachecost.conversations.checked import Warn
from cachecost.conversations.readers.detect import CALLS, detect
from cachecost.conversations.readers.request_log import LoggedCall
from cachecost.faults import Fault, InputError
from cachecost.providers.usage import Usage

NEVER_LOGS = (".md", ".txt", ".png", ".jpg", ".py", ".toml", ".lock", ".html", ".css", ".js", ".sh", ".part")
"""What lies beside logs in a folder and is none; it is not even opened."""


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
    def is_known(self) -> bool:
        """Whether a reader knows it."""
        try:
            return bool(self.format)
        except InputError:
            return False

    def calls(self, warn: Warn) -> Iterator[LoggedCall]:
        """Its calls. Raises InputError with every fault, and where it holds a conversation."""
        name, reason = self.format
        if name not in CALLS:
            what = f"holds a conversation ({name}: {reason})"
            raise InputError([Fault(str(self.path), f"{what}: name a folder for it, not a file for all")])
        return CALLS[name].calls(self.path, warn, True)


def found_in(paths: Sequence[Path], named: str, warn: Warn) -> Iterator[Found]:
    """The files among `paths`, and those below its folders that a reader knows; others there are said to `warn`."""
    for path in paths:
        if path.is_dir():
            yield from _known(path, named, warn)
        else:
            yield Found(path, named)


def _known(folder: Path, named: str, warn: Warn) -> Iterator[Found]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(".") and path.suffix not in NEVER_LOGS:
            found = Found(path, named)
            if found.is_known:
                yield found
            else:
                warn(f"{path}: begins like none of the formats that are known; left out")


def merged(streams: Sequence[Iterator[LoggedCall]], warn: Warn) -> Iterator[LoggedCall]:
    """The calls of all streams in the order they start; a call that several hold, by id and bill, comes once."""
    if len(streams) == 1:
        yield from streams[0]
        return
    seen: set[tuple[str, Usage | None]] = set()
    copies = 0
    for call in merge(*map(_sorted, streams), key=lambda call: call.start):
        if call.id and (call.id, call.billed) in seen:
            copies += 1
            continue
        seen.add((call.id, call.billed))
        yield call
    if copies:
        warn(f"{copies:,} calls stand in several files: each is counted once")


def _sorted(stream: Iterator[LoggedCall]) -> list[LoggedCall]:
    return sorted(stream, key=lambda call: call.start)
