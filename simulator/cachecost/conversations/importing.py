"""Any known format to our recordings, whole or not at all, file by file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count as count_from
from pathlib import Path
from typing import Any

from cachecost.conversations import recording
from cachecost.conversations.block_table import Count
from cachecost.conversations.checked import Warn, quiet
from cachecost.conversations.content_free import key_of
from cachecost.conversations.model import Conversation
from cachecost.conversations.readers.detect import READERS, detect
from cachecost.conversations.recording import Content
from cachecost.faults import Fault, InputError
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class Imported:
    """One file that was read: what it was taken for and why, the recording made of it, what is in that.

    `calls` counts replies, each a call of the main thread.
    """

    file: str
    format: str
    reason: str
    recording: str
    name: str
    calls: int
    inquiries: int


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. `refused` files left nothing behind. `billed` is the usage the sources tell."""

    imported: list[Imported] = field(default_factory=list)
    refused: list[Fault] = field(default_factory=list)
    files: int = 0
    billed: Usage = field(default_factory=Usage)

    @property
    def calls(self) -> int:
        return sum(one.calls for one in self.imported)

    def json(self) -> dict[str, Any]:
        """The object of `import --json` (contract), without dollars, which prices know."""
        return {
            "format": 1,
            "files": self.files,
            "conversations": len(self.imported),
            "calls": self.calls,
            "billed": self.billed.wire(),
            "refused": [{"file": one.file, "line": one.line, "reason": one.message} for one in self.refused],
        }


def import_files(
    paths: Sequence[str | Path],
    out: str | Path,
    content: Content = "keep",
    *,
    count: Count | None = None,
    format_: str = "auto",
    source: str | None = None,
    licence: str | None = None,
    warn: Warn = quiet,
) -> ImportReport:
    """Make a recording of each file: `out` itself if it ends in .jsonl, else NAME.jsonl in the folder `out`.

    "digest" keeps no word: see recording.write; `count` then counts blocks while they have content.
    `source` and `licence` are written into every header. A file that cannot be read is refused, with
    all its faults, and the others are imported. Raises InputError where `out` cannot take them.
    """
    target = _Target(Path(out), len(paths))
    report = ImportReport(files=len(paths))
    for path in map(Path, paths):
        try:
            name, reason, conversation = _read(path, format_, warn)
        except InputError as error:
            report.refused.extend(error.faults)
        else:
            told = _told(conversation, source, licence)
            place = target.place(told.name)
            recording.write(told, place, content, key_of(path) if content == "digest" else None, count)
            made = Imported(str(path), name, reason, str(place), told.name, len(told.replies), len(told.inquiries))
            report.imported.append(made)
    return report


def _read(path: Path, format_: str, warn: Warn) -> tuple[str, str, Conversation]:
    name, reason = detect(path, format_)
    try:
        return name, reason, READERS[name].read(path, warn)
    except RecursionError:
        raise InputError([Fault(str(path), "nested too deeply")]) from None


def _told(conversation: Conversation, source: str | None, licence: str | None) -> Conversation:
    return replace(
        conversation,
        source=conversation.source if source is None else source,
        licence=conversation.licence if licence is None else licence,
    )


class _Target:
    """Where recordings go: one file, or files in a folder, which is made if it is not there."""

    def __init__(self, out: Path, recordings: int) -> None:
        self.out = out
        self.is_file = out.suffix == ".jsonl"
        self.taken: set[Path] = set()
        if self.is_file and recordings > 1:
            raise InputError([Fault(str(out), f"expected a folder for {recordings} recordings; got a file's name")])
        if not self.is_file:
            self._make()

    def _make(self) -> None:
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError([Fault(str(self.out), f"cannot be made: {error.strerror}")]) from error

    def place(self, name: str) -> Path:
        """NAME.jsonl, or NAME-2.jsonl … where this import has used the name. An older file is replaced."""
        if self.is_file:
            return self.out
        names = (name if n == 1 else f"{name}-{n}" for n in count_from(1))
        place = next(place for place in (self.out / f"{name}.jsonl" for name in names) if place not in self.taken)
        self.taken.add(place)
        return place
