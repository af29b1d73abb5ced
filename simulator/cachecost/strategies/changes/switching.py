"""Another model, effort or thinking from some turn on: what is cached under the one is not under the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from cachecost.conversations.model import Conversation, Event, Human, Reply, Switch
from cachecost.prompts.blocks import Block, Message
from cachecost.strategies.changes.base import AgentChange, estimate_tokens, placeholder_for
from cachecost.strategies.changes.call_rewriting import message_of
from cachecost.strategies.changes.thread_rewriting import ThreadRewriter
from cachecost.strategies.model_facts import Facts


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
