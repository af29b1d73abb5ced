"""Sorts the calls of a recording by start time; they were written as they ended."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import msgspec

from cachecost.base.atomic_files import open_replacement
from cachecost.conversations.block_table import BlockWriter
from cachecost.conversations.call_recording import records
from cachecost.conversations.readers.call_recording import reader as recording
from cachecost.conversations.recording import encode_record
from cachecost.conversations.start_times import parse_time
from cachecost.prompts.wire import NotAMessage


class _LineTime(msgspec.Struct):
    timestamp: str | None = None


def put_in_order(path: Path) -> bool:
    """Sort the lines of a log by time; returns whether anything moved.

    A log with a line without a time stays unchanged. Raises OSError.
    """
    with path.open("rb") as stream:
        places = list(_places(stream))
        times = [at for at, _, _ in places]
        if None in times or all(one <= other for one, other in pairwise(times)):  # type: ignore[operator]
            return False
        _rewrite(path, stream, sorted(places))  # of equal times, the first one written
    return True


def _places(stream: BinaryIO) -> Iterator[tuple[float | None, int, int]]:
    """(time, offset, length) of each line."""
    offset = 0
    for line in stream:
        if line.strip():
            yield _time(line), offset, len(line)
        offset += len(line)


def _time(line: bytes) -> float | None:
    try:
        stamp = msgspec.json.decode(line, type=_LineTime).timestamp
        return None if stamp is None else parse_time(stamp)
    except (msgspec.DecodeError, NotAMessage):
        return None


def _rewrite(path: Path, stream: BinaryIO, places: list[tuple[float | None, int, int]]) -> None:
    with open_replacement(path, _mode(path)) as sorted_:
        for _, offset, length in places:
            stream.seek(offset)
            sorted_.write(stream.read(length).rstrip(b"\r\n") + b"\n")


def put_recording_in_order(path: Path) -> bool:
    """As `put_in_order`, for a recording without content. Raises OSError, InputError."""
    calls = list(recording.calls(path))
    if all(one.start <= other.start for one, other in pairwise(calls)):
        return False
    lines = records(recording.title(path), sorted(calls, key=lambda call: call.start), BlockWriter())
    with open_replacement(path, _mode(path)) as stream:
        stream.write(encode_record({**next(lines), "content": "digest"}))
        stream.writelines(map(encode_record, lines))
    return True


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777
