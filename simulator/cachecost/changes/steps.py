"""Calls as they would have been sent, each with the recorded call that it replaces, and their replays: whole, or of
those calls alone whose outcome can differ from that in an earlier replay. Where other content is sent, its bill is that
of the recorded call, scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.caches.hosts import SimulatedHosts, UnexplainedHosts
from cachecost.caches.losses import EarlierCall, have_one_static
from cachecost.caches.tracking import (
    START,
    CacheUse,
    ChangedCache,
    LineageAnswers,
    TrackedCache,
    TrackedLineage,
    number_of,
)
from cachecost.conversations.calls import Call, derive_call, strip_recording
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import NOTHING, Block, Layer, Message, Part, Thread
from cachecost.prompts.compare import shared_ends
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import TTL, Breakpoint, Request, block_of, is_server_tool, sent_breakpoints
from cachecost.providers.prices import Prices
from cachecost.providers.usage import ZERO, Usage
from cachecost.simulation.engine import AS_RECORDED, CallPreparer, Pass, SimulatedCall, Simulation
from cachecost.simulation.workload import Workload
from cachecost.strategies.changes.keepalive import KeepAlive

NO_CALL = 0
"""The number of an extra call, which replaces no recorded one. Recorded calls count from 1."""


class ReplayStep(msgspec.Struct, frozen=True):
    """A call to replay. `number` is the recorded call that it replaces, 0 for an extra call.

    `content` is the call with the breakpoints of the recorded one, on what is sent now: bills that tell the length
    of the recorded prompt up to its breakpoints tell, or scaled say, that of this one.
    """

    number: int
    call: Call
    content: Call

    def with_request(self, request: Request) -> ReplayStep:
        """The same content, marked otherwise."""
        return replace(self, call=replace(self.call, request=request))

    def with_change(self, change: Callable[[Call], Call]) -> ReplayStep:
        """Other content."""
        call, sent = change(self.call), self.call.request
        if call.least_read is not None and _prompt_of(call.request) != _prompt_of(sent):
            call = replace(call, least_read=None)
        return replace(self, call=call, content=call if self.content is self.call else change(self.content))

    def is_same(self, other: ReplayStep) -> bool:
        """Whether both send the same content for the same recorded call, or are the same extra call."""
        if self.number == NO_CALL:
            return self.call is other.call
        one, two = self.content, other.content
        return self.number == other.number and (one is two or _content_key(one) == _content_key(two))


def _prompt_of(request: Request) -> tuple[int, int, int]:
    return id(request.tools), id(request.system), id(request.thread)


def _content_key(call: Call) -> tuple[object, ...]:
    """What the prompt and the bill of a call depend on; how much it can read is another matter."""
    where = call.start, call.day, call.host, call.workspace, call.is_batch
    return id(call.request), id(call.response), call.output_tokens, call.ready_s, *where


StepChange = Callable[[Sequence[ReplayStep]], list[ReplayStep]]


def as_sent(calls: Iterable[Call]) -> list[ReplayStep]:
    """The recorded calls."""
    return [ReplayStep(number, call, call) for number, call in enumerate(calls, 1)]


def change_calls(change: Callable[[Call], Call]) -> StepChange:
    """Other content in each call."""
    return lambda steps: [step.with_change(change) for step in steps]


def change_breakpoints(marked: Callable[[Request], Request]) -> StepChange:
    """Other breakpoints in each call."""
    return lambda steps: [step.with_request(marked(step.call.request)) for step in steps]


def in_order(steps: Iterable[ReplayStep]) -> list[ReplayStep]:
    """By their start; what starts together stays as it stood."""
    return sorted(steps, key=lambda step: step.call.start)


def conversation_of(call: Call) -> tuple[Thread, str, str, bool]:
    """The conversation that a call belongs to: it has its first message, in one place."""
    return call.request.thread.beginning, call.host or "", call.workspace, call.is_batch


def conversations(steps: Iterable[ReplayStep]) -> list[list[ReplayStep]]:
    """The steps of each conversation, in the order they begin."""
    found: dict[object, list[ReplayStep]] = {}
    for step in steps:
        found.setdefault(conversation_of(step.call), []).append(step)
    return list(found.values())


def cost(rows: Iterable[CallRow]) -> Decimal:
    """USD of rows."""
    return sum((row.cost.total for row in rows), ZERO)


def has_breakpoints(request: Request) -> bool:
    return bool(request.breakpoints) or request.automatic is not None


def continue_request(request: Request, thread: Thread, fixed: Collection[object] = ()) -> Request:
    """The request with its thread gone on to `thread`. Breakpoints with the keys `fixed` stay, the others in messages
    keep their distance to the end."""
    placed: dict[object, Breakpoint] = {}
    for one in request.breakpoints:
        if one.node is not None and one.block_key not in fixed:
            node = thread.up_to(thread.length - (request.thread.length - one.node.length))
            blocks = node.message_blocks
            index = max(0, len(blocks) - (len(one.node.message_blocks) - one.index))
            if not blocks or blocks[index].is_thinking:
                continue
            one = replace(one, node=node, index=index)
        placed[one.block_key] = one
    breakpoints = tuple(sorted(placed.values(), key=lambda one: one.prompt_order))
    return replace(request, thread=thread, breakpoints=breakpoints)


class ThreadChange:
    """Rewrites threads message by message. Shared parts of threads are rewritten once."""

    def __init__(self, rewrite: Callable[[Message], Message | None]) -> None:
        self._rewrite = rewrite
        self._known: dict[Thread, Thread] = {}

    def of(self, thread: Thread) -> Thread:
        """The rewritten thread; a message rewritten to None is left out."""

        def append(before: Thread, message: Message) -> Thread:
            rewritten = self._rewrite(message)
            return before.then(rewritten) if rewritten is not None else before

        return thread.fold(self._known, thread.root, append)

    def request(self, request: Request) -> Request:
        """The request with its thread rewritten. Breakpoints stay on their blocks and disappear with them."""
        kept = list[Breakpoint]()
        for breakpoint in request.breakpoints:
            if breakpoint.node is None or breakpoint.node.message is None:
                kept.append(breakpoint)
                continue
            node = self.of(breakpoint.node)
            assert node.message is not None
            digests = [block.digest for block in node.message.blocks]
            digest = breakpoint.node.message.blocks[breakpoint.index].digest
            if digest in digests:
                kept.append(replace(breakpoint, index=digests.index(digest), node=node))
        return replace(request, thread=self.of(request.thread), breakpoints=tuple(kept))


class PartPool:
    """Parts that are the same object where they have the same blocks."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, ...], Part] = {}

    def of(self, blocks: Iterable[Block]) -> Part:
        """The one part with these blocks."""
        made = tuple(blocks)
        key = tuple(block.digest for block in made)
        return self._known.setdefault(key, Part(made)) if made else NOTHING


def set_ttl(ttl: TTL) -> Callable[[Request], Request]:
    """Every breakpoint with this TTL."""
    return partial(_with_ttls, ttl_of=lambda layer: ttl)


def set_hour_on(layers: Sequence[Layer]) -> Callable[[Request], Request]:
    """1h for breakpoints on these layers, 5m for others."""
    return partial(_with_ttls, ttl_of=lambda layer: "1h" if layer in layers else "5m")


def _with_ttls(request: Request, ttl_of: Callable[[Layer], TTL]) -> Request:
    breakpoints = tuple(replace(breakpoint, ttl=ttl_of(breakpoint.layer)) for breakpoint in request.breakpoints)
    automatic = ttl_of(Layer.MESSAGES) if request.automatic else None
    if breakpoints == request.breakpoints and automatic == request.automatic:
        return request
    return replace(request, breakpoints=breakpoints, automatic=automatic)


MOST_CHANGED = 0.5
"""The share of the calls beyond which all are made anew."""
CHANGED = -1
"""In the place of a call's number in the earlier replay: later calls find another one."""


class TrackedCall(msgspec.Struct, frozen=True):
    """A call as simulated, and what it asked."""

    made: SimulatedCall
    use: CacheUse
    answers: LineageAnswers


class TrackedReplay:
    """A replay of all steps that others can be derived from, once it has run. `preparer` has learned from the bills.

    Those of one that is not `explained` are only priced.
    """

    def __init__(
        self, traffic: Workload, steps: Sequence[ReplayStep], preparer: CallPreparer, explained: bool = True
    ) -> None:
        self.traffic = traffic
        self.steps = steps
        self.preparer = preparer
        self.calls: list[TrackedCall] = []
        self._cache = TrackedCache()
        self._explained = explained
        self.history = self._cache.history

    def run(self) -> Iterator[SimulatedCall]:
        """Each call as simulated."""
        cache, lineage = self._cache, TrackedLineage()
        hosts = SimulatedHosts(cache, lineage) if self._explained else UnexplainedHosts(cache)
        simulation = self.traffic.simulation(preparer=self.preparer, hosts=hosts)
        for position, step in enumerate(self.steps, 1):
            made = simulation.simulate(step.call)
            self.calls.append(TrackedCall(made, cache.end_call(position), lineage.end_call()))
            yield made

    def release(self) -> None:
        """Free what only other replays need: none is derived from this one any more."""
        self.calls.clear()
        self.history.clear()

    def match(self, steps: Sequence[ReplayStep]) -> list[int] | None:
        """For each of other steps its position here, 0 for one that is new. None: more must be replayed than that.

        The recorded calls must have the content that they have here, in the same order, and few other breakpoints.
        """
        if (
            len(self.calls) != len(self.steps)
            or self.traffic.setup.rules.assumptions.is_drawn
            or not all(one.made.rules is None or one.made.rules.uses_breakpoints for one in self.calls)
        ):
            return None
        found, position, changed = list[int](), START, 0
        for step in steps:
            here = self.steps[position] if position < len(self.steps) else None
            if here is not None and here.is_same(step):
                position += 1
                changed += here.call is not step.call
                found.append(position)
            elif step.number == NO_CALL:
                found.append(START)
            else:
                return None
        return found if position == len(self.steps) and changed <= MOST_CHANGED * position else None


class PricedSimulation(Simulation):
    """A simulation whose rows have the cost of a call, but no layers and no error margin."""

    def _details(self, call: Call, passed: Sequence[Pass], prices: Prices, is_recorded: bool) -> dict[str, Any]:
        return {"by_layer": {}, "cost_by_layer": {}}


class ChangedReplay:
    """Steps that match those of an `earlier` replay at the positions `matches`, as `TrackedReplay.match` finds them.

    `kind` makes the rows. Without `explained` they have no causes, and kept calls have their number in the earlier
    replay.
    """

    def __init__(
        self,
        earlier: TrackedReplay,
        steps: Sequence[ReplayStep],
        matches: Sequence[int],
        kind: type[Simulation] = Simulation,
        explained: bool = True,
    ) -> None:
        self._earlier = earlier
        self._pairs = list(zip(steps, matches, strict=True))
        self._cache = ChangedCache(earlier.history)
        self._lineage = TrackedLineage() if explained else None
        hosts = SimulatedHosts(self._cache, self._lineage) if self._lineage else UnexplainedHosts(self._cache)
        self._simulation = earlier.traffic.simulation(preparer=earlier.preparer, hosts=hosts, kind=kind)
        self._matches = [START]
        """By number of the call, its number in the earlier replay, or CHANGED."""
        self._numbers = [START]
        """By number in the earlier replay, the number here."""

    def run(self) -> Iterator[SimulatedCall]:
        """Each call as simulated, or as it was in the earlier replay."""
        position = START
        for step, match in self._pairs:
            position = match or position
            before = self._earlier.calls[match - 1] if match else None
            if match:
                self._numbers.append(len(self._matches))
            is_kept = before and self._earlier.steps[match - 1].call is step.call
            if before and is_kept and self._finds_alike(step.call, before):
                yield self._keep(before, match)
                continue
            if self._lineage:
                self._lineage.end_call()  # what was asked to compare
            made = self._simulation.simulate(step.call)
            self._cache.end_call(position, step.call.start, before.use.changed if before else ())
            if self._lineage:
                deepest = self._lineage.end_call().deepest
                is_alike = before and deepest == before.answers.deepest and made.passes and before.made.passes
                self._matches.append(match if is_alike else CHANGED)
            yield made

    def _keep(self, before: TrackedCall, match: int) -> SimulatedCall:
        self._cache.pass_over(match, before.use.changed)
        number = self._simulation.pass_over()
        made = before.made
        if self._lineage is None:
            return made
        self._matches.append(match)
        self._lineage.end_call()
        if number == match:
            return made
        passes, numbers = made.passes, self._numbers
        if made.losses:
            losses = tuple(
                replace(
                    loss,
                    call=numbers[loss.call],
                    since=loss.since and replace(loss.since, number=numbers[loss.since.number]),
                )
                for loss in made.losses
            )
            passes = (replace(passes[0], losses=losses), *passes[1:])
        return made._replace(row=replace(made.row, call=number), passes=passes)

    def _finds_alike(self, call: Call, before: TrackedCall) -> bool:
        made, answers, lineage = before.made, before.answers, self._lineage
        if not made.passes or made.rules is None:
            return True
        has_loss = lineage is not None and bool(made.losses)
        if before.use.is_warm or not self._cache.finds_alike(before.use, call.start, has_loss):
            return False
        if lineage is None:
            return True
        if answers.is_recent:
            return False
        rules, prompt, pool = made.rules, made.passes[0].prompt, made.rules.pool(call.workspace)
        relatives = lineage.forerunner(call.request, rules.model, pool)
        if not (
            self._match(relatives.nearest) == answers.nearest
            and self._match(relatives.latest) == answers.latest
            and (answers.shared is None or lineage.find_shared(prompt) is answers.shared)
            and all(self._match(lineage.sender(prefix)) == number for prefix, number in answers.senders)
            and answers.begun in (None, lineage.has_begun(call.request.thread, pool))
        ):
            return False
        number = len(self._matches)
        lineage.remember(number, call.start, call.request, prompt, rules, answers.deepest, relatives)
        return True

    def _match(self, call: EarlierCall | None) -> int:
        return self._matches[number_of(call)]


def add_pings(steps: Sequence[ReplayStep], habit: KeepAlive, refused: Collection[int] = ()) -> list[ReplayStep]:
    """The steps, and pings in the pauses of each conversation. The `refused` calls cached nothing to keep alive."""
    made = list(steps)
    for conversation in conversations(steps):
        calls = [step.call for step in conversation if step.number not in refused]
        for ping in plan_pings([call for call in calls if not call.has_failed and not call.why_unknown], habit):
            made.append(ReplayStep(NO_CALL, ping, ping))
    return in_order(made)


def plan_pings(calls: Sequence[Call], habit: KeepAlive) -> Iterator[Call]:
    """The pings in the pauses of a conversation with these calls."""
    sent = 0
    for call in habit.plan_calls(map(strip_recording, calls)):
        if call.purpose == "ping":
            yield derive_call(calls[sent - 1], call.request, call.start, call.output_tokens, "ping")
        else:
            sent += 1


Progress = Callable[[str, int], None]
"""Called with what is replayed and how many calls that is."""


def quiet(what: str, calls: int) -> None:
    """No progress is shown."""


@dataclass(slots=True)
class Replays:
    """Replays steps under the setup of a workload.

    Where a step sends other content than was billed, its prompt has no bill. It gets one: the recorded bill, scaled by
    what the token counters make of both, so that the prices of two ways differ by what is sent and not by how it was
    counted. A reordered list of tools, for one, is as long as it was billed.
    """

    traffic: Workload
    progress: Progress = quiet
    recorded: list[ReplayStep] = field(default_factory=list)
    _sent: dict[int, Prompt | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.recorded = as_sent(self.traffic.calls)

    def rows(
        self, steps: Sequence[ReplayStep], what: str = AS_RECORDED, kind: type[Simulation] = Simulation
    ) -> list[CallRow]:
        """The row of each step, in their order. Their causes are not looked for."""
        simulation = self.traffic.simulation(preparer=self.preparer(steps), hosts=UnexplainedHosts(), kind=kind)
        rows = [simulation.row(step.call) for step in steps]
        self.progress(what, len(rows))
        return rows

    def recorded_rows(self) -> tuple[TrackedReplay, list[CallRow]]:
        """The recording as it was sent, as a replay that others can be derived from if these are only priced."""
        replay = TrackedReplay(self.traffic, self.recorded, self.preparer(self.recorded), explained=False)
        rows = [made.row for made in replay.run()]
        self.progress(AS_RECORDED, len(rows))
        return replay, rows

    def simulate(self, steps: Sequence[ReplayStep]) -> list[SimulatedCall]:
        """The same with what the cache did."""
        simulation = self.simulation(steps)
        return [simulation.simulate(step.call) for step in steps]

    def by_call(self, steps: Sequence[ReplayStep], rows: Sequence[CallRow]) -> dict[int, CallRow]:
        """The rows by the recorded call that they stand for."""
        return {step.number: row for step, row in zip(steps, rows, strict=True) if step.number != NO_CALL}

    def cold(self) -> Replays:
        """The same replays with nothing cached before the first call; itself where nothing can be."""
        setup = self.traffic.setup
        if not setup.may_start_warm or setup.rules.assumptions.warm_start == "cold":
            return self
        return self.with_workload(self.traffic.with_assumptions({"warm_start": "cold"}))

    def with_workload(self, traffic: Workload) -> Replays:
        """The same calls on other ground."""
        return Replays(traffic, self.progress)

    def changed_rows(
        self,
        steps: Sequence[ReplayStep],
        earlier: TrackedReplay,
        what: str = "",
        kind: type[Simulation] = PricedSimulation,
    ) -> list[CallRow]:
        """As `rows`; of calls that an `earlier` replay also has, only those are made anew whose outcome can differ."""
        matches = earlier.match(steps)
        if matches is None:
            return self.rows(steps, what, kind)
        rows = [made.row for made in ChangedReplay(earlier, steps, matches, kind, explained=False).run()]
        self.progress(what, len(rows))
        return rows

    def simulation(self, steps: Sequence[ReplayStep]) -> Simulation:
        """A simulation of the steps that has learned from the bills."""
        return self.traffic.simulation(preparer=self.preparer(steps))

    def preparer(self, steps: Sequence[ReplayStep]) -> CallPreparer:
        """It has learned from the bills, also what they would be for other content.

        What was cached before the recording began is cached under every way to send it.
        """
        preparer = self.traffic.setup.preparer()
        calls = self.traffic.calls
        changed = [step for step in steps if step.number != NO_CALL and step.content is not calls[step.number - 1]]
        if not changed:
            marked = {id(one.call): one.content for one in steps if one.call is not one.content}
            return preparer.with_contents(marked) if marked else preparer
        preparer = preparer.fork_for(step.content for step in changed)
        if not self.traffic.setup.bills:
            return preparer
        for step in changed:
            sent = calls[step.number - 1]
            billed = sent.billed
            scaled = billed and self._scale_bill(billed, sent, step.content, preparer)
            if scaled:
                preparer.learn(step.number, step.content, scaled)
        lengths = preparer.lengths
        for step in changed:
            was, now = self._sent_prompt(calls[step.number - 1]), self._prompt(step.content, preparer)
            if was is None or now is None or lengths is None or len(was.breakpoints) != len(now.breakpoints):
                continue
            for before, after in zip(was.breakpoints[:-1], now.breakpoints[:-1], strict=True):
                billed_length = lengths.told(before.prefix)
                if billed_length is not None and lengths.told(after.prefix) is None:
                    tokens = _scale(billed_length, before.prefix.tokens, after.prefix.tokens)
                    lengths.learn_prefix(step.number, after.prefix, tokens)
        return preparer

    def tracked_replay(self, steps: Sequence[ReplayStep]) -> TrackedReplay:
        """A replay of the steps that others can be derived from."""
        return TrackedReplay(self.traffic, steps, self.preparer(steps))

    def are_as_sent(self, steps: Sequence[ReplayStep]) -> bool:
        """Whether the recorded calls among the steps have the content that was billed."""
        calls = self.traffic.calls
        return all(step.number == NO_CALL or step.content is calls[step.number - 1] for step in steps)

    def _scale_bill(self, billed: Usage, sent: Call, content: Call, preparer: CallPreparer) -> Usage | None:
        """The bill of `sent` scaled to `content`: its length, and that up to its last breakpoint; None if unknown."""
        was, now = self._sent_prompt(sent), self._prompt(content, preparer)
        if was is None or now is None:
            return None
        # How long the definitions of web tools are is a guess: without them, bills of the messages before say more.
        web_tools = [sum(map(is_server_tool, call.request.system.blocks)) for call in (sent, content)]
        if web_tools[0] != web_tools[1] and preparer.lengths and preparer.lengths.tells_beginning(now):
            return None
        total = _scale(billed.total_input, was.total_tokens, now.total_tokens)
        cached = billed.read + billed.write if was.breakpoints and now.breakpoints else 0
        if not cached:
            return Usage(total)
        end = _scale(cached, was.breakpoints[-1].prefix.tokens, now.breakpoints[-1].prefix.tokens)
        return Usage(max(0, total - end), min(end, total))

    def _sent_prompt(self, call: Call) -> Prompt | None:
        if id(call) not in self._sent:
            self._sent[id(call)] = self._prompt(call, self.traffic.setup.preparer())
        return self._sent[id(call)]

    def _prompt(self, call: Call, preparer: CallPreparer) -> Prompt | None:
        try:
            rules = self.traffic.setup.rules_for(call)
            renderer, sent = preparer.prompts.renderer(rules.generation), sent_breakpoints(call.request)
            prompt = preparer.prompt_as_sent(call)
            prompt = prompt or renderer.render(call.request, sent.breakpoints, rules, call.workspace)
        except CannotEvaluate:
            return None
        return None if renderer.why_unsized(prompt, None) else prompt


def _scale(billed: int, was: int, now: int) -> int:
    return billed if was == now or not was else round(billed * now / was)


LINE = 80
"""Characters: words that change are sent with the line they stand in, if what is before them there is not longer."""

Span = tuple[int, int]
"""How many characters at the beginning and at the end of a text never change."""


@dataclass(slots=True)
class VolatileTail:
    """Calls whose volatile words stand at the end. `spans`: by size of the system prompt and place; None: all."""

    spans: dict[tuple[int, int], Span | None]
    _parts: PartPool = field(default_factory=PartPool)

    @classmethod
    def find(cls, calls: Sequence[Call]) -> VolatileTail:
        """Places whose blocks differ between calls of one conversation, or of conversations with one static prefix,
        that are sent as many system blocks."""
        last: dict[object, Request] = {}
        seen: dict[tuple[int, int], dict[bytes, Block]] = {}
        for call in calls:
            request = call.request
            size = len(request.system.blocks)
            place = size, call.host, call.workspace
            conversation = request.thread.up_to(1), *place
            before, latest = last.get(conversation), last.get(place)
            if before is None and latest and have_one_static(latest, request):
                before = latest
            last[conversation] = last[place] = request
            for index, block in enumerate(request.system.blocks):
                was = before.system.blocks[index] if before else block
                if was.digest != block.digest and block.role:
                    seen.setdefault((size, index), {}).update({was.digest: was, block.digest: block})
        return cls({place: _span([*blocks.values()]) for place, blocks in seen.items()})

    def __call__(self, call: Call) -> Call:
        request = call.request
        size = len(request.system.blocks)
        if request.thread.message is None or not any((size, index) in self.spans for index in range(size)):
            return call
        kept, gone, moved = list[Block](), list[int](), list[Block]()
        for index, block in enumerate(request.system.blocks):
            span = self.spans.get((size, index))
            if (size, index) not in self.spans:
                kept.append(block)
            elif span is None:
                gone.append(index)
                moved.append(block)
            else:
                assert block.content is not None
                text = str(block.content["text"])
                start, end = span[0], len(text) - span[1]
                kept.append(block_of(block.role, {**block.content, "text": text[:start] + text[end:]}))
                moved.append(block_of("user", {"type": "text", "text": text[start:end]}))
        return replace(call, request=_with_tail(request, self._parts.of(kept), gone, moved))


def _span(blocks: Sequence[Block]) -> Span | None:
    """What all texts begin and end with, in whole words; None if that is less than half, or there is no content."""
    texts = [block.content.get("text") if block.content and block.kind == "text" else None for block in blocks]
    if any(not isinstance(text, str) for text in texts):
        return None
    words = [str(text) for text in texts]
    head, tail = shared_ends(*words)
    shortest = min(map(len, words))
    first = words[0]
    head = _edge(first[:head])
    tail = _edge(first[len(first) - tail :][::-1])
    is_line = head == 0 or first[head - 1] == "\n"
    if is_line and tail and first[len(first) - tail] == "\n":
        tail -= 1  # the end of the line goes with it
    return (head, tail) if 2 * (head + tail) >= shortest and head + tail else None


def _edge(text: str) -> int:
    """Where the text that stays ends: with its last line, if what follows that is short, else with its last word."""
    line = text.rfind("\n") + 1
    if line and len(text) - line <= LINE:
        return line
    return next((end for end in range(len(text), 0, -1) if text[end - 1].isspace()), 0)


def _with_tail(request: Request, system: Part, gone: Sequence[int], moved: Sequence[Block]) -> Request:
    """`moved` at its end, without those `gone`, whose breakpoints move to the one before, else to the last tool."""
    thread, message = request.thread, request.thread.message
    assert message is not None and thread.parent is not None
    tail = tuple(
        block_of(message.role, block.content) if block.content is not None else replace(block, role=message.role)
        for block in moved
        if not block.is_empty_text
    )
    longer = thread.parent.then(Message.of(message.role, (*message.blocks, *tail)))
    kept: dict[object, Breakpoint] = {}
    for breakpoint in sent_breakpoints(request).every:
        if breakpoint.node is thread:
            breakpoint = replace(breakpoint, node=longer)
        elif breakpoint.layer is Layer.SYSTEM:
            index = breakpoint.index - sum(one <= breakpoint.index for one in gone)
            if index < 0 and not request.tools.blocks:
                continue
            breakpoint = (
                replace(breakpoint, index=index)
                if index >= 0
                else Breakpoint(Layer.TOOLS, len(request.tools.blocks) - 1, breakpoint.ttl)
            )
        kept[breakpoint.block_key] = breakpoint
    return replace(request, system=system, thread=longer, breakpoints=tuple(kept.values()), automatic=None)
