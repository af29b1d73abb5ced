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
from cachecost.conversations.readers.apis.formats import Body, status_in
from cachecost.conversations.readers.call_builder import CallBuilder, ErrorsAt, objects, parse_json_text
from cachecost.conversations.readers.common.peek import ReaderNotes
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


def text_message(value: Any) -> list[Body]:
    """The messages of an input that is none: one text, so that the same input is the same prompt."""
    return [{"role": "user", "content": value if isinstance(value, str) else compact(value).decode()}]


def moment_of(entry: JsonObject, *names: str, required: bool = False) -> str | None:
    """The ISO 8601 time under the first of the names that is there; what is no time becomes an error."""
    name = next((name for name in names if entry.data.get(name)), names[0])
    if required and not entry.data.get(name):
        entry.time(name)
    return entry.moment(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFormat:
    """What a format's entries are, and where they have what a call is made of; of several paths, the first counts.

    An entry is a model call if its field `kind` has one of the values `kinds`. `entries` yields those of a row, `view`
    is what the paths begin at. `skipped` is why an entry is no call: (noun, reason). `body` makes the Messages body
    and a note for the user or "", `answer` the blocks that came back, `usage` the bill; all raise NotAMessage. `failed`
    is whether a call without a bill failed, `start` and `first_token` are ISO 8601.
    """

    expected: str
    kind: str
    kinds: tuple[str, ...]
    model: Paths
    provider: Paths
    session: Paths
    parent: Paths
    error: Paths
    start: Callable[[JsonObject], str | None]
    first_token: Callable[[JsonObject], str | None]
    entries: Callable[[JsonObject], Iterable[JsonObject]]
    body: Callable[[View, str], tuple[Body, str]]
    answer: Callable[[View], list[Body] | str]
    usage: Callable[[JsonObject, View, ReaderNotes], Usage | None]
    failed: Callable[[View], bool]
    view: Callable[[JsonObject], View] = attrgetter("data")
    skipped: Callable[[View], tuple[str, str] | None] = lambda view: None

    def calls(self, path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
        """The calls by their start. Raises InputError with every error; what is skipped or missing goes to `warn`."""
        faults: list[Fault] = []
        builder, notes = CallBuilder(keep_content), ReaderNotes()
        found = list[tuple[Call, str]]()
        for row in objects(path, faults, warn, self.expected):
            for entry in self.entries(row):
                with ErrorsAt(entry):
                    found += _calls(self, entry, builder, notes)
        if faults:
            raise InputError(faults)
        calls = _distinct_calls(found, notes)
        notes.report(path, warn)
        yield from calls


def _calls(
    form: TraceFormat, entry: JsonObject, builder: CallBuilder, notes: ReaderNotes
) -> Iterator[tuple[Call, str]]:
    kind = entry.text(form.kind)
    if kind.lower() not in form.kinds:
        notes.skip("entry", f"{form.kind} '{kind}' is not a model call")
        return
    view = form.view(entry)
    model, host = parse_model_name(text_at(view, form.model), text_at(view, form.provider))
    if skipped := form.skipped(view) or (None if model else ("model call", "no model name")):
        notes.skip(*skipped)
        return
    body, note = form.body(view, model)
    if note:
        notes.add("call", note)
    usage, start = form.usage(entry, view, notes), form.start(entry)
    failed = usage is None and form.failed(view)
    answer, first = [] if failed else form.answer(view), form.first_token(entry)
    if usage is None and not failed:
        notes.add("call", "without usage")
    call = builder.build(
        {**body, "model": model},
        usage=usage,
        answer=answer,
        timestamp=start,
        first_token_s=max(0.0, round(seconds(first) - seconds(start), 6)) if start and first else 0.0,
        host=host,
        status=status_in(text_at(view, form.error)) if failed else None,
        session=text_at(view, form.session),
        id=text_at(view, ("id",)),
        line=entry.line or 0,
    )
    yield call, text_at(view, form.parent)


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
