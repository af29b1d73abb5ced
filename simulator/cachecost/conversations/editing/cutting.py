"""Cuts and concatenates recordings, and splits request logs.

Output of cutting and concatenating is always in cachecost's own formats. A recording whose header says that it holds no
content keeps saying so; its digests stay under the key they were made with. A request log, also one larger than memory,
is split into one file per session, whose lines are copied unchanged.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from heapq import merge
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from cachecost.base.atomic_files import open_whole, private_mode, replace_when_done, safe_name
from cachecost.base.errors import Fault, InputError, nearest
from cachecost.base.formatting import count_text
from cachecost.base.structs import replace
from cachecost.conversations import call_recording, model
from cachecost.conversations.call_recording import ThreadJoiner, Title
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, byte_lines, open_input, quiet
from cachecost.conversations.json_object import parse_json
from cachecost.conversations.logs import join_in_order
from cachecost.conversations.model import BlockWriter, Content, Conversation, Reply, Results, encode_record
from cachecost.conversations.readers import call_recording as our_calls
from cachecost.conversations.readers.detect import CONVERSATIONS, detect, read_calls, read_conversation

RANGE = re.compile(r"(\d+)(?:(-)(\d*))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class CallSelection:
    """Which calls stay: those that match all filters. `calls` are ranges of numbers, from 1 and with both ends (None:
    the last); `start` <= time < `end` in seconds since the epoch."""

    calls: tuple[tuple[int, int | None], ...] = ()
    start: float | None = None
    end: float | None = None
    session: str | None = None

    def has_number(self, number: int) -> bool:
        return not self.calls or any(first <= number <= (last or number) for first, last in self.calls)

    def has_time(self, at: float) -> bool:
        return (self.start is None or self.start <= at) and (self.end is None or at < self.end)


@dataclass(frozen=True, slots=True)
class WrittenCalls:
    """How many calls were written, of how many."""

    calls: int
    of: int


def parse_ranges(text: str) -> tuple[tuple[int, int | None], ...]:
    """ "10-20", "7", "10-", "1-3,7": numbers from 1. Raises ValueError."""
    ranges: list[tuple[int, int | None]] = []
    for part in text.split(","):
        found = RANGE.fullmatch(part.strip())
        if not found:
            raise ValueError(f"expected numbers like 10-20, 7 or 10-; got '{part}'")
        first = int(found[1])
        last = int(found[3]) if found[3] else None if found[2] else first
        if first < 1 or (last is not None and last < first):
            raise ValueError(f"expected numbers from 1, the smaller first; got '{part}'")
        ranges.append((first, last))
    return tuple(ranges)


def cut(
    path: Path, out: Path, selection: CallSelection, format_: str = "auto", warn: Warn = quiet, overwrite: bool = True
) -> WrittenCalls:
    """Write the part of a recording that `selection` describes. Raises InputError, also where nothing is in it; without
    `overwrite`, where `out` is there with other content."""
    _not_over([path], out)
    whole_file = open_whole(out, overwrite, private_mode([path]))
    name, _ = detect(path, format_, "request-log")
    if name in CONVERSATIONS:
        whole = read_conversation(path, format_, warn)
        if selection.session is not None:
            raise InputError([Fault(str(path), "is one conversation without sessions: cut by calls or time")])
        part = cut_conversation(whole, selection)
        if not part.replies:
            raise InputError([Fault(str(path), f"no call matches; the conversation has {len(whole.replies)}")])
        if isinstance(part.events[0], Results):
            warn(f"{path}: the result begins with tool results whose tool calls are not in it")
        _write(model.records(part, BlockWriter()), whole_file, content_of(path))
        return WrittenCalls(len(part.replies), len(whole.replies))
    counts = Counter[str]()
    selected = _select_calls(path, read_calls(path, format_, warn), selection, counts)
    records = call_recording.records(title_of(path, format_), selected, BlockWriter())
    _write(records, whole_file, content_of(path))
    return WrittenCalls(counts["kept"], counts["seen"])


def _select_calls(path: Path, calls: Iterable[Call], selection: CallSelection, counts: Counter[str]) -> Iterator[Call]:
    """The calls that stay; all and those are counted. The number of a call is its place in the file, also if the file
    is not in time order. Raises InputError, also where none stays."""
    sessions = set[str]()
    for call in calls:
        counts["seen"] += 1
        sessions.add(call.session)
        if call.timestamp is None and (selection.start is not None or selection.end is not None):
            raise InputError([Fault(str(path), "this call has no timestamp: cut by calls or session", call.line)])
        is_in_session = selection.session is None or call.session == selection.session
        if is_in_session and selection.has_number(call.number or counts["seen"]) and selection.has_time(call.start):
            counts["kept"] += 1
            yield call
    if counts["kept"]:
        return
    reason = f"no call matches; the recording has {counts['seen']}"
    if selection.session is not None and selection.session not in sessions:
        known = sorted(sessions - {""})
        hint = nearest(selection.session, known) if known else "; no call has a session"
        reason = f"no call has session '{selection.session}'{hint}"
    raise InputError([Fault(str(path), reason)])


def cut_conversation(whole: Conversation, selection: CallSelection) -> Conversation:
    """The events from the input of the first call that stays to the last one. Earlier messages are dropped."""
    number = 1
    kept = []
    last = 0
    for event in whole.events:
        if selection.has_number(number) and selection.has_time(event.at):
            kept.append(event)
            last = len(kept) if isinstance(event, Reply) else last
        number += isinstance(event, Reply)
    return replace(whole, events=tuple(kept[:last]) if selection.calls else tuple(kept))


def concat(
    paths: Sequence[Path], out: Path, format_: str = "auto", warn: Warn = quiet, overwrite: bool = True
) -> WrittenCalls:
    """Write the calls of all recordings as one, in time order. If a call has no time, the files are joined in the order
    given, and `warn` says so. Raises InputError."""
    _not_over(paths, out)
    logs = [list(read_calls(path, format_, warn)) for path in paths]
    timed = all(call.timestamp is not None for log in logs for call in log)
    if not timed:
        warn("some calls have no timestamp: recordings are joined in the order given")
    in_order = merge(*logs, key=lambda call: call.start) if timed else join_in_order(logs)
    joiner = ThreadJoiner()
    titles = [title_of(path, format_) for path in paths]
    sources, licences = dict.fromkeys(one.source for one in titles), dict.fromkeys(one.licence for one in titles)
    title = Title(out.stem, "; ".join(filter(None, sources)), "; ".join(filter(None, licences)))
    content: Content = "digest" if all(content_of(path) == "digest" for path in paths) else "keep"
    records = call_recording.records(title, map(joiner.call, in_order), BlockWriter())
    _write(records, open_whole(out, overwrite, private_mode(paths)), content)
    total = sum(map(len, logs))
    return WrittenCalls(total, total)


def title_of(path: Path, format_: str = "auto") -> Title:
    """What the header of a recording of calls says; for any other file, its name."""
    return our_calls.title(path) if detect(path, format_, "request-log")[0] == "calls" else Title(path.stem)


def content_of(path: Path) -> Content:
    """What the header of a cachecost recording says of its content; any other file keeps it."""
    if not path.is_file():
        return "keep"
    with open_input(path) as stream:
        first = parse_json(next((line for line in stream if line.strip()), b""))
    return "digest" if isinstance(first, dict) and first.get("content") == "digest" and "format" in first else "keep"


def _write(records: Iterator[dict[str, Any]], file: AbstractContextManager[BinaryIO], content: Content) -> None:
    """Write the lines of a recording, whole or not at all. Raises CannotWrite, and what `records` raises."""
    with file as stream:
        stream.write(encode_record({**next(records), "content": content}))
        stream.writelines(map(encode_record, records))


def _not_over(paths: Iterable[Path], out: Path) -> None:
    if out.exists() and any(out.samefile(path) for path in paths):
        raise InputError([Fault(str(out), "would overwrite itself: choose another place")])


MOST_OPEN = 64
WITHOUT = "without-session"
"""The file of calls without a session: they may be one conversation, or several."""
MOST_FAULTS = 20


class _LogLine(msgspec.Struct):
    """The fields that decide where a line goes; the rest is skipped."""

    request: msgspec.Raw
    session: str | None = None
    timestamp: str | None = None


def split(log: Path, folder: Path, warn: Warn = quiet) -> int:
    """Write one file per session into `folder`, all of them or none. Returns the number of files. Raises InputError if
    the folder exists, if the file is no request log, and with all damaged lines."""
    if folder.exists():
        raise InputError([Fault(str(folder), "already exists: choose another place")])
    if (name := detect(log, "auto", "request-log")[0]) != "request-log":
        raise InputError([Fault(str(log), f"expected a request log; got {name}, which cannot be split by line")])
    folder.parent.mkdir(parents=True, exist_ok=True)
    decoder, faults, untimed = msgspec.json.Decoder(_LogLine), list[Fault](), 0
    with replace_when_done(folder) as part:
        part.mkdir(0o700 if private_mode([log]) else 0o777)
        with closing(_SessionFiles(part)) as files:
            for number, line in byte_lines(log):
                if len(faults) == MOST_FAULTS:
                    break
                if not line.strip():
                    continue
                try:
                    row = decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    faults.append(Fault(str(log), f"damaged line: {error}", number))
                else:
                    untimed += row.timestamp is None
                    files.write(safe_name(row.session) if row.session else WITHOUT, line)
        if faults:
            raise InputError(faults)
        if untimed:
            calls = count_text(untimed, "call")
            warn(f"{log}: {calls} without a timestamp: in their session's file they are 2 s apart")
    return sum(1 for _ in folder.iterdir())


class _SessionFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[str, BinaryIO] = OrderedDict()

    def close(self) -> None:
        for file in self._open.values():
            file.close()

    def write(self, name: str, line: bytes) -> None:
        if name not in self._open:
            self._open[name] = (self._folder / f"{name}.jsonl").open("ab")
        self._open.move_to_end(name)
        self._open[name].write(line if line.endswith(b"\n") else line + b"\n")
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)[1].close()
