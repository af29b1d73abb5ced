"""What a change of an agent is, the walks over a conversation that changes are made of, and even sampling at a rate."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from operator import itemgetter
from typing import Any, ClassVar, Protocol

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Results, Switch, ThreadRewrite
from cachecost.prompts.blocks import (
    BYTES_PER_TOKEN,
    Block,
    Message,
    Part,
    Thread,
    digest_of,
    estimate_tokens,
    given_block,
)

MAX_RETRIES = 2
"""How often an answer that is not valid is asked for again."""


class EvenSampler:
    """Selects items at a rate from 0 to 1: of n items round(n × rate), as far apart as possible."""

    def __init__(self, rate: float) -> None:
        self._rate = Fraction(str(rate))
        self._debt = Fraction(1, 2)

    def __call__(self) -> bool:
        self._debt += self._rate
        if self._debt < 1:
            return False
        self._debt -= 1
        return True


class FailedAttempts:
    """Which attempts fail at a rate p: of n questions with at most two retries n × p fail once and n × p² twice, each
    rounded, and spread evenly. At a higher rate as many or more fail.
    """

    def __init__(self, rate: float, most_retries: int) -> None:
        self._rate = Fraction(str(rate))
        self._debts = [Fraction(1, 2)] * most_retries

    def __call__(self, attempt: int) -> bool:
        """Whether this attempt (0 for the first at a new question) fails and is followed by another."""
        if not attempt:
            self._debts = [debt + self._rate**number for number, debt in enumerate(self._debts, 1)]
        if attempt == len(self._debts) or self._debts[attempt] < 1:
            return False
        self._debts[attempt] -= 1
        return True


class HostFacts(Protocol):
    """How the cache of a model works: its host, and the kind of matching there."""

    @property
    def host(self) -> str: ...
    @property
    def matching(self) -> str: ...


class ModelFacts(HostFacts, Protocol):
    """What a strategy must know of a model. `providers.rules.ModelRules` has it."""

    @property
    def context_window(self) -> int: ...
    @property
    def accepts_forced_choice(self) -> bool: ...


Facts = Callable[[str], ModelFacts]
"""What is known of a model, by its id. Raises CannotEvaluate for an unknown one."""


@dataclass(frozen=True, slots=True)
class AgentChange:
    """What an agent does besides placing breakpoints: rewrite or split the conversation, or plan other calls.

    A rate is a share of occasions, spread evenly (`EvenSampler`). Token counts are assumed, not measured.
    """

    least: ClassVar[int] = 0
    """The least value of its whole-number options."""
    above_zero: ClassVar[tuple[str, ...]] = ()
    """Options in seconds that must not be 0."""
    rewriter: ClassVar[type[Rewriter] | None] = None
    """What rewrites the conversation for it, which its class says (`change=`)."""

    @property
    def lead_s(self) -> float:
        """How many seconds before its first event a conversation may have a call."""
        return 0.0

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, int) and not isinstance(value, bool) and value < self.least:
                raise ValueError(f"{option.name}={value}: expected at least {self.least}")
            if option.name.endswith("_s") and value is not None and value < 0:
                raise ValueError(f"{option.name}={value}: expected no less than 0 seconds")
            if option.name.endswith("rate") and not 0 <= value <= 1:
                raise ValueError(f"{option.name}={value}: expected a share from 0 to 1")
        for name in self.above_zero:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name}={getattr(self, name)}: expected more than 0 seconds")

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        """The conversation as this agent sends it, and the side conversations it adds."""
        return (self.rewriter(self, facts).rewrite(conversation) if self.rewriter else conversation,)

    def plan_calls(self, calls: Iterator[Call]) -> Iterator[Call]:
        """The calls as this agent makes them, in the order they start."""
        return calls


@dataclass(slots=True)
class GrowingThread:
    """The main thread of a conversation as its events make it grow."""

    thread: Thread = field(default_factory=Thread)
    _grafts: dict[Thread, Thread] = field(default_factory=dict)

    def graft(self, other: Thread) -> Thread:
        """The same messages as `other` in the tree of this thread. Costs work for what was not grafted before."""
        return other.fold(self._grafts, self.thread.root, Thread.then)

    def add(self, event: Event) -> None:
        if isinstance(event, Human | Reply | Results):
            if event.blocks:
                self.thread = self.thread.saying("assistant" if isinstance(event, Reply) else "user", event.blocks)
        elif isinstance(event, ThreadRewrite):
            self.thread = self.thread.up_to(event.keep)
            for message in event.messages:
                self.thread = self.thread.then(message)


def placeholder_for(block: Block, why: str, tokens: int) -> Block:
    """A block of the same kind and role that stands where `block` stood, `tokens` long: cleared, cut, summed up.

    It is the same wherever the same block was treated in the same way.
    """
    digest = digest_of(block.role, block.kind, block.digest + f"{why} {tokens}".encode())
    size = tokens * BYTES_PER_TOKEN
    return replace(block, digest=digest, size=size, content=None, tokens=tokens, counts={}, has_image=False)


Span = tuple[int, int]


def head_of(conversation: Conversation) -> Switch:
    """Model, tools, system prompt and parameters that a conversation begins with."""
    model, is_chosen = conversation.model or "", conversation.is_chosen
    return Switch(0, model, conversation.tools, conversation.system, conversation.params, is_chosen)


def with_head(conversation: Conversation, head: Switch) -> Conversation:
    """The conversation as if it had begun with this head."""
    return replace(
        conversation,
        model=head.model,
        tools=head.tools,
        system=head.system,
        params=head.params,
        is_chosen=head.is_chosen,
    )


def params_for_model(params: Mapping[str, Any], model: str | None, keeps_thinking: bool = False) -> dict[str, Any]:
    """Parameters without what another `model`, if one is named, may not know: thinking, speed and effort."""
    kept = dict(params)
    if model is not None:
        config = params.get("output_config") or {}
        kept["output_config"] = {key: value for key, value in config.items() if key != "effort"}
        for name in ("speed",) if keeps_thinking else ("speed", "thinking"):
            kept.pop(name, None)
    return {key: value for key, value in kept.items() if value != {}}


def tokens_of(parts: Iterable[Message | Part]) -> int:
    """Tokens of messages, or of the parts of a head, as an agent estimates them."""
    return sum(estimate_tokens(block) for part in parts for block in part.blocks)


def starts_turn(message: Message) -> bool:
    """Whether a person says it: text beside tool results is a reminder."""
    return message.is_human and all(block.kind != "tool_result" for block in message.blocks)


def model_window(model: str | None, facts: Facts | None) -> int | None:
    """The context window of a model in tokens; None where it is not known: then nothing is cut for it."""
    try:
        return facts(model).context_window if model and facts else None
    except CannotEvaluate:
        return None


class Rewriter:
    """Makes of one conversation the one that is sent. `change` is the change that a subclass carries out."""

    def __init_subclass__(cls, change: type[AgentChange] | None = None) -> None:
        if change is not None:
            change.rewriter = cls

    def __init__(self, options: Any = None, facts: Facts | None = None) -> None:
        self._options = options
        self._facts = facts

    def begin(self, conversation: Conversation) -> None:
        """Get ready for the first event."""

    def rewrite(self, conversation: Conversation) -> Conversation:
        """The conversation as it is sent."""
        raise NotImplementedError


class ThreadRewriter(Rewriter):
    """`turns` are the numbers of the messages sent that start a turn.

    `spans` says of each message sent for which of those recorded it stands: from (inclusive), to (exclusive). A
    recorded message that is in no span is left out.
    """

    def __init__(self, options: Any = None, facts: Facts | None = None) -> None:
        super().__init__(options, facts)
        self.recorded_messages: list[Message] = []
        self.sent_messages: list[Message] = []
        self.spans: list[Span] = []
        self.turns: list[int] = []
        self.tokens = 0

    def rewrite(self, conversation: Conversation) -> Conversation:
        self.begin(conversation)
        return replace(conversation, events=tuple(self.walk(conversation.events)))

    def walk(self, events: Sequence[Event]) -> Iterator[Event]:
        """What is said instead of all events."""
        for event in events:
            yield from self.step(event)

    def step(self, event: Event) -> Iterator[Event]:
        """What is said instead of an event: the place to say more."""
        yield self.send(event)

    def rewrite_message(self, message: Message) -> Message:
        """How a message is sent that is to stand at the end of `sent`."""
        return message

    def forget(self, keep: int) -> None:
        """Of the messages sent, those from `keep` on are gone."""

    def send(self, event: Event) -> Event:
        if isinstance(event, ThreadRewrite):
            kept = min(event.keep, len(self.recorded_messages))
            keep, once_more = self._split_at(kept)
            self.forget(keep)
            self._drop(keep)
            del self.recorded_messages[kept - len(once_more) :]
            messages = tuple(self._send_message(message) for message in (*once_more, *event.messages))
            return replace(event, keep=keep, messages=messages)
        if not isinstance(event, Human | Reply | Results) or not event.blocks:
            return event
        recorded = message_of(event)
        sent = self._send_message(recorded)
        return event if sent is recorded else replace(event, blocks=sent.blocks)

    def replace_range(self, at: float, start: int, stop: int, messages: Sequence[Message]) -> ThreadRewrite:
        """Say `messages` in place of `sent[start:stop]`, and all after these once more."""
        span = (self.spans[start][0], max(upto for _, upto in self.spans[start:stop]))
        spans = [*[span] * len(messages), *self.spans[stop:]]
        return self.resend(at, start, [*messages, *self.sent_messages[stop:]], spans, "compaction")

    def replace_messages(self, at: float, other: dict[int, Message]) -> ThreadRewrite:
        """Say each message of `other` in the place that it names, and all after the first of them once more."""
        first = min(other)
        messages = [other.get(place, self.sent_messages[place]) for place in range(first, len(self.sent_messages))]
        return self.resend(at, first, messages, self.spans[first:], "edit")

    def resend(
        self, at: float, keep: int, messages: Sequence[Message], spans: Sequence[Span], why: str
    ) -> ThreadRewrite:
        """Go on with `messages` after the first `keep` messages sent."""
        self._drop(keep)
        for message, span in zip(messages, spans, strict=True):
            self._append(message, span)
        return ThreadRewrite(at, keep, tuple(messages), why)

    def _send_message(self, recorded: Message) -> Message:
        self.recorded_messages.append(recorded)
        sent = self.rewrite_message(recorded)
        self._append(sent, (len(self.recorded_messages) - 1, len(self.recorded_messages)))
        return sent

    def _append(self, message: Message, span: Span) -> None:
        if starts_turn(message):
            self.turns.append(len(self.sent_messages))
        self.sent_messages.append(message)
        self.spans.append(span)
        self.tokens += tokens_of((message,))

    def _split_at(self, kept: int) -> tuple[int, list[Message]]:
        """How many messages sent stand for the first `kept` recorded, and what must be said once more.

        Where it goes back into what one message stands for, or into what was left out, the end of it is whole again.
        """
        place = bisect_right(self.spans, kept, key=itemgetter(1))
        reached = self.spans[place - 1][1] if place else 0
        follows = self.spans[place][0] if place < len(self.spans) else len(self.recorded_messages)
        return place, [] if follows == kept else self.recorded_messages[reached:kept]

    def _drop(self, keep: int) -> None:
        self.tokens -= tokens_of(self.sent_messages[keep:])
        del self.sent_messages[keep:]
        del self.spans[keep:]
        while self.turns and self.turns[-1] >= keep:
            self.turns.pop()


STEP_S = 2.0
"""Seconds from a call without a recorded time to the next (rule 11); more where its first token took more."""


class CallRewriter(ThreadRewriter):
    """Calls that are not recorded take time: later events wait for them."""

    def __init__(self, options: Any = None, facts: Facts | None = None) -> None:
        super().__init__(options, facts)
        self._now = self._ready = float("-inf")

    def rewrite(self, conversation: Conversation) -> Conversation:
        self._original, self._thread = GrowingThread(conversation.root), GrowingThread(conversation.root)
        return super().rewrite(conversation)

    def step(self, event: Event) -> Iterator[Event]:
        sent = list(self.rewrite_event(event))
        is_unchanged = sum(isinstance(new, Reply) for new in sent) <= isinstance(event, Reply)
        for new in sent:
            timed = self.put_in_time(new, is_unchanged)
            self._thread.add(timed)
            yield timed
        self._original.add(event)

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        """What is sent instead of an event."""
        return (self.rewrite_side_call(event) if isinstance(event, Aside) else self.send(event),)

    def replace_event(self, event: Human | Reply | Results, sent: Sequence[Human | Reply | Results]) -> Iterator[Event]:
        """Send all of these for one recorded message."""
        self.recorded_messages.append(message_of(event))
        for new in sent:
            self._append(message_of(new), (len(self.recorded_messages) - 1, len(self.recorded_messages)))
            yield new

    def rewrite_side_call(self, event: Aside) -> Aside:
        """A side call as it is sent: where it goes on from the main thread, from that as it is sent."""
        shared = event.request.thread.common(self._original.thread)
        if not shared.length:
            return event
        place, once_more = self._split_at(min(shared.length, len(self.recorded_messages)))
        thread = self._thread.thread.up_to(place)
        own = event.request.thread.messages()[shared.length :]
        for message in (*once_more, *own):
            thread = thread.then(self.rewrite_side_message(message))
        return replace(event, request=replace(event.request, thread=thread))

    def rewrite_side_message(self, message: Message) -> Message:
        """A message of a side call, not of the main thread."""
        return message

    def put_in_time(self, event: Event, is_unchanged: bool) -> Event:
        self._now = max(self._now, event.at)
        if isinstance(event, Reply):
            is_late, self._now = self._ready > self._now, max(self._now, self._ready)
            if is_late or not is_unchanged:
                self._ready = self._now + max(STEP_S, event.first_token_s or 0.0)
        return event if event.at == self._now else replace(event, at=self._now)


def message_of(event: Human | Reply | Results) -> Message:
    return Message.of("assistant" if isinstance(event, Reply) else "user", event.blocks)


def find_tool_calls(events: Sequence[Event]) -> list[bool]:
    """Of each event, whether it is a reply that calls tools: it says so, or results follow (tools as text)."""
    calls: list[bool] = []
    follows: Event | None = None
    for event in reversed(events):
        calls.append(
            isinstance(event, Reply)
            and bool(event.blocks)
            and (isinstance(follows, Results) or any(block.kind == "tool_use" for block in event.blocks))
        )
        if isinstance(event, Human | Reply | Results | ThreadRewrite):
            follows = event
    return calls[::-1]


def assumed_block(kind: str, role: str, why: str, of: Iterable[Block], tokens: int) -> Block:
    """A block of assumed size that is said because of the blocks `of`: another for others."""
    cause = b"".join(block.digest for block in of).hex()
    return given_block(kind, role, f"{why} {tokens}: {cause}", tokens)


def failed_attempt(reply: Reply, why: str) -> Reply:
    """An attempt at `reply` that cannot be used: as long as it, but another."""
    return replace(reply, blocks=tuple(placeholder_for(block, why, estimate_tokens(block)) for block in reply.blocks))


def feedback(reply: Reply, why: str, tokens: int) -> Results:
    """What the model is told of a failed reply: a result of `tokens` for each of its calls, or a text."""
    calls = [block for block in reply.blocks if block.kind == "tool_use"]
    kind = "tool_result" if calls else "text"
    blocks = [[call] for call in calls] or [list(reply.blocks)]
    return Results(reply.at, tuple(assumed_block(kind, "user", why, each, tokens) for each in blocks))
