"""Another static prefix: tools, system prompt, model or parameters that its agent adds, moves or changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from cachecost.base.structs import replace
from cachecost.conversations.model import Aside, Conversation, Event, Human, Inquiry, Reply, Switch
from cachecost.prompts.blocks import (
    BYTES_PER_TOKEN,
    NOTHING,
    Block,
    Message,
    Part,
    compact,
    digest_of,
    estimate_tokens,
    given_block,
)
from cachecost.prompts.request import Request, text_block
from cachecost.strategies.changes.base import (
    AgentChange,
    CallRewriter,
    EvenSampler,
    Facts,
    Rewriter,
    ThreadRewriter,
    failed_attempt,
    feedback,
    find_tool_calls,
    head_of,
    message_of,
    placeholder_for,
    starts_turn,
)


def in_one_text(role: str, blocks: Sequence[Block]) -> Block:
    """One text block that says what `blocks` say, as JSON, images left out.

    Without content it has as many tokens as they have. Where some are given and some counted, all are estimated.
    """
    if all(block.tokens is None and block.content is not None for block in blocks):
        texts = []
        for block in blocks:
            content = dict(block.content or {})
            if isinstance(inner := content.get("content"), list):
                kinds = (part.get("type") if isinstance(part, dict) else None for part in inner)
                pairs = zip(inner, kinds, strict=True)
                content["content"] = [part for part, kind in pairs if kind not in ("image", "document")]
            texts.append(compact(content).decode())
        return text_block(role, "\n".join(texts))
    digest = digest_of(role, "text", b"as text:" + b"".join(block.digest for block in blocks))
    if any(block.tokens is not None or block.content is not None for block in blocks):
        tokens = sum(map(estimate_tokens, blocks))
        return Block("text", role, digest, tokens * BYTES_PER_TOKEN, tokens=tokens)
    shared = set.intersection(*(set(block.counts) for block in blocks)) if blocks else set()
    counts = {name: sum(block.counts[name] for block in blocks) for name in sorted(shared)}
    return Block("text", role, digest, sum(block.size for block in blocks), counts=counts)


class PrefixRewriter(Rewriter):
    """`turns` says when the head changes by itself; `tools`, `system` and `params` are what it is then.

    Recorded assumptions go on to switch. Side calls that are sent with the main thread's parts get what stands for
    these.
    """

    def __init__(self, options: Any = None, facts: Facts | None = None) -> None:
        super().__init__(options, facts)
        self._made: dict[tuple[Part, object], Part] = {}
        self._switch = Switch(0, "", NOTHING, NOTHING, {})

    def rewrite(self, conversation: Conversation) -> Conversation:
        self._switch = head_of(conversation)
        self.begin(conversation)
        first, events = self._with_prefix(self._switch), list[Event]()
        for event in conversation.events:
            is_turn = self.turns(event)
            if isinstance(event, Switch):
                self._switch = event
                events.append(self._with_prefix(event))
                continue
            if is_turn:
                events.append(self._with_prefix(replace(self._switch, at=event.at)))
            if isinstance(event, Aside):
                sent, main = event.request, self._switch
                tools = self.tools(main) if sent.tools is main.tools else sent.tools
                system = self.system(main) if self.is_shared(sent) else sent.system
                event = replace(event, request=replace(sent, tools=tools, system=system))
            events.append(event)
        return replace(conversation, events=tuple(events), tools=first.tools, system=first.system, params=first.params)

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

    def _with_prefix(self, switch: Switch) -> Switch:
        return replace(switch, tools=self.tools(switch), system=self.system(switch), params=self.params(switch))

    def is_shared(self, beside: Request) -> bool:
        """Whether a side call has the main thread's system prompt."""
        return beside.system is self._switch.system


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
        yield _NoToolsPrefix(self).rewrite(_TextRewriter(self).rewrite(conversation))

    def definitions(self, tools: Part) -> tuple[Block, ...]:
        """The text of the tools; none where there are none."""
        if not tools.blocks:
            return ()
        role = "system" if self.place == "system" else "user"
        instruction = given_block("text", role, f"tool protocol {self.instruction_tokens}", self.instruction_tokens)
        return (instruction, in_one_text(role, tools.blocks))


class _NoToolsPrefix(PrefixRewriter):
    _options: TextTools

    def tools(self, switch: Switch) -> Part:
        return NOTHING

    def system(self, switch: Switch) -> Part:
        if self._options.place == "system":
            with_tools = Part((*switch.system.blocks, *self._options.definitions(switch.tools)))
            return self.reuse_part(switch.system, switch.tools, with_tools)
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

    _options: TextTools

    def begin(self, conversation: Conversation) -> None:
        self._calling = iter(find_tool_calls(conversation.events))
        self._head = head_of(conversation)
        self._fails = EvenSampler(self._options.parse_error_rate)

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        is_call = next(self._calling)
        if isinstance(event, Switch):
            self._head, is_first = event, self.sent_messages and self.sent_messages[0].role == "user"
            if is_first and self._options.place == "first_message":
                first = self._first(self.recorded_messages[self.spans[0][0]])
                if first.digest != self.sent_messages[0].digest:
                    return self.replace_messages(event.at, {0: first}), event
            return (event,)
        if isinstance(event, Reply) and is_call and self._fails():
            reply = replace(event, blocks=self.rewrite_message(message_of(event)).blocks)
            attempt = failed_attempt(reply, "not readable")
            error = feedback(attempt, "not readable", self._options.error_tokens)
            return self.replace_event(event, (attempt, error, reply))
        return CallRewriter.rewrite_event(self, event)

    def rewrite_message(self, message: Message) -> Message:
        is_first = not self.sent_messages and message.role == "user"
        return self._first(message) if is_first else self.rewrite_side_message(message)

    def rewrite_side_message(self, message: Message) -> Message:
        calls = ("tool_use", "tool_result")
        blocks = tuple(in_one_text(block.role, (block,)) if block.kind in calls else block for block in message.blocks)
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

    def __post_init__(self) -> None:
        AgentChange.__post_init__(self)
        if self.turn < 1:
            raise ValueError(f"turn={self.turn}: expected at least 1, the first human message")
        if self.output_share < 0:
            raise ValueError(f"output_share={self.output_share}: expected no less than 0")

    def is_other(self, turn: int) -> bool:
        """Whether the human message `turn` (from 1) and its replies are sent with the other settings."""
        since = turn - self.turn
        return since >= 0 and (not self.every or (since // self.every) % 2 == 0)

    def switch(self, at: float, conversation: Conversation, is_other: bool) -> Switch:
        """The settings from `at` on: the other ones, or those of the conversation."""
        head = replace(head_of(conversation), at=at, is_chosen=is_other and self.model is not None)
        if not is_other:
            return head
        params = dict(head.params)
        if self.effort is not None:
            params["output_config"] = {**(params.get("output_config") or {}), "effort": self.effort}
        if self.thinking is not None:
            enabled = {"type": "enabled", "budget_tokens": self.thinking}
            params["thinking"] = {"type": "disabled"} if self.thinking == "off" else enabled
        return replace(head, model=self.model or head.model, params=params)

    def blocks(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """A reply's blocks under the other settings; thinking stays where there is nothing else."""
        spoken = tuple(block for block in blocks if not block.is_thinking) if self.thinking == "off" else ()
        if self.output_share == 1:
            return spoken or blocks
        shares = ((block, round(estimate_tokens(block) * self.output_share)) for block in spoken or blocks)
        return tuple(placeholder_for(block, "other settings", max(tokens, 1)) for block, tokens in shares)


class _SwitchRewriter(ThreadRewriter, change=SwitchAt):
    """`_replies` are the replies under the other settings, by the digest of what was recorded."""

    _options: SwitchAt

    def begin(self, conversation: Conversation) -> None:
        self._conversation, self._turn, self._is_other = conversation, 0, False
        self._replies: dict[bytes, Message] = {}

    def step(self, event: Event) -> Iterator[Event]:
        if isinstance(event, Human):
            self._turn += 1
            if self._options.is_other(self._turn) != self._is_other:
                self._is_other = not self._is_other
                yield self._options.switch(event.at, self._conversation, self._is_other)
        elif isinstance(event, Reply):
            recorded = message_of(event).digest
            blocks = self._options.blocks(event.blocks) if self._is_other else event.blocks
            self._replies.pop(recorded, None)
            if blocks != event.blocks:
                self._replies[recorded] = Message.of("assistant", blocks)
                event = replace(event, output_tokens=None)
        yield self.send(event)

    def rewrite_message(self, message: Message) -> Message:
        return self._replies.get(message.digest, message)


SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}


@dataclass(frozen=True, slots=True)
class DateInSystem(AgentChange):
    """A block of `tokens` at an end of the system prompt says when a call starts, to the `period` (UTC).

    Another period makes the system layer new from there on, and all messages. Sources: jp #693 (seconds, then days),
    earendil-works/pi#1873. Tokens: assumed.
    """

    period: Literal["second", "minute", "hour", "day"] = "second"
    position: Literal["first", "last"] = "last"
    tokens: int = 20
    least: ClassVar[int] = 1


class _DateRewriter(PrefixRewriter, change=DateInSystem):
    """`_stamp` is the period in which the latest call starts."""

    _options: DateInSystem

    def begin(self, conversation: Conversation) -> None:
        calls = (event for event in conversation.events if isinstance(event, Reply | Inquiry | Aside))
        self._stamp = next((self._stamp_at(call.at) for call in calls), 0)

    def turns(self, event: Event) -> bool:
        before = self._stamp
        if isinstance(event, Reply | Inquiry | Aside):
            self._stamp = self._stamp_at(event.at)
        return self._stamp != before

    def system(self, switch: Switch) -> Part:
        options, stamp = self._options, self._stamp
        date = given_block("text", "system", f"{options.period} {stamp}: {options.tokens}", options.tokens)
        blocks, is_first = switch.system.blocks, options.position == "first"
        return self.reuse_part(switch.system, stamp, Part((date, *blocks) if is_first else (*blocks, date)))

    def _stamp_at(self, at: float) -> int:
        return int(at // SECONDS[self._options.period])


@dataclass(frozen=True, slots=True)
class SplitSystem(AgentChange):
    """The system prompt is a static and a dynamic block. The latter is new at `change_rate` of the turns but the first.

    `static_tokens` left out, the conversation's own system blocks are the static part. `order` says which comes first.
    Source: RFC013, future work 1 (granular system prompt). Tokens and rate: assumed.
    """

    static_tokens: int | None = None
    dynamic_tokens: int = 500
    change_rate: float = 0.2
    order: Literal["static_first", "dynamic_first"] = "static_first"
    least: ClassVar[int] = 1


class _SplitRewriter(PrefixRewriter, change=SplitSystem):
    """`_version` is that of the dynamic block."""

    _options: SplitSystem

    def begin(self, conversation: Conversation) -> None:
        self._changes = EvenSampler(self._options.change_rate)
        self._turn = self._version = 0

    def turns(self, event: Event) -> bool:
        if not isinstance(event, Human):
            return False
        self._turn += 1
        is_new = self._turn > 1 and self._changes()
        self._version += is_new
        return is_new

    def system(self, switch: Switch) -> Part:
        options, tokens = self._options, self._options.dynamic_tokens
        dynamic = given_block("text", "system", f"dynamic {self._version}: {tokens}", tokens)
        static = switch.system.blocks
        if options.static_tokens is not None:
            static = (given_block("text", "system", f"static {options.static_tokens}", options.static_tokens),)
        blocks = (dynamic, *static) if options.order == "dynamic_first" else (*static, dynamic)
        return self.reuse_part(switch.system, self._version, Part(blocks))
