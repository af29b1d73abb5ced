"""Any known format to our recordings, whole or not at all, file by file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count as count_from
from pathlib import Path
from typing import Any

from cachecost.conversations import call_recording, recording
from cachecost.conversations.bills import Bill
from cachecost.conversations.block_table import Count
from cachecost.conversations.call_recording import Title
from cachecost.conversations.checked import Warn, quiet
from cachecost.conversations.content_free import key_of
from cachecost.conversations.readers import calls
from cachecost.conversations.readers.detect import CALLS, CONVERSATIONS, detect
from cachecost.conversations.readers.request_log import LoggedCall
from cachecost.conversations.recording import CannotWrite, Content
from cachecost.faults import Fault, InputError
from cachecost.prompts.blocks import Block
from cachecost.providers.prices import PriceBook
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class Imported:
    """One file that was read: what it was taken for and why, the recording made of it, what is in that.

    `calls` counts the calls of a log, or replies, each a call of the main thread. `bill` is what the file tells
    of usage and dollars.
    """

    file: str
    format: str
    reason: str
    recording: str
    name: str
    calls: int
    inquiries: int = 0
    bill: Bill = field(default_factory=Bill)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. `refused` files left nothing behind."""

    imported: list[Imported] = field(default_factory=list)
    refused: list[Fault] = field(default_factory=list)
    files: int = 0

    @property
    def calls(self) -> int:
        return sum(one.calls for one in self.imported)

    @property
    def billed(self) -> Usage:
        """The usage that the files tell."""
        return sum((one.bill.usage for one in self.imported), Usage())

    @property
    def billed_usd(self) -> Decimal:
        """Its dollars, at the prices of each call's day."""
        return sum((one.bill.dollars for one in self.imported), Decimal(0))

    @property
    def unpriced(self) -> Counter[str]:
        """Why calls are missing from the dollars, and how many."""
        return sum((one.bill.unpriced for one in self.imported), Counter())

    def json(self) -> dict[str, Any]:
        """The object of `import --json` (contract), without its dollars, which a view spells."""
        return {
            "format": 1,
            "files": self.files,
            "conversations": len(self.imported),
            "calls": self.calls,
            "billed": self.billed.wire(),
            "refused": [{"file": one.file, "line": one.line, "reason": one.message} for one in self.refused],
        }


@dataclass(frozen=True, slots=True)
class Wishes:
    """How recordings are to be made: see `import_files`."""

    content: Content = "keep"
    count: Count | None = None
    format_: str = "auto"
    source: str | None = None
    licence: str | None = None
    warn: Warn = quiet
    prices: PriceBook | None = None
    host: str = "anthropic"

    def header(self, name: str, source: str, licence: str) -> Title:
        return Title(
            name, source if self.source is None else self.source, licence if self.licence is None else self.licence
        )

    def key(self, path: Path) -> bytes | None:
        return key_of(path) if self.content == "digest" else None


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
    prices: PriceBook | None = None,
    host: str = "anthropic",
) -> ImportReport:
    """Make a recording of each file: `out` itself if it ends in .jsonl, else NAME.jsonl in the folder `out`.

    "digest" keeps no word: see recording.write; `count` then counts blocks while they have content.
    `source` and `licence` are written into every header. `prices` turn the usage of logged calls into dollars, on
    `host` where they name none. A file that cannot be read is refused, with all its faults, and the others are
    imported. Raises InputError where `out` cannot take them.
    """
    wishes = Wishes(content, _once(count) if count else None, format_, source, licence, warn, prices, host)
    target = _Target(Path(out), len(paths))
    report = ImportReport(files=len(paths))
    for path in map(Path, paths):
        try:
            report.imported.append(_import(path, target, wishes))
        except CannotWrite:
            raise
        except InputError as error:
            report.refused.extend(error.faults)
    return report


def _once(count: Count) -> Count:
    """Counts a block that stands in several files once: counting is most of the work."""
    known: dict[bytes, tuple[Mapping[str, int], str]] = {}

    def counted(block: Block) -> tuple[Mapping[str, int], str]:
        if block.digest not in known:
            known[block.digest] = count(block)
        return known[block.digest]

    return counted


def _import(path: Path, target: _Target, wishes: Wishes) -> Imported:
    name, reason = detect(path, wishes.format_)
    make = _import_calls if name in CALLS else _import_conversation
    try:
        return make(path, name, reason, target, wishes)
    except RecursionError:
        raise InputError([Fault(str(path), "nested too deeply")]) from None


def _import_conversation(path: Path, name: str, reason: str, target: _Target, wishes: Wishes) -> Imported:
    read = CONVERSATIONS[name].read(path, wishes.warn)
    told = wishes.header(read.name, read.source, read.licence)
    place = target.place(told.name, path)
    whole = replace(read, source=told.source, licence=told.licence)
    recording.write(whole, place, wishes.content, wishes.key(path), wishes.count)
    return Imported(str(path), name, reason, str(place), told.name, len(read.replies), len(read.inquiries))


def _import_calls(path: Path, name: str, reason: str, target: _Target, wishes: Wishes) -> Imported:
    header = calls.title(path) if name == "calls" else Title(path.stem)
    told = wishes.header(header.name, header.source, header.licence)
    place = target.place(told.name, path)
    bill = Bill(wishes.prices, wishes.host)
    billed = _billed(CALLS[name].calls(path, wishes.warn, True), bill)
    call_recording.write(told, billed, place, wishes.content, wishes.key(path), wishes.count)
    return Imported(str(path), name, reason, str(place), told.name, bill.calls, bill=bill)


def _billed(read: Iterator[LoggedCall], bill: Bill) -> Iterator[LoggedCall]:
    for call in read:
        bill.add(call)
        yield call


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

    def place(self, name: str, source: Path) -> Path:
        """Where the recording of `source` goes. Raises InputError where that is `source` itself."""
        place = self.out if self.is_file else self._free(re.sub(r"[/\\]|^\.+|^$", "_", name))
        if place.exists() and place.samefile(source):
            raise InputError([Fault(str(source), "its recording would be written over it: choose another place")])
        return place

    def _free(self, name: str) -> Path:
        """NAME.jsonl, or NAME-2.jsonl … where this import has used the name. An older file is replaced."""
        names = (name if n == 1 else f"{name}-{n}" for n in count_from(1))
        place = next(place for place in (self.out / f"{name}.jsonl" for name in names) if place not in self.taken)
        self.taken.add(place)
        return place
