"""Any known format to our recordings, whole or not at all, file by file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import blake2b
from itertools import count as count_from
from pathlib import Path
from typing import Any

from cachecost.conversations import call_recording, recording
from cachecost.conversations.bills import Bill
from cachecost.conversations.block_table import Count
from cachecost.conversations.call_recording import Title
from cachecost.conversations.checked import Warn, quiet
from cachecost.conversations.content_free import key_of
from cachecost.conversations.merging import Found, found_in, merged
from cachecost.conversations.readers import calls
from cachecost.conversations.readers.detect import CONVERSATIONS, lacks
from cachecost.conversations.readers.request_log import LoggedCall
from cachecost.conversations.recording import CannotWrite, Content
from cachecost.conversations.sessions import CallTree
from cachecost.faults import Fault, InputError
from cachecost.prompts.blocks import Block
from cachecost.providers.prices import PriceBook
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class Imported:
    """One file, or several together: what was taken for what and why, the recording made of it, what is in that.

    `calls` counts the calls of a log, or replies, each a call of the main thread. `bill` is what the file tells
    of usage and dollars.
    """

    file: str
    format: str
    reason: str
    recording: str
    name: str
    calls: int
    conversations: int = 1
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
            "conversations": sum(one.conversations for one in self.imported),
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

    def key(self, paths: Sequence[Path]) -> bytes | None:
        if self.content != "digest":
            return None
        keys = [key_of(path) for path in paths]
        return keys[0] if len(keys) == 1 else blake2b(b"".join(keys), digest_size=len(keys[0])).digest()


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
    """Make recordings of files, and of all files of a known format in folders.

    Where `out` ends in .jsonl it is one recording of all calls, in the order of their times, each call once however
    many files hold it; else each file becomes NAME.jsonl in the folder `out`. "digest" keeps no word: see
    recording.write; `count` then counts blocks while they have content. `source` and `licence` are written into every
    header. `prices` turn the usage of logged calls into dollars, on `host` where they name none. A file that cannot be
    read is refused, with all its faults, and the others are imported. Raises InputError where `out` cannot take them.
    """
    wishes = Wishes(content, _once(count) if count else None, format_, source, licence, warn, prices, host)
    target = _Target(Path(out))
    found = list(found_in(list(map(Path, paths)), format_, warn))
    report = ImportReport(files=len(found))
    for lack in dict.fromkeys(filter(None, (lacks(one.format[0]) for one in found if one.is_known))):
        warn(lack)
    groups = [found] if target.is_file and len(found) > 1 else [[one] for one in found]
    for group in groups:
        _import_group(group, target, wishes, report)
    return report


def _import_group(group: list[Found], target: _Target, wishes: Wishes, report: ImportReport) -> None:
    if len(group) > 1:
        group = _readable(group, wishes, report)
    try:
        if group:
            report.imported.append(_import(group, target, wishes))
    except CannotWrite:
        raise
    except InputError as error:
        report.refused.extend(error.faults)


def _readable(group: list[Found], wishes: Wishes, report: ImportReport) -> list[Found]:
    """Those of the files whose calls can all be read: what is merged is whole, so it is known before."""
    kept = []
    for one in group:
        try:
            for _ in one.calls(quiet):
                pass
            kept.append(one)
        except InputError as error:
            report.refused.extend(error.faults)
    return kept


def _once(count: Count) -> Count:
    """Counts a block that stands in several files once: counting is most of the work."""
    known: dict[bytes, tuple[Mapping[str, int], str]] = {}

    def counted(block: Block) -> tuple[Mapping[str, int], str]:
        if block.digest not in known:
            known[block.digest] = count(block)
        return known[block.digest]

    return counted


def _import(group: list[Found], target: _Target, wishes: Wishes) -> Imported:
    try:
        format_, _ = group[0].format
        if len(group) == 1 and format_ in CONVERSATIONS:
            return _import_conversation(group[0], target, wishes)
        return _import_calls(group, target, wishes)
    except RecursionError:
        raise InputError([Fault(str(group[0].path), "nested too deeply")]) from None


def _import_conversation(one: Found, target: _Target, wishes: Wishes) -> Imported:
    name, reason = one.format
    read = CONVERSATIONS[name].read(one.path, wishes.warn)
    told = wishes.header(read.name, read.source, read.licence)
    place = target.place(told.name, [one.path])
    whole = replace(read, source=told.source, licence=told.licence)
    recording.write(whole, place, wishes.content, wishes.key([one.path]), wishes.count)
    return Imported(str(one.path), name, reason, str(place), told.name, len(read.replies), 1, len(read.inquiries))


def _import_calls(group: list[Found], target: _Target, wishes: Wishes) -> Imported:
    name, reason = group[0].format
    paths = [one.path for one in group]
    header = calls.title(paths[0]) if name == "calls" and len(group) == 1 else Title(_name_of(paths, target))
    told = wishes.header(header.name, header.source, header.licence)
    place = target.place(told.name, paths)
    bill, tree = Bill(wishes.prices, wishes.host), CallTree()
    stream = tree.adding(bill.adding(merged([one.calls(wishes.warn) for one in group])))
    call_recording.write(told, stream, place, wishes.content, wishes.key(paths), wishes.count)
    whole = str(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    return Imported(whole, name, reason, str(place), told.name, bill.calls, tree.conversations, bill=bill)


def _name_of(paths: Sequence[Path], target: _Target) -> str:
    return paths[0].stem if len(paths) == 1 else target.out.stem


class _Target:
    """Where recordings go: one file, or files in a folder, which is made if it is not there."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.is_file = out.suffix == ".jsonl"
        self.taken: set[Path] = set()
        if not self.is_file:
            self._make()

    def _make(self) -> None:
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError([Fault(str(self.out), f"cannot be made: {error.strerror}")]) from error

    def place(self, name: str, sources: Sequence[Path]) -> Path:
        """Where the recording of `sources` goes. Raises InputError where that is one of them."""
        place = self.out if self.is_file else self._free(re.sub(r"[/\\]|^\.+|^$", "_", name))
        same = next((source for source in sources if place.exists() and place.samefile(source)), None)
        if same is not None:
            raise InputError([Fault(str(same), "its recording would be written over it: choose another place")])
        return place

    def _free(self, name: str) -> Path:
        """NAME.jsonl, or NAME-2.jsonl … where this import has used the name. An older file is replaced."""
        names = (name if n == 1 else f"{name}-{n}" for n in count_from(1))
        place = next(place for place in (self.out / f"{name}.jsonl" for name in names) if place not in self.taken)
        self.taken.add(place)
        return place
