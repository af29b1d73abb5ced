"""What changed between the accepted calls of a strategy and today's: each change with its place, its text and dollars.

The dollars of a change are those of a replay in which it and all before it are made, less those of a replay without
it. The order is that of the prompt: model, tools, system, parameters, messages, breakpoints, then calls that came or
went. So the changes and the rest add up to the difference, exactly.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from cachecost.base.structs import replace as replace_struct
from cachecost.budgets.change_places import place_of, place_of_call, version_of
from cachecost.budgets.request_edits import (
    BlockKey,
    ChangeKind,
    Edit,
    EditedRequestBuilder,
    RequestPair,
    key_by_digest,
    key_by_shape,
    pair_requests,
)
from cachecost.budgets.slots import pair_in_order
from cachecost.budgets.strategy_replays import ReplayedStrategy
from cachecost.conversations.calls import Call
from cachecost.ledger.results import ZERO, CallRow
from cachecost.prompts.blocks import Block
from cachecost.prompts.counting import TokenCounter

Rows = Sequence[CallRow | None]
LAYERS = ("model", "tools", "system", "parameters", "messages", "breakpoints", "calls")
"""The order in which changes are made."""
KINDS = ("model_changed", "removed", "changed", "reordered", "added", "parameter_changed", "breakpoint_moved")
MOST = 12
"""Changes with dollars of their own; the others of a strategy are one."""
CALLS_GONE, CALLS_NEW = Edit("calls", "removed"), Edit("calls", "added")


@dataclass(frozen=True, slots=True)
class PromptChange:
    """One change of what is sent, however many calls have it.

    `path` is its place in the first of these, as sent; `call` the number of that call, today (of calls that are no
    longer made: in the accepted recording). `character` counts from 0 in the text at `path`; None where no text is
    known or none differs. Excerpts are the text around it. `tokens_before` and `tokens_after` are those of what
    changed, in `call`. `rewritten` are the calls, by their numbers today, that read less of the cache because of it,
    `refused` how many calls the API refuses since. `more` counts further changes that share these dollars. `varies`:
    calls that have it differ from each other, as with a time in a prompt. `search` are texts
    to find its place in the source code by, best first. `name` is that of the tool, "" where it is none.
    """

    layer: str
    path: str
    kind: ChangeKind
    call: int
    calls: int
    before_excerpt: str | None
    after_excerpt: str | None
    character: int | None
    tokens_before: int | None
    tokens_after: int | None
    cost: Decimal
    rewritten: tuple[int, ...] = ()
    refused: int = 0
    more: int = 0
    varies: bool = False
    search: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class PromptComparison:
    """All changes of a strategy; their dollars and `rest` add up to `cost`, today's above the accepted calls'.

    `rest` is what other answers, times and token counts cost; `answers` the part of it that is output tokens.
    """

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
    requests: RequestPair | None = None


def find_prompt_changes(scenario: str, accepted: ReplayedStrategy, now: ReplayedStrategy) -> PromptComparison:
    """What changed from the `accepted` replay of a strategy of `scenario` to the one of today."""
    pairs = _pair_calls(accepted, now)
    found = _edits(pairs)
    replays = _Replays(now, pairs)
    made: set[Edit] = set()
    begin = before = replays.rows(made)
    changes = []
    for group in _grouped(list(found)):
        made.update(group)
        after = replays.rows(made)
        change = _describe(group, found, pairs, now)
        changes.append(replace(change, **_effects(pairs, before, after)))
        before = after
    cost = now.ledger.cost.total - accepted.ledger.cost.total
    rest = cost - sum((one.cost for one in changes), ZERO)
    answers = sum((row.cost.output for row in begin if row), ZERO) - accepted.ledger.cost.output
    return PromptComparison(scenario, now.strategy, tuple(changes), cost, rest, answers)


# ------------------------------------------------------------------------------------------------ pairs


def _pair_calls(accepted: ReplayedStrategy, now: ReplayedStrategy) -> list[_CallPair]:
    """The calls of both, in today's order; one that is no longer made stands behind the one that it followed."""
    key = _block_key(accepted, now)
    old, new = accepted.calls, now.calls
    pairs, shift = [], 0.0
    for one, other in pair_in_order([_call_key(call, key) for call in old], [_call_key(call, key) for call in new]):
        before = None if one is None else old[one]
        after = None if other is None else new[other]
        both = pair_requests(before.request, after.request, key) if before and after else None
        if before and after:
            shift = after.start - before.start
        elif before:
            before = replace_struct(before, start=before.start + shift)
        number = one if other is None else other
        assert number is not None
        pairs.append(_CallPair(before, after, number + 1, both))
    return pairs


def _block_key(accepted: ReplayedStrategy, now: ReplayedStrategy) -> BlockKey:
    """What makes blocks equal: their digests, unless these were made under different keys."""
    ours, theirs = (
        {block.digest: block for call in replay.calls for block in _blocks(call)} for replay in (accepted, now)
    )
    is_bare = any(block.content is None and block.tokens is None for block in (*ours.values(), *theirs.values()))
    return key_by_shape if is_bare and ours.keys().isdisjoint(theirs) else key_by_digest


def _blocks(call: Call) -> Iterator[Block]:
    """Those of a call that no call before it has, and its tools and system prompt."""
    message = call.request.thread.message
    yield from (*call.request.tools.blocks, *call.request.system.blocks, *(message.blocks if message else ()))


def _call_key(call: Call, key: BlockKey) -> Hashable:
    """What a call adds to its conversation."""
    message = call.request.thread.message
    return call.request.thread.length, message and (message.role, tuple(map(key, message.blocks)))


def _edits(pairs: Sequence[_CallPair]) -> dict[Edit, list[int]]:
    """The indices of the pairs that have each change; changes in the order in which they are made."""
    found: dict[Edit, list[int]] = {}
    for at, pair in enumerate(pairs):
        names = pair.requests.edits() if pair.requests else [CALLS_GONE if pair.new is None else CALLS_NEW]
        for name in dict.fromkeys(names):
            found.setdefault(name, []).append(at)
    order = sorted(found, key=lambda name: (LAYERS.index(name.layer), KINDS.index(name.kind)))
    return {name: found[name] for name in order}


def _grouped(names: Sequence[Edit]) -> list[Sequence[Edit]]:
    """Each change by itself; those beyond MOST together."""
    alone = names if len(names) <= MOST else names[: MOST - 1]
    rest = names[len(alone) :]
    return [*([name] for name in alone), *([rest] if rest else [])]


# ---------------------------------------------------------------------------------------------- replays


class _Replays:
    """Replays of the calls between the accepted ones and today's, under today's rules and prices."""

    def __init__(self, now: ReplayedStrategy, pairs: Sequence[_CallPair]) -> None:
        self._now, self._pairs, self._builder = now, pairs, EditedRequestBuilder()

    def rows(self, made: set[Edit]) -> Rows:
        """The row of each pair after the changes `made`; None where the call is not made."""
        simulation = self._now.traffic.simulation()
        sent = (self._call(pair, made) for pair in self._pairs)
        return [None if call is None else simulation.row(call) for call in sent]

    def _call(self, pair: _CallPair, made: set[Edit]) -> Call | None:
        if pair.new is None:
            return None if CALLS_GONE in made else pair.old
        if pair.requests is None:
            return pair.new if CALLS_NEW in made else None
        if made.issuperset(pair.requests.edits()):
            return pair.new
        return replace_struct(pair.new, request=self._builder.between(pair.requests, made))


def _effects(pairs: Sequence[_CallPair], before: Rows, after: Rows) -> dict[str, Any]:
    """What a change does: its dollars, the calls that read less of the cache, and how many more are refused."""
    both = [(pair.number, old, new) for pair, old, new in zip(pairs, before, after, strict=True) if old and new]
    return {
        "cost": _total(after) - _total(before),
        "rewritten": tuple(number for number, old, new in both if _is_rewritten(old, new)),
        "refused": sum(bool(new.error) and not old.error for _, old, new in both),
    }


def _total(rows: Rows) -> Decimal:
    return sum((row.cost.total for row in rows if row), ZERO)


def _is_rewritten(old: CallRow, new: CallRow) -> bool:
    """Whether a call pays for input that it read before the change."""
    return not new.error and new.usage.read < old.usage.read and _unread(new) > _unread(old)


def _unread(row: CallRow) -> int:
    return row.usage.total_input - row.usage.read


# ------------------------------------------------------------------------------------------- descriptions


def _describe(
    group: Sequence[Edit], found: Mapping[Edit, Sequence[int]], pairs: Sequence[_CallPair], now: ReplayedStrategy
) -> PromptChange:
    """The first change of `group`, in the first call that has it; without its effects."""
    edit = group[0]
    first = pairs[found[edit][0]]
    call = first.new or first.old
    assert call is not None
    place = place_of(edit, first.requests, _counter(now)) if first.requests else place_of_call(call.request)
    return PromptChange(
        layer=edit.layer,
        path=place.path,
        kind=edit.kind,
        call=first.number,
        calls=len({at for name in group for at in found[name]}),
        before_excerpt=place.before,
        after_excerpt=place.after,
        character=place.character,
        tokens_before=place.tokens_before,
        tokens_after=place.tokens_after,
        cost=ZERO,
        more=len(group) - 1,
        varies=len({version_of(edit, both) for at in found[edit] if (both := pairs[at].requests)}) > 1,
        search=place.search,
        name=place.name,
    )


def _counter(now: ReplayedStrategy) -> TokenCounter | None:
    generation = next((one.rules.generation for one in now.simulated if one.rules), None)
    return now.traffic.setup.counter(generation) if generation else None
