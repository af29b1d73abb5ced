"""Imports any known format as cachecost recordings. Each file is written whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import count as count_from
from pathlib import Path

from cachecost.base.atomic_files import CannotWrite, private_mode
from cachecost.base.errors import Fault, InputError
from cachecost.conversations import call_recording, recording
from cachecost.conversations.bills import BillTotal
from cachecost.conversations.block_table import BlockWriter, Count
from cachecost.conversations.call_recording import Title
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.content_free import ContentFree, key_from, key_of
from cachecost.conversations.import_report import ImportedFile, ImportReport
from cachecost.conversations.input_files import Warn, input_path, quiet
from cachecost.conversations.logs import Logs
from cachecost.conversations.merging import InputFile, merge_calls
from cachecost.conversations.readers.detect import CONVERSATIONS, lacks
from cachecost.conversations.recording import Content
from cachecost.conversations.sessions import CallTree
from cachecost.conversations.unknown_blocks import UnknownBlocks
from cachecost.prompts.blocks import Block
from cachecost.providers.hosts import AUTO_HOST
from cachecost.providers.prices import PriceBook


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How files are imported.

    "digest" as `content` keeps none (content_free.py): `count` then counts blocks before it is removed, sizes and
    counts are rounded up to multiples of `round_to`, and digests use the key in `key_file`, or else one derived from
    the source. `source` and `licence` go into every header. `prices` turn the usage of logged calls into dollars, on
    `host` if they name none. Without `overwrite`, a recording that exists with other content is kept.
    """

    content: Content = "keep"
    count: Count | None = None
    format_: str = "auto"
    source: str | None = None
    licence: str | None = None
    warn: Warn = quiet
    prices: PriceBook | None = None
    host: str = AUTO_HOST
    round_to: int = 1
    key_file: Path | None = None
    overwrite: bool = True

    def header(self, name: str, source: str, licence: str) -> Title:
        """The header of a recording of what says these of itself."""
        return Title(
            name, source if self.source is None else self.source, licence if self.licence is None else self.licence
        )

    def blocks(self, paths: Sequence[Path]) -> BlockWriter:
        """What writes the blocks of the recording of these files."""
        if self.content == "keep":
            return BlockWriter()
        return BlockWriter(ContentFree(self._key(paths), self.round_to), self.count)

    def _key(self, paths: Sequence[Path]) -> bytes:
        if self.key_file is not None:
            return key_from(self.key_file)
        keys = [key_of(path) for path in paths]
        return keys[0] if len(keys) == 1 else blake2b(b"".join(keys), digest_size=len(keys[0])).digest()


def import_files(
    paths: Sequence[str | Path], out: str | Path, options: ImportOptions = ImportOptions()
) -> ImportReport:
    """Import files, and all files of a known format in folders, as recordings.

    If `out` ends in .jsonl, it becomes one recording of all calls, in time order, each call once even if several files
    hold it; else each file becomes NAME.jsonl in the folder `out`. A file that cannot be read is refused with all its
    errors, and the others are imported; without `overwrite`, so is a file whose recording exists with other content.
    Raises InputError if `out` cannot be written.
    """
    if options.count:
        options = replace(options, count=_count_once(options.count))
    target = _Target(Path(out))
    logs = Logs(list(map(input_path, paths)), options.format_, options.warn)
    try:
        found = logs.files()
    except InputError as error:
        return ImportReport(refused=error.faults, skipped=logs.skipped)
    report = ImportReport(files=len(found), skipped=logs.skipped)
    for lack in dict.fromkeys(filter(None, map(_lacks, found))):
        options.warn(lack)
    groups = [found] if target.is_file and len(found) > 1 else [[one] for one in found]
    for group in groups:
        _import_group(group, target, options, report)
    return report


def _lacks(one: InputFile) -> str:
    """What the format of a file lacks; empty if the format is unknown, which is an error later on."""
    try:
        return lacks(one.format[0])
    except InputError:
        return ""


def _import_group(group: list[InputFile], target: _Target, options: ImportOptions, report: ImportReport) -> None:
    found = _readable(group, report) if len(group) > 1 else group
    try:
        if found:
            report.imported.append(_import(found, target, options))
    except CannotWrite:
        raise
    except InputError as error:
        report.refused.extend(error.faults)


class _ReadFile:
    """A file whose calls were all read: they are kept, and so is what the reader has to say."""

    def __init__(self, one: InputFile) -> None:
        self.path = one.path
        self.format = one.format
        self._said: list[str] = []
        self._calls = list(one.calls(self._said.append))

    def calls(self, warn: Warn) -> Iterator[RecordedCall]:
        """As `InputFile.calls`."""
        for words in self._said:
            warn(words)
        yield from self._calls


_Source = InputFile | _ReadFile


def _readable(group: list[InputFile], report: ImportReport) -> list[_ReadFile]:
    """The files whose calls can all be read. A merged file is whole or not written, so they are read before."""
    kept = []
    for one in group:
        try:
            kept.append(_ReadFile(one))
        except InputError as error:
            report.refused.extend(error.faults)
    return kept


def _count_once(count: Count) -> Count:
    """Counts a block of several files once: counting is most of the work."""
    known: dict[bytes, tuple[Mapping[str, int], str]] = {}

    def count_once(block: Block) -> tuple[Mapping[str, int], str]:
        if block.digest not in known:
            known[block.digest] = count(block)
        return known[block.digest]

    return count_once


def _import(group: Sequence[_Source], target: _Target, options: ImportOptions) -> ImportedFile:
    format_, _ = group[0].format
    if len(group) == 1 and format_ in CONVERSATIONS:
        return _import_conversation(group[0], target, options)
    return _import_calls(group, target, options)


def _import_conversation(one: _Source, target: _Target, options: ImportOptions) -> ImportedFile:
    name, reason = one.format
    read = CONVERSATIONS[name].read(one.path, options.warn)
    title = options.header(read.name, read.source, read.licence)
    place = target.place(title.name, [one.path])
    whole = replace(read, source=title.source, licence=title.licence)
    recording.write(whole, place, options.blocks([one.path]), options.overwrite, private_mode([one.path]))
    return ImportedFile(str(one.path), name, reason, str(place), title.name, len(read.replies), 1, len(read.inquiries))


def _import_calls(group: Sequence[_Source], target: _Target, options: ImportOptions) -> ImportedFile:
    name, reason = group[0].format
    paths = [one.path for one in group]
    header = _header_of(paths[0]) if name == "calls" and len(group) == 1 else Title(_name_of(paths, target))
    title = options.header(header.name, header.source, header.licence)
    place = target.place(title.name, paths)
    bill, tree = BillTotal(options.prices, options.host), CallTree()
    unknown = UnknownBlocks()
    read = unknown.add_all(merge_calls([one.calls(options.warn) for one in group], options.warn))
    stream = tree.add_all(bill.add_all(read))
    call_recording.write(title, stream, place, options.blocks(paths), options.overwrite, private_mode(paths))
    unknown.report(options.warn)
    whole = str(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    return ImportedFile(whole, name, reason, str(place), title.name, bill.calls, tree.conversations, bill=bill)


def _header_of(path: Path) -> Title:
    """What the header of a recording says; its reader is imported where it is needed, for start-up counts."""
    from cachecost.conversations.readers.call_recording import reader

    return reader.title(path)


def _name_of(paths: Sequence[Path], target: _Target) -> str:
    return paths[0].stem if len(paths) == 1 else target.out.stem


class _Target:
    """Where recordings go: one file, or files in a folder, which is created if needed."""

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
        """Where the recording of `sources` goes. Raises InputError if it is one of them."""
        place = self.out if self.is_file else self._free(re.sub(r"[/\\]|^\.+|^$", "_", name))
        same = next((source for source in sources if place.exists() and place.samefile(source)), None)
        if same is not None:
            raise InputError([Fault(str(same), "its recording would overwrite it: choose another place")])
        return place

    def _free(self, name: str) -> Path:
        """NAME.jsonl, or NAME-2.jsonl … where this import has used the name. An older file is replaced."""
        names = (name if n == 1 else f"{name}-{n}" for n in count_from(1))
        place = next(place for place in (self.out / f"{name}.jsonl" for name in names) if place not in self.taken)
        self.taken.add(place)
        return place
