"""A conversation with another static prefix: tools or a system prompt that its agent adds, moves or changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from cachecost.conversations.model import Aside, Conversation, Event, Switch
from cachecost.prompts.blocks import NOTHING, Part
from cachecost.prompts.request import Request


class PrefixRewriter:
    """`turns` says when the head changes by itself; `tools`, `system` and `params` are what it is then.

    Recorded assumptions go on to switch. Side calls that are sent with the main thread's parts get what stands for
    these.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[Part, object], Part] = {}
        self._switch = Switch(0, "", NOTHING, NOTHING, {})

    def rewrite(self, conversation: Conversation) -> Conversation:
        """The conversation with its heads."""
        self._switch = Switch(
            0,
            conversation.model or "",
            conversation.tools,
            conversation.system,
            conversation.params,
            conversation.is_chosen,
        )
        self.begin(conversation)
        first = self._with_prefix(self._switch)
        events = tuple(new for event in conversation.events for new in self._step(event))
        return replace(conversation, events=events, tools=first.tools, system=first.system, params=first.params)

    def begin(self, conversation: Conversation) -> None:
        """Get ready for the head of the first call."""

    def turns(self, event: Event) -> bool:
        """Whether the head is another one from this event on."""
        return False

    def tools(self, switch: Switch) -> Part:
        return switch.tools

    def system(self, switch: Switch) -> Part:
        return switch.system

    def params(self, switch: Switch) -> Mapping[str, Any]:
        return switch.params

    def reuse_part(self, switch: Part, state: object, new: Part) -> Part:
        """`new`, or the part that was made of the same one in the same state before: parts are compared by identity."""
        return self._made.setdefault((switch, state), new)

    def _step(self, event: Event) -> Iterator[Event]:
        is_turn = self.turns(event)
        if isinstance(event, Switch):
            self._switch = event
            yield self._with_prefix(event)
            return
        if is_turn:
            yield self._with_prefix(replace(self._switch, at=event.at))
        yield self._side_call(event) if isinstance(event, Aside) else event

    def _with_prefix(self, switch: Switch) -> Switch:
        return replace(switch, tools=self.tools(switch), system=self.system(switch), params=self.params(switch))

    def _side_call(self, event: Aside) -> Aside:
        sent, main = event.request, self._switch
        tools = self.tools(main) if sent.tools is main.tools else sent.tools
        system = self.system(main) if self.is_shared(sent) else sent.system
        return replace(event, request=replace(sent, tools=tools, system=system))

    def is_shared(self, beside: Request) -> bool:
        """Whether a side call has the main thread's system prompt."""
        return beside.system is self._switch.system
