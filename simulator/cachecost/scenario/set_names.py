"""The name of a scenario under `--set`: its report and its baseline have a folder of their own.

A conversation as it would have been had it begun later, or had people paused longer or less long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256

from cachecost.conversations.model import Conversation, Event, Human, Reply, Results, Switch, ThreadRewrite
from cachecost.prompts.blocks import Message
from cachecost.strategies.changes.base import CallRewriter


def begin_at_turn(conversation: Conversation, turn: int) -> Conversation:
    """The conversation from its human message `turn` (from 1) on; one that has fewer has no calls left."""
    return _LaterStart(turn).rewrite(conversation) if turn > 1 else conversation


def stretch_pauses(conversation: Conversation, factor: float) -> Conversation:
    """The conversation with every pause before a human message `factor` times as long; the rest takes its time."""
    events: list[Event] = []
    added, before = 0.0, None
    for event in conversation.events:
        if isinstance(event, Human) and before is not None:
            added += (event.at - before) * (factor - 1)
        before = event.at
        events.append(replace(event, at=event.at + added))
    return replace(conversation, events=tuple(events))


class _LaterStart(CallRewriter):
    """What is said before the turn `_options` stands for nothing that is sent; settings stay, side calls and questions
    go."""

    _options: int
    _past = 0

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        self._past += isinstance(event, Human)
        if self._past >= self._options or isinstance(event, Switch):
            return CallRewriter.rewrite_event(self, event)
        if isinstance(event, ThreadRewrite):
            self.recorded_messages[event.keep :] = event.messages
        elif isinstance(event, Human | Reply | Results) and event.blocks:
            return self.replace_event(event, [])
        return ()

    def _split_at(self, kept: int) -> tuple[int, list[Message]]:
        """A rewrite that goes back to before the start keeps nothing of it."""
        return CallRewriter._split_at(self, kept)[0], []


MOST = 100
"""Characters of a name at most: folders may have 255 bytes."""
DIGEST = 8
UNSAFE = re.compile(r"[^\w.+=,@-]+")
"""What a folder should not be called, on any system."""


def name_with_sets(name: str, sets: Sequence[str]) -> str:
    """ "NAME@a.b=V,c=W": by path, the last value of each, in any order of `sets`; NAME alone without any.

    Where characters of a value are no part of a folder's name, or the name is long, a digest of the values ends it.
    """
    values = {path.strip(): value.strip() for path, _, value in (text.partition("=") for text in sets)}
    values.pop("name", None)  # it is `name` already
    exact = ",".join(f"{path}={value}" for path, value in sorted(values.items()))
    shown = UNSAFE.sub("-", exact)
    if shown != exact or len(shown) > MOST:
        shown = f"{shown[:MOST]}-{sha256(exact.encode()).hexdigest()[:DIGEST]}"
    return f"{name}@{shown}" if shown else name
