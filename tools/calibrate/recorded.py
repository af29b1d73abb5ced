"""Recorded calls with their bills, in any format that is read, and which of them no fit may use."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cachecost.analysis.fidelity.validation import is_held_out
from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.readers.detect import read_calls
from tools.calibrate.samples import is_emptied, row_name


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call, the name of its recording, and its billed input tokens."""

    call: Call
    name: str
    billed: int

    @property
    def is_held_out(self) -> bool:
        return is_held_out(self.name)


def read_recorded(log: Path) -> Iterator[Recorded]:
    """The calls of a log whose bill tells what their content costs; none, with a note on stderr, if it is damaged."""
    lines = log.read_text(encoding="utf-8").splitlines()
    for call in read_calls_of(log):
        row = _row(lines, call)
        billed = call.billed.total_input if call.billed else 0
        if billed and not row.get("redacted") and not _is_emptied(call):
            yield Recorded(call, row_name(row, log), billed)


def read_calls_of(log: Path) -> list[Call]:
    """The calls of a log; none, with a note on stderr, if it is damaged."""
    try:
        return list(read_calls(log, "auto", lambda _: None))
    except InputError as error:
        sys.stderr.write(f"left out: {error}\n")
        return []


def _is_emptied(call: Call) -> bool:
    """Whether the recorder took the signature out of a thinking block: the bill holds reasoning that is not there."""
    blocks = (block for message in call.request.thread.messages() for block in message.blocks)
    return any(is_emptied(block) for block in blocks)


def _row(lines: Sequence[str], call: Call) -> Mapping[str, Any]:
    try:
        found = json.loads(lines[call.line - 1]) if 0 < call.line <= len(lines) else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def source_of(name: str) -> str:
    """Who recorded a file of this name: "owner+repository" before "__", else its first one or two words."""
    source, found, _ = name.partition("__")
    if found:
        return source
    words = re.match(r"[a-z]+(?:-[a-z]{3,})?", name)
    return words[0] if words else name


def is_unseen_source(source: str) -> bool:
    """Whether no margin is fitted on a source: calls of one source are alike, so that only others tell whether a margin
    holds. Those of two in three digests, which recorded a third of the calls."""
    return int(sha256(source.encode()).hexdigest(), 16) % 3 != 2
