"""A request log that is larger than memory, as one file a session: lines are copied as they are, one at a time."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import BinaryIO

import msgspec

from cachecost.base.atomic_files import replace_when_done, safe_name
from cachecost.base.errors import Fault, InputError
from cachecost.conversations.input_files import Warn, byte_lines, quiet
from cachecost.conversations.readers.detect import detect

MOST_OPEN = 64
WITHOUT = "without-session"
"""The file of calls that name no session: they may be one conversation, or several."""
MOST_FAULTS = 20


class _LogLine(msgspec.Struct):
    """What decides where a line goes; the rest of it is only passed over."""

    request: msgspec.Raw
    session: str | None = None
    timestamp: str | None = None


def split(log: Path, folder: Path, warn: Warn = quiet) -> int:
    """Write a file a session into `folder`, which is whole or not there. How many files it has.

    Raises InputError for a folder that is there already, for a file that is no request log, and with the damaged lines.
    """
    if folder.exists():
        raise InputError([Fault(str(folder), "is there already: choose another place")])
    if (name := detect(log, "auto", "request-log")[0]) != "request-log":
        raise InputError([Fault(str(log), f"expected a request log; got {name}, whose lines do not stand alone")])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with replace_when_done(folder) as part:
        part.mkdir()
        _copy_lines(log, part, warn)
    return sum(1 for _ in folder.iterdir())


def _copy_lines(log: Path, folder: Path, warn: Warn) -> None:
    """Each line in the file of its session."""
    decoder, faults, untimed = msgspec.json.Decoder(_LogLine), list[Fault](), 0
    with _SessionFiles(folder) as files:
        for number, line in byte_lines(log):
            if not line.strip():
                continue
            try:
                row = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                faults.append(Fault(str(log), f"damaged line: {error}", number))
                if len(faults) == MOST_FAULTS:
                    break
                continue
            untimed += row.timestamp is None
            files.write(safe_name(row.session) if row.session else WITHOUT, line)
    if faults:
        raise InputError(faults)
    if untimed:
        warn(f"{log}: {untimed:,} calls without a time: in their session's file they come 2 s after the one before")


class _SessionFiles:
    """Files of a folder that grow; the most recent are open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[str, BinaryIO] = OrderedDict()

    def __enter__(self) -> _SessionFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()

    def write(self, name: str, line: bytes) -> None:
        if name not in self._open:
            self._open[name] = (self._folder / f"{name}.jsonl").open("ab")
        self._open.move_to_end(name)
        self._open[name].write(line if line.endswith(b"\n") else line + b"\n")
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)[1].close()
