"""Recordings made of recordings: one after another, or a part of one.

What is written are our own formats. A recording whose header said that it holds no content says so again; its digests
stay under the key they were made with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError, nearest
from cachecost.conversations import call_recording, recording
from cachecost.conversations.block_table import BlockWriter
from cachecost.conversations.call_recording import Title
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.checked import Warn, opened, parsed, quiet
from cachecost.conversations.model import Conversation, Reply, Results
from cachecost.conversations.readers.call_recording import reader as our_calls
from cachecost.conversations.readers.detect import CONVERSATIONS, detect, read_calls, read_conversation
from cachecost.conversations.recording import Content, encoded, replacing
from cachecost.conversations.replanning import Retelling
from cachecost.conversations.start_times import SECONDS_BETWEEN_UNTIMED

RANGE = re.compile(r"(\d+)(?:(-)(\d*))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cut:
    """Which calls stay: those that every wish holds for.

    `calls` are ranges of numbers, from 1 and with both ends (None: the last); `start` <= time < `end` in seconds since
    the epoch.
    """

    calls: tuple[tuple[int, int | None], ...] = ()
    start: float | None = None
    end: float | None = None
    session: str | None = None

    @property
    def is_by_time(self) -> bool:
        return self.start is not None or self.end is not None

    def has_number(self, number: int) -> bool:
        return not self.calls or any(first <= number <= (last or number) for first, last in self.calls)

    def has_time(self, at: float) -> bool:
        return (self.start is None or self.start <= at) and (self.end is None or at < self.end)


@dataclass(frozen=True, slots=True)
class Written:
    """How many calls a recording has now, of how many."""

    calls: int
    of: int


def ranges(text: str) -> tuple[tuple[int, int | None], ...]:
    """ "10-20", "7", "10-", "1-3,7": numbers from 1. Raises ValueError."""
    return tuple(map(_range, text.split(",")))


def _range(text: str) -> tuple[int, int | None]:
    found = RANGE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"expected numbers like 10-20, 7 or 10-; got '{text}'")
    first = int(found[1])
    last = int(found[3]) if found[3] else None if found[2] else first
    if first < 1 or (last is not None and last < first):
        raise ValueError(f"expected numbers from 1, the smaller first; got '{text}'")
    return first, last


# ----------------------------------------------------------------------------------------------- cut


def cut(path: Path, out: Path, wish: Cut, format_: str = "auto", warn: Warn = quiet, overwrite: bool = True) -> Written:
    """Write the part of a recording that `wish` describes.

    Raises InputError, also where nothing is in it; without `overwrite`, where `out` is there with other content.
    """
    _not_over([path], out)
    place = _Place(out, overwrite)
    name, _ = detect(path, format_, "request-log")
    if name in CONVERSATIONS:
        return _cut_conversation(path, place, wish, format_, warn)
    return _cut_calls(path, place, wish, format_, warn)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a recording goes, and whether what is there may be lost."""

    out: Path
    overwrite: bool


def _cut_calls(path: Path, place: _Place, wish: Cut, format_: str, warn: Warn) -> Written:
    chosen = _Chosen(path, wish)
    told = chosen.of(read_calls(path, format_, warn))
    _write_calls(title_of(path, format_), told, place, content_of(path))
    return Written(chosen.kept, chosen.seen)


class _Chosen:
    """Chooses calls while they are read, and counts them."""

    def __init__(self, path: Path, wish: Cut) -> None:
        self.path = path
        self.wish = wish
        self.seen = 0
        self.kept = 0
        self.sessions: set[str] = set()

    def of(self, calls: Iterable[RecordedCall]) -> Iterator[RecordedCall]:
        for call in calls:
            self.seen += 1
            self.sessions.add(call.session)
            if self._has(call):
                self.kept += 1
                yield call
        if not self.kept:
            raise InputError([Fault(str(self.path), self._why_empty())])

    def _has(self, call: RecordedCall) -> bool:
        """Whether it stays; its number is that in the file, where calls come in another order."""
        if self.wish.is_by_time and call.timestamp is None:
            raise InputError([Fault(str(self.path), "this call has no time: cut by calls or session", call.line)])
        of_session = self.wish.session is None or call.session == self.wish.session
        return of_session and self.wish.has_number(call.number or self.seen) and self.wish.has_time(call.start)

    def _why_empty(self) -> str:
        if self.wish.session is not None and self.wish.session not in self.sessions:
            known = sorted(self.sessions - {""})
            told = nearest(self.wish.session, known) if known else "; no call names its session"
            return f"no call is of session '{self.wish.session}'{told}"
        return f"no call is in the cut; the recording has {self.seen}"


def _cut_conversation(path: Path, place: _Place, wish: Cut, format_: str, warn: Warn) -> Written:
    whole = read_conversation(path, format_, warn)
    if wish.session is not None:
        raise InputError([Fault(str(path), "is one conversation, which names no sessions: cut by calls or time")])
    part = cut_conversation(whole, wish)
    if not part.replies:
        raise InputError([Fault(str(path), f"no call is in the cut; the conversation has {len(whole.replies)}")])
    if isinstance(part.events[0], Results):
        warn(f"{path}: the cut begins with results of tools whose calls are not in it")
    _write(recording.records(part, BlockWriter()), place, content_of(path))
    return Written(len(part.replies), len(whole.replies))


def cut_conversation(whole: Conversation, wish: Cut) -> Conversation:
    """The events from the input of the first call to the last call that stay; what was said before is not sent."""
    number = 1
    kept = []
    last = 0
    for event in whole.events:
        if wish.has_number(number) and wish.has_time(event.at):
            kept.append(event)
            last = len(kept) if isinstance(event, Reply) else last
        number += isinstance(event, Reply)
    return replace(whole, events=tuple(kept[:last]) if wish.calls else tuple(kept))


# -------------------------------------------------------------------------------------------- concat


def concat(
    paths: Sequence[Path], out: Path, format_: str = "auto", warn: Warn = quiet, overwrite: bool = True
) -> Written:
    """Write the calls of all recordings as one, in the order of their times.

    Where a call has no time, one file after the other as given, which is said to `warn`. Raises InputError.
    """
    _not_over(paths, out)
    logs = [list(read_calls(path, format_, warn)) for path in paths]
    timed = all(call.timestamp is not None for log in logs for call in log)
    if not timed:
        warn("not every call has a time: one recording after the other, as given")
    in_order = merge(*logs, key=lambda call: call.start) if timed else _one_after_another(logs)
    one_tree = Retelling()
    titles = [title_of(path, format_) for path in paths]
    title = Title(out.stem, _all_of(one.source for one in titles), _all_of(one.licence for one in titles))
    content: Content = "digest" if all(content_of(path) == "digest" for path in paths) else "keep"
    _write_calls(title, map(one_tree.call, in_order), _Place(out, overwrite), content)
    total = sum(map(len, logs))
    return Written(total, total)


def _one_after_another(logs: Iterable[Sequence[RecordedCall]]) -> Iterator[RecordedCall]:
    """The calls of all recordings; one that tells no time begins when the one before it has ended."""
    last: float | None = None
    for log in logs:
        untimed = all(call.timestamp is None for call in log)
        later = last + SECONDS_BETWEEN_UNTIMED - log[0].start if log and untimed and last is not None else 0.0
        for call in log:
            yield replace(call, start=call.start + later)
            last = call.start + later


def _all_of(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(text for text in texts if text))


# ------------------------------------------------------------------------------------------ headers


def title_of(path: Path, format_: str = "auto") -> Title:
    """What the header says, of a recording of calls; else the name of the file."""
    return our_calls.title(path) if detect(path, format_, "request-log")[0] == "calls" else Title(path.stem)


def content_of(path: Path) -> Content:
    """What the header of a recording of ours says of its content; any other file keeps it."""
    if not path.is_file():
        return "keep"
    with opened(path) as stream:
        first = parsed(next((line for line in stream if line.strip()), b""))
    return "digest" if isinstance(first, dict) and first.get("content") == "digest" and "format" in first else "keep"


def _write_calls(title: Title, calls: Iterable[RecordedCall], place: _Place, content: Content) -> None:
    _write(call_recording.records(title, calls, BlockWriter()), place, content)


def _write(records: Iterator[dict[str, Any]], place: _Place, content: Content) -> None:
    """Write the lines of a recording, whole or not at all. Raises CannotWrite, and what `records` raises."""
    with replacing(place.out, place.overwrite) as stream:
        stream.write(encoded({**next(records), "content": content}))
        stream.writelines(map(encoded, records))


def _not_over(paths: Iterable[Path], out: Path) -> None:
    if out.exists() and any(out.samefile(path) for path in paths):
        raise InputError([Fault(str(out), "would be written over itself: choose another place")])
