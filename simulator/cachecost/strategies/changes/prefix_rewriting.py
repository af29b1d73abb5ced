"""A conversation with another static prefix: tools or a system prompt that its agent adds, moves or changes.

Tools as text: described in a prompt, called in a reply's text, answered in a user's text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from cachecost.conversations.model import Aside, Conversation, Event, Reply, Switch
from cachecost.prompts.blocks import NOTHING, Block, Message, Part, given_block
from cachecost.prompts.request import Request
from cachecost.strategies.changes.base import (
    AgentChange,
    CallRewriter,
    failed_attempt,
    feedback,
    find_tool_calls,
    message_of,
    starts_turn,
)
from cachecost.strategies.changes.texts import in_one_text
from cachecost.strategies.model_facts import EvenSampler, Facts


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


CALLS = frozenset({"tool_use", "tool_result"})


@dataclass(frozen=True, slots=True)
class TextTools(AgentChange):
    """Nothing is declared as a tool: definitions are text, calls are text of a reply, results are user text.

    The definitions and `instruction_tokens` that explain the protocol are the last block of the system prompt
    (`place` "system"), or stand at the head of the first message ("first_message"), `with_system` behind the system
    prompt, of which "---" is left in its layer; tools that change change that message. `reminder_tokens` end each human
    message. At `parse_error_rate` a reply that calls tools cannot be read: it stays, `error_tokens` tell so, and the
    model says it again (one call each). Result messages are human to the API now: models that drop thinking of
    earlier turns drop it at each of them. Name this change before those that look at the thread.

    Source: amplifier-module-provider-claude, docs/ARCHITECTURE.md (2026-01-21; first message with system: 2026-01-28).
    Tokens and rates: assumed.
    """

    place: Literal["system", "first_message"] = "system"
    with_system: bool = False
    instruction_tokens: int = 300
    reminder_tokens: int = 0
    parse_error_rate: float = 0.0
    error_tokens: int = 60

    def __post_init__(self) -> None:
        AgentChange.__post_init__(self)
        if self.with_system and self.place == "system":
            raise ValueError("with_system=True: only where place is first_message")

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _NoToolsPrefix(self).rewrite(_TextRewriter(self, conversation).rewrite(conversation))

    def definitions(self, tools: Part) -> tuple[Block, ...]:
        """The text of the tools; none where there are none."""
        if not tools.blocks:
            return ()
        role = "system" if self.place == "system" else "user"
        instruction = given_block("text", role, f"tool protocol {self.instruction_tokens}", self.instruction_tokens)
        return (instruction, in_one_text(role, tools.blocks))


class _NoToolsPrefix(PrefixRewriter):
    """A head without tools."""

    def __init__(self, options: TextTools) -> None:
        super().__init__()
        self._options = options

    def tools(self, switch: Switch) -> Part:
        return NOTHING

    def system(self, switch: Switch) -> Part:
        if self._options.place == "system":
            return self.reuse_part(
                switch.system, switch.tools, Part((*switch.system.blocks, *self._options.definitions(switch.tools)))
            )
        if self._options.with_system and switch.system.blocks:
            return self.reuse_part(switch.system, "moved", Part((given_block("text", "system", "---", 1),)))
        return switch.system

    def params(self, switch: Switch) -> Mapping[str, Any]:
        return {key: value for key, value in switch.params.items() if key != "tool_choice"}

    def is_shared(self, beside: Request) -> bool:
        """A side call without the tools is not told of them."""
        return beside.system is self._switch.system and beside.tools is self._switch.tools


class _TextRewriter(CallRewriter):
    """The messages: calls and results as text, definitions in the first one if they belong there."""

    def __init__(self, options: TextTools, conversation: Conversation) -> None:
        super().__init__(conversation)
        self._options = options
        self._calling = iter(find_tool_calls(conversation.events))
        self._head = Switch(0, "", conversation.tools, conversation.system, conversation.params)
        self._fails = EvenSampler(options.parse_error_rate)

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        is_call = next(self._calling)
        if isinstance(event, Switch):
            return self._switch_tools(event)
        if isinstance(event, Reply) and is_call and self._fails():
            reply = replace(event, blocks=self.rewrite_message(message_of(event)).blocks)
            attempt = failed_attempt(reply, "not readable")
            return self.replace_event(
                event, (attempt, feedback(attempt, "not readable", self._options.error_tokens), reply)
            )
        return CallRewriter.rewrite_event(self, event)

    def rewrite_message(self, message: Message) -> Message:
        return (
            self._first(message)
            if not self.sent_messages and message.role == "user"
            else self.rewrite_side_message(message)
        )

    def rewrite_side_message(self, message: Message) -> Message:
        blocks = tuple(in_one_text(block.role, (block,)) if block.kind in CALLS else block for block in message.blocks)
        tokens = self._options.reminder_tokens
        if tokens and starts_turn(message):
            blocks = (*blocks, given_block("text", "user", f"tool reminder {tokens}", tokens))
        return message if blocks == message.blocks else Message.of(message.role, blocks)

    def _first(self, message: Message) -> Message:
        blocks = self.rewrite_side_message(message).blocks
        if self._options.place == "system":
            return Message.of("user", blocks)
        moved = self._head.system.blocks if self._options.with_system else ()
        system = (in_one_text("user", moved),) if moved else ()
        return Message.of("user", (*system, *self._options.definitions(self._head.tools), *blocks))

    def _switch_tools(self, event: Switch) -> Iterable[Event]:
        self._head, is_first = event, self.sent_messages and self.sent_messages[0].role == "user"
        if is_first and self._options.place == "first_message":
            first = self._first(self.recorded_messages[self.spans[0][0]])
            if first.digest != self.sent_messages[0].digest:
                yield self.replace_messages(event.at, {0: first})
        yield event


CHANGES: dict[str, type[AgentChange]] = {"text_tools": TextTools}
"""Every change by the name a scenario gives it."""
