"""Imports any known format as cachecost recordings. Each file is written whole or not at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import blake2b
from itertools import count as count_from
from pathlib import Path
from typing import Any

from cachecost.base.atomic_files import CannotWrite, private_mode
from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text
from cachecost.base.structs import replace
from cachecost.conversations import call_recording, model
from cachecost.conversations.call_recording import Title
from cachecost.conversations.calls import BillTotal, Call
from cachecost.conversations.input_files import Warn, input_path, quiet
from cachecost.conversations.logs import InputFile, Logs, merge_calls
from cachecost.conversations.model import BlockWriter, Content, ContentFree, Count, key_from, key_of
from cachecost.conversations.readers.detect import CONVERSATIONS, lacks
from cachecost.conversations.sessions import CallTree
from cachecost.prompts.blocks import Block, Part, Thread
from cachecost.prompts.request import Request
from cachecost.providers.hosts import AUTO_HOST
from cachecost.providers.prices import PriceBook
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One file, or several merged ones: the detected format and the reason, and the recording with its contents.

    `calls` counts the calls of a log, or the replies of a conversation. `bill` has the usage and dollars of the file.
    """

    file: str
    format: str
    reason: str
    recording: str
    name: str
    calls: int
    conversations: int = 1
    inquiries: int = 0
    bill: BillTotal = field(default_factory=BillTotal)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import. `refused` files left nothing behind; `skipped` files in folders have no known format."""

    imported: list[ImportedFile] = field(default_factory=list)
    refused: list[Fault] = field(default_factory=list)
    files: int = 0
    skipped: list[Fault] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return sum(one.calls for one in self.imported)

    @property
    def billed_usage(self) -> Usage:
        """The usage in the files."""
        return sum((one.bill.usage for one in self.imported), Usage())

    @property
    def billed_usd(self) -> Decimal:
        """Its dollars, at the prices of each call's day."""
        return sum((one.bill.dollars for one in self.imported), Decimal(0))

    @property
    def unpriced_calls(self) -> Counter[str]:
        """The calls that are missing from the dollars, by reason."""
        return sum((one.bill.unpriced for one in self.imported), Counter())

    def json(self) -> dict[str, Any]:
        """The object of `import --json` (docs/reference/output-formats.md), without dollars: a view formats them."""
        return {
            "format": 1,
            "files": self.files,
            "conversations": sum(one.conversations for one in self.imported),
            "calls": self.calls,
            "billed": self.billed_usage.wire(),
            "refused": [{"file": one.file, "line": one.line, "reason": one.message} for one in self.refused],
            "skipped": [{"file": one.file, "reason": one.message} for one in self.skipped],
        }


KNOWN = frozenset(
    {"text", "image", "document", "search_result", "tool", "tool_use", "server_tool_use", "mcp_tool_use"}
    | {"tool_reference", "container_upload", "thinking", "redacted_thinking", "compaction", "item_reference"}
)
RESULT = "tool_result"
"""The end of all result types: of tools, server tools and MCP servers."""


class UnknownBlocks:
    """Counts unknown blocks in a stream of calls; a block that calls share counts once."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()
        self._seen: set[Thread | Part] = set()

    def add_all(self, calls: Iterable[Call]) -> Iterator[Call]:
        """Yield the calls unchanged, and count their blocks that neither the Messages API nor a translation has."""
        for call in calls:
            for block in self._new_blocks(call.request):
                if block.kind not in KNOWN and not block.kind.endswith(RESULT):
                    self.found[block.kind] += 1
            yield call

    def report(self, warn: Warn) -> None:
        """Warn of each type, with its number of blocks."""
        for kind, times in sorted(self.found.items()):
            warn(f"{count_text(times, 'block')} of unknown type {kind!r}: kept unchanged, counted as JSON")

    def _new_blocks(self, request: Request) -> Iterator[Block]:
        for part in (request.tools, request.system):
            if part not in self._seen:
                self._seen.add(part)
                yield from part.blocks
        for node in request.thread.back():
            if node in self._seen:
                return
            self._seen.add(node)
            yield from node.message_blocks


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
        stated = source if self.source is None else self.source, licence if self.licence is None else self.licence
        return Title(name, *stated)

    def blocks(self, paths: Sequence[Path]) -> BlockWriter:
        """What writes the blocks of the recording of these files."""
        if self.content == "keep":
            return BlockWriter()
        keys = [key_from(self.key_file)] if self.key_file is not None else [key_of(path) for path in paths]
        key = keys[0] if len(keys) == 1 else blake2b(b"".join(keys), digest_size=len(keys[0])).digest()
        return BlockWriter(ContentFree(key, self.round_to), self.count)


def import_files(
    paths: Sequence[str | Path], out: str | Path, options: ImportOptions = ImportOptions()
) -> ImportReport:
    """Import files, and all files of a known format in folders, as recordings.

    If `out` ends in .jsonl, it becomes one recording of all calls, in time order, each call once even if several files
    hold it; else each file becomes NAME.jsonl in the folder `out`. A file that cannot be read is refused with all its
    errors, and the others are imported; without `overwrite`, so is a file whose recording exists with other content.
    Raises InputError if `out` cannot be written.
    """
    if count := options.count:  # a block of several files is counted once: counting is most of the work
        known: dict[bytes, tuple[Mapping[str, int], str]] = {}
        options = replace(
            options, count=lambda block: known.get(block.digest) or known.setdefault(block.digest, count(block))
        )
    target = _Target(Path(out))
    logs = Logs(list(map(input_path, paths)), options.format_, options.warn)
    try:
        found = logs.files()
    except InputError as error:
        return ImportReport(refused=error.faults, skipped=logs.skipped)
    report = ImportReport(files=len(found), skipped=logs.skipped)
    formats = []
    for one in found:
        with suppress(InputError):  # an unknown format is an error later on
            formats.append(one.format[0])
    for lack in dict.fromkeys(filter(None, map(lacks, formats))):
        options.warn(lack)
    groups = [found] if target.is_file and len(found) > 1 else [[one] for one in found]
    for group in groups:
        # a merged file is whole or not written: only files whose calls can all be read are in it
        readable = [made for one in group if (made := _read_whole(one, report))] if len(group) > 1 else group
        try:
            if readable:
                report.imported.append(_import(readable, target, options))
        except CannotWrite:
            raise
        except InputError as error:
            report.refused.extend(error.faults)
    return report


class _ReadFile:
    def __init__(self, one: InputFile) -> None:
        self.path = one.path
        self.format = one.format
        self._said: list[str] = []
        self._calls = list(one.calls(self._said.append))

    def calls(self, warn: Warn) -> Iterator[Call]:
        """As `InputFile.calls`."""
        for words in self._said:
            warn(words)
        yield from self._calls


def _read_whole(one: InputFile, report: ImportReport) -> _ReadFile | None:
    try:
        return _ReadFile(one)
    except InputError as error:
        report.refused.extend(error.faults)
        return None


def _import(group: Sequence[InputFile | _ReadFile], target: _Target, options: ImportOptions) -> ImportedFile:
    name, reason = group[0].format
    paths = [one.path for one in group]
    if len(group) == 1 and name in CONVERSATIONS:
        read = CONVERSATIONS[name].read(paths[0], options.warn)
        title = options.header(read.name, read.source, read.licence)
        place = target.place(title.name, paths)
        whole = replace(read, source=title.source, licence=title.licence)
        model.write(whole, place, options.blocks(paths), options.overwrite, private_mode(paths))
        counts = len(read.replies), 1, len(read.inquiries)
        return ImportedFile(str(paths[0]), name, reason, str(place), title.name, *counts)
    header = Title(paths[0].stem if len(paths) == 1 else target.out.stem)
    if name == "calls" and len(group) == 1:  # its reader is imported where it is needed, for start-up counts
        from cachecost.conversations.readers import call_recording as reader

        header = reader.title(paths[0])
    title = options.header(header.name, header.source, header.licence)
    place = target.place(title.name, paths)
    bill, tree, unknown = BillTotal(options.prices, options.host), CallTree(), UnknownBlocks()
    calls = unknown.add_all(merge_calls([one.calls(options.warn) for one in group], options.warn))
    stream = tree.add_all(bill.add_all(calls))
    call_recording.write(title, stream, place, options.blocks(paths), options.overwrite, private_mode(paths))
    unknown.report(options.warn)
    file = str(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    return ImportedFile(file, name, reason, str(place), title.name, bill.calls, tree.conversations, bill=bill)


class _Target:
    """Where recordings go: one file, or files in a folder, which is created if needed."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.is_file = out.suffix == ".jsonl"
        self.taken: set[Path] = set()
        if not self.is_file:
            try:
                out.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError([Fault(str(out), f"cannot be made: {error.strerror}")]) from error

    def place(self, name: str, sources: Sequence[Path]) -> Path:
        """Where the recording of `sources` goes: NAME.jsonl, or NAME-2.jsonl … where this import has used the name. An
        older file is replaced. Raises InputError if it is one of the sources."""
        place = self.out
        if not self.is_file:
            name = re.sub(r"[/\\]|^\.+|^$", "_", name)
            names = (name if number == 1 else f"{name}-{number}" for number in count_from(1))
            place = next(one for name in names if (one := self.out / f"{name}.jsonl") not in self.taken)
            self.taken.add(place)
        same = next((source for source in sources if place.exists() and place.samefile(source)), None)
        if same is not None:
            raise InputError([Fault(str(same), "its recording would overwrite it: choose another place")])
        return place
