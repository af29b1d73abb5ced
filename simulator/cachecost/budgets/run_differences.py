"""Where the calls of two runs of the same command differ, block by block."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cachecost.budgets.compared_calls import ComparedBlock, ComparedCall, compared_calls
from cachecost.budgets.text_differences import Kind, ValueDifference, excerpt, find_difference
from cachecost.conversations.calls import RecordedCall
from cachecost.prompts.blocks import Layer


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
        _match(ones, others, found)
    return [second[found[place]] for place in range(len(first))]


def _match(first: Sequence[object], second: Sequence[object], found: dict[int, int]) -> None:
    """Add to `found`, by place in the first run, the first call of the second that has the same key and is free."""
    free: dict[object, list[int]] = {}
    taken = set(found.values())
    for place, key in enumerate(second):
        if place not in taken:
            free.setdefault(key, []).append(place)
    for place, key in enumerate(first):
        if place not in found and (places := free.get(key)):
            found[place] = places.pop(0)


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
