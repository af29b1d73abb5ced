"""What a file shows before it is read (the keys it begins with, when its calls start), and what a reader reports of it:
entries that it skipped, and what calls lack."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from cachecost.base.formatting import count_text
from cachecost.conversations.input_files import BOM, Warn
from cachecost.conversations.start_times import StartTimes, Times, lines_in_place
from cachecost.prompts.request import NotAMessage

FIRST = re.compile(rb'\s*\{\s*"timestamp"\s*:\s*"([^"\\]*)"\s*[,}]')
"""A line that begins with its time, as most do: the rest of it is not looked at."""
SOMETHING = re.compile(rb"\S")


class _LineTimes(msgspec.Struct):
    """The fields of a line that show when its call began; in our recordings only lines with `call` are calls."""

    timestamp: str | None = None
    start_s: float | None = None
    call: int | None = None


class _TraceLine(msgspec.Struct):
    timestamp: float


def _start_times(name: str, path: Path) -> Iterator[float]:
    """When the calls of a file of the format `name` start, until a line is not clear."""
    starts = StartTimes()
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_TraceLine if name == "mooncake" else _LineTimes)
    try:
        for line in lines_in_place(path):
            first = FIRST.match(line.buffer, line.start, line.stop) if name == "request-log" else None
            if first:
                yield starts.next(first[1].decode())
            elif SOMETHING.search(line.buffer, line.start, line.stop):
                timed = decoder.decode(memoryview(line.buffer)[line.start : line.stop])
                if isinstance(timed, _TraceLine):
                    yield timed.timestamp
                elif name == "request-log" or timed.call is not None:
                    yield starts.next(timed.timestamp, timed.start_s if name == "calls" else None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, NotAMessage):
        return


TIMES: Mapping[str, Times] = {name: partial(_start_times, name) for name in ("request-log", "calls", "mooncake")}
"""When the calls of a file start, by the name of its format; those of all other formats are held in memory anyway."""


class ReaderNotes:
    """Counts notes and reports each kind in one line, in the order in which the kinds first occurred."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def skip(self, noun: str, reason: str, times: int = 1) -> None:
        """Count skipped entries: "skipped 2 entries: no model name"."""
        self._counts["skipped ", noun, f": {reason}"] += times

    def add(self, noun: str, what: str, times: int = 1) -> None:
        """Count entries that were read, but not whole: "2 calls without usage"."""
        self._counts["", noun, f" {what}"] += times

    def report(self, path: Path | str, warn: Warn) -> None:
        """Pass each kind that occurred to `warn`."""
        for (verb, noun, rest), times in self._counts.items():
            if times:
                warn(f"{path}: {verb}{count_text(times, noun)}{rest}")


TOKENS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]:]', re.DOTALL)
DEEPER = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def top_keys(head: bytes) -> Iterator[str]:
    """The keys of the JSON object that `head` begins with, as far as it goes: its end may be cut off."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith(b"{"):
        return
    depth, last = 0, b""
    for found in TOKENS.finditer(text):
        token = found[0]
        depth += DEEPER.get(token, 0)
        if token == b":" and depth == 1:
            yield last[1:-1].decode("utf-8", "replace")
        if token == b'"' or depth < 1:  # a text that is cut off, or the end of the object
            return
        last = token


def sniff_first_line(reason: str, keys: Set[str], *signs: bytes) -> Callable[[bytes], str | None]:
    """The `sniff` of a format whose first line is an object with these keys and, where there are any, one of `signs`:
    it returns the `reason`."""

    def sniff(head: bytes) -> str | None:
        first = head.removeprefix(BOM).lstrip().partition(b"\n")[0]
        is_one = keys <= set(top_keys(first)) and (not signs or any(sign in first for sign in signs))
        return reason if is_one else None

    return sniff
