"""The fixes that are replayed, and which of them each cause has: breakpoints, times, an order, the same as before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple

from cachecost.account.causes import NOTHING, Cause, causes, coded_causes
from cachecost.base.structs import replace
from cachecost.caches.losses import LONG_TEXT, Loss
from cachecost.changes.fix import (
    CHOICE,
    EFFORT,
    FORMAT,
    MODEL,
    PLACE,
    SPEED,
    STAY_ON,
    THINKING,
    Fix,
    FixContext,
    Fixer,
    ThreadCorrections,
    align,
    block_counter,
    changed_tokens,
    continue_thread,
    in_scopes,
    replace_steps,
    same_parameter,
    same_settings,
    with_losses,
    with_part,
)
from cachecost.changes.observed_replay import conversation_of, in_kind, in_static_prefix
from cachecost.changes.option import TTLS, keep_alive_words
from cachecost.changes.places import find_markable, places
from cachecost.changes.steps import (
    NO_CALL,
    PartPool,
    ReplayStep,
    VolatileTail,
    add_pings,
    in_order,
)
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, Layer, Message, Part, given_block
from cachecost.prompts.compare import ALIKE, ancestor, common, share_alike, shared_ends, text_of
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import (
    TTL,
    Breakpoint,
    Request,
    accepts_breakpoint,
    is_server_tool,
    last_breakpoint_place,
    sent_breakpoints,
    text_block,
)
from cachecost.providers.rules import ModelRules
from cachecost.strategies.changes.keepalive import KeepAlive


def place_breakpoints(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """A breakpoint at the end of what was sent again, in this call and in the one that sent it before."""
    wanted: list[WantedBreakpoint] = []
    for loss in losses:
        rendered = context.observed.rendered[loss.call]
        wanted.append((loss.call, rendered.prompt, rendered.rules, loss.depth))
        if loss.since is not None and loss.cause != "lookback_exceeded":
            wanted.append((loss.since.number, loss.since.prompt, loss.since.rules, loss.depth))
    yield _place_breakpoints(context, wanted)


def place_missing_breakpoints(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """Breakpoints on the last block of these calls and of those that sent it before; or where the next call can read.

    The first is what automatic caching does. It also writes what is new, for the call after.
    """
    rules_of = {loss.call: context.observed.rendered[loss.call].rules for loss in losses}
    rules_of |= {
        loss.since.number: loss.since.rules
        for loss in losses
        if loss.since and not (loss.since.entry and loss.since.entry.depth >= loss.depth)
    }
    ended = list[ReplayStep]()
    for position, rules in rules_of.items():
        step = context.steps[position - 1]
        if last := last_breakpoint_place(step.call.request, "5m"):
            ended.append(step.with_request(with_breakpoint(step.call.request, last, rules)))
    yield context.fix(ended)
    yield from place_breakpoints(context, losses)


def place_where_prompts_part(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """A breakpoint where the prompts part: before the first block that is dropped or replaced nothing moves."""
    wanted: list[WantedBreakpoint] = []
    for loss in losses:
        rendered, since = context.observed.rendered[loss.call], loss.since
        shared = common(since.prompt.end, rendered.prompt.end) if since else None
        if since is not None and shared is not None:
            wanted.append((loss.call, rendered.prompt, rendered.rules, shared.depth))
            wanted.append((since.number, since.prompt, since.rules, shared.depth))
    yield _place_breakpoints(context, wanted)


WantedBreakpoint = tuple[int, Prompt, ModelRules, int]
"""The position of a step, its prompt and rules, and the number of blocks that a breakpoint should end."""


def _place_breakpoints(context: FixContext, wanted: Sequence[WantedBreakpoint]) -> Fix:
    requests: dict[int, Request] = {}
    for position, prompt, rules, depth in wanted:
        sent = context.observed.call(position).request
        prefix = find_markable(ancestor(prompt.end, min(depth, prompt.end.depth)))
        place = next((place for place in places(prompt, sent) if place.prefix is prefix), None)
        if place is not None:
            made = Breakpoint(place.layer, place.index, "5m", place.node)
            requests[position] = with_breakpoint(requests.get(position, sent), made, rules)
    changed = [context.steps[position - 1].with_request(request) for position, request in requests.items()]
    return context.fix(changed)


def with_breakpoint(request: Request, made: Breakpoint, rules: ModelRules) -> Request:
    """The request with one more breakpoint, its TTL chosen. Where that is too many, the first ones go."""
    sent = sent_breakpoints(request).every
    if any(one.block_key == made.block_key for one in sent):
        return request
    most = rules.maximum_breakpoints - bool(request.automatic)
    kept = request.breakpoints[max(0, len(request.breakpoints) - most + 1) :]  # the lookback reaches those before
    after = {one.ttl for one in kept if one.prompt_order > made.prompt_order} | ({request.automatic} - {None})
    is_hour = "1h" in after or {one.ttl for one in kept} == {"1h"}  # rule 6, or as all others
    ttl: TTL = "1h" if is_hour else "5m"
    if ttl not in rules.accepted_ttls:
        ttl = "5m" if is_hour else "1h"
    made = replace(made, ttl=ttl)
    return replace(request, breakpoints=tuple(sorted((*kept, made), key=attrgetter("prompt_order"))))


def lengthen_prefix(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """A static prefix of the model's minimum length: what it lacks is added before its breakpoint, and paid for."""
    parts, padded = PartPool(), list[ReplayStep]()

    def pad(call: Call, tokens: int) -> Call:
        padding = given_block("text", "system", f"{tokens} tokens of examples", tokens)
        return with_part(call, Layer.SYSTEM, parts.of((padding, *call.request.system.blocks)))

    for loss in losses:
        lacking = max(1, loss.minimum - context.observed.rendered[loss.call].prompt.system_tokens)
        known = {step.number for step in padded}
        same = in_scopes(context, [loss], in_static_prefix)
        padded += [step.with_change(partial(pad, tokens=lacking)) for step in same if step.number not in known]
    ended = list[ReplayStep]()
    for step in padded:
        request, rules = step.call.request, context.replays.traffic.setup.rules_for(step.call)
        end = Breakpoint(Layer.SYSTEM, len(request.system.blocks) - 1)
        ended.append(step.with_request(with_breakpoint(request, end, rules)))
    yield context.fix(ended)


LEAD_S = 5.0
"""Seconds before an entry expires at which a keep-alive is sent, as aider does (295 s for the TTL of 300)."""
MOST_PINGS = 11
"""Keep-alives in a pause that are tried: 12 reads at 0.1 cost more than a write at 1.25 does above a read."""
WAIT_S = 0.001
"""Seconds after the first token."""
FIVE, HOUR, _, HOUR_ON_STATIC = TTLS


def outlast_pauses(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """Policies for the whole log that know no pause before it comes: 1h TTLs, or keep-alives after every call."""
    concerned = in_scopes(context, losses)
    accepts_hour = any("1h" in context.observed.rendered[loss.call].rules.accepted_ttls for loss in losses)
    for choice in (HOUR, HOUR_ON_STATIC) if accepts_hour else ():
        changed = [step.with_request(choice.change(step.call.request)) for step in concerned]
        if any(one.call.request is not other.call.request for one, other in zip(changed, concerned, strict=True)):
            yield context.fix(changed, choice.does, alternative=choice.name)
    for ttl_s in {context.observed.rendered[one.call].rules.ttl_s[one.ttl]: None for one in losses if one.ttl}:
        needed = sorted(int((loss.gap_s - ttl_s) // (ttl_s - LEAD_S)) + 1 for loss in losses)
        worth = [times for times in needed if 0 < times <= MOST_PINGS]
        # What bridges the shortest pause, the middle one and the longest.
        for times in sorted({worth[0], worth[len(worth) // 2], worth[-1]}) if worth else ():
            habit = KeepAlive(every_s=ttl_s - LEAD_S, times=times)
            words = keep_alive_words(habit, ttl_s)
            pings = [step for step in add_pings(concerned, habit, context.observed.refused) if step.number == NO_CALL]
            name = f"keep-alive={habit.every_s:g}s:{times}"
            yield Fix(in_order([*context.steps, *pings]), words, alternative=name)


def shorten_hours(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """5m for all breakpoints, or for those on messages alone."""
    concerned = in_scopes(context, losses)
    for choice in (FIVE, HOUR_ON_STATIC):
        changed = [step.with_request(choice.change(step.call.request)) for step in concerned]
        yield context.fix(changed, choice.does, alternative=choice.name)


def wait_for_first_token(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """Calls that wrote what another was writing start after that one's first token."""
    steps, starts = list(context.steps), dict[int, float]()
    for loss in sorted(losses, key=lambda loss: loss.call):
        at = context.observed.call(loss.call).start
        start = at - loss.gap_s
        earlier = range(loss.call - 1, 0, -1)
        found = min(earlier, key=lambda position: abs(context.steps[position - 1].call.start - start))
        writer = context.steps[found - 1].call
        starts[loss.call] = starts.get(found, writer.start + writer.ready_s + WAIT_S)
        waiting = partial(replace, start=max(at, starts[loss.call]))
        steps[loss.call - 1] = steps[loss.call - 1].with_change(waiting)
    yield Fix(in_order(steps))


def write_less(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """First calls of these kinds of conversations without breakpoints on messages, or without any.

    Which of them will go on is not known when they are sent, so those that did pay for it.
    """
    first: dict[object, ReplayStep] = {}
    for step in in_scopes(context, losses):
        first.setdefault(conversation_of(step.call), step)
    for keeps_static in (True, False):
        fixed = list[ReplayStep]()
        for step in first.values():
            request = step.call.request
            kept = tuple(one for one in request.breakpoints if keeps_static and one.layer is not Layer.MESSAGES)
            fixed.append(step.with_request(replace(request, breakpoints=kept, automatic=None)))
        yield context.fix(fixed)


MOVABLE = frozenset({"text", "image", "document", "search_result"})
"""Kinds of blocks that may stand in any order in a message."""
Blocks = tuple[Block, ...]
SHARED_FIRST = (
    "send first what conversations share, in blocks of its own with a breakpoint at the end, and then what differs "
    "(the user's name, the question)"
)


def send_shared_first(context: FixContext, steps: Sequence[ReplayStep]) -> Iterator[ReplayStep]:
    """The calls of several conversations with the blocks that these share first, and a breakpoint at their end. A text
    of which they share a part is sent as two: that part, and the rest."""
    order = _SharedFirst(steps)
    for step in steps:
        rules = context.replays.traffic.setup.rules_for(step.call)
        made = step.with_change(order.reorder)
        yield made.with_request(order.with_breakpoint(step.call.request, made.call.request, rules))


class _SharedFirst:
    def __init__(self, steps: Sequence[ReplayStep]) -> None:
        requests = {conversation_of(step.call): step.call.request for step in reversed(steps)}.values()
        self._system = _BlockOrder([request.system.blocks for request in requests])
        self._message = _BlockOrder([request.thread.beginning.message_blocks for request in requests])
        self._parts, self._threads = PartPool(), ThreadCorrections()

    def reorder(self, call: Call) -> Call:
        request = call.request
        first = request.thread.beginning
        system, message = self._system.order(request.system.blocks), self._message.order(first.message_blocks)
        if first.parent is not None and first.message is not None and message.blocks != first.message.blocks:
            self._threads.put({first: first.parent.then(Message.of(first.message.role, message.blocks))})
        moved = list(request.breakpoints)
        for number, one in enumerate(moved):
            if one.layer is Layer.SYSTEM:
                moved[number] = replace(one, index=system.places[one.index])
            elif one.node is not None:
                index = message.places[one.index] if one.node.length == 1 else one.index
                moved[number] = replace(one, node=self._threads.corrected(one.node), index=index)
        breakpoints = tuple(sorted(moved, key=attrgetter("prompt_order")))
        part, thread = self._parts.of(system.blocks), self._threads.corrected(request.thread)
        return replace(call, request=replace(request, system=part, thread=thread, breakpoints=breakpoints))

    def with_breakpoint(self, sent: Request, request: Request, rules: ModelRules) -> Request:
        """The request with a breakpoint at the end of what is shared from its beginning; `sent` is it as sent."""
        system = self._system.order(sent.system.blocks)
        message = self._message.order(sent.thread.beginning.message_blocks)
        if message.shared and system.shared == len(system.blocks):
            place = Breakpoint(Layer.MESSAGES, message.shared - 1, node=request.thread.beginning)
            block = message.blocks[place.index]
        elif system.shared:
            place = Breakpoint(Layer.SYSTEM, system.shared - 1)
            block = system.blocks[place.index]
        else:
            return request
        return with_breakpoint(request, place, rules) if accepts_breakpoint(block) else request


class OrderedBlocks(NamedTuple):
    """Blocks in another order: where each block of before is now, or its shared piece, and how many of the first are
    shared."""

    blocks: Blocks
    places: tuple[int, ...]
    shared: int


class _BlockOrder:
    def __init__(self, parts: Sequence[Blocks]) -> None:
        self._counts = Counter(digest for blocks in parts for digest in {block.digest for block in blocks})
        self._first = {block.digest: number for number, block in reversed(list(enumerate(sum(parts, ()))))}
        own = {block.digest: block for blocks in parts for block in blocks if self._counts[block.digest] == 1}
        texts = (block for block in own.values() if block.kind == "text" and block.content is not None)
        long = [block for block in texts if block.size >= LONG_TEXT]
        alike = [block for block in long if share_alike(long[0], block) >= ALIKE]
        self._pieces: dict[bytes, tuple[Block, Block]] = {}
        """By the digests of texts that are mostly the same as the first of them: what they share, and the rest."""
        if len(alike) > 1:
            sent = list(map(text_of, alike))
            begin, end = shared_ends(*sent)
            shared = text_block(alike[0].role, sent[0][:begin] + sent[0][len(sent[0]) - end :])
            for block, text in zip(alike, sent, strict=True):
                rest = text_block(block.role, text[begin : len(text) - end] or " ")
                self._pieces[block.digest] = shared, rest

    def order(self, blocks: Blocks) -> OrderedBlocks:
        """The blocks in order. Web tools come first anyway, and results of tools have their place."""
        if not all(block.kind in MOVABLE or is_server_tool(block) for block in blocks):
            return OrderedBlocks(blocks, tuple(range(len(blocks))), 0)
        ranked = list[tuple[tuple[int, int, int], int, Block]]()
        for index, block in enumerate(blocks):
            count, first = self._counts[block.digest], self._first.get(block.digest, 0)
            pieces = self._pieces.get(block.digest)
            if is_server_tool(block):
                ranked.append(((0, 0, index), index, block))
            elif pieces is not None:
                ranked += [((1, -len(self._pieces), 0), index, pieces[0]), ((2, 0, index), -1, pieces[1])]
            else:
                ranked.append(((1, -count, first) if count > 1 else (2, 0, index), index, block))
        ranked.sort(key=itemgetter(0))
        places = {index: number for number, (_, index, _) in enumerate(ranked)}
        shared = sum(rank[0] < 2 for rank, _, _ in ranked)
        own_places = tuple(places[index] for index in range(len(blocks)))
        return OrderedBlocks(tuple(block for _, _, block in ranked), own_places, shared)


def same_tools(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """Every tool of a conversation from its first call on, as first sent and in the order first sent."""
    parts, changed = PartPool(), list[ReplayStep]()
    for steps in with_losses(context, losses).values():
        lists = [step.call.request.tools for step in steps]
        found = list(lists[0].blocks)
        for part in dict.fromkeys(lists[1:]):
            found += [new for old, new in align(found, part.blocks) if old is None and new is not None]
        tools = parts.of(found)
        changed += [step.with_change(partial(with_part, layer=Layer.TOOLS, part=tools)) for step in steps]
    yield context.fix(changed)


def same_system(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """The system prompt of a conversation's first call; what changes is sent in the last message, or in each call after
    the last breakpoint. Of settings that it is rendered with, one value in all calls. What several conversations share
    behind what differs comes first."""
    reordered, others = _reorder_shared(context, losses)
    conversations = list(with_losses(context, others).values())
    for changed, words in same_settings(conversations):
        yield _join_reordered(context, _repeat_first_system(context, changed, words) if others else None, reordered)
    moved = [
        step.with_change(tail)
        for steps in conversations
        for tail in [VolatileTail.find([step.call for step in steps])]
        for step in steps
    ]
    if moved:
        yield _join_reordered(context, context.fix(moved), reordered)


def _reorder_shared(context: FixContext, losses: Sequence[Loss]) -> tuple[list[ReplayStep], list[Loss]]:
    """The calls of conversations that share what comes after what differs; and the losses of all others."""
    conversation_of = context.observed.conversations.conversation_of
    found = with_losses(context, [loss for loss in losses if loss.is_out_of_order])
    others = [loss for loss in losses if conversation_of(context.observed.call(loss.call)) not in found]
    return [one for steps in found.values() for one in send_shared_first(context, steps)], others


def _join_reordered(context: FixContext, fix: Fix | None, reordered: Sequence[ReplayStep]) -> Fix:
    if not reordered:
        assert fix is not None
        return fix
    words = f"{fix.words}; {SHARED_FIRST}" if fix and fix.words else SHARED_FIRST
    return Fix(replace_steps(fix.steps if fix else context.steps, reordered), words)


def _repeat_first_system(context: FixContext, conversations: Sequence[Sequence[ReplayStep]], words: str = "") -> Fix:
    corrections, changed = ThreadCorrections(), list[ReplayStep]()

    def change(call: Call, system: Part) -> Call:
        return with_part(corrections.call(call), Layer.SYSTEM, system)

    for steps in conversations:
        count, first = block_counter(context, steps[0].call), steps[0].call.request.system
        for before, now in pairwise(step.call.request for step in steps):
            if now.system is not before.system and now.system.digest != before.system.digest:
                new = changed_tokens(align(before.system.blocks, now.system.blocks), count)
                corrections.lengthen(now.thread, new)
        changed += [step.with_change(partial(change, system=first)) for step in steps]
        if words and any(step.call.request.system.digest != first.digest for step in steps):
            words = f"{words}; {causes()['system_changed'].fix}"
    return context.fix(changed, words, names_others=bool(words))


def same_messages(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """Earlier messages as they were sent before; what is new comes after them, also what changed in them. What several
    conversations share behind what differs comes first."""
    reordered, others = _reorder_shared(context, losses)
    yield _join_reordered(
        context, _continue_messages(context, others, keeps_inserted=True) if others else None, reordered
    )


def no_compaction(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """The whole history instead of the summary; or the summary, and a breakpoint on what it leaves as it was."""
    yield _continue_messages(context, losses, keeps_inserted=False)
    yield from place_where_prompts_part(context, losses)


def _continue_messages(context: FixContext, losses: Sequence[Loss], keeps_inserted: bool) -> Fix:
    since = {loss.call: loss.since.request for loss in losses if loss.since}
    corrections, changed = ThreadCorrections(), list[ReplayStep]()
    for position, step in enumerate(context.steps, 1):
        if before := since.get(position):
            thread = step.call.request.thread
            corrected = corrections.corrected(thread)
            kept, versions = continue_thread(corrections.corrected(before.thread), corrected, keeps_inserted)
            corrections.put({**kept, thread: kept[corrected]})
            count = block_counter(context, step.call)
            corrections.lengthen(thread, sum(changed_tokens(align(a.blocks, b.blocks), count) for a, b in versions))
        if corrections.request(step.call.request) is not step.call.request:
            changed.append(step.with_change(corrections.call))
    return context.fix(changed)


def image_from_the_start(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """A tiny image in the first message of each conversation, so that a later one changes nothing."""
    corrections, changed = ThreadCorrections(), list[ReplayStep]()
    for steps in with_losses(context, losses).values():
        for step in steps:
            first = step.call.request.thread.up_to(1)
            assert first.message is not None and first.parent is not None
            image = replace(given_block("image", first.message.role, "a tiny image", 1), has_image=True)
            corrections.put({first: first.parent.then(Message.of(first.message.role, (image, *first.message.blocks)))})
            changed.append(step.with_change(corrections.call))
    yield context.fix(changed)


FIX_ORDER = ("prompt", "time", "breakpoints", "bill")
FIXES: Mapping[str, Fixer] = {
    "same_model": Fixer(same_parameter(MODEL, keeps_prices=True, words=STAY_ON)),
    "same_workspace": Fixer(same_parameter(PLACE, keeps_prices=True)),
    "same_speed": Fixer(same_parameter(SPEED, keeps_prices=True)),
    "same_tools": Fixer(same_tools),
    "same_system": Fixer(same_system),
    "same_messages": Fixer(same_messages),
    "no_compaction": Fixer(no_compaction),
    "same_tool_choice": Fixer(same_parameter(CHOICE)),
    "same_format": Fixer(same_parameter(FORMAT)),
    "same_thinking": Fixer(same_parameter(THINKING)),
    "same_effort": Fixer(same_parameter(EFFORT)),
    "image_from_the_start": Fixer(image_from_the_start),
    "place_where_prompts_part": Fixer(place_where_prompts_part, tries=1),
    "place_breakpoints": Fixer(place_breakpoints, tries=1),
    "place_missing_breakpoints": Fixer(place_missing_breakpoints),
    "lengthen_prefix": Fixer(lengthen_prefix, in_static_prefix),
    "outlast_pauses": Fixer(outlast_pauses, in_kind, tries=5),
    "wait_for_first_token": Fixer(wait_for_first_token, tries=1),
    "shorten_hours": Fixer(shorten_hours, in_kind),
    "write_less": Fixer(write_less, in_kind),
}
"""The fixes that are replayed, by the names that `causes.toml` gives to causes."""
FIXERS: Mapping[Cause, Fixer] = {
    row.cause: FIXES[row.fixer]
    for row in sorted(coded_causes().values(), key=lambda row: FIX_ORDER.index(row.fixed_in))
    if row.fixer != NOTHING
}
"""The fix of each cause that has one, in the order in which they are tried."""
