"""What exports of tracers have in common: entries with a parent, failures told in words, contents of any form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
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
from cachecost.conversations.readers.common.json_documents import must_hold, objects
from cachecost.conversations.readers.common.notes import ReaderNotes
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
    """An export while it is read. An entry is a model call if its field `kind` has one of the values `kinds`."""

    builder: CallBuilder
    kind: str
    kinds: tuple[str, ...]
    notes: ReaderNotes = field(default_factory=ReaderNotes)
    _found: list[tuple[RecordedCall, str]] = field(default_factory=list)

    def read(
        self, path: Path, expected: str, entries_of: EntriesOf, add_call: AddCall, warn: Warn
    ) -> list[RecordedCall]:
        """The calls of a file. `entries_of` yields the entries in a row, `add_call` adds one that is a model call.

        Raises InputError with every error. What was skipped, and what the export does not contain, goes to `warn`.
        """
        faults: list[Fault] = []
        rows = 0
        for row in objects(path, faults, warn):
            rows += 1
            for entry in entries_of(row):
                self._take(entry, add_call)
        must_hold(path, expected, rows, faults)
        calls = self._calls()
        self.notes.report(path, warn)
        return calls

    def _take(self, entry: JsonObject, add_call: AddCall) -> None:
        kind = entry.text(self.kind)
        if kind.lower() not in self.kinds:
            self.notes.skip("entry", f"{self.kind} '{kind}' is not a model call")
            return
        try:
            add_call(self, entry)
        except NotAMessage as fault:
            entry.faults.append(Fault(entry.file, f"{entry.place}{fault}", entry.line))

    def add(self, told: ParsedCall, parent: str) -> None:
        """One model call; `parent` is the id of the entry around it."""
        if told.usage is None and told.status is None:
            self.notes.add("call", "without usage")
        self._found.append((self.builder.build(told), parent))

    def _calls(self) -> list[RecordedCall]:
        """The calls by when they began, each once: exports have no order and pages of them overlap."""
        own = _drop_repeated(self._found)
        self.notes.skip("entry", "same id as another entry", len(self._found) - len(own))
        calls = _drop_nested(own)
        self.notes.skip("model call", "recorded twice, by nested entries", len(own) - len(calls))
        return sorted(calls, key=attrgetter("start"))


EntriesOf = Callable[[JsonObject], Iterable[JsonObject]]
AddCall = Callable[[Tracing, JsonObject], None]


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
