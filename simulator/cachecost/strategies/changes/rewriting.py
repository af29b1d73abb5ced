"""A conversation told with other messages and more calls: the base of changes that make calls of the main thread.

A message told may stand for several that are sent; all of them go when the conversation goes back before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Results, Rewrite
from cachecost.prompts.blocks import Block, Message, given_block
from cachecost.strategies.changes.base import ThreadSoFar, estimated, instead_of
from cachecost.strategies.changes.overlay import Overlay

STEP_S = 2.0
"""Seconds from a call without a recorded time to the next (rule 11); more where its first token took more."""


class Telling(Overlay):
    """`retold` says what is sent instead of an event. Calls that are not recorded take time: later events wait."""

    def __init__(self, talk: Conversation) -> None:
        super().__init__()
        self._original = ThreadSoFar(talk.root)
        self._grown = ThreadSoFar(talk.root)
        self._now = self._ready = float("-inf")

    def step(self, event: Event) -> Iterator[Event]:
        said = list(self.retold(event))
        is_as_told = sum(isinstance(new, Reply) for new in said) <= isinstance(event, Reply)
        for new in said:
            timed = self._in_time(new, is_as_told)
            self._grown.take(timed)
            yield timed
        self._original.take(event)

    def retold(self, event: Event) -> Iterable[Event]:
        """What is sent instead of an event."""
        return (self.beside(event) if isinstance(event, Aside) else self.take(event),)

    def instead(self, told: Human | Reply | Results, sent: Sequence[Human | Reply | Results]) -> Iterator[Event]:
        """Send all of these for one message told."""
        self.told.append(message_of(told))
        for event in sent:
            self._append(message_of(event), (len(self.told) - 1, len(self.told)))
            yield event

    def beside(self, event: Aside) -> Aside:
        """A side call as it is sent: where it goes on from the main thread, from that as it is sent."""
        shared = event.request.thread.common(self._original.thread)
        if not shared.length:
            return event
        place, once_more = self._kept(min(shared.length, len(self.told)))
        thread = self._grown.thread.up_to(place)
        own = event.request.thread.messages()[shared.length :]
        for message in (*once_more, *own):
            thread = thread.then(self.reworded(message))
        return replace(event, request=replace(event.request, thread=thread))

    def reworded(self, message: Message) -> Message:
        """A message of a side call, not of the main thread."""
        return message

    def _in_time(self, event: Event, is_as_told: bool) -> Event:
        self._now = max(self._now, event.at)
        if isinstance(event, Reply):
            is_late, self._now = self._ready > self._now, max(self._now, self._ready)
            if is_late or not is_as_told:
                self._ready = self._now + max(STEP_S, event.first_token_s or 0.0)
        return event if event.at == self._now else replace(event, at=self._now)


def message_of(event: Human | Reply | Results) -> Message:
    return Message.of("assistant" if isinstance(event, Reply) else "user", event.blocks)


def calling(events: Sequence[Event]) -> list[bool]:
    """Of each event, whether it is a reply that calls tools: it says so, or results follow (tools as text)."""
    calls: list[bool] = []
    follows: Event | None = None
    for event in reversed(events):
        calls.append(isinstance(event, Reply) and bool(event.blocks) and _calls(event, follows))
        if isinstance(event, Human | Reply | Results | Rewrite):
            follows = event
    return calls[::-1]


def _calls(reply: Reply, follows: Event | None) -> bool:
    return isinstance(follows, Results) or any(block.kind == "tool_use" for block in reply.blocks)


def made(kind: str, role: str, why: str, of: Iterable[Block], tokens: int) -> Block:
    """A block of assumed size that is said because of the blocks `of`: another for others."""
    cause = b"".join(block.digest for block in of).hex()
    return given_block(kind, role, f"{why} {tokens}: {cause}", tokens)


def failed(reply: Reply, why: str) -> Reply:
    """An attempt at `reply` that cannot be used: as long as it, but another."""
    return replace(reply, blocks=tuple(instead_of(block, why, estimated(block)) for block in reply.blocks))


def feedback(reply: Reply, why: str, tokens: int) -> Results:
    """What the model is told of a failed reply: a result of `tokens` for each of its calls, or a text."""
    calls = [block for block in reply.blocks if block.kind == "tool_use"]
    kind = "tool_result" if calls else "text"
    blocks = [[call] for call in calls] or [list(reply.blocks)]
    return Results(reply.at, tuple(made(kind, "user", why, each, tokens) for each in blocks))
