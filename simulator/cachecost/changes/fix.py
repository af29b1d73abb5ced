"""A fix: the calls as they would have been sent. Its parts: corrected threads, versions of blocks, equal parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from math import ceil
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from cachecost.base.structs import replace
from cachecost.caches.losses import Loss
from cachecost.changes.observed_replay import (
    Conversation,
    Conversations,
    ObservedReplay,
    ScopeOf,
    in_kind,
    static_prefix_of,
)
from cachecost.changes.steps import NO_CALL, PartPool, Replays, ReplayStep, ThreadChange
from cachecost.conversations.calls import Call
from cachecost.prompts import compare
from cachecost.prompts.blocks import Block, Layer, Message, Part, Thread, given_block
from cachecost.prompts.compare import pair_in_order, shared_ends, text_of
from cachecost.prompts.output_format import skills_asked
from cachecost.prompts.request import Breakpoint, Request, accepts_breakpoint, block_of, is_server_tool


@dataclass(frozen=True, slots=True)
class Fix:
    """Calls without some losses.

    `words` name the choice that was made among several, for the finding. With `keeps_prices` only the
    tokens that are cached otherwise count, at the prices of the call as it was sent: a cheaper model saves more, and
    the finding says how much.
    """

    steps: list[ReplayStep]
    words: str = ""
    keeps_prices: bool = False
    alternative: str = ""
    """The name of the option that it is."""
    names_others: bool = False
    """Whether the finding also says what the other fixes save: they give up different things."""


@dataclass(frozen=True, slots=True)
class FixContext:
    """What fixes are made from: the replay in which the losses were found."""

    replays: Replays
    observed: ObservedReplay

    @property
    def steps(self) -> Sequence[ReplayStep]:
        return self.observed.steps

    def fix(
        self,
        changed: Iterable[ReplayStep],
        words: str = "",
        keeps_prices: bool = False,
        names_others: bool = False,
        alternative: str = "",
    ) -> Fix:
        """The calls, with the changed ones in the place of those with their numbers."""
        return Fix(replace_steps(self.steps, changed), words, keeps_prices, alternative, names_others)


MakeFixes = Callable[[FixContext, Sequence[Loss]], Iterator[Fix]]
"""Makes the fixes for losses of one cause; of several the one that saves most is taken."""


@dataclass(frozen=True, slots=True)
class Fixer:
    """How losses of a cause are fixed, and the `scope` of a fix: it is made for all calls that are equal in this, or
    for none of them. A conversation can be sent otherwise by itself; a policy is one for all conversations of a kind,
    since nobody knows at their beginning how they will go on. `tries` is how many fixes there usually are.
    """

    make: MakeFixes
    scope: ScopeOf = Conversations.conversation_of
    tries: int = 2


Versions = tuple[Block | None, Block | None]
"""A block as sent before and now; None: it was added, or is gone."""
CountBlock = Callable[[Block], int]
"""Tokens of a block."""


def are_versions(old: Block, new: Block) -> bool:
    """Whether one block is the other with other words: most of the text, or all of it in another order of keys."""
    is_named_alike = old.kind == new.kind == "tool" and _name(old) == _name(new) is not None
    is_reordered = (old.kind, old.role) == (new.kind, new.role) and old.content == new.content is not None
    return is_reordered or (is_named_alike and old.role == new.role) or compare.are_versions(old, new, Layer.TOOLS)


def _name(block: Block) -> object:
    return (block.content or {}).get("name")


def align(was: Sequence[Block], now: Sequence[Block]) -> Iterator[Versions]:
    """The blocks of `now` in order, each beside what it was, wherever that stood; then the blocks that are gone."""
    left = list(was)
    for block in now:
        old = next((one for one in left if one.digest == block.digest), None)
        old = old or next((one for one in left if are_versions(one, block)), None)
        if old is not None:
            left.remove(old)
        yield old, block
    yield from ((old, None) for old in left)


def changed_tokens(pairs: Iterable[Versions], count: CountBlock) -> int:
    """Tokens that are sent now and were not sent before."""
    total = 0
    for old, new in pairs:
        if new is None:
            continue
        if old is not None and (old.digest == new.digest or old.content == new.content is not None):
            continue
        share = 1.0
        if old is not None and old.content is not None and new.content is not None:
            one, other = text_of(old), text_of(new)
            share = 1 - sum(shared_ends(one, other)) / max(1, len(other))
        total += ceil(count(new) * share)
    return total


def with_part(call: Call, layer: Layer, part: Part) -> Call:
    """The call with other tools or another system prompt; breakpoints stay on the same or the last block."""
    request = call.request
    was = request.tools if layer is Layer.TOOLS else request.system
    if was is part or was.digest == part.digest:
        return call
    moved = [_move(one, was.blocks, part.blocks) if one.layer is layer else one for one in request.breakpoints]
    breakpoints = tuple({one.block_key: one for one in moved if one is not None}.values())
    if layer is Layer.TOOLS:
        return replace(call, request=replace(request, tools=part, breakpoints=breakpoints))
    return replace(call, request=replace(request, system=part, breakpoints=breakpoints))


def _move(breakpoint: Breakpoint, was: Sequence[Block], now: Sequence[Block]) -> Breakpoint | None:
    """On the last block it stays on the last, else on its block or the one in its place."""
    ends = [index for index, block in enumerate(now) if accepts_breakpoint(block)]
    if not ends:
        return None
    if breakpoint.index >= len(was) - 1:
        return replace(breakpoint, index=ends[-1])
    digest = was[breakpoint.index].digest
    same = (index for index, block in enumerate(now) if block.digest == digest)
    return replace(breakpoint, index=next(same, min(breakpoint.index, ends[-1])))


def with_losses(context: FixContext, losses: Iterable[Loss]) -> dict[Conversation, list[ReplayStep]]:
    """The calls of each conversation that has one of the losses, in order; extra calls are left out.

    Where a loss is due to another conversation, all with the static prefix of either belong to them: what they wrote
    for one another would be missing, if only some were sent otherwise.
    """
    conversation_of = context.observed.conversations.conversation_of
    steps = [step for step in context.steps if step.number != NO_CALL]
    found: dict[Conversation, list[ReplayStep]] = {}
    apart = set[Conversation]()
    for loss in losses:
        conversation = conversation_of(context.observed.call(loss.call))
        found[conversation] = []
        apart |= {conversation} if loss.is_apart else set()
    placed = {conversation: conversation for conversation in found}
    if apart:
        sent = [(conversation_of(step.call), static_prefix_of(step.call)) for step in steps]
        owners = {prefix: conversation for conversation, prefix in reversed(sent) if conversation in apart}
        placed = {one: owners[prefix] for one, prefix in sent if prefix in owners} | placed
    for step in steps:
        if (owner := placed.get(conversation_of(step.call))) is not None:
            found[owner].append(step)
    return found


def in_scopes(context: FixContext, losses: Iterable[Loss], scope_of: ScopeOf = in_kind) -> list[ReplayStep]:
    """The calls that have their scope in common with one of the losses; extra calls are left out."""
    scope = partial(scope_of, context.observed.conversations)
    scopes = {scope(context.observed.call(loss.call)) for loss in losses}
    return [step for step in context.steps if step.number != NO_CALL and scope(step.call) in scopes]


def replace_steps(steps: Sequence[ReplayStep], changed: Iterable[ReplayStep]) -> list[ReplayStep]:
    """The steps, with the changed ones in the place of those with their numbers."""
    known = {step.number: step for step in changed}
    return [known.get(step.number, step) if step.number != NO_CALL else step for step in steps]


def block_counter(context: FixContext, call: Call) -> CountBlock:
    """Counts blocks as the model of a call does. Raises CannotEvaluate."""
    setup = context.replays.traffic.setup
    return setup.counter(setup.rules_for(call).generation).block


class ThreadCorrections:
    """Corrected threads by the thread as it was sent. Shared parts are corrected once."""

    def __init__(self) -> None:
        self._known: dict[Thread, Thread] = {}

    def corrected(self, thread: Thread) -> Thread:
        """The corrected thread; the thread itself where nothing before it was corrected."""
        return thread.fold(self._known, thread.root, Thread.then)

    def put(self, places: dict[Thread, Thread]) -> None:
        """Messages of a thread, and where each is in the correction."""
        self._known.update(places)

    def lengthen(self, thread: Thread, tokens: int) -> None:
        """Add a block of so many tokens at the end of a thread's last message, of the kind that it ends with.

        So a message of tool results stays one.
        """
        end = self.corrected(thread)
        if tokens and end.message is not None and end.parent is not None:
            last = end.message.blocks[-1]
            added = given_block(last.kind, last.role, f"{tokens} tokens that changed", tokens)
            self._known[thread] = end.parent.then(Message.of(end.message.role, (*end.message.blocks, added)))

    def request(self, request: Request) -> Request:
        """The request with its thread corrected; breakpoints stay on their blocks, or on what is in their place."""
        thread = self.corrected(request.thread)
        if thread is request.thread:
            return request
        moved = {one.block_key: one for breakpoint in request.breakpoints if (one := self._move(breakpoint))}
        breakpoints = sorted(moved.values(), key=attrgetter("prompt_order"))
        return replace(request, thread=thread, breakpoints=tuple(breakpoints))

    def call(self, call: Call) -> Call:
        """The call with its request corrected."""
        return replace(call, request=self.request(call.request))

    def _move(self, breakpoint: Breakpoint) -> Breakpoint | None:
        if breakpoint.node is None or breakpoint.node.message is None:
            return breakpoint
        node = self.corrected(breakpoint.node)
        if node is breakpoint.node or node.message is None:
            return breakpoint
        moved = _move(breakpoint, breakpoint.node.message.blocks, node.message.blocks)
        return None if moved is None else replace(moved, node=node)


def continue_thread(
    before: Thread, now: Thread, keeps_inserted: bool = True
) -> tuple[dict[Thread, Thread], list[tuple[Message, Message]]]:
    """The thread `now` as a continuation of `before`: what both have stays as it was, what is new comes at the end.

    What was sent before stays as it was, or as a version of what was in its place. Without `keeps_inserted` what stands
    before messages that both have is left out: the summary of a compaction. Returns where its messages are in the
    continuation, and those that changed, as pairs (as sent before, as sent now).
    """
    start, places, changed = now.common(before), dict[Thread, Thread](), list[tuple[Message, Message]]()
    was, new = (list(takewhile(lambda node: node is not start, one.back()))[::-1] for one in (before, now))
    digests, others = ([node.message.digest if node.message else b"" for node in nodes] for nodes in (was, new))
    for i, k in pair_in_order(digests, others, 0):
        if i is None or k is None:
            continue
        old, node = was[i], new[k]
        if digests[i] == others[k]:
            places[node] = old
        elif old.message and node.message and old.message.role == node.message.role:
            # whether more than half of the blocks of one message are those of the other, or versions of them
            blocks = old.message.blocks, node.message.blocks
            known = {block.digest for block in blocks[0]}
            alike = sum(b.digest in known or are_versions(a, b) for a, b in zip(*blocks, strict=False))
            if 2 * alike > min(map(len, blocks)):
                places[node] = old
                changed.append((old.message, node.message))
    last_known = max((number for number, node in enumerate(new) if node in places), default=len(new) - 2)
    end = before
    for number, node in enumerate(new):
        if node not in places and (keeps_inserted or number > last_known):
            assert node.message is not None
            end = places[node] = end.then(node.message)
    places[now] = end
    return places, changed


class Parameter(NamedTuple):
    """How a parameter is read from a call, and how it is set."""

    read: Callable[[Call], Any]
    put: Callable[..., Call]

    def to(self, value: Any) -> Callable[[Call], Call]:
        """The change of a call that sets it."""
        return partial(self.put, value=value)


def same_parameter(parameter: Parameter, keeps_prices: bool = False, words: str = "") -> MakeFixes:
    """Fixes that send the first value of each conversation in all its calls, or the one that most calls have.

    `words` name that value, if it is one for all conversations.
    """
    read = parameter.read

    def make(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
        conversations = list(with_losses(context, losses).values())
        known: list[list[Any]] = []
        for pick in (itemgetter(0), most_common_value):
            values = [pick([read(step.call) for step in steps]) for steps in conversations]
            if values not in known:
                known.append(values)
                changed = [
                    step.with_change(parameter.to(value))
                    for steps, value in zip(conversations, values, strict=True)
                    for step in steps
                ]
                named = words.format(values[0]) if len(set(map(repr, values))) == 1 else ""
                yield context.fix(changed, named, keeps_prices)

    return make


def most_common_value(values: Sequence[Any]) -> Any:
    """The most frequent value, of equals the first."""
    counted = Counter(map(repr, values))
    return max(values, key=lambda one: counted[repr(one)])


def first_other_value(values: Sequence[Any]) -> Any:
    """The first value that is not that of the first call."""
    return next((one for one in values if one != values[0]), values[0])


def body_field(*path: str) -> Parameter:
    """A field of the request's body, by its path."""

    def read(call: Call) -> Any:
        found: Any = call.request.params
        for name in path:
            found = (found or {}).get(name)
        return found

    def put(call: Call, value: Any) -> Call:
        if read(call) == value:
            return call
        params = _with_field(call.request.params, path, value)
        return replace(call, request=replace(call.request, params=params))

    return Parameter(read, put)


def _with_field(fields: Any, path: Sequence[str], value: Any) -> dict[str, Any]:
    """The fields with one set; None and empty ones are left out."""
    name, *rest = path
    made = dict(fields or {})
    made[name] = _with_field(made.get(name), rest, value) if rest else value
    return {key: one for key, one in made.items() if one is not None and one != {}}


MODEL = Parameter(
    lambda call: call.request.model,
    lambda call, value: replace(call, request=replace(call.request, model=value)),
)
PLACE = Parameter(
    lambda call: (call.workspace, call.host),
    lambda call, value: replace(call, workspace=value[0], host=value[1]),
)
STAY_ON = "stay on {} for the whole conversation, or start a side conversation for the other model"
CHOICE, THINKING, SPEED = body_field("tool_choice"), body_field("thinking"), body_field("speed")
EFFORT, FORMAT = body_field("output_config", "effort"), body_field("output_config", "format")


CITABLE = frozenset({"document", "search_result"})
"""Kinds of content on which citations are enabled: on all of a request, or on none."""
WEB_USE = frozenset({"server_tool_use", "web_search_tool_result", "web_fetch_tool_result"})
SKILLS, TASK_BUDGET = body_field("container", "skills"), body_field("output_config", "task_budget")


class SystemSettings(NamedTuple):
    """The settings of a request. `web_tools` are the digests of their definitions."""

    web_tools: tuple[bytes, ...]
    has_citations: bool
    skills: Any
    task_budget: Any


class SettingWords(NamedTuple):
    """A setting in words: what it is, and how it is the same in all calls, switched on and switched off."""

    name: str
    on: str
    off: str


WORDS = (
    SettingWords(
        "web search or web fetch", "define the web tools from the first call on", "define no web tools in any call"
    ),
    SettingWords(
        "citations", "enable citations on all documents from the first call on", "enable citations in no call"
    ),
    SettingWords(
        "`container.skills`", "send the same skills from the first call on", "send no `container.skills` in any call"
    ),
    SettingWords(
        "`output_config.task_budget`", "set one task budget from the first call on", "set no task budget in any call"
    ),
)
"""In the order of `SystemSettings`."""


def settings_of(request: Request) -> SystemSettings:
    """The settings of a request."""
    return SystemSettings(
        tuple(block.digest for block in request.system.blocks if is_server_tool(block)),
        request.thread.has_citations or request.system.has_citations,
        skills_asked(request),
        (request.params.get("output_config") or {}).get("task_budget"),
    )


def changed_settings(before: Request, now: Request) -> list[str]:
    """What differs between the settings of two requests, and how: "citations were switched on"."""
    rows = zip(WORDS, settings_of(before), settings_of(now), strict=True)
    return [
        f"{words.name} {'changed' if old and new else 'switched on' if new else 'switched off'}"
        for words, old, new in rows
        if old != new
    ]


def same_settings(conversations: Sequence[Sequence[ReplayStep]]) -> Iterator[tuple[list[list[ReplayStep]], str]]:
    """The conversations with one value of each setting in all their calls: one that a call has, if all calls can be
    sent so; and that in words. As they are where no setting changes."""
    sent = [[settings_of(step.call.request) for step in steps] for steps in conversations]
    varying = {index for values in sent for index in range(len(WORDS)) if len({repr(one[index]) for one in values}) > 1}
    if not varying:
        yield list(map(list, conversations)), ""
        return
    changed, known = _SettingsChange(conversations), list[list[SystemSettings]]()
    for pick in (itemgetter(0), most_common_value, itemgetter(-1), first_other_value):
        wanted = [pick(values) for values in sent]
        if wanted in known or not changed.can_send(wanted):
            continue
        known.append(wanted)
        rows = ((WORDS[index], any(one[index] for one in wanted)) for index in sorted(varying))
        yield changed.conversations(wanted), "; ".join(words.on if is_on else words.off for words, is_on in rows)


class _SettingsChange:
    """Changes the settings of conversations to values that their calls have; blocks are as some call sent them."""

    def __init__(self, conversations: Sequence[Sequence[ReplayStep]]) -> None:
        self._conversations = conversations
        self._parts = PartPool()
        self._tools: dict[tuple[bytes, ...], tuple[Block, ...]] = {}
        self._as_sent: dict[tuple[bool, bytes], Block] = {}
        self._threads = {on: ThreadChange(partial(self._with_citations, on=on)) for on in (True, False)}
        self._uses = [self._scan(steps) for steps in conversations]

    def _scan(self, steps: Sequence[ReplayStep]) -> SystemSettings:
        """What the messages of a conversation use. Remembers each document as it was sent, cited or not."""
        kinds, cited, seen = set[str](), False, set[Thread]()
        for step in steps:
            request = step.call.request
            tools = tuple(block for block in request.system.blocks if is_server_tool(block))
            self._tools[tuple(block.digest for block in tools)] = tools
            for node in request.thread.back():
                if node in seen or node.message is None:
                    break
                seen.add(node)
                for block in node.message.blocks:
                    kinds.add(block.kind)
                    cited = cited or (
                        block.role == "assistant" and isinstance((block.content or {}).get("citations"), list)
                    )
                    for on in (True, False) if block.kind in CITABLE else ():
                        if block.has_citations is on:
                            self._as_sent.setdefault((on, _cited(block, False).digest), block)
        uses_skills = any(kind.endswith("code_execution_tool_result") for kind in kinds)
        return SystemSettings((b"",) if kinds & WEB_USE else (), cited, uses_skills, None)

    def can_send(self, wanted: Sequence[SystemSettings]) -> bool:
        """Whether each conversation has what its messages use: results of web search, citations, results of code."""
        pairs = [pair for both in zip(wanted, self._uses, strict=True) for pair in zip(*both, strict=True)]
        return all(setting or not is_used for setting, is_used in pairs)

    def conversations(self, wanted: Sequence[SystemSettings]) -> list[list[ReplayStep]]:
        return [
            [step.with_change(partial(self._put, wanted=one)) for step in steps]
            for steps, one in zip(self._conversations, wanted, strict=True)
        ]

    def _put(self, call: Call, wanted: SystemSettings) -> Call:
        call = TASK_BUDGET.to(wanted.task_budget)(SKILLS.to(wanted.skills)(call))
        now = settings_of(call.request)
        if now.has_citations != wanted.has_citations:
            change = self._threads[wanted.has_citations]
            breakpoints = tuple(
                one if one.node is None else replace(one, node=change.of(one.node)) for one in call.request.breakpoints
            )
            call = replace(
                call, request=replace(call.request, thread=change.of(call.request.thread), breakpoints=breakpoints)
            )
        if now.web_tools != wanted.web_tools:
            others = (block for block in call.request.system.blocks if not is_server_tool(block))
            call = with_part(call, Layer.SYSTEM, self._parts.of((*self._tools[wanted.web_tools], *others)))
        return call

    def _with_citations(self, message: Message, on: bool) -> Message:
        blocks = list(message.blocks)
        for index, block in enumerate(blocks):
            if block.has_citations is not on and block.content is not None:
                blocks[index] = self._as_sent.get((on, _cited(block, False).digest)) or _cited(block, on)
        return message if tuple(blocks) == message.blocks else Message.of(message.role, tuple(blocks))


def _cited(block: Block, on: bool) -> Block:
    if block.content is None:
        return block
    content = _with_citations(block.content, on)
    return block if content == block.content else block_of(block.role, content)


def _with_citations(content: Mapping[str, Any], on: bool) -> dict[str, Any]:
    made = dict(content)
    if content.get("type") in CITABLE:
        made.pop("citations", None)
        made |= {"citations": {"enabled": True}} if on else {}
    if isinstance(inner := content.get("content"), list):
        made["content"] = [_with_citations(one, on) if isinstance(one, Mapping) else one for one in inner]
    return made
