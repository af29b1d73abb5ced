"""What a change is, and what changes are made of.

A recorded thread, and the messages that an agent sends in place of parts of it.

A conversation with other messages and additional calls: the base of changes that add calls to the main thread.

Another model, effort or thinking from some turn on: what is cached under the one is not under the other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal

from cachecost.base.errors import CannotEvaluate
from cachecost.conversations.calls import PlannedCall
from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Results, Switch, ThreadRewrite
from cachecost.prompts.blocks import BYTES_PER_TOKEN, Block, Message, Thread, digest_of, estimate_tokens, given_block
from cachecost.strategies.model_facts import Facts

"""What agents assume when they decide whether a context is full."""


@dataclass(frozen=True, slots=True)
class AgentChange:
    """What an agent does besides placing breakpoints: rewrite or split the conversation, or plan other calls.

    A rate is a share of occasions, spread evenly (even_sampling.py). Token counts are assumed, not measured.
    """

    least: ClassVar[int] = 0
    """The least value of its whole-number options."""

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

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        """The conversation as this agent sends it, and the side conversations it adds."""
        return (conversation,)

    def plan_calls(self, calls: Iterator[PlannedCall]) -> Iterator[PlannedCall]:
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

    def take(self, event: Event) -> None:
        """Go on by one event."""
        if isinstance(event, Reply):
            self._grow("assistant", event.blocks)
        elif isinstance(event, Human | Results):
            self._grow("user", event.blocks)
        elif isinstance(event, ThreadRewrite):
            self._rewrite(event)

    def _grow(self, role: str, blocks: tuple[Block, ...]) -> None:
        if blocks:
            self.thread = self.thread.saying(role, blocks)

    def _rewrite(self, event: ThreadRewrite) -> None:
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


def tokens_of(messages: Iterable[Message]) -> int:
    """As an agent estimates them."""
    return sum(estimate_tokens(block) for message in messages for block in message.blocks)


def starts_turn(message: Message) -> bool:
    """Whether a person says it: text beside tool results is a reminder."""
    return message.is_human and all(block.kind != "tool_result" for block in message.blocks)


def model_window(model: str | None, facts: Facts | None) -> int | None:
    """The context window of a model in tokens; None where it is not known: then nothing is cut for it."""
    try:
        return facts(model).context_window if model and facts else None
    except CannotEvaluate:
        return None


class ThreadRewriter:
    """`turns` are the numbers of the messages sent that start a turn.

    `spans` says of each message sent for which of those recorded it stands: from (inclusive), to (exclusive). A
    recorded message that is in no span is left out.
    """

    def __init__(self) -> None:
        self.recorded_messages: list[Message] = []
        self.sent_messages: list[Message] = []
        self.spans: list[Span] = []
        self.turns: list[int] = []
        self.tokens = 0

    def rewrite(self, conversation: Conversation) -> Conversation:
        """The conversation as it is sent."""
        return replace(conversation, events=tuple(new for event in conversation.events for new in self.step(event)))

    def step(self, event: Event) -> Iterator[Event]:
        """What is said instead of an event: the place to say more."""
        yield self.take(event)

    def rewrite_message(self, message: Message) -> Message:
        """How a message is sent that is to stand at the end of `sent`."""
        return message

    def forget(self, keep: int) -> None:
        """Of the messages sent, those from `keep` on are gone."""

    def take(self, event: Event) -> Event:
        """Go on by one event; what it is now."""
        if isinstance(event, ThreadRewrite):
            return self._rewrite(event)
        if not isinstance(event, Human | Reply | Results) or not event.blocks:
            return event
        recorded = Message.of("assistant" if isinstance(event, Reply) else "user", event.blocks)
        sent = self._send(recorded)
        return event if sent is recorded else replace(event, blocks=sent.blocks)

    def replace_range(self, at: float, start: int, stop: int, messages: Sequence[Message]) -> ThreadRewrite:
        """Say `messages` in place of `sent[start:stop]`, and all after these once more."""
        span = (self.spans[start][0], max(upto for _, upto in self.spans[start:stop]))
        return self.resend(
            at,
            start,
            [*messages, *self.sent_messages[stop:]],
            [*[span] * len(messages), *self.spans[stop:]],
            "compaction",
        )

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

    def _send(self, recorded: Message) -> Message:
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

    def _rewrite(self, event: ThreadRewrite) -> ThreadRewrite:
        kept = min(event.keep, len(self.recorded_messages))
        keep, once_more = self._split_at(kept)
        self.forget(keep)
        self._drop(keep)
        del self.recorded_messages[kept - len(once_more) :]
        said = [self._send(message) for message in (*once_more, *event.messages)]
        return replace(event, keep=keep, messages=tuple(said))

    def _split_at(self, kept: int) -> tuple[int, list[Message]]:
        """How many messages sent stand for the first `kept` recorded, and what must be said once more.

        Where it goes back into what one message stands for, or into what was left out, the end of it is whole again.
        """
        place = bisect_right(self.spans, kept, key=_end)
        reached = self.spans[place - 1][1] if place else 0
        follows = self.spans[place][0] if place < len(self.spans) else len(self.recorded_messages)
        return place, [] if follows == kept else self.recorded_messages[reached:kept]

    def _drop(self, keep: int) -> None:
        self.tokens -= tokens_of(self.sent_messages[keep:])
        del self.sent_messages[keep:]
        del self.spans[keep:]
        while self.turns and self.turns[-1] >= keep:
            self.turns.pop()


def _end(span: Span) -> int:
    return span[1]


STEP_S = 2.0
"""Seconds from a call without a recorded time to the next (rule 11); more where its first token took more."""


class CallRewriter(ThreadRewriter):
    """Calls that are not recorded take time: later events wait for them."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__()
        self._original = GrowingThread(conversation.root)
        self._thread = GrowingThread(conversation.root)
        self._now = self._ready = float("-inf")

    def step(self, event: Event) -> Iterator[Event]:
        said = list(self.rewrite_event(event))
        is_unchanged = sum(isinstance(new, Reply) for new in said) <= isinstance(event, Reply)
        for new in said:
            timed = self._in_time(new, is_unchanged)
            self._thread.take(timed)
            yield timed
        self._original.take(event)

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        """What is sent instead of an event."""
        return (self.rewrite_side_call(event) if isinstance(event, Aside) else self.take(event),)

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

    def _in_time(self, event: Event, is_unchanged: bool) -> Event:
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
        calls.append(isinstance(event, Reply) and bool(event.blocks) and _calls(event, follows))
        if isinstance(event, Human | Reply | Results | ThreadRewrite):
            follows = event
    return calls[::-1]


def _calls(reply: Reply, follows: Event | None) -> bool:
    return isinstance(follows, Results) or any(block.kind == "tool_use" for block in reply.blocks)


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


@dataclass(frozen=True, slots=True)
class SwitchAt(AgentChange):
    """From the human message `turn` on (1 is the first), every `every` turns again and back: another model or effort.

    `model` and `effort` left out stay; `thinking` is "off" or a budget in tokens. Replies without thinking have no
    thinking blocks. What else another setting changes in the replies is an assumption: they shrink or grow to
    `output_share` of their tokens, block by block, at least to a token each. Left at 1, it saves no output.
    """

    turn: int = 2
    model: str | None = None
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    thinking: Literal["off"] | int | None = None
    every: int = 0
    output_share: float = 1.0
    least: ClassVar[int] = 0

    def __post_init__(self) -> None:
        AgentChange.__post_init__(self)
        if self.turn < 1:
            raise ValueError(f"turn={self.turn}: expected at least 1, the first human message")
        if self.output_share < 0:
            raise ValueError(f"output_share={self.output_share}: expected no less than 0")

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _SwitchRewriter(self, conversation).rewrite(conversation)

    def is_other(self, turn: int) -> bool:
        """Whether the human message `turn` (from 1) and its replies are sent with the other settings."""
        since = turn - self.turn
        return since >= 0 and (not self.every or (since // self.every) % 2 == 0)

    def switch(self, at: float, conversation: Conversation, is_other: bool) -> Switch:
        """The settings from `at` on: the other ones, or those of the conversation."""
        params, model = (
            (self._params(conversation), self.model or conversation.model)
            if is_other
            else (conversation.params, conversation.model)
        )
        return Switch(
            at,
            model or "",
            conversation.tools,
            conversation.system,
            params,
            is_chosen=is_other and self.model is not None,
        )

    def _params(self, conversation: Conversation) -> dict[str, Any]:
        params = dict(conversation.params)
        if self.effort is not None:
            params["output_config"] = {**(params.get("output_config") or {}), "effort": self.effort}
        if self.thinking is not None:
            enabled = {"type": "enabled", "budget_tokens": self.thinking}
            params["thinking"] = {"type": "disabled"} if self.thinking == "off" else enabled
        return params

    def blocks(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """A reply's blocks under the other settings; thinking stays where there is nothing else."""
        spoken = tuple(block for block in blocks if not block.is_thinking) if self.thinking == "off" else ()
        return tuple(map(self._share_of, spoken or blocks))

    def _share_of(self, block: Block) -> Block:
        if self.output_share == 1:
            return block
        tokens = max(round(estimate_tokens(block) * self.output_share), 1)
        return placeholder_for(block, "other settings", tokens)


class _SwitchRewriter(ThreadRewriter):
    """`_replies` are the replies under the other settings, by the digest of what was recorded."""

    def __init__(self, options: SwitchAt, conversation: Conversation) -> None:
        super().__init__()
        self._options = options
        self._conversation = conversation
        self._turn = 0
        self._is_other = False
        self._replies: dict[bytes, Message] = {}

    def step(self, event: Event) -> Iterator[Event]:
        if isinstance(event, Human):
            self._turn += 1
            if self._options.is_other(self._turn) != self._is_other:
                self._is_other = not self._is_other
                yield self._options.switch(event.at, self._conversation, self._is_other)
        yield self._reply(event) if isinstance(event, Reply) else self.take(event)

    def _reply(self, event: Reply) -> Event:
        recorded = message_of(event).digest
        blocks = self._options.blocks(event.blocks) if self._is_other else event.blocks
        self._replies.pop(recorded, None)
        if blocks == event.blocks:
            return self.take(event)
        self._replies[recorded] = Message.of("assistant", blocks)
        return self.take(replace(event, output_tokens=None))

    def rewrite_message(self, message: Message) -> Message:
        return self._replies.get(message.digest, message)


CHANGES: dict[str, type[AgentChange]] = {"switch": SwitchAt}
