"""What changed between the accepted calls of a strategy and today's: each change, its place, its text and dollars."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from cachecost.analysis.lint.volatile import excerpt_around
from cachecost.base.structs import replace
from cachecost.budgets.request_edits import (
    BlockKey,
    ChangeKind,
    Edit,
    EditedRequestBuilder,
    RequestPair,
    SlotBreakpoint,
    SlotList,
    key_by_digest,
    key_by_shape,
    name_of,
    pair_requests,
)
from cachecost.budgets.source_lines import search_texts
from cachecost.budgets.strategy_replays import ReplayedStrategy
from cachecost.changes.steps import cost
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Block, Layer, Message
from cachecost.prompts.compare import (
    ChangedText,
    first_changed_block,
    first_changed_text,
    first_difference,
    pair_in_order,
    text_of,
    texts,
    value_text,
)
from cachecost.prompts.render import CannotCount, TokenCounter
from cachecost.prompts.request import Breakpoint, Request, wire_path
from cachecost.providers.usage import ZERO

VALUE_LENGTH = 80
NAMES = 5
"""Names of a list whose order changed that are shown, from the first that moved on."""
NAME_FORMS = ('"{}":', "'{}':", "{}=", "{}:", '"{}"', "'{}'")
"""How a name is written where a value is given to it."""
DEFINITION_FORMS = ('"{}"', "'{}'", "def {}(", "function {}(", "{}")
"""How the name of a tool is written where it is defined."""
Rows = Sequence[CallRow | None]
LAYERS = ("model", "tools", "system", "parameters", "messages", "breakpoints", "calls")
"""The order in which changes are made."""
KINDS = ("model_changed", "removed", "changed", "reordered", "added", "parameter_changed", "breakpoint_moved")
MOST = 12
"""Changes with dollars of their own; the others of a strategy are one."""
CALLS_GONE, CALLS_NEW = Edit("calls", "removed"), Edit("calls", "added")


@dataclass(frozen=True, slots=True)
class ChangePlace:
    """What one call shows of a change: the path as sent, excerpts, and the character in the text at `path` (None where
    none differs). `tokens_before` and `tokens_after` are those of what changed, `search` texts to find its place in the
    source code by, best first; `name` is that of a tool."""

    path: str
    before_excerpt: str | None = None
    after_excerpt: str | None = None
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
        come = pair.breakpoints.come()
        was = _breakpoint_words(pair.old, pair.breakpoints.gone(), pair)
        now = _breakpoint_words(pair.new, come, pair)
        path = (now or was or ["cache_control"])[0].split(" ")[0]
        item = come[0].slot.new if come else None
        block = item.blocks[-1] if isinstance(item, Message) else item
        search = search_texts("", _first_text(block)[1]) if block is not None else ()
        return ChangePlace(path, ", ".join(was) or None, ", ".join(now) or None, search=search)
    layers: dict[str, SlotList[Any]] = {"tools": pair.tools, "system": pair.system, "messages": pair.messages}
    slots, layer = layers[edit.layer], Layer(edit.layer)
    if edit.kind == "reordered":
        # The names from the first that is another one; of what has no names, its numbers in the accepted request.
        before, after = [one for one in slots.old if one.new], [one for one in slots.new if one.old]
        first = next(at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one is not other)
        labels = {id(slot): (name_of(slot.new) or f"number {number + 1}") for number, slot in enumerate(before)}
        names = [", ".join(labels[id(slot)] for slot in side[first : first + NAMES]) for side in (before, after)]
        path = f"{layer}.{next(number for number, slot in enumerate(slots.new) if slot is after[first])}"
        more = "…" if len(before) > first + NAMES else ""
        return ChangePlace(path, names[0] + more, names[1] + more)
    slot = next(one for one in slots.all if one.edit == edit)
    request, side = (pair.old, slots.old) if slot.new is None else (pair.new, slots.new)
    number = next(at for at, one in enumerate(side) if one is slot)
    sizes = _tokens(slot.old, counter), _tokens(slot.new, counter)
    if layer is not Layer.MESSAGES:
        name = name_of(slot.new or slot.old) if layer is Layer.TOOLS else ""
        path = wire_path(request, Breakpoint(layer, number))
        return replace(_place_block(path, slot.old, slot.new, sizes), name=name)
    blocks = [message.blocks if message else () for message in (slot.old, slot.new)]
    at = first_changed_block(*blocks)
    path = f"messages.{number}" if slot.old is None or slot.new is None else f"messages.{number}.content.{at}"
    old, new = (one[at] if at < len(one) else None for one in blocks)
    return _place_block(path, old, new, sizes)


def version_of(edit: Edit, pair: RequestPair) -> Hashable:
    """What of tools or system prompt a call has since `edit`, to compare with other calls; None in other layers."""
    slots = {"tools": pair.tools, "system": pair.system}.get(edit.layer)
    if slots is None:
        return None
    blocks = [slot.new for slot in slots.new if slot.new and (slot.edit == edit or edit.kind == "reordered")]
    if edit.kind == "reordered":
        return tuple((block.content or {}).get("name") or block.size for block in blocks)
    return tuple(block.digest for block in blocks)


def _place_value(path: str, old: Any, new: Any) -> ChangePlace:
    was, now = (None if value is None else value_text(value) for value in (old, new))
    at = first_difference(was, now) if was is not None and now is not None else None
    search = ((now,) if now else ()) if path == "model" else tuple(form.format(path) for form in NAME_FORMS)
    before, after = (None if text is None else excerpt_around(text, 0, 0, VALUE_LENGTH) for text in (was, now))
    return ChangePlace(path, before, after, at, search=search)


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


def _place_block(path: str, old: Block | None, new: Block | None, sizes: tuple[int | None, int | None]) -> ChangePlace:
    if old is None or new is None:  # a block that only one request has: how it begins
        begins = [
            None
            if block is None or block.content is None
            else excerpt_around(", ".join(text for _, text in texts(block.content)), 0, 0, VALUE_LENGTH)
            for block in (old, new)
        ]
        name = name_of(new)
        names = [form.format(name) for form in DEFINITION_FORMS] if name else []
        search = (*names, *search_texts("", _first_text(new)[1])) if new else ()
        return ChangePlace(path, begins[0], begins[1], None, *sizes, search)
    if old.content is None or new.content is None:
        return ChangePlace(path, None, None, None, *sizes)
    found = first_changed_text(old, new) or ChangedText.find(text_of(old), text_of(new))
    was, now, at = found.was, found.now, found.at
    place = f"{path}.{found.path}" if found.path else path
    return ChangePlace(place, excerpt_around(was, at), excerpt_around(now, at), at, *sizes, search_texts(was, now, at))


def _first_text(block: Block) -> tuple[str, str]:
    """(path within, text) of the longest text of a block."""
    return max(texts(block.content or {}), key=lambda one: len(one[1]), default=("", ""))


def _tokens(item: Block | Message | None, counter: TokenCounter | None) -> int | None:
    if item is None or counter is None:
        return None
    try:
        return sum(map(counter.block, item.blocks if isinstance(item, Message) else (item,)))
    except CannotCount:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptChange(ChangePlace):
    """One change of what is sent; its place is that in the first call that has it, `call` (today's number; of calls
    that are no longer made the accepted one's). `rewritten` are the calls that read less of the cache because of it,
    `refused` how many calls the API refuses since, `more` further changes that share these dollars. `varies`: it
    differs from call to call."""

    layer: str
    kind: ChangeKind
    call: int
    calls: int
    cost: Decimal
    rewritten: tuple[int, ...] = ()
    refused: int = 0
    more: int = 0
    varies: bool = False


@dataclass(frozen=True, slots=True)
class PromptComparison:
    """All changes of a strategy; their dollars and `rest` add up to `cost`, today's above the accepted calls'. `rest`
    is what other answers, times and token counts cost; `answers` the part of it that is output tokens."""

    scenario: str
    strategy: str
    changes: tuple[PromptChange, ...]
    cost: Decimal
    rest: Decimal
    answers: Decimal


@dataclass(frozen=True, slots=True)
class _CallPair:
    """A call before and now; None where a recording does not have it. `number` is today's, or the accepted one's."""

    old: Call | None
    new: Call | None
    number: int
    requests: RequestPair | None
    edits: tuple[Edit, ...]

    def place(self, edit: Edit, counter: TokenCounter | None) -> ChangePlace:
        """Where the call shows a change; of a call that only one recording has, what it adds."""
        if self.requests:
            return place_of(edit, self.requests, counter)
        call = self.new or self.old
        assert call is not None
        message = call.request.thread.message
        shown = _first_text(message.blocks[0])[1] if message and message.blocks else None
        return ChangePlace("calls", after_excerpt=shown and excerpt_around(shown, 0))


def find_prompt_changes(scenario: str, accepted: ReplayedStrategy, now: ReplayedStrategy) -> PromptComparison:
    """What changed from the `accepted` replay of a strategy to the one of today. The changes are made one after the
    other, each with a replay under today's rules and prices."""
    pairs = pair_calls(accepted, now)
    found: dict[Edit, list[int]] = {}
    for at, pair in enumerate(pairs):
        for edit in dict.fromkeys(pair.edits):
            found.setdefault(edit, []).append(at)
    edits = sorted(found, key=lambda edit: (LAYERS.index(edit.layer), KINDS.index(edit.kind)))
    alone = len(edits) if len(edits) <= MOST else MOST - 1
    made, builder = set[Edit](), EditedRequestBuilder()
    begin = before = _replay(now, pairs, made, builder)
    changes = list[PromptChange]()
    for group in [*([edit] for edit in edits[:alone]), *([edits[alone:]] if edits[alone:] else [])]:
        made.update(group)
        after = _replay(now, pairs, made, builder)
        edit, having = group[0], [pairs[at] for at in found[group[0]]]
        both = [(pair.number, old, new) for pair, old, new in zip(pairs, before, after, strict=True) if old and new]
        rewritten = [
            number
            for number, old, new in both
            if not new.error and new.usage.read < old.usage.read and new.usage.unread > old.usage.unread
        ]
        changes.append(
            PromptChange(
                **asdict(having[0].place(edit, now.counter)),
                layer=edit.layer,
                kind=edit.kind,
                call=having[0].number,
                calls=len({at for name in group for at in found[name]}),
                cost=cost(filter(None, after)) - cost(filter(None, before)),
                rewritten=tuple(rewritten),
                refused=sum(bool(new.error) and not old.error for _, old, new in both),
                more=len(group) - 1,
                varies=len({version_of(edit, one.requests) for one in having if one.requests}) > 1,
            )
        )
        before = after
    difference = now.ledger.cost.total - accepted.ledger.cost.total
    rest = difference - sum((one.cost for one in changes), ZERO)
    answers = sum((row.cost.output for row in begin if row), ZERO) - accepted.ledger.cost.output
    return PromptComparison(scenario, now.strategy, tuple(changes), difference, rest, answers)


def _replay(now: ReplayedStrategy, pairs: Sequence[_CallPair], made: set[Edit], builder: EditedRequestBuilder) -> Rows:
    """The row of each pair after the changes `made`; None where the call is not made."""
    simulation, rows = now.traffic.simulation(), list[CallRow | None]()
    for pair in pairs:
        if pair.new is None:
            call = None if CALLS_GONE in made else pair.old
        elif pair.requests is None:
            call = pair.new if CALLS_NEW in made else None
        elif made.issuperset(pair.edits):
            call = pair.new
        else:
            call = replace(pair.new, request=builder.between(pair.requests, made))
        rows.append(None if call is None else simulation.row(call))
    return rows


def pair_calls(accepted: ReplayedStrategy, now: ReplayedStrategy) -> list[_CallPair]:
    """The calls of both, in today's order; one that is no longer made stands behind the one that it followed."""
    # What makes blocks equal: their digests, unless these were made under different keys.
    blocks: list[dict[bytes, Block]] = [{}, {}]
    for replay, known in zip((accepted, now), blocks, strict=True):
        for request in (call.request for call in replay.calls):
            added = request.thread.message.blocks if request.thread.message else ()
            known.update((one.digest, one) for one in (*request.tools.blocks, *request.system.blocks, *added))
    ours, theirs = blocks
    is_bare = any(block.content is None and block.tokens is None for block in (*ours.values(), *theirs.values()))
    key = key_by_shape if is_bare and ours.keys().isdisjoint(theirs) else key_by_digest
    old, new = accepted.calls, now.calls
    pairs, shift = [], 0.0
    for one, other in pair_in_order([_call_key(call, key) for call in old], [_call_key(call, key) for call in new]):
        before = None if one is None else old[one]
        after = None if other is None else new[other]
        both = pair_requests(before.request, after.request, key) if before and after else None
        if before and after:
            shift = after.start - before.start
        elif before:
            before = replace(before, start=before.start + shift)
        number = one if other is None else other
        assert number is not None
        edits = tuple(both.edits()) if both else (CALLS_NEW if after else CALLS_GONE,)
        pairs.append(_CallPair(before, after, number + 1, both, edits))
    return pairs


def _call_key(call: Call, key: BlockKey) -> Hashable:
    """What a call adds to its conversation."""
    message = call.request.thread.message
    return call.request.thread.length, message and (message.role, tuple(map(key, message.blocks)))
