"""Splits a request log, also one larger than memory, into one file per session. Lines are copied unchanged."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import BinaryIO

import msgspec

from cachecost.base.atomic_files import private_mode, replace_when_done, safe_name
from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text
from cachecost.conversations.input_files import Warn, byte_lines, quiet
from cachecost.conversations.readers.detect import detect

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
    """Write one file per session into `folder`, all of them or none. Returns the number of files.

    Raises InputError if the folder exists, if the file is no request log, and with all damaged lines.
    """
    if folder.exists():
        raise InputError([Fault(str(folder), "already exists: choose another place")])
    if (name := detect(log, "auto", "request-log")[0]) != "request-log":
        raise InputError([Fault(str(log), f"expected a request log; got {name}, which cannot be split by line")])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with replace_when_done(folder) as part:
        part.mkdir(0o700 if private_mode([log]) else 0o777)
        _copy_lines(log, part, warn)
    return sum(1 for _ in folder.iterdir())


def _copy_lines(log: Path, folder: Path, warn: Warn) -> None:
    """Copy each line to the file of its session."""
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
        warn(f"{log}: {count_text(untimed, 'call')} without a timestamp: in their session's file they are 2 s apart")


class _SessionFiles:
    """Files of a folder that are appended to; the most recent are open."""

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
