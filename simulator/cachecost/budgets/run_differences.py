"""Where the calls of two runs of the same command differ, block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachecost.budgets.text_differences import Kind, ValueDifference, excerpt, find_difference
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, Layer
from cachecost.prompts.refusals import wire_path
from cachecost.prompts.request import Breakpoint, Request


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


def find_differences(first: Sequence[Call], second: Sequence[Call]) -> list[RunDifference]:
    """The differences of two runs, in the order of the calls and of their prompts. A call that only one run made is
    one; nothing after it is compared.
    """
    both = enumerate(zip(first, second, strict=False), 1)
    found = [one for number, (mine, theirs) in both for one in _of_call(number, mine.request, theirs.request)]
    if len(first) != len(second):
        number = min(len(first), len(second)) + 1
        made = [f"{len(run)} calls" for run in (first, second)]
        found.append(RunDifference(number, "", "", "number of calls", "unknown", 0, made[0], made[1]))
    return found


def _of_call(call: int, first: Request, second: Request) -> Iterator[RunDifference]:
    """In the order in which the cache compares prompts: tools, system, messages; then what is in no prompt."""
    for layer in Layer:
        yield from _of_blocks(call, str(layer), _blocks(first, layer), _blocks(second, layer))
    if found := find_difference(_settings(first), _settings(second)):
        yield _difference(call, "", "", found)


@dataclass(frozen=True, slots=True)
class _SentBlock:
    """A block and its path as sent."""

    path: str
    block: Block


def _blocks(request: Request, layer: Layer) -> list[_SentBlock]:
    if layer is Layer.MESSAGES:
        messages = enumerate(request.thread.messages())
        return [
            _SentBlock(f"messages.{number}.content.{index}", block)
            for number, message in messages
            for index, block in enumerate(message.blocks)
        ]
    blocks = request.tools.blocks if layer is Layer.TOOLS else request.system.blocks
    return [_SentBlock(wire_path(request, Breakpoint(layer, index)), block) for index, block in enumerate(blocks)]


def _of_blocks(
    call: int, layer: str, first: Sequence[_SentBlock], second: Sequence[_SentBlock]
) -> Iterator[RunDifference]:
    """Each block that differs; the first alone where blocks are missing or only their order differs."""
    pairs = [(one, other) for one, other in zip(first, second, strict=False) if one.block.digest != other.block.digest]
    digests = [[sent.block.digest for sent in run] for run in (first, second)]
    if pairs and Counter(digests[0]) == Counter(digests[1]):
        yield _reordered(call, layer, *pairs[0])
    elif len(first) != len(second):
        yield _of_pair(call, layer, *pairs[0]) if pairs else _longer(call, layer, first, second)
    else:
        yield from (_of_pair(call, layer, one, other) for one, other in pairs)


def _of_pair(call: int, layer: str, one: _SentBlock, other: _SentBlock) -> RunDifference:
    """Of blocks with another role the contents may be the same."""
    roles = ValueDifference((), "unknown", 0, one.block.role, other.block.role)
    found = find_difference(one.block.content, other.block.content) or roles
    return _difference(call, layer, one.path, found)


def _reordered(call: int, layer: str, one: _SentBlock, other: _SentBlock) -> RunDifference:
    names = (_name_of(one.block), _name_of(other.block))
    return RunDifference(call, layer, one.path, one.path, "order", 0, *names)


def _longer(call: int, layer: str, first: Sequence[_SentBlock], second: Sequence[_SentBlock]) -> RunDifference:
    """A block that only one run has, behind those of both."""
    shorter = min(len(first), len(second))
    here = max(first, second, key=len)[shorter]
    names = [_name_of(run[shorter].block) if len(run) > shorter else "nothing" for run in (first, second)]
    return RunDifference(call, layer, here.path, here.path, "unknown", 0, names[0], names[1])


def _name_of(block: Block) -> str:
    content = block.content or {}
    return excerpt(str(content.get("name") or content.get("text") or block.kind), 0)


def _settings(request: Request) -> Mapping[str, Any]:
    """What a request says besides its blocks, in an order of its own."""
    places = [f"{wire_path(request, one)} {one.ttl}" for one in request.breakpoints]
    params = {name: request.params[name] for name in sorted(request.params)}
    return {"model": request.model, **params, "cache_control": [*places, request.automatic]}


def _difference(call: int, layer: str, block: str, found: ValueDifference) -> RunDifference:
    path = ".".join(map(str, (*([block] if block else ()), *found.path)))
    return RunDifference(call, layer, block, path, found.kind, found.character, found.first, found.second)
