"""The line of the project's source code that a changed text comes from, where exactly one line can be it.

A text that is sent is rarely in the source as it is: parts of it are put in, and long strings are split over lines.
So pieces of it are searched, the longest around the change first; one that is in several lines says nothing.

The calls of a run as they are compared with those of another: blocks by their paths as sent.

Where a change stands in the request as sent, the text around its first different character, and how long it is.

Where two values of a request first differ, and what kind of text differs there.

Where the calls of two runs of the same command differ, block by block.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from json import dumps
from typing import Any, Literal

from cachecost.analysis.lint.excerpts import excerpt_around
from cachecost.budgets.request_edits import Edit, RequestPair, SlotBreakpoint, SlotList
from cachecost.conversations.calls import RecordedCall
from cachecost.prompts.blocks import Block, Layer, Message
from cachecost.prompts.compare import (
    ChangedText,
    first_changed_block,
    first_changed_text,
    first_difference,
    pair_anywhere,
    shared_ends,
    text_of,
    texts,
)
from cachecost.prompts.render import CannotCount, TokenCounter
from cachecost.prompts.request import Breakpoint, Request, wire_path

SHORTEST = 8
"""Characters of a piece that is distinctive enough."""
SHORTEST_LITERAL = 5
"""As SHORTEST, of a piece with the mark of quotation that begins its literal."""
QUOTATION_MARKS = ('"', "'", "`")
LONGEST = 120
SIZES = (80, 48, 32, 20, 12)
"""Characters of the pieces before and behind a change, as far as its line goes."""
VARYING = re.compile(r"\S*\d\S*|\n")
"""Words with digits in a text that came: most are put in when the program runs."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a file, from 1, and the column where the text begins."""

    file: str
    line: int
    column: int


def search_texts(old: str, new: str, at: int = 0) -> tuple[str, ...]:
    """Texts to search for, best first, of a text that differs from character `at` on: what came, the line it is in,
    what stands before it and behind it.
    """
    return tuple(dict.fromkeys(text for text in _pieces(old, new, at) if _is_distinctive(text)))


def _pieces(old: str, new: str, at: int) -> Iterator[str]:
    _, same = shared_ends(old[at:], new[at:])
    come = new[at : len(new) - same]
    yield from (line.strip() for line in come.splitlines() if len(line) <= LONGEST)
    pieces = sorted((piece.strip() for piece in VARYING.split(come[:LONGEST])), key=len, reverse=True)
    yield from pieces
    yield from (f"{mark}{piece}" for piece in pieces for mark in QUOTATION_MARKS if piece)
    yield from (come[:size].split("\n")[0].strip() for size in SIZES)
    start, end = new.rfind("\n", 0, at) + 1, len(new) - same
    stop = new.find("\n", at)
    line_end = len(new) if stop < 0 else stop
    yield new[start:line_end].strip()[:LONGEST]
    for size in SIZES:
        yield new[max(start, at - size) : at].strip()
        yield new[end : min(end + size, line_end if line_end > end else end + size)].strip()
    fixed = [piece.strip() for piece in VARYING.split(new[start:at][-LONGEST:])]
    yield from sorted(fixed, key=len, reverse=True)
    yield from (f"{mark}{piece}" for piece in fixed for mark in QUOTATION_MARKS if piece)


def _is_distinctive(text: str) -> bool:
    least = SHORTEST_LITERAL if text.startswith(QUOTATION_MARKS) else SHORTEST
    return len(text) >= least and "\n" not in text


def find_source_line(search: Sequence[str], files: Mapping[str, str]) -> SourceLine | None:
    """The only line of `files` (text by name) that has one of the texts; the first text that decides it counts."""
    for text in search:
        found = list(_first_two(text, files))
        if len(found) == 1:
            return found[0]
    return None


def _first_two(text: str, files: Mapping[str, str]) -> Iterator[SourceLine]:
    """Where `text` is, at most two places."""
    count = 0
    for name, content in files.items():
        at = content.find(text)
        while at >= 0 and count < 2:
            count += 1
            start = content.rfind("\n", 0, at) + 1
            yield SourceLine(name, content.count("\n", 0, at) + 1, at - start + 1)
            at = content.find(text, at + len(text))


ID_KEYS = ("id", "tool_use_id")


@dataclass(frozen=True, slots=True)
class ComparedBlock:
    """A block and its path as sent. Blocks with equal `identity` are the same."""

    path: str
    role: str
    content: Mapping[str, Any]
    identity: object


@dataclass(frozen=True, slots=True)
class ComparedCall:
    """What a call sent: its blocks by layer, and everything else."""

    blocks: Mapping[Layer, Sequence[ComparedBlock]]
    settings: Mapping[str, Any]

    def identity(self, *layers: Layer) -> tuple[object, ...]:
        """The same for calls with the same blocks in these layers."""
        return tuple(tuple(block.identity for block in self.blocks[layer]) for layer in layers)


def compared_calls(run: Sequence[RecordedCall]) -> list[ComparedCall]:
    """The calls of a run. Ids that the simulated API gave are numbered in each call: they follow from other calls."""
    answered = (block.content or {} for call in run for block in call.response)
    ids = {name for content in answered if isinstance(name := content.get("id"), str)}
    return [_compared_call(call.request, ids) for call in run]


def _compared_call(request: Request, ids: AbstractSet[str]) -> ComparedCall:
    names: dict[str, str] = {}
    tools, system = _of_part(request, Layer.TOOLS), _of_part(request, Layer.SYSTEM)
    messages = [_compared_block(path, block, ids, names) for path, block in _message_blocks(request)]
    places = [f"{wire_path(request, one)} {one.ttl}" for one in request.breakpoints]
    params = {name: request.params[name] for name in sorted(request.params)}
    return ComparedCall(
        {Layer.TOOLS: tools, Layer.SYSTEM: system, Layer.MESSAGES: messages},
        {"model": request.model, **params, "cache_control": [*places, request.automatic]},
    )


def _of_part(request: Request, layer: Layer) -> list[ComparedBlock]:
    blocks = request.tools.blocks if layer is Layer.TOOLS else request.system.blocks
    paths = (wire_path(request, Breakpoint(layer, index)) for index in range(len(blocks)))
    return [_compared_block(path, block, frozenset(), {}) for path, block in zip(paths, blocks, strict=True)]


def _message_blocks(request: Request) -> Iterator[tuple[str, Block]]:
    for number, message in enumerate(request.thread.messages()):
        for index, block in enumerate(message.blocks):
            yield f"messages.{number}.content.{index}", block


def _compared_block(path: str, block: Block, ids: AbstractSet[str], names: dict[str, str]) -> ComparedBlock:
    content = block.content or {}
    given = {key: content[key] for key in ID_KEYS if content.get(key) in ids}
    if not given:
        return ComparedBlock(path, block.role, content, block.digest)
    numbered = {key: names.setdefault(name, f"id {len(names) + 1}") for key, name in given.items()}
    return ComparedBlock(path, block.role, {**content, **numbered}, repr({**content, **numbered}))


VALUE_LENGTH = 80
NAMES = 5
"""Names of a list whose order changed that are shown, from the first that moved on."""
NAME_FORMS = ('"{}":', "'{}':", "{}=", "{}:", '"{}"', "'{}'")
"""How a name is written where a value is given to it."""
DEFINITION_FORMS = ('"{}"', "'{}'", "def {}(", "function {}(", "{}")
"""How the name of a tool is written where it is defined."""


@dataclass(frozen=True, slots=True)
class ChangePlace:
    """The fields of a `PromptChange` that one call shows."""

    path: str
    before: str | None = None
    after: str | None = None
    character: int | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    search: tuple[str, ...] = ()
    name: str = ""


def place_of(edit: Edit, pair: RequestPair, counter: TokenCounter | None) -> ChangePlace:
    """Where `edit` stands in a pair of requests that has it."""
    if edit.kind == "model_changed":
        return _place_value("model", pair.old.model, pair.new.model)
    if edit.kind == "parameter_changed":
        name = str(edit.name)
        return _place_value(name, pair.old.params.get(name), pair.new.params.get(name))
    if edit.kind == "breakpoint_moved":
        gone, come = pair.breakpoints.gone(), pair.breakpoints.come()
        was = _breakpoint_words(pair.old, gone, pair)
        now = _breakpoint_words(pair.new, come, pair)
        path = (now or was or ["cache_control"])[0].split(" ")[0]
        search = _first_search(come[0].slot.new) if come and come[0].slot.new is not None else ()
        return ChangePlace(path, ", ".join(was) or None, ", ".join(now) or None, search=search)
    layers: dict[str, SlotList[Any]] = {"tools": pair.tools, "system": pair.system, "messages": pair.messages}
    slots = layers[edit.layer]
    if edit.kind == "reordered":
        return _place_order(Layer(edit.layer), slots)
    return _place_slot(edit, pair, slots, counter)


def version_of(edit: Edit, pair: RequestPair) -> Hashable:
    """What of tools or system prompt a call has since `edit`, to compare with other calls; None in other layers."""
    slots = {"tools": pair.tools, "system": pair.system}.get(edit.layer)
    if slots is None:
        return None
    blocks = [slot.new for slot in slots.new if slot.new and (slot.edit == edit or edit.kind == "reordered")]
    if edit.kind == "reordered":
        return tuple((block.content or {}).get("name") or block.size for block in blocks)
    return tuple(block.digest for block in blocks)


def place_of_call(request: Request) -> ChangePlace:
    """What a call adds that only one recording has."""
    message = request.thread.message
    shown = _first_text(message.blocks[0])[1] if message and message.blocks else None
    return ChangePlace("calls", after=shown and excerpt_around(shown, 0))


def _place_value(path: str, old: Any, new: Any) -> ChangePlace:
    was, now = (
        None if value is None else (value if isinstance(value, str) else dumps(value, ensure_ascii=False))
        for value in (old, new)
    )
    at = first_difference(was, now) if was is not None and now is not None else None
    search = ((now,) if now else ()) if path == "model" else tuple(form.format(path) for form in NAME_FORMS)
    return ChangePlace(path, _cut(was), _cut(now), at, search=search)


def _cut(text: str | None) -> str | None:
    return None if text is None else excerpt_around(text, 0, 0, VALUE_LENGTH)


# ------------------------------------------------------------------------------------------ breakpoints


def _breakpoint_words(request: Request, anchors: Sequence[SlotBreakpoint], pair: RequestPair) -> list[str]:
    """ "system.1 5m"; a top-level `cache_control` that only one request has is "cache_control 5m"."""
    known = [*zip(pair.breakpoints.old, pair.old.breakpoints, strict=True)]
    known += zip(pair.breakpoints.new, pair.new.breakpoints, strict=True)
    words = [
        f"{wire_path(request, placed)} {placed.ttl}" for anchor in anchors for one, placed in known if one is anchor
    ]
    if pair.old.automatic != pair.new.automatic and request.automatic:
        words.append(f"cache_control {request.automatic}")
    return words


def _first_search(item: Block | Message) -> tuple[str, ...]:
    block = item.blocks[-1] if isinstance(item, Message) else item
    return search_texts("", _first_text(block)[1])


# ------------------------------------------------------------------------------------------------ blocks


def _place_order(layer: Layer, slots: SlotList[Any]) -> ChangePlace:
    """The names from the first that is another one; of what has no names, its numbers in the accepted request."""
    was, now = [one for one in slots.old if one.new], [one for one in slots.new if one.old]
    first = next(at for at, (one, other) in enumerate(zip(was, now, strict=True)) if one is not other)
    labels = {id(slot): (_name(slot.new) or f"number {number + 1}") for number, slot in enumerate(was)}
    before, after = (", ".join(labels[id(slot)] for slot in side[first : first + NAMES]) for side in (was, now))
    path = f"{layer}.{next(number for number, slot in enumerate(slots.new) if slot is now[first])}"
    more = "…" if len(was) > first + NAMES else ""
    return ChangePlace(path, before + more, after + more)


def _name(item: Any) -> str:
    name = (item.content or {}).get("name") if isinstance(item, Block) else None
    return name if isinstance(name, str) else ""


def _place_slot(edit: Edit, pair: RequestPair, slots: SlotList[Any], counter: TokenCounter | None) -> ChangePlace:
    slot = next(one for one in slots.all if one.edit == edit)
    request, side = (pair.old, slots.old) if slot.new is None else (pair.new, slots.new)
    number = next(at for at, one in enumerate(side) if one is slot)
    sizes = _tokens(slot.old, counter), _tokens(slot.new, counter)
    if edit.layer != Layer.MESSAGES:
        path = wire_path(request, Breakpoint(Layer(edit.layer), number))
        name = _name(slot.new or slot.old) if edit.layer == Layer.TOOLS else ""
        return replace(_place_block(path, slot.old, slot.new, sizes), name=name)
    at = first_changed_block(*(message.blocks if message else () for message in (slot.old, slot.new)))
    old, new = (
        (message.blocks[at] if message and at < len(message.blocks) else None) for message in (slot.old, slot.new)
    )
    path = f"messages.{number}" if slot.old is None or slot.new is None else f"messages.{number}.content.{at}"
    return _place_block(path, old, new, sizes)


def _place_block(path: str, old: Block | None, new: Block | None, sizes: tuple[int | None, int | None]) -> ChangePlace:
    if old is None or new is None:
        return _place_whole(path, old, new, sizes)
    if old.content is None or new.content is None:
        return ChangePlace(path, None, None, None, *sizes)
    found = first_changed_text(old, new) or ChangedText.find(text_of(old), text_of(new))
    was, now, at = found.was, found.now, found.at
    place = f"{path}.{found.path}" if found.path else path
    return ChangePlace(place, excerpt_around(was, at), excerpt_around(now, at), at, *sizes, search_texts(was, now, at))


def _place_whole(path: str, old: Block | None, new: Block | None, sizes: tuple[int | None, int | None]) -> ChangePlace:
    """A block that only one request has: how it begins."""
    was, now = (
        None
        if block is None or block.content is None
        else excerpt_around(", ".join(text for _, text in texts(block.content or {})), 0, 0, VALUE_LENGTH)
        for block in (old, new)
    )
    name = _name(new)
    names = [form.format(name) for form in DEFINITION_FORMS] if name else []
    search = (*names, *search_texts("", _first_text(new)[1])) if new else ()
    return ChangePlace(path, was, now, None, *sizes, search)


def _first_text(block: Block) -> tuple[str, str]:
    """(path within, text) of the longest text of a block."""
    return max(texts(block.content or {}), key=lambda one: len(one[1]), default=("", ""))


def _tokens(item: Block | Message | None, counter: TokenCounter | None) -> int | None:
    if item is None or counter is None:
        return None
    try:
        return sum(counter.block(block) for block in _blocks_of(item))
    except CannotCount:
        return None


def _blocks_of(item: Block | Message) -> Iterator[Block]:
    yield from item.blocks if isinstance(item, Message) else (item,)


Kind = Literal["time", "id", "order", "random number", "unknown"]
AROUND = 24
"""Characters that an excerpt shows on each side."""
WORD = re.compile(r"[^\s,;'\"\[\](){}]+")
PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("id", re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)),  # a UUID (RFC 9562)
    (
        "time",
        re.compile(
            r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"  # ISO 8601
            r"|\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?"
            r"|\b(?i:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:jan|febr)uary|march|april|may|june|july|august"
            r"|(?:septem|octo|novem|decem)ber|(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec))\b"
            r"|(?<![\w.])[12]\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?!\w)"  # since 1970, in s, ms, µs or ns
        ),
    ),
    ("id", re.compile(r"\btmp\w{8}\b|\btmp\.\w{10}\b")),  # as mkdtemp and mktemp name files
    ("id", re.compile(r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b", re.IGNORECASE)),
    ("id", re.compile(r"\b[a-z]+[_-](?=\w*\d)\w{8,}\b|\b(?=\w*\d)(?=\w*[a-zA-Z])\w{16,}\b")),
    ("random number", re.compile(r"\d+(?:\.\d+)?")),
)
"""What a text that differs is, the first that fits; a pattern fits where it covers the difference in both texts."""


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """The first difference of two values: the path to it, the character from 0, and the text around it in each.

    `kind` is what differs; "order" is the same parts in another order. `search` are texts to find its source line by.
    """

    path: tuple[str | int, ...]
    kind: Kind
    character: int
    first: str
    second: str
    search: tuple[str, ...] = ()


def find_difference(first: Any, second: Any) -> ValueDifference | None:
    """The first difference of two JSON values; None if they are the same, the order of keys included."""
    return next(_differences(first, second, ()), None)


def _differences(first: Any, second: Any, path: tuple[str | int, ...]) -> Iterator[ValueDifference]:
    if isinstance(first, Mapping) and isinstance(second, Mapping) and list(first) == list(second):
        for key in first:
            yield from _differences(first[key], second[key], (*path, key))
    elif _are_lists(first, second) and len(first) == len(second) and not _same_parts(first, second):
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _differences(one, other, (*path, number))
    elif _text(first) != _text(second):
        yield _text_difference(first, second, path)


def _are_lists(first: Any, second: Any) -> bool:
    return isinstance(first, list | tuple) and isinstance(second, list | tuple)


def _text_difference(first: Any, second: Any, path: tuple[str | int, ...]) -> ValueDifference:
    one, other = _text(first), _text(second)
    at = first_difference(one, other)
    kind = "order" if _is_reordered(first, second) else kind_of(one, other, at)
    return ValueDifference(path, kind, at, excerpt(one, at), excerpt(other, at), search_texts(one, other, at))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_reordered(first: Any, second: Any) -> bool:
    """Whether both have the same parts: entries of a mapping, items of a list, words of a text."""
    if isinstance(first, str) and isinstance(second, str):
        return Counter(WORD.findall(first)) == Counter(WORD.findall(second))
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return dict(first) == dict(second)
    return _are_lists(first, second) and _same_parts(first, second)


def _same_parts(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Whether two different lists have the same items."""
    ones, others = list(map(_text, first)), list(map(_text, second))
    return ones != others and Counter(ones) == Counter(others)


def kind_of(first: str, second: str, at: int) -> Kind:
    """What differs between two texts at the character `at`, their first difference."""
    for kind, pattern in PATTERNS:
        if all(any(found.start() <= at <= found.end() for found in pattern.finditer(text)) for text in (first, second)):
            return kind
    return "unknown"


def excerpt(text: str, at: int) -> str:
    """The text around the character `at`, with an ellipsis where it is cut."""
    begin, end = max(0, at - AROUND), at + AROUND
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


@dataclass(frozen=True, slots=True)
class RunDifference:
    """A place of a call (from 1) at which the second run differs from the first.

    `path` is that of the block as sent, with what is in it; `character` is where the texts `first` and `second`, which
    are excerpts, part.
    """

    call: int
    layer: str
    block: str
    path: str
    kind: Kind
    character: int
    first: str
    second: str
    search: tuple[str, ...] = ()


def find_differences(first: Sequence[RecordedCall], second: Sequence[RecordedCall]) -> list[RunDifference]:
    """The differences of two runs, in the order of the calls and of their prompts. That one made more calls is one."""
    if _are_same(first, second):
        return []
    both = enumerate(zip(compared_calls(first), compared_calls(second), strict=False), 1)
    found = [one for number, (mine, theirs) in both for one in _of_call(number, mine, theirs)]
    if len(first) != len(second):
        number = min(len(first), len(second)) + 1
        made = [f"{len(run)} calls" for run in (first, second)]
        found.append(RunDifference(number, "", "", "number of calls", "unknown", 0, made[0], made[1]))
    return found


def _are_same(first: Sequence[RecordedCall], second: Sequence[RecordedCall]) -> bool:
    """Whether both recordings are the same, which is quickly seen."""
    return len(first) == len(second) and all(map(_is_same, first, second))


def _is_same(first: RecordedCall, second: RecordedCall) -> bool:
    one, other = first.request, second.request
    heads = [(each.model, each.params, each.tools.digest, each.system.digest, each.automatic) for each in (one, other)]
    places = [[(*breakpoint.block_key, breakpoint.ttl) for breakpoint in each.breakpoints] for each in (one, other)]
    messages = [[message.digest for message in each.thread.messages()] for each in (one, other)]
    return heads[0] == heads[1] and places[0] == places[1] and messages[0] == messages[1]


def align(first: Sequence[RecordedCall], second: Sequence[RecordedCall]) -> list[RecordedCall]:
    """The calls of the second run in the order of those of the first that they are like: that sent the same, else the
    same messages, else that came at the same place. Parallel calls arrive in another order each time, which is no
    difference. Runs of different lengths stay as they are.
    """
    if len(first) != len(second) or _are_same(first, second):
        return list(second)
    calls, found = (compared_calls(first), compared_calls(second)), dict[int, int]()
    for key in (_all_of, _messages_of, _nothing_of):
        ones, others = ([key(call) for call in run] for run in calls)
        found |= pair_anywhere(ones, others, found)
    return [second[found[place]] for place in range(len(first))]


def _all_of(call: ComparedCall) -> object:
    return call.identity(*Layer), json.dumps(call.settings, ensure_ascii=False)


def _messages_of(call: ComparedCall) -> object:
    return call.identity(Layer.MESSAGES)


def _nothing_of(call: ComparedCall) -> object:
    return None


def _of_call(call: int, first: ComparedCall, second: ComparedCall) -> Iterator[RunDifference]:
    """In the order in which the cache compares prompts: tools, system, messages; then what is in no prompt."""
    for layer in Layer:
        yield from _of_blocks(call, str(layer), first.blocks[layer], second.blocks[layer])
    if found := find_difference(first.settings, second.settings):
        yield _difference(call, "", "", found)


def _of_blocks(
    call: int, layer: str, first: Sequence[ComparedBlock], second: Sequence[ComparedBlock]
) -> Iterator[RunDifference]:
    """Each block that differs; the first alone where blocks are missing or only their order differs."""
    pairs = [(one, other) for one, other in zip(first, second, strict=False) if one.identity != other.identity]
    if pairs and Counter(one.identity for one in first) == Counter(one.identity for one in second):
        yield _reordered(call, layer, *pairs[0])
    elif len(first) != len(second):
        yield _of_pair(call, layer, *pairs[0]) if pairs else _longer(call, layer, first, second)
    else:
        yield from (_of_pair(call, layer, one, other) for one, other in pairs)


def _of_pair(call: int, layer: str, one: ComparedBlock, other: ComparedBlock) -> RunDifference:
    """Of blocks with another role the contents may be the same."""
    roles = ValueDifference((), "unknown", 0, one.role, other.role)
    return _difference(call, layer, one.path, find_difference(one.content, other.content) or roles)


def _reordered(call: int, layer: str, one: ComparedBlock, other: ComparedBlock) -> RunDifference:
    return RunDifference(call, layer, one.path, one.path, "order", 0, _name_of(one), _name_of(other))


def _longer(call: int, layer: str, first: Sequence[ComparedBlock], second: Sequence[ComparedBlock]) -> RunDifference:
    """A block that only one run has, behind those of both."""
    shorter = min(len(first), len(second))
    here = max(first, second, key=len)[shorter]
    names = [_name_of(run[shorter]) if len(run) > shorter else "nothing" for run in (first, second)]
    return RunDifference(call, layer, here.path, here.path, "unknown", 0, names[0], names[1])


def _name_of(block: ComparedBlock) -> str:
    return excerpt(str(block.content.get("name") or block.content.get("text") or block.content.get("type")), 0)


def _difference(call: int, layer: str, block: str, found: ValueDifference) -> RunDifference:
    path = ".".join(map(str, (*([block] if block else ()), *found.path)))
    return RunDifference(call, layer, block, path, found.kind, found.character, found.first, found.second, found.search)
