"""A conversation with other messages and additional calls: the base of changes that add calls to the main thread.

A recorded message may stand for several that are sent; all of them go when the conversation goes back before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Results, ThreadRewrite
from cachecost.prompts.blocks import Block, Message, given_block
from cachecost.strategies.changes.base import GrowingThread, estimate_tokens, placeholder_for
from cachecost.strategies.changes.thread_rewriting import ThreadRewriter

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
