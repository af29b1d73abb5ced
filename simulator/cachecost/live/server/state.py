"""The state of a server between calls: its meter, which bills by the simulated cache of all workspaces, and the faults
that it injects, by number or by seeded chance.
"""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import blake2b
from itertools import chain, takewhile
from typing import Any

from cachecost.base.errors import CannotEvaluate, nearest
from cachecost.base.structs import replace
from cachecost.base.times import day_of, seconds
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import REFUSED, CallRow
from cachecost.ledger.unread import UnreadTracker
from cachecost.live.clock import Clock, Say, ignore, moment
from cachecost.live.request_log import CallLog
from cachecost.live.server.model import (
    NOT_FOUND,
    Answerer,
    ApiError,
    CallCharge,
    ClientCall,
    ModelAnswer,
    StoredResponses,
    Threads,
    invalid,
    models_of,
    not_a_message,
    thread_error,
    unknown_model,
)
from cachecost.prompts.blocks import Block, Thread, estimate_tokens
from cachecost.prompts.compare import first_changed_block
from cachecost.prompts.intake import Intake
from cachecost.prompts.output_format import output_format
from cachecost.prompts.render import Renderer
from cachecost.prompts.request import THREAD_NOT_FOUND, NotAMessage, Request, answer_blocks, sent_breakpoints
from cachecost.providers.hosts import AUTO_HOST
from cachecost.providers.usage import ZERO, Usage
from cachecost.simulation.engine import SimulatedCall, Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload

CUT = "max_tokens"
MOST_KEPT = 10_000
"""Answered requests that a client can name; the oldest is dropped first. The API keeps them for a short time."""
COMPARED = ("tool_choice", "thinking", "context_management", "speed")
"""Parameters whose change the API reports as "unavailable". `speed` is one because it is in the cache key here (rule
2); it is not in the documentation's list."""


@dataclass(frozen=True, slots=True)
class MeteredCall:
    """A call on the bill.

    `call` is what a log of it holds, `first` the first message of its conversation; `before` the number of the call
    that it continues (None: none). `uncached` is its cost without caching, in USD; `input_price` in USD per 10**6
    tokens; `minimum` the minimum cacheable prefix of its model, in tokens. `needs_breakpoints`: its host caches nothing
    without one; `is_explained`: `explain` supports its host. `step`: fewer uncached tokens are
    what a hit leaves at its end.
    """

    row: CallRow
    call: Call
    workspace: str
    first: Thread
    before: int | None = None
    uncached: Decimal = ZERO
    input_price: Decimal = ZERO
    minimum: int = 0
    needs_breakpoints: bool = True
    is_explained: bool = True
    step: int = 1

    @property
    def request(self) -> Request:
        return self.call.request


def compare_requests(before: Request, after: Request) -> Mapping[str, Any] | None:
    """The `diagnostics` of `after`: where it differs from `before`, and the tokens of the earlier prompt from there on;
    None if it continues it.

    Breakpoints make no difference (rule 1). Tokens are estimated by bytes, as the API does too.
    """
    missed = _message_blocks(before, 0)
    if before.model != after.model:
        kind, missed = "model_changed", [*before.tools.blocks, *before.system.blocks, *missed]
    elif before.tools.digest != after.tools.digest:
        changed = first_changed_block(before.tools.blocks, after.tools.blocks)
        kind, missed = "tools_changed", [*before.tools.blocks[changed:], *before.system.blocks, *missed]
    elif before.system.digest != after.system.digest:
        changed = first_changed_block(before.system.blocks, after.system.blocks)
        kind, missed = "system_changed", [*before.system.blocks[changed:], *missed]
    elif _compared_parameters(before) != _compared_parameters(after):
        return {"cache_miss_reason": {"type": "unavailable"}}
    else:
        parting = before.thread.common(after.thread).length
        missed = _message_blocks(before, parting)
        missed = missed[first_changed_block(missed, _message_blocks(after, parting)) :]
        if not missed:
            return None
        kind = "messages_changed"
    tokens = sum(map(estimate_tokens, missed))
    return {"cache_miss_reason": {"type": kind, "cache_missed_input_tokens": tokens}}


def _message_blocks(request: Request, after: int) -> list[Block]:
    nodes = takewhile(lambda node: node.length > after, request.thread.back())
    messages = [node.message for node in nodes if node.message is not None]
    return [block for message in reversed(messages) for block in message.blocks]


def _compared_parameters(request: Request) -> list[Any]:
    """What the API compares without naming it; an explicit null counts as absent."""
    config = {key: value for key, value in (request.params.get("output_config") or {}).items() if key != "format"}
    named = [request.params.get(name) or None for name in COMPARED]
    return [*named, config or None, output_format(request.params)]


class Meter:
    """Bills calls under a setup. Calls come in the order they start.

    `taken` holds every call in the ledger: the `number`-th has `row.call == number`. Bodies that are not Messages
    requests are only counted, in `not_messages`. `notes` returns further sentences for the bill. `heard` is called when
    a call is on the bill.
    """

    def __init__(self, setup: ReplaySetup) -> None:
        self._setup = setup
        self._renderers: dict[str, Renderer] = {}
        self._intake = Intake(keep_content=True)
        self._simulation = Simulation(setup)
        self._answered: dict[tuple[str, str], Request] = {}
        """By workspace and message id."""
        self._last_calls: dict[tuple[str, Thread], int] = {}
        """By workspace and thread: calls with the same first message are one conversation."""
        self.unread = UnreadTracker()
        self.taken: list[MeteredCall] = []
        self.not_messages = 0
        self._explained = 0
        self._avoidable: dict[int, Decimal] = {}
        self.notes: Callable[[], Sequence[str]] = tuple
        self.heard: Callable[[], None] = ignore

    @property
    def rows(self) -> list[CallRow]:
        """The ledger by start time; refused calls cost nothing and have an error."""
        return [one.row for one in self.taken]

    def avoidable(self) -> Mapping[int, Decimal]:
        """USD by call that `explain` calls avoidable, once for the calls so far; none of hosts it does not support."""
        if self._explained != len(self.taken):
            from cachecost.analysis.explain.explaining import explain

            self._explained, self._avoidable = len(self.taken), {}
            known = [one for one in self.taken if one.is_explained]
            found = explain(Workload("calls", [one.call for one in known], self._setup)).findings if known else ()
            for finding in found:
                number = known[finding.call - 1].row.call
                self._avoidable[number] = self._avoidable.get(number, ZERO) + finding.cost
        return self._avoidable

    @property
    def token_source(self) -> str:
        """How tokens were counted; empty before the first call."""
        return self._setup.token_source

    @property
    def error_margin(self) -> float:
        return self._setup.error_margin

    def charge(self, asked: ClientCall, answer: ModelAnswer) -> CallCharge | ApiError:
        try:
            request = self._intake.body(asked.body)
        except NotAMessage as fault:
            self.not_messages += 1
            return not_a_message(fault)
        request = replace(request, message_thread=asked.thread) if asked.thread else request
        timestamp = moment(asked.start)
        start = seconds(timestamp)  # in microseconds, as `replay` will read it from the log
        output = answer_blocks(answer.content, request.deferred)
        call = Call(
            request,
            start,
            day_of(start),
            timestamp,
            asked.host,
            workspace=asked.workspace,
            first_token_s=answer.first_token_s,
            output=output,
            response=output,
            output_tokens=None if answer.stop_reason == CUT else getattr(answer, "output_tokens", None),
            is_simulated=True,
        )
        simulated = self._simulation.simulate(call)
        self._simulation.note_answer(simulated)
        self._add_to_bill(call, simulated)
        self.heard()
        if simulated.row.error is not None:
            message = simulated.row.error
            if message == THREAD_NOT_FOUND:
                return thread_error("thread_not_found", message, 404, NOT_FOUND)
            if simulated.row.error_type == REFUSED:
                is_of_thread = message.startswith("thread: ")
                return thread_error("thread_unsupported_request", message) if is_of_thread else invalid(message)
            try:
                self._setup.rules.rules(asked.host or self._setup.host, request.model, day_of(asked.start))
            except CannotEvaluate:
                return unknown_model(request.model)
            return invalid(f"cachecost cannot bill this call: {message}")
        self._answered[asked.workspace, asked.id] = request
        if len(self._answered) > MOST_KEPT:
            del self._answered[next(iter(self._answered))]
        diagnostics: Mapping[str, Any] | None = None
        if asked.wants_diagnostics and asked.previous is not None:
            before = self._answered.get((asked.workspace, asked.previous))
            diagnostics = {"cache_miss_reason": {"type": "previous_message_not_found"}}
            diagnostics = compare_requests(before, request) if before else diagnostics
        usage, thinking_tokens = simulated.row.usage, 0
        thinking = [block for block in output if block.is_thinking]
        if thinking and simulated.rules is not None:
            counter = self._setup.counter(simulated.rules.generation)
            thinking_tokens = min(usage.output_tokens, sum(map(counter.block, thinking)))
        return CallCharge(simulated.row, usage, diagnostics, thinking_tokens)

    def _add_to_bill(self, call: Call, simulated: SimulatedCall) -> None:
        row, passes, rules, prices = simulated
        thread, workspace = call.request.thread, call.workspace
        earlier = (self._last_calls.get((workspace, node)) for node in thread.back())
        before = next((call for call in earlier if call is not None), None)
        if prices is None or rules is None:
            self.taken.append(MeteredCall(row, call, workspace, thread.beginning, before, is_explained=False))
            return
        self._last_calls[workspace, thread] = row.call
        for one in passes:
            self.unread.add(row.call, one.outcome, prices, one.sizes)
        uncached = prices.cost(Usage(row.usage.total_input, output_tokens=row.usage.output_tokens))
        has_rest = row.usage.read and rules.grid_offset_tokens % rules.reported_step_tokens
        metered = MeteredCall(
            *(row, call, workspace, thread.beginning, before),
            sum(uncached.values(), ZERO),
            prices.input,
            rules.minimum_tokens,
            rules.matching == "breakpoint" and not rules.implicit_breakpoint,
            rules.uses_breakpoints,
            rules.step_tokens + (rules.reported_step_tokens if has_rest else 0),
        )
        self.taken.append(metered)

    def count(self, body: Mapping[str, Any], host: str | None = None) -> int:
        """Input tokens of a body, hidden ones included. Raises CannotEvaluate, NotAMessage."""
        request = self._intake.body(body)
        rules = self._setup.rules.rules(host or self._setup.host, request.model)
        if rules.generation not in self._renderers:
            self._renderers[rules.generation] = Renderer(self._setup.counter(rules.generation))
        breakpoints = sent_breakpoints(request).breakpoints
        return self._renderers[rules.generation].render(request, breakpoints, rules).total_tokens

    def host_of(self, maker: str, model: str) -> str:
        """The host of a call of `model` in the API of `maker`: that of the setup where it was chosen and has the model,
        since many hosts speak the APIs of others; else the maker."""
        chosen = self._setup.host
        if chosen in (AUTO_HOST, "anthropic"):
            return maker
        try:
            self._setup.rules.rules(chosen, model)
        except CannotEvaluate:
            return maker
        return chosen

    def models(self, host: str) -> Sequence[Mapping[str, Any]]:
        """The models of a host on the setup's day, newest first, as /v1/models has them."""
        return models_of(self._setup.rules, host)


ERRORS = {"429": 429, "500": 500, "529": 529}
SECONDS = {"429": 1.0, "slow": 30.0}
"""Kinds with a number of seconds, and its default: `retry-after`, and the delay of the first token."""
KINDS = (*ERRORS, "cut", "timeout", "slow", "garbage")
FORM = "NUMBER:KIND or KIND:CHANCE, where KIND is one of 429, 500, 529, cut, timeout, slow, garbage"
BY_NUMBER = re.compile(r"(\d+):([a-z]\w*|\d{3})(?:=(\d+(?:\.\d+)?))?")
BY_CHANCE = re.compile(r"([a-z]\w*|\d{3})(?:=(\d+(?:\.\d+)?))?:(\d*\.?\d+)")
GARBAGE = b"\x00\xff{not json\xfe\n\n"


class ConnectionCut(ConnectionResetError):
    """The server drops the connection in the middle of an answer."""


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """One kind of fault: at the `call`-th Messages call (from 1), or at each with this `chance`."""

    kind: str
    call: int | None = None
    chance: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class FaultSchedule:
    """Which call gets which fault: the first that matches. The same seed and calls give the same faults."""

    faults: tuple[InjectedFault, ...] = ()
    seed: int = 0

    def for_call(self, call: int) -> InjectedFault | None:
        """The fault of the `call`-th call (each retry counts as a call); None: it is answered."""
        by_chance = [fault for fault in self.faults if fault.call is None]
        drawn = ((fault, random.Random(f"{self.seed}:{call}:{fault.kind}").random()) for fault in by_chance)
        struck = (fault for fault, number in drawn if number < fault.chance)
        return next(chain((fault for fault in self.faults if fault.call == call), struck), None)


def faults_from(texts: Iterable[str], seed: int = 0) -> FaultSchedule:
    """`3:529`, `cut:0.1`, `4:slow=5` (seconds) … Raises ValueError."""
    faults = []
    for text in texts:
        if found := BY_NUMBER.fullmatch(text):
            faults.append(_validate(text, found[2], found[3], call=int(found[1])))
        elif (found := BY_CHANCE.fullmatch(text)) and float(found[3]) <= 1:
            faults.append(_validate(text, found[1], found[2], chance=float(found[3])))
        else:
            raise ValueError(f"expected {FORM}; got '{text}'")
    return FaultSchedule(tuple(faults), seed)


def _validate(text: str, kind: str, seconds: str | None, call: int | None = None, chance: float = 0.0) -> InjectedFault:
    if kind not in KINDS or call == 0 or (seconds and kind not in SECONDS):
        raise ValueError(f"expected {FORM}; got '{text}'{'' if kind in KINDS else nearest(kind, KINDS)}")
    return InjectedFault(kind, call, chance, float(seconds) if seconds else SECONDS.get(kind, 0.0))


LETTERS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class Ids:
    """Ids derived from the request and how often it was sent, so the order of parallel calls does not matter."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._seen: Counter[bytes] = Counter()

    def next(self, *parts: bytes) -> str:
        """The part of a call's ids after `req_` and `msg_`."""
        call = blake2b(b"\0".join(parts), digest_size=16, person=b"call").digest()
        self._seen[call] += 1
        key = b"%d:%d:" % (self._seed, self._seen[call]) + call
        number = int.from_bytes(blake2b(key, digest_size=16, person=b"id").digest())
        text = "01"
        for _ in range(22):
            number, letter = divmod(number, len(LETTERS))
            text += LETTERS[letter]
        return text


class AnswerDelays:
    """Waits that end early when the server stops, so that running answers complete."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: set[asyncio.Task[None]] = set()
        self._stopped = False

    @property
    def count(self) -> int:
        return len(self._waiting)

    async def sleep(self, seconds: float) -> None:
        """Wait so many seconds of the server's clock."""
        if seconds > 0:
            await self.until(self._clock.sleep(seconds))

    async def until(self, happens: Coroutine[Any, Any, None]) -> None:
        """Wait until it `happens`, or until the server stops."""
        task = asyncio.ensure_future(happens)
        self._waiting.add(task)
        try:
            if self._stopped:
                task.cancel()
            await asyncio.wait({task})
        finally:
            self._waiting.discard(task)
            task.cancel()

    def stop(self) -> None:
        self._stopped = True
        for task in self._waiting:
            task.cancel()


@dataclass(slots=True)
class ServerState:
    """What answers and bills calls, by which clock, and the faults to inject.

    `log` records every call (None: nothing is recorded). `models` are the wire objects of /v1/models. Answers without
    a time of their own take `first_token_s` seconds until the first token. `say` prints diagnostics.
    """

    answerer: Answerer
    meters: Meter
    clock: Clock
    log: CallLog | None = None
    faults: FaultSchedule = FaultSchedule()
    models: Sequence[Mapping[str, Any]] = ()
    first_token_s: float = 0.0
    seed: int = 0
    say: Say = ignore
    ids: Ids = field(init=False)
    threads: Threads = field(init=False, default_factory=Threads)
    responses: StoredResponses = field(init=False, default_factory=StoredResponses)
    pauses: AnswerDelays = field(init=False)
    lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    """Calls are billed one at a time, in the order they start."""
    calls: int = field(init=False, default=0)
    unreadable: int = field(init=False, default=0)
    """Refused bodies that are no valid requests, which a request log cannot hold."""

    def __post_init__(self) -> None:
        self.ids = Ids(self.seed)
        self.pauses = AnswerDelays(self.clock)
