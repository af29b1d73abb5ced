"""Whether the command of a scenario sends the same in both of its runs, and what it costs that it does not.

The runs are compared call by call and block by block: where two values first differ, and what kind of text that is.
Where nothing differs, tools and system prompt may still hold what the next run has another of: a name of this machine,
and what `lint` finds in a single request (CC531), unless the second run shows that it stays, as a time under another
clock.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from cachecost.analysis.lint.volatile import find_volatile_words
from cachecost.base.formatting import count_text, dollars
from cachecost.base.structs import replace
from cachecost.base.times import day_of, iso_milliseconds
from cachecost.budgets.causes import limit_changes
from cachecost.budgets.source_lines import search_texts
from cachecost.budgets.verdicts import CostChange, State, Verdict
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, Layer
from cachecost.prompts.compare import first_difference, pair_anywhere, texts, value_text
from cachecost.prompts.request import Breakpoint, wire_path
from cachecost.providers.usage import ZERO
from cachecost.scenario.loading import RecordedScenario, placed_of
from cachecost.scenario.models import AS_RECORDED
from cachecost.simulation.workload import workload_as_recorded

ID_KEYS = ("id", "tool_use_id")
NAME = "deterministic"
PAUSE_S = 2.0
"""Seconds from the last call of the first run to the first of the second, and from one to the next."""


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
        return tuple(tuple(block.identity for block in self.blocks[layer]) for layer in layers)


def compared_calls(run: Sequence[Call]) -> list[ComparedCall]:
    """The calls of a run. Ids that the simulated API gave are numbered in each call: they follow from other calls."""
    answered = (block.content or {} for call in run for block in call.response)
    ids = {name for content in answered if isinstance(name := content.get("id"), str)}
    calls = list[ComparedCall]()
    for request in (call.request for call in run):
        blocks = {layer: list[ComparedBlock]() for layer in Layer}
        for layer, part in ((Layer.TOOLS, request.tools), (Layer.SYSTEM, request.system)):
            for index, block in enumerate(part.blocks):
                path = wire_path(request, Breakpoint(layer, index))
                blocks[layer].append(_compared_block(path, block, frozenset(), {}))
        names: dict[str, str] = {}
        for number, message in enumerate(request.thread.messages()):
            for index, block in enumerate(message.blocks):
                path = f"messages.{number}.content.{index}"
                blocks[Layer.MESSAGES].append(_compared_block(path, block, ids, names))
        places = [f"{wire_path(request, one)} {one.ttl}" for one in request.breakpoints]
        params = {name: request.params[name] for name in sorted(request.params)}
        settings = {"model": request.model, **params, "cache_control": [*places, request.automatic]}
        calls.append(ComparedCall(blocks, settings))
    return calls


def _compared_block(path: str, block: Block, ids: AbstractSet[str], names: dict[str, str]) -> ComparedBlock:
    content = block.content or {}
    given = {key: content[key] for key in ID_KEYS if content.get(key) in ids}
    if not given:
        return ComparedBlock(path, block.role, content, block.digest)
    numbered = {key: names.setdefault(name, f"id {len(names) + 1}") for key, name in given.items()}
    return ComparedBlock(path, block.role, {**content, **numbered}, repr({**content, **numbered}))


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
    """The first difference of two values: the path to it, the character from 0, and the text around it in each. `kind`
    "order" is the same parts in another order. `search` are texts to find its source line by."""

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
    are_mappings = isinstance(first, Mapping) and isinstance(second, Mapping)
    are_lists = isinstance(first, list | tuple) and isinstance(second, list | tuple)
    if are_mappings and list(first) == list(second):
        for key in first:
            yield from _differences(first[key], second[key], (*path, key))
    elif are_lists and len(first) == len(second) and not _same_parts(first, second):
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _differences(one, other, (*path, number))
    elif (one := value_text(first)) != (other := value_text(second)):
        at = first_difference(one, other)
        # The same parts in another order: words of a text, entries of a mapping, items of a list.
        if isinstance(first, str) and isinstance(second, str):
            is_reordered = Counter(WORD.findall(first)) == Counter(WORD.findall(second))
        elif are_mappings:
            is_reordered = dict(first) == dict(second)
        else:
            is_reordered = are_lists and _same_parts(first, second)
        kind = "order" if is_reordered else kind_of(one, other, at)
        yield ValueDifference(path, kind, at, excerpt(one, at), excerpt(other, at), search_texts(one, other, at))


def _same_parts(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Whether two different lists have the same items."""
    ones, others = list(map(value_text, first)), list(map(value_text, second))
    return ones != others and Counter(ones) == Counter(others)


def kind_of(first: str, second: str, at: int) -> Kind:
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
    """A place of a call (from 1) at which the second run differs from the first. `path` is that of the block as sent,
    with what is in it; `character` is where the excerpts `first` and `second` part."""

    call: int
    layer: str
    block: str
    path: str
    kind: Kind
    character: int
    first: str
    second: str
    search: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: ValueDifference, call: int, layer: str = "", block: str = "") -> RunDifference:
        path = ".".join(map(str, (*filter(None, [block]), *found.path)))
        return cls(call, layer, block, path, found.kind, found.character, found.first, found.second, found.search)


def find_differences(first: Sequence[Call], second: Sequence[Call]) -> list[RunDifference]:
    """The differences of two runs, in the order of the calls and of their prompts. That one made more calls is one."""
    if _are_same(first, second):
        return []
    found: list[RunDifference] = []
    for number, (mine, theirs) in enumerate(zip(compared_calls(first), compared_calls(second), strict=False), 1):
        # in the order in which the cache compares prompts: tools, system, messages; then what is in no prompt
        for layer in Layer:
            ours, others = mine.blocks[layer], theirs.blocks[layer]
            pairs = [(one, other) for one, other in zip(ours, others, strict=False) if one.identity != other.identity]
            if pairs and Counter(one.identity for one in ours) == Counter(one.identity for one in others):
                (one, other), path = pairs[0], pairs[0][0].path
                names = _name_of(one), _name_of(other)
                found.append(RunDifference(number, str(layer), path, path, "order", 0, *names))
                continue
            if not pairs and len(ours) != len(others):  # a block that only one run has, behind those of both
                shorter = min(len(ours), len(others))
                path = max(ours, others, key=len)[shorter].path
                last = [_name_of(run[shorter]) if len(run) > shorter else "nothing" for run in (ours, others)]
                found.append(RunDifference(number, str(layer), path, path, "unknown", 0, last[0], last[1]))
            # each block that differs; the first alone where blocks are missing
            for one, other in pairs[:1] if len(ours) != len(others) else pairs:
                roles = ValueDifference((), "unknown", 0, one.role, other.role)  # of equal contents
                differs = find_difference(one.content, other.content) or roles
                found.append(RunDifference.of(differs, number, str(layer), one.path))
        if changed := find_difference(mine.settings, theirs.settings):
            found.append(RunDifference.of(changed, number))
    if len(first) != len(second):
        number = min(len(first), len(second)) + 1
        made = [f"{len(run)} calls" for run in (first, second)]
        found.append(RunDifference(number, "", "", "number of calls", "unknown", 0, made[0], made[1]))
    return found


def _are_same(first: Sequence[Call], second: Sequence[Call]) -> bool:

    def identity(call: Call) -> tuple[object, ...]:
        request = call.request
        head = request.model, request.params, request.tools.digest, request.system.digest, request.automatic
        places = [(*breakpoint.block_key, breakpoint.ttl) for breakpoint in request.breakpoints]
        return *head, places, [message.digest for message in request.thread.messages()]

    return len(first) == len(second) and all(
        identity(one) == identity(other) for one, other in zip(first, second, strict=True)
    )


def align(first: Sequence[Call], second: Sequence[Call]) -> list[Call]:
    """The calls of the second run in the order of those of the first: that sent the same, else the same messages, else
    that came at the same place. Parallel calls arrive in another order each time, which is no difference. Runs of
    different lengths stay as they are."""
    if len(first) != len(second) or _are_same(first, second):
        return list(second)
    calls, found = (compared_calls(first), compared_calls(second)), dict[int, int]()
    keys: Sequence[Callable[[ComparedCall], Hashable]] = (
        lambda call: (call.identity(*Layer), json.dumps(call.settings, ensure_ascii=False)),
        lambda call: call.identity(Layer.MESSAGES),
        lambda call: None,
    )
    for key in keys:
        ones, others = ([key(call) for call in run] for run in calls)
        found |= pair_anywhere(ones, others, found)
    return [second[found[place]] for place in range(len(first))]


def _name_of(block: ComparedBlock) -> str:
    return excerpt(str(block.content.get("name") or block.content.get("text") or block.content.get("type")), 0)


def check_determinism(recorded: RecordedScenario, folder: Path) -> list[Verdict]:
    """The verdict on the two runs of a command; nothing where it ran once or there is none."""
    if not recorded.runs:
        return []
    first, has_two = recorded.runs[0], len(recorded.runs) > 1
    second = align(first, recorded.runs[1]) if has_two else first
    if differences := find_differences(first, second):
        changes = _price_differences(differences, recorded, folder, second)
        cost = sum((one.cost for one in changes), ZERO)
        words = f"the second costs {dollars(cost)} more for it" if cost > 0 else "here that costs nothing more"
        where = f"{differences[0].path} ({differences[0].kind}) from call {differences[0].call} on{_more(changes)}"
        message = f"{AS_RECORDED} is not deterministic: two runs differ in {where}; {words}."
        return [_verdict(recorded, len(changes), message, limit_changes(changes))]
    if volatile := _find_volatile(recorded):
        message = f"{AS_RECORDED} may send other bytes in the next run: {volatile[0].what}{_more(volatile)}."
        return [_verdict(recorded, len(volatile), message, tuple(volatile))]
    clock = f"; the second run's clock: {recorded.clock or 'as the first'}"
    return [_verdict(recorded, 0, f"{AS_RECORDED} sends the same bytes in both runs{clock}.")] if has_two else []


def _more(changes: Sequence[CostChange]) -> str:
    return f" and {count_text(len(changes) - 1, 'more place')}" if len(changes) > 1 else ""


def _find_volatile(recorded: RecordedScenario) -> list[CostChange]:
    """What a run alone shows of tools and system prompts, a place each: that another run would send something else."""
    names = [(kind, re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")) for kind, name in recorded.machine.items()]
    has_two = len(recorded.runs) > 1
    places: dict[str, CostChange] = {}
    for number, call in enumerate(compared_calls(recorded.runs[0]), 1):
        for layer, block in ((at, one) for at in (Layer.TOOLS, Layer.SYSTEM) for one in call.blocks[at]):
            for inner, text in texts(block.content):
                found = [(match.start(), kind) for kind, name in names if (match := name.search(text))]
                for word in find_volatile_words(text):
                    is_shown_to_stay = has_two and (word.kind != "time" or recorded.clock)
                    if word.strong and not is_shown_to_stay:
                        found.append((word.start, word.kind))
                if not found:
                    continue
                (at, kind), path = min(found), f"{block.path}.{inner}"
                what = f"{path}, character {at:,} ({kind}): “{excerpt(text, at)}”"
                search = search_texts(text[:at], text, at)
                change = CostChange(number, 0, ZERO, what, layer=str(layer), block=block.path, search=search)
                known = places.setdefault(path, change)
                places[path] = replace(known, calls=known.calls + 1)
    return list(places.values())


def _verdict(recorded: RecordedScenario, places: int, message: str, changes: tuple[CostChange, ...] = ()) -> Verdict:
    place = placed_of(recorded.scenario).place(("conversation", "recording"))
    state: State = "fail" if places else "pass"
    return Verdict(recorded.scenario.name, AS_RECORDED, NAME, ZERO, Decimal(places), state, message, place, changes)


def _price_differences(
    differences: Sequence[RunDifference], recorded: RecordedScenario, folder: Path, second: Sequence[Call]
) -> list[CostChange]:
    """A change for each place, the most expensive first. What a call costs more is the effect of the first of its
    differences, in the order of the prompt; all that the others could break is broken by then."""
    first = recorded.runs[0]
    # What the calls of either run cost right after those of the first run and at their pace.
    costs: list[list[Decimal]] = []
    for run in (first, second):
        starts = (first[-1].start + PAUSE_S + PAUSE_S * number for number in range(len(run)))
        moved = (
            replace(call, start=start, timestamp=iso_milliseconds(start), day=day_of(start))
            for call, start in zip(run, starts, strict=True)
        )
        calls = [*first, *moved]
        simulation = workload_as_recorded(recorded.scenario, folder, calls).simulation()
        costs.append([simulation.simulate(call).row.cost.total for call in calls][len(first) :])
    more = [other - same for same, other in zip_longest(*costs, fillvalue=ZERO)]
    by_place: dict[str, list[RunDifference]] = {}
    for one in differences:
        by_place.setdefault(one.path, []).append(one)
    lead = {one.call: one.path for one in reversed(differences)}
    changes = []
    for path, found in by_place.items():
        cost = sum((more[call - 1] for call, led in lead.items() if led == path and call <= len(more)), ZERO)
        one = found[0]
        what = f"{one.path}, character {one.character:,} ({one.kind}): “{one.first}”, then “{one.second}”"
        changes.append(
            CostChange(one.call, len(found), cost, what, layer=one.layer, block=one.block, search=one.search)
        )
    return sorted(changes, key=lambda change: (-change.cost, change.call))
