"""The conversations that a scenario asks about: recorded or synthetic, with the head that it gives them.

They may begin at a later turn than recorded, or have longer pauses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from cachecost.base.errors import InputError
from cachecost.base.formatting import count_text
from cachecost.base.limits import BLOCKS, OutOfLimits
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.distributions import SyntheticSpec, synthetic
from cachecost.conversations.input_files import Warn, input_path, quiet
from cachecost.conversations.model import Conversation, Event, Human, Reply, Results, Switch, ThreadRewrite
from cachecost.conversations.sessions import read_conversations
from cachecost.prompts.blocks import NOTHING, Message, Part, given_block
from cachecost.scenario.models import Head, Scenario
from cachecost.strategies.changes.base import CallRewriter

NOT_RUN = "expected a recording or a synthetic conversation here, as a variant or a swept value runs no command"


def head_parts(head: Head) -> tuple[Part, Part]:
    """The tools and the system prompt of `head`, without text; their tokens sum exactly to what it says."""
    sizes: list[int] = []
    if head.tools:  # as equal as whole numbers can be
        each, rest = divmod(head.tools.tokens, head.tools.count)
        sizes = [each + (number < rest) for number in range(head.tools.count)]
    system = head.system.blocks or [head.system.tokens or 0] if head.system else []
    return _part("tool", "", "tool", sizes), _part("text", "system", "system", system)


def _part(kind: str, role: str, name: str, sizes: Sequence[int]) -> Part:
    blocks = [given_block(kind, role, f"{name} {number}:{size}", size) for number, size in zip(count(1), sizes)]
    return Part(tuple(blocks)) if blocks else NOTHING


class ScenarioConversations(NamedTuple):
    """What a scenario replays: conversations, and the calls with their bills that they were found in, if any."""

    conversations: list[Conversation]
    bills: list[Call]


def load_conversations(scenario: Scenario, base_dir: Path, warn: Warn = quiet) -> ScenarioConversations:
    """The scenario's conversations, with their head and parameters; paths start at `base_dir`.

    `warn` is called for a recording that is still being written. Raises InputError: a recording that
    cannot be read, or that has itself what the head would add.
    """
    source = scenario.conversation
    tools = source.head.tools
    if tools and tools.count > BLOCKS.value():
        way = ("conversation", "head", "tools", "count")
        raise InputError([scenario.fault(way, str(BLOCKS.error(f"{tools.count:,}")))])
    if source.command is not None:
        raise InputError([scenario.fault(("conversation", "command"), NOT_RUN)])
    if source.recording is None:
        try:
            spec = source.synthetic or SyntheticSpec()
            made = synthetic(replace(spec, name=scenario.name, model=scenario.model))
        except OutOfLimits as error:
            raise InputError([scenario.fault(("conversation", "synthetic"), str(error))]) from None
        return ScenarioConversations([_add_head(scenario, made)], [])
    conversations, bills = read_conversations(input_path(source.recording, base_dir), "auto", warn)
    headed = [_add_head(scenario, conversation) for conversation in conversations]
    if not any(conversation.replies for conversation in conversations):
        fault = scenario.fault(("conversation", "recording"), "expected a recording with calls; it has none")
        raise InputError([fault])
    return ScenarioConversations(headed, bills)


def _add_head(scenario: Scenario, conversation: Conversation) -> Conversation:
    source = scenario.conversation
    tools, system = head_parts(source.head)
    begun = stretch_pauses(begin_at_turn(conversation, source.from_turn), source.pause_factor)
    starts = [number for number, event in enumerate(begun.events) if isinstance(event, Human)]
    is_cut = isinstance(source.turns, int) and len(starts) > source.turns
    return replace(
        begun,
        events=begun.events[: starts[source.turns]] if is_cut and isinstance(source.turns, int) else begun.events,
        tools=_pick_part(scenario, "tools", conversation.tools, tools),
        system=_pick_part(scenario, "system", conversation.system, system),
        params={**conversation.params, **source.params.model_dump(exclude_none=True)},
    )


def _pick_part(scenario: Scenario, layer: str, recorded: Part, given: Part) -> Part:
    """The part that is there. Two would mean that the head, or a sweep over it, is silently without effect."""
    if recorded.blocks and given.blocks:
        message = f"expected nothing, as the recording has its own; got {count_text(len(given.blocks), 'block')}"
        raise InputError([scenario.fault(("conversation", "head", layer), message)])
    return given if given.blocks else recorded


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
