"""Which layers of a call are not as in the call that it goes on from, and from which character on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cachecost.analysis.lint.excerpts import excerpt, first_changed_text
from cachecost.caches.alignment import first_difference
from cachecost.live.server.meter import MeteredCall
from cachecost.prompts.blocks import Block, Layer, Thread
from cachecost.prompts.request import Request

LAYERS: Sequence[str] = tuple(str(layer) for layer in Layer)


@dataclass(frozen=True, slots=True)
class LayerChange:
    """The first difference of a layer between call `since` and call `call`, where on the wire it is, and what it is.

    `offset` counts characters from 0 in the text at `path`, `was` and `now` are the text around it; None and "" where
    no text can be shown.
    """

    call: int
    since: int
    layer: str
    path: str
    what: str
    offset: int | None = None
    was: str = ""
    now: str = ""


def changes(taken: Sequence[MeteredCall], layers: Sequence[str], across: bool) -> tuple[int, list[LayerChange]]:
    """(how many calls were compared with another, the first difference of each layer of each).

    `across` compares tools and system with the call before, whichever conversation it is of.
    """
    pairs = list(_pairs([one for one in taken if one.row.error is None], across))
    return len(pairs), [one for old, new in pairs for layer in layers if (one := _change(old, new, layer))]


def _pairs(taken: Sequence[MeteredCall], across: bool) -> Iterator[tuple[MeteredCall, MeteredCall]]:
    """Each call with the last one of its conversation, or with the one before it."""
    latest: dict[object, MeteredCall] = {}
    for one in taken:
        conversation: object = None if across else _conversation(one)
        if (before := latest.get(conversation)) is not None:
            yield before, one
        latest[conversation] = one


def _conversation(one: MeteredCall) -> object:
    return one.workspace, one.row.model, one.first


def _change(old: MeteredCall, new: MeteredCall, layer: str) -> LayerChange | None:
    numbers = new.row.call, old.row.call
    if layer == Layer.MESSAGES:
        return _of_messages(old, new)
    before, after = _part(old.request, layer), _part(new.request, layer)
    return _of_blocks(before, after, layer, layer, numbers, may_grow=False)


def _part(request: Request, layer: str) -> Sequence[Block]:
    return request.tools.blocks if layer == Layer.TOOLS else request.system.blocks


def _of_messages(old: MeteredCall, new: MeteredCall) -> LayerChange | None:
    """The first message that is not as it was; a call of another conversation has nothing to be compared with."""
    before, after = _messages(old.request.thread), _messages(new.request.thread)
    numbers = new.row.call, old.row.call
    for number, node in enumerate(before):
        path = f"messages.{number}"
        if number == len(after):
            return LayerChange(*numbers, "messages", path, f"{len(before)} messages became {len(after)}")
        if node.digest != after[number].digest:
            found = _of_blocks(node.blocks, after[number].blocks, f"{path}.content", "messages", numbers, may_grow=True)
            return found or LayerChange(*numbers, "messages", path, "changed")
    return None


def _messages(thread: Thread) -> list[Any]:
    return thread.messages()


def _of_blocks(
    before: Sequence[Block], after: Sequence[Block], path: str, layer: str, numbers: tuple[int, int], *, may_grow: bool
) -> LayerChange | None:
    for number, (was, now) in enumerate(zip(before, after, strict=False)):
        if was.digest != now.digest:
            return _of_block(was, now, f"{path}.{number}", layer, numbers)
    if len(before) == len(after) or (may_grow and len(before) < len(after)):
        return None
    place = f"{path}.{min(len(before), len(after))}"
    return LayerChange(*numbers, layer, place, f"{_block_count(len(before))} became {_block_count(len(after))}")


def _block_count(blocks: int) -> str:
    return "1 block" if blocks == 1 else f"{blocks} blocks"


def _of_block(was: Block, now: Block, path: str, layer: str, numbers: tuple[int, int]) -> LayerChange:
    """The first text of a block that is another one; without any, the order of its keys is."""
    if found := first_changed_text(was.content or {}, now.content or {}):
        inner, before, after = found
        return _of_text(before, after, _within(path, inner, now), layer, numbers)
    names = [str((block.content or {}).get("name") or "") for block in (was, now)]
    swapped = names[0] != names[1] and all(names)
    what = f"{names[0]} became {names[1]}" if swapped else "is not as it was (other keys, or another order of keys)"
    return LayerChange(*numbers, layer, path, what)


def _within(path: str, inner: str, block: Block) -> str:
    name = (block.content or {}).get("name")
    place = path if inner == "text" else f"{path}.{inner}"
    return f"{place} ({name})" if name and inner != "name" else place


def _of_text(was: str, now: str, path: str, layer: str, numbers: tuple[int, int]) -> LayerChange:
    at = first_difference(was, now)
    shown = 12
    return LayerChange(
        *numbers,
        layer,
        path,
        f"changed at character {at}",
        at,
        excerpt(was, min(len(was), at + shown), shown).replace("▮", ""),
        excerpt(now, min(len(now), at + shown), shown).replace("▮", ""),
    )
