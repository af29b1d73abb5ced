"""What could be done instead of sending the next message as it is, each priced; simulated where requests are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from decimal import Decimal

import msgspec

from cachecost.analysis.bill.account import BillAccount, session_key
from cachecost.analysis.bill.savings import measure_compactions
from cachecost.analysis.bill.timeline import session_timelines
from cachecost.analysis.next_message.history import session_state
from cachecost.analysis.next_message.state import (
    SUMMARY_TOKENS,
    BilledModel,
    CompactionPrice,
    FindModel,
    NextMessage,
    Price,
    SessionState,
    model_of_state,
    models_in,
    next_message,
    price_compaction,
    price_of,
    price_per_token,
    usage_of,
)
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.limits import json_value
from cachecost.base.structs import replace
from cachecost.base.times import day_of
from cachecost.caches.warm_starts import WarmPrefixes
from cachecost.changes.fix import EFFORT as EFFORT_FIELD
from cachecost.changes.fix import MODEL as MODEL_FIELD
from cachecost.changes.steps import continue_request, conversation_of
from cachecost.conversations.calls import Call, derive_call
from cachecost.prompts.blocks import Message, given_block
from cachecost.prompts.request import NotAMessage, parse_message
from cachecost.providers.usage import USUAL_TTL_S, ZERO, Quote
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload
from cachecost.tokens.factory import counter_name


def parse_content(text: str, name: str) -> Message:
    """The message in the file `name`: JSON with `role` and `content`, or a text. Raises InputError."""
    body: object = {"role": "user", "content": [{"type": "text", "text": text}]}
    if text.lstrip().startswith("{"):
        try:
            found = json_value(text)
        except ValueError:  # a text that begins with a brace
            found = None
        body = found if isinstance(found, dict) and "content" in found else body
    try:
        return parse_message(body, True, 0).message
    except NotAMessage as error:
        raise InputError([Fault(name, str(error).removeprefix("messages.0."))]) from None


def count_message(message: Message, setup: ReplaySetup, state: SessionState, counter: str | None = None) -> int:
    """Tokens of a message, as the tokenizer of the session's model counts. Raises CannotEvaluate."""
    day = None if state.last_used is None else day_of(state.last_used)
    rules = setup.rules.rules(state.host, state.model, day)
    name = counter_name(counter, has_bills=False)
    counted = replace(setup, tokens=name, counters={}).counter(rules.generation)
    return sum(counted.block(block) for block in message.blocks)


CallChange = Callable[[Call], Call]


class LastConversation:
    """The last conversation of a workload, which a next message continues.

    Raises CannotEvaluate where no call of it shows what was sent.
    """

    def __init__(self, workload: Workload) -> None:
        sent = [call for call in workload.calls if not (call.has_failed or call.why_unknown)]
        if not sent:
            raise CannotEvaluate(f"{workload.name}: no call shows what was sent")
        self.workload = workload
        self.last = max(sent, key=lambda call: call.start)
        here = [call for call in sent if conversation_of(call) == conversation_of(self.last)]
        self._before = here[-2] if len(here) > 1 and here[-1] is self.last else None
        self._output_tokens = 0

    @property
    def is_timed(self) -> bool:
        """Whether it is known when the calls were made."""
        return self.last.timestamp is not None

    def with_answer(self, output_tokens: int) -> LastConversation:
        """The same conversation; the answer to the next message has so many tokens."""
        made = copy(self)
        made._output_tokens = output_tokens
        return made

    def next_call(self, message: Message, start: float, change: CallChange | None = None) -> Call:
        """The call that continues with a message of a person at `start`."""
        request, before = self.last.request, self._before.request.breakpoints if self._before else ()
        answered, answer = request.thread, self.last.response or self.last.output
        if not answer and self.last.output_tokens:  # the log has none: one as long as was billed
            answer = (given_block("text", "assistant", "answer", self.last.output_tokens),)
        if answer:
            answered = answered.then(Message.of("assistant", tuple(answer)))
        made = continue_request(request, answered.then(message), {one.block_key for one in before})
        call = derive_call(self.last, made, start, self._output_tokens, "next")
        return change(call) if change else call

    def simulate(self, call: Call, is_cold: bool = False) -> Price:
        """What a call after those of the workload costs; `is_cold`: with nothing cached. Raises CannotEvaluate."""
        preparer = self.workload.setup.preparer().fork()
        if is_cold:
            preparer.warm = WarmPrefixes()
        simulation = self.workload.simulation(preparer=preparer)
        for earlier in () if is_cold else self.workload.calls:
            simulation.row(earlier)
        row = simulation.row(call)
        if row.error is not None:
            raise CannotEvaluate(f"the next message: {row.error}")
        return Price(row.usage, row.cost.total if row.is_priced else None)

    def next_message(self, message: Message, now: float, change: CallChange | None = None) -> NextMessage:
        """The next message at `now`. Raises CannotEvaluate where the host would refuse it or has no price."""
        call = self.next_call(message, now, change)
        warm, cold = self.simulate(call), self.simulate(call, is_cold=True)
        return NextMessage(warm.usage.read > 0, warm.usage, warm.cost, cold)


LEAD_S = 60.0
"""A keep-alive is sent this long before the prefix expires."""
MOST_PINGS = 24
"""More are never advised, whatever the prices say."""
FEWEST_PAUSES = 3
"""Fewer say nothing about a person's habits."""


class KeepAliveAdvice(msgspec.Struct, frozen=True):
    """Keep-alives for one pause, each `cost` USD: `max_tokens: 0`, the first at `send_at`, then every `interval_s`.

    `worth_up_to` is the break-even: one more costs more than writing the prefix again. `advised` of them save most on
    average, `saved` USD, in `pauses` of this session that were as long as this one. Where too few are known (`pauses`
    is 0), one is advised, and `saved` is what it saves if the person is back before that has expired. `stop_at` is
    when the last advised one has expired, too.
    """

    cost: Decimal
    worth_up_to: int
    advised: int
    saved: Decimal
    pauses: int
    send_at: float
    interval_s: float
    stop_at: float

    @property
    def is_worth_it(self) -> bool:
        return self.advised > 0


def advise_keep_alive(state: SessionState, prices: Quote | None, now: float) -> KeepAliveAdvice | None:
    """The advice at `now`; None where the cache is cold, the client or host has none, or a price or time is unknown."""
    warm_until, ttl = state.warm_until, state.ttl_seconds
    read = price_per_token(prices, state.cached_tokens, "read")
    write = price_per_token(prices, state.cached_tokens, "write_1h" if state.ttl == "1h" else "write_5m")
    if state.is_automatic or not state.can_keep_alive or not state.is_warm(now) or ttl <= LEAD_S:
        return None
    if warm_until is None or read is None or write is None:
        return None
    cost, saved = state.cached_tokens * read, state.cached_tokens * (write - read)
    interval = ttl - LEAD_S
    most = min(MOST_PINGS, int(saved // cost) if cost else 0)
    pauses = [pause for pause in state.pauses if pause > now - (warm_until - ttl)]

    def average_saved(pings: int) -> Decimal:
        """Of what was written again those that outlast a pause save all, and each that is sent costs a read."""
        outlasted = sum(ttl <= pause < ttl + pings * interval for pause in pauses)
        sent = sum(min(pings, int(pause // interval)) for pause in pauses)
        return (outlasted * saved - sent * cost) / len(pauses)

    if len(pauses) < FEWEST_PAUSES:
        advised, gain, seen = min(1, most), saved - cost if most else ZERO, 0
    else:
        advised, seen = max(range(most + 1), key=average_saved), len(pauses)
        gain = average_saved(advised)
    stop = warm_until + advised * interval
    return KeepAliveAdvice(cost, most, advised, gain, seen, warm_until - LEAD_S, interval, stop)


NOW, COLD, MODEL, EFFORT = "now", "after the TTL", "another model", "another effort level"
MESSAGE_EFFORT = "another effort level, in a message"
COMPACT, PLAIN, DEFERRED = "after /compact", "tools added", "tools deferred"
READS_NOTHING = "another model reads nothing of this cache"


class NextAlternative(msgspec.Struct, frozen=True):
    """One way to go on: the usage and USD of the next message, and what has to be paid before it (`first`).

    `note` says what the figures take for granted.
    """

    kind: str
    name: str
    usage: Price
    first: Price | None = None
    note: str = ""
    breaks_even_after: int | None = None

    @property
    def cost(self) -> Decimal | None:
        """USD of all of it."""
        own, first = self.usage.cost, self.first.cost if self.first else Decimal(0)
        return None if own is None or first is None else own + first


class NextChoice(msgspec.Struct, frozen=True):
    """The next message, what could be done instead, the compaction in detail, and the advice on keep-alives."""

    message: NextMessage
    alternatives: tuple[NextAlternative, ...]
    compaction: CompactionPrice | None
    keep_alive: KeepAliveAdvice | None


def choose_next(
    state: SessionState,
    prices: Quote | None,
    now: float,
    new_tokens: int | None = None,
    output_tokens: int = 0,
    models: Sequence[BilledModel] = (),
    tools_tokens: int | None = None,
) -> NextChoice:
    """Everything that is known of the next message at `now`.

    The ways to go on: as it is, after the TTL, other `models`, another effort level, /compact, more tools.
    `tools_tokens` is the size of the definitions that would be added (None: none would).
    """
    message = next_message(state, prices, now, new_tokens, output_tokens)
    compaction = price_compaction(state, prices, now, new_tokens, output_tokens)
    length, live = message.usage.total_input, state.live_tokens(now)

    def price(read: int, added: int = 0) -> Price:
        return price_of(usage_of(state, read, length + added, output_tokens), prices)

    found = [NextAlternative(NOW, NOW, message.price, note="" if message.is_warm else "the cache has expired")]
    found.append(NextAlternative(COLD, COLD, message.cold, note="all of it is written again"))
    for model in models:  # another one shares no cache
        other = replace(state, minimum_tokens=model.minimum_tokens, is_automatic=model.is_automatic, ttl_s=model.ttl_s)
        usage = price_of(usage_of(other, 0, length, output_tokens), model.quote)
        note = f"{READS_NOTHING}; tokens counted as on the present one"
        found.append(NextAlternative(MODEL, f"with {model.model}", usage, note=note))
    if state.cached_tokens and state.effort_layer and not state.is_automatic:
        is_whole = state.effort_layer == "tools"  # rule 2: rewritten from the layer whose cache key has it
        note = "all of it is written again" if is_whole else "the messages are written again"
        usage = price(0 if is_whole else min(state.static_tokens, live))
        found.append(NextAlternative(EFFORT, f"with {EFFORT}", usage, note=note))
        if state.accepts_message_effort:
            note = "what is cached stays"
            found.append(NextAlternative(MESSAGE_EFFORT, f"with {MESSAGE_EFFORT}", price(live), note=note))
    if compaction is not None:
        last = "as long as this session's last one" if state.summary_tokens else f"of {SUMMARY_TOKENS:,} tokens"
        costs = compaction.message, compaction.summary
        note, enough = f"assumes a summary {last}", compaction.breaks_even_after
        found.append(NextAlternative(COMPACT, COMPACT, *costs, note, enough))
    if tools_tokens is not None:
        for kind, read, how, note in (
            (PLAIN, 0, "added", "they come first: all is written again"),
            (DEFERRED, live, "deferred", "all of them loaded"),
        ):
            words = f"{tools_tokens:,} tokens of tools {how}"
            found.append(NextAlternative(kind, words, price(read, tools_tokens), note=note))
    return NextChoice(message, tuple(found), compaction, advise_keep_alive(state, prices, now))


WITHOUT_KEEP_ALIVES = ("claude-code",)
"""Clients that send none, and let nobody set that they do."""


@dataclass(frozen=True, slots=True)
class NextRequest:
    """What is asked: when the message is sent, its length or content, the answer, and what else could be changed."""

    at: float
    new_tokens: int | None = None
    message: Message | None = None
    output_tokens: int = 0
    models: Sequence[str] = ()
    tools_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class NextSession:
    """A session that goes on. Where its requests are known, `conversation` simulates the next one."""

    state: SessionState
    find: FindModel
    conversation: LastConversation | None = None

    @property
    def is_simulated(self) -> bool:
        return self.conversation is not None

    def choose(self, asked: NextRequest) -> NextChoice:
        """The next message and what could be done instead. Raises CannotEvaluate for an unknown model."""
        state, at = self.state, asked.at
        day = None if state.last_used is None else at  # without times the prices of the rule data's day hold
        model = model_of_state(state, self.find, at=day)
        others = [model_of_state(state, self.find, name, day) for name in asked.models]
        for other in others:
            if other.quote is None:
                why = f"no price known for {other.model} on host {state.host}"
                raise CannotEvaluate(f"{why}: `cachecost models` lists them")
        output, tools = asked.output_tokens, asked.tools_tokens
        found = choose_next(state, model.quote, at, asked.new_tokens, output, others, tools)
        return found if self.conversation is None else self._simulate_rows(found, self.conversation, asked)

    def _simulate_rows(self, found: NextChoice, known: LastConversation, asked: NextRequest) -> NextChoice:
        at = asked.at if known.is_timed else known.last.start
        new = self.state.typical_new_tokens if asked.new_tokens is None else asked.new_tokens
        unknown = Message.of("user", (given_block("text", "user", "next message", new),))
        message, known = asked.message or unknown, known.with_answer(asked.output_tokens)
        now = known.next_message(message, at)
        models, rows = iter(asked.models), list[NextAlternative]()
        for row in found.alternatives:
            if row.kind in (NOW, MESSAGE_EFFORT):
                row = replace(row, usage=now.price)
            elif row.kind == COLD:
                row = replace(row, usage=now.cold)
            elif row.kind == MODEL:
                price = known.next_message(message, at, MODEL_FIELD.to(next(models))).price
                row = replace(row, usage=price, note=READS_NOTHING)
            elif row.kind == EFFORT:
                config = known.last.request.params.get("output_config") or {}
                level = "high" if config.get("effort") == "low" else "low"
                with suppress(CannotEvaluate):  # as it is where the host refuses the parameter
                    row = replace(row, usage=known.next_message(message, at, EFFORT_FIELD.to(level)).price)
            rows.append(row)
        return replace(found, message=now, alternatives=tuple(rows))


def next_session(account: BillAccount, key: str, workload: Workload | None = None) -> NextSession | None:
    """The session `key` of an account; None where its main thread has no bill. `workload` are the calls of its log."""
    find = models_in(account.prices)
    timeline = session_timelines(account, [key])[key]
    state = session_state([one.call for one in timeline], find, timeline[-1].file.project) if timeline else None
    if state is None:
        return None
    client = timeline[-1].file.client
    size = measure_compactions(account) if not state.summary_tokens else None
    ends: list[float] = []  # until when other sessions of the same version and model keep tools and system prompt warm
    for file, call in account.calls() if state.static_tokens else ():
        is_same = (call.model, call.version, call.read) == (state.model, state.version, state.static_tokens)
        if is_same and call.start is not None and not call.agent and session_key(file, call) != key:
            ttl_s = find(call, "").ttl_s
            ends.append(call.start + (ttl_s.get("1h" if call.tokens[3] else "5m") or USUAL_TTL_S["5m"]))
    state = replace(
        state,
        can_keep_alive=client not in WITHOUT_KEEP_ALIVES,
        static_warm_until=max(ends, default=None),
        summary_tokens=size.summary if size else state.summary_tokens,
    )
    is_whole = workload is not None and timeline[-1].file.has_requests
    return NextSession(state, find, LastConversation(workload) if workload is not None and is_whole else None)
