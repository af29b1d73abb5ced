"""Where a change stands in the request as sent, the text around its first different character, and how long it is."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from json import dumps
from typing import Any

from cachecost.analysis.lint.excerpts import excerpt_around, first_changed_text, texts
from cachecost.budgets.breakpoint_edits import SlotBreakpoint
from cachecost.budgets.request_edits import Edit, RequestPair
from cachecost.budgets.slots import Slot, SlotList
from cachecost.budgets.source_lines import search_texts
from cachecost.caches.alignment import first_difference, text_of
from cachecost.prompts.blocks import Block, Layer, Message
from cachecost.prompts.counting import CannotCount, TokenCounter
from cachecost.prompts.refusals import wire_path
from cachecost.prompts.request import Breakpoint, Request

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
        return _place_breakpoints(pair)
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
    was, now = (None if value is None else _value_text(value) for value in (old, new))
    at = first_difference(was, now) if was is not None and now is not None else None
    search = ((now,) if now else ()) if path == "model" else tuple(form.format(path) for form in NAME_FORMS)
    return ChangePlace(path, _cut(was), _cut(now), at, search=search)


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value, ensure_ascii=False)


def _cut(text: str | None) -> str | None:
    return None if text is None else excerpt_around(text, 0, 0, VALUE_LENGTH)


# ------------------------------------------------------------------------------------------ breakpoints


def _place_breakpoints(pair: RequestPair) -> ChangePlace:
    gone, come = pair.breakpoints.gone(), pair.breakpoints.come()
    was = _breakpoint_words(pair.old, gone, pair)
    now = _breakpoint_words(pair.new, come, pair)
    path = (now or was or ["cache_control"])[0].split(" ")[0]
    search = _first_search(come[0].slot.new) if come and come[0].slot.new is not None else ()
    return ChangePlace(path, ", ".join(was) or None, ", ".join(now) or None, search=search)


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
    labels = {id(slot): _label(slot.new, number) for number, slot in enumerate(was)}
    before, after = (", ".join(labels[id(slot)] for slot in side[first : first + NAMES]) for side in (was, now))
    path = f"{layer}.{next(number for number, slot in enumerate(slots.new) if slot is now[first])}"
    more = "…" if len(was) > first + NAMES else ""
    return ChangePlace(path, before + more, after + more)


def _label(item: Any, number: int) -> str:
    return _name(item) or f"number {number + 1}"


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
    at = _first_changed_block(slot)
    old, new = (_block_at(message, at) for message in (slot.old, slot.new))
    path = f"messages.{number}" if slot.old is None or slot.new is None else f"messages.{number}.content.{at}"
    return _place_block(path, old, new, sizes)


def _first_changed_block(slot: Slot[Message]) -> int:
    old, new = (message.blocks if message else () for message in (slot.old, slot.new))
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (one, other) in pairs if one.digest != other.digest), min(len(old), len(new)))


def _block_at(message: Message | None, at: int) -> Block | None:
    return message.blocks[at] if message and at < len(message.blocks) else None


def _place_block(path: str, old: Block | None, new: Block | None, sizes: tuple[int | None, int | None]) -> ChangePlace:
    if old is None or new is None:
        return _place_whole(path, old, new, sizes)
    if old.content is None or new.content is None:
        return ChangePlace(path, None, None, None, *sizes)
    inner, was, now = first_changed_text(old.content, new.content) or ("", text_of(old), text_of(new))
    at = first_difference(was, now)
    place = f"{path}.{inner}" if inner else path
    return ChangePlace(place, excerpt_around(was, at), excerpt_around(now, at), at, *sizes, search_texts(was, now, at))


def _place_whole(path: str, old: Block | None, new: Block | None, sizes: tuple[int | None, int | None]) -> ChangePlace:
    """A block that only one request has: how it begins."""
    was, now = (None if block is None or block.content is None else _opening(block) for block in (old, new))
    name = _name(new)
    names = [form.format(name) for form in DEFINITION_FORMS] if name else []
    search = (*names, *search_texts("", _first_text(new)[1])) if new else ()
    return ChangePlace(path, was, now, None, *sizes, search)


def _opening(block: Block) -> str:
    return excerpt_around(", ".join(text for _, text in texts(block.content or {})), 0, 0, VALUE_LENGTH)


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
