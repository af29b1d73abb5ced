"""Exports of tracers. A format is a `TraceFormat`: the paths at which its entries have what a call is made of.

A path is "a/b" for b inside a; on its way JSON that stands as text is parsed, as databases and blob storage write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.times import seconds
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.apis.formats import Body, answer_of, body_from, status_in
from cachecost.conversations.readers.call_builder import CallBuilder, errors_at, first_keys, objects, parse_json_text
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.blocks import compact
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

Paths = tuple[str, ...]
View = Mapping[str, Any]
NOT_MESSAGES = "whose input is not a list of messages: read as one text"


def values_at(view: View, paths: Paths) -> Iterator[Any]:
    """What stands at each of the paths that has a value: neither null nor ""."""
    for path in paths:
        value: Any = view
        for name in path.split("/"):
            outer = parse_json_text(value)
            value = outer.get(name) if isinstance(outer, Mapping) else None
        if value is not None and value != "":
            yield value


def value_at(view: View, path: str, *others: str) -> Any:
    """The value at the first path that has one, parsed where it is JSON in a text; None where none has."""
    return parse_json_text(next(values_at(view, (path, *others)), None))


def text_at(view: View, paths: Paths) -> str:
    """The first text or number at the paths, as text; "" where there is none."""
    return next((str(value) for value in values_at(view, paths) if isinstance(value, (str, int))), "")


def object_within(view: View, *paths: str) -> View:
    """The first object with anything in it at the paths; an empty one where there is none."""
    found = map(parse_json_text, values_at(view, paths))
    return next((value for value in found if isinstance(value, Mapping) and value), {})


def _usage_within(view: View, paths: Paths) -> Usage | None:
    counts = object_within(view, *paths)
    return usage_from(counts) if counts else None


def text_message(value: Any) -> list[Body]:
    """The messages of an input that is none: one text, so that the same input is the same prompt."""
    return [{"role": "user", "content": value if isinstance(value, str) else compact(value).decode()}]


def moment_of(entry: JsonObject, *names: str, required: bool = False) -> str | None:
    """The ISO 8601 time under the first of the names that is there; what is no time becomes an error."""
    name = next((name for name in names if entry.data.get(name)), names[0])
    if required and not entry.data.get(name):
        entry.time(name)
    return entry.moment(name)


def seconds_between(start: str | None, first: str | None) -> float:
    return max(0.0, round(seconds(first) - seconds(start), 6)) if start and first else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFormat:
    """What a format's entries are, and where they have what a call is made of; of several paths, the first counts.

    The first object of a file has all of one of `keys`. An entry is a model call if its field `kind` has one of the
    values `kinds`. `request`, `response` and `counts` (the usage) are of any API; where they need more than a path,
    `body` makes the Messages body, `answer` the blocks that came back, `usage` the bill; all raise NotAMessage.
    `entries` yields those of a row, `view` is what the paths begin at. `skipped` is why an entry is no call: (noun,
    reason). `failed` is whether a call without a bill failed, `start` is ISO 8601, from which `first_token_s` counts.
    """

    expected: str
    kind: str
    kinds: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...] = ()
    model: Paths
    provider: Paths = ()
    session: Paths = ()
    parent: Paths = ()
    error: Paths = ("error",)
    id: Paths = ("id",)
    request: Paths = ()
    response: Paths = ()
    counts: Paths = ()
    start: Callable[[JsonObject], str | None]
    first_token_s: Callable[[JsonObject, str | None], float] = lambda entry, start: 0.0
    entries: Callable[[JsonObject], Iterable[JsonObject]] = lambda row: [row]
    body: Callable[[View, str, ReaderNotes], Body] | None = None
    answer: Callable[[View], list[Body] | str] | None = None
    usage: Callable[[JsonObject, View, ReaderNotes], Usage | None] | None = None
    failed: Callable[[View], bool] = lambda view: bool(view.get("error"))
    view: Callable[[JsonObject], View] = attrgetter("data")
    skipped: Callable[[View], tuple[str, str] | None] = lambda view: None

    def sniff(self, head: bytes) -> str | None:
        """Why the first bytes of a file look like this format; None if they do not."""
        found = first_keys(head)
        known = next((keys for keys in self.keys if found.issuperset(keys)), None)
        return f'its first object has a "{known[0]}" and a "{known[-1]}"' if known else None

    def calls(self, path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
        faults: list[Fault] = []
        builder, notes = CallBuilder(keep_content), ReaderNotes()
        found = list[tuple[Call, str]]()
        for row in objects(path, faults, warn, self.expected):
            for entry in self.entries(row):
                with errors_at(entry):
                    found += self._calls(entry, builder, notes)
        if faults:
            raise InputError(faults)
        calls = _distinct_calls(found, notes)
        notes.report(path, warn)
        yield from calls

    def _calls(self, entry: JsonObject, builder: CallBuilder, notes: ReaderNotes) -> Iterator[tuple[Call, str]]:
        kind = entry.text(self.kind)
        if kind.lower() not in self.kinds:
            notes.skip("entry", f"{self.kind} '{kind}' is not a model call")
            return
        view = self.view(entry)
        model, host = parse_model_name(text_at(view, self.model), text_at(view, self.provider))
        if skipped := self.skipped(view) or (None if model else ("model call", "no model name")):
            notes.skip(*skipped)
            return
        body = self.body(view, model, notes) if self.body else body_from(value_at(view, *self.request))
        usage = self.usage(entry, view, notes) if self.usage else _usage_within(view, self.counts)
        start = self.start(entry)
        failed = usage is None and self.failed(view)
        answer_at = self.answer or (lambda view: answer_of(value_at(view, *self.response)))
        answer = [] if failed else answer_at(view)
        if usage is None and not failed:
            notes.add("call", "without usage")
        call = builder.build(
            {**body, "model": model},
            usage=usage,
            answer=answer,
            timestamp=start,
            first_token_s=self.first_token_s(entry, start),
            host=host,
            status=status_in(text_at(view, self.error)) if failed else None,
            session=text_at(view, self.session),
            id=text_at(view, self.id),
            line=entry.line or 0,
        )
        yield call, text_at(view, self.parent)


def _distinct_calls(found: list[tuple[Call, str]], notes: ReaderNotes) -> list[Call]:
    """The calls by when they began, each once: exports have no order and pages of them overlap."""
    kept: dict[object, tuple[Call, str]] = {}
    for number, one in enumerate(found):
        key = one[0].id or number
        if key not in kept or (kept[key][0].billed is None and one[0].billed is not None):
            kept[key] = one
    own = list(kept.values())
    notes.skip("entry", "same id as another entry", len(found) - len(own))
    by_id = {call.id: call for call, _ in own if call.id}
    frames = {parent for call, parent in own if parent in by_id and by_id[parent].billed is None}
    inner = {parent for _, parent in own if parent in by_id} - frames
    calls = [call for call, parent in own if call.id not in frames and parent not in inner]
    notes.skip("model call", "recorded twice, by nested entries", len(own) - len(calls))
    return sorted(calls, key=attrgetter("start"))
