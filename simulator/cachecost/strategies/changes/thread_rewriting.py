"""A recorded thread, and the messages that an agent sends in place of parts of it.

The base of every change that cuts, clears or sums up: recorded rewrites go on to mean the messages they meant, also
where other messages stand for these now. Work is for new messages and for those that are sent anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from cachecost.base.errors import CannotEvaluate
from cachecost.conversations.model import Conversation, Event, Human, Reply, Results, ThreadRewrite
from cachecost.prompts.blocks import Message
from cachecost.strategies.changes.base import estimate_tokens
from cachecost.strategies.model_facts import Facts

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
