"""Conversations at the times that a seed draws: for agents that look at the clock and must plan anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Results
from cachecost.sweep.montecarlo.draws import Draw
from cachecost.sweep.montecarlo.times import MainCalls, Times, draw_times


def retime(conversations: Sequence[Conversation], draw: Draw, seed: int) -> list[Conversation]:
    """The conversations with each event at the time that `seed` gives it: replies as main calls, the rest between."""
    replies = sorted(
        (event.at, number, place, after_human)
        for number, conversation in enumerate(conversations)
        for place, event, after_human in _replies(conversation)
    )
    times = draw_times(MainCalls([one[0] for one in replies], [one[3] for one in replies]), draw, [seed])
    columns = {(number, place): column for column, (_, number, place, _) in enumerate(replies)}
    return [
        replace(
            conversation,
            events=tuple(
                _move_event(event, times, columns.get((number, place)))
                for place, event in enumerate(conversation.events)
            ),
        )
        for number, conversation in enumerate(conversations)
    ]


def _replies(conversation: Conversation) -> list[tuple[int, Reply, bool]]:
    """The replies of a conversation, their place, and whether a person spoke just before."""
    found, after_human = [], False
    for place, event in enumerate(conversation.events):
        if isinstance(event, Human | Results):
            after_human = isinstance(event, Human) or any(block.kind != "tool_result" for block in event.blocks)
        elif isinstance(event, Reply):
            found.append((place, event, after_human))
            after_human = False
    return found


def _move_event(event: Event, times: Times, column: int | None) -> Event:
    if isinstance(event, Reply) and column is not None:
        waited = event.first_token_s if times.waited is None else float(times.waited[0, column])
        return replace(event, at=float(times.final[0, column]), first_token_s=waited)
    at = float(times.at(event.at)[0])
    if isinstance(event, Aside):
        return replace(event, at=at, reply=replace(event.reply, at=at))
    return replace(event, at=at)
