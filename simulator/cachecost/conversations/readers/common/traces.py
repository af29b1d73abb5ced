"""What exports of tracers have in common: entries with a parent, failures told in words, contents of any form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.base.times import seconds
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.dialects import Body
from cachecost.conversations.readers.common.parsed_call import CallBuilder, ParsedCall
from cachecost.prompts.blocks import compact
from cachecost.prompts.wire import NotAMessage

FAILED = 500
"""The status of a failure whose own the trace does not tell."""
STATUS = re.compile(r"(?:Error code|status_code|HTTP)\W{0,3}([45]\d\d)\b")
"""How the SDKs' errors, as texts, tell it."""


def status_in(error: str) -> int:
    """The HTTP status that the text of an error names."""
    found = STATUS.search(error)
    return int(found[1]) if found else FAILED


def as_text(value: Any) -> list[Body]:
    """The messages of an input that is none: one text, so that the same input is the same prompt."""
    text = value if isinstance(value, str) else compact(value).decode()
    return [{"role": "user", "content": text}]


def first_token(start: str | None, first: str | None) -> float:
    """Seconds from one ISO 8601 time to another; 0 where they are not told or the wrong way round."""
    return max(0.0, round(seconds(first) - seconds(start), 6)) if start and first else 0.0


@dataclass(slots=True)
class Tracing:
    """An export while it is read. `kind` is the word for what is no model call: "run_type", "type"."""

    builder: CallBuilder
    kind: str
    entries: int = 0
    notes: Counter[str] = field(default_factory=Counter)
    _calls: list[tuple[RecordedCall, str]] = field(default_factory=list)

    def add(self, parsed: ParsedCall, parent: str) -> None:
        """One model call; `parent` is the id of the entry around it."""
        if parsed.usage is None and parsed.status is None:
            self.notes["calls without usage"] += 1
        self._calls.append((self.builder.build(parsed), parent))

    def leave_out(self, kind: str) -> None:
        """One entry that is no model call."""
        self.notes[f"entries of {self.kind} '{kind}' that are no model call: left out"] += 1

    def refuse(self, entry: JsonObject, fault: NotAMessage) -> None:
        entry.faults.append(Fault(entry.file, f"{entry.place}{fault}", entry.line))

    def calls(self) -> list[RecordedCall]:
        """The calls by when they began, each once: exports have no order and pages of them overlap."""
        own = _drop_repeated(self._calls)
        if len(own) < len(self._calls):
            self.notes["entries with the id of another: left out"] += len(self._calls) - len(own)
        told = _drop_nested(own)
        if len(told) < len(own):
            self.notes["model calls told twice, by one around another: left out"] += len(own) - len(told)
        return sorted(told, key=attrgetter("start"))

    def report(self, path: Path, warn: Warn) -> None:
        """What was left out, and what the export does not tell."""
        for note, number in self.notes.items():
            warn(f"{path}: {number} {note}")


def _drop_repeated(found: Iterable[tuple[RecordedCall, str]]) -> list[tuple[RecordedCall, str]]:
    """One entry an id: that with a bill, else the first."""
    kept: dict[object, tuple[RecordedCall, str]] = {}
    for number, one in enumerate(found):
        key = one[0].id or number
        if key not in kept or (kept[key][0].billed is None and one[0].billed is not None):
            kept[key] = one
    return list(kept.values())


def _drop_nested(found: Sequence[tuple[RecordedCall, str]]) -> list[RecordedCall]:
    """Where a framework and an SDK both trace a call, one stands inside the other: the outer one with a bill counts,
    for it has what the framework knows; without a bill it is only a frame for those inside."""
    by_id = {call.id: call for call, _ in found if call.id}
    frames = {parent for call, parent in found if parent in by_id and by_id[parent].billed is None}
    inner = {parent for _, parent in found if parent in by_id} - frames
    return [call for call, parent in found if call.id not in frames and parent not in inner]
