"""System prompts of which a part changes: the date, or whatever else is not the same each turn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from cachecost.conversations.model import Aside, Conversation, Event, Human, Inquiry, Reply, Switch
from cachecost.prompts.blocks import Part, given_block
from cachecost.strategies.changes.base import AgentChange
from cachecost.strategies.changes.prefix_rewriting import PrefixRewriter
from cachecost.strategies.model_facts import EvenSampler, Facts

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

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _Dated(self).rewrite(conversation)


class _Dated(PrefixRewriter):
    """`_stamp` is the period in which the latest call starts."""

    def __init__(self, options: DateInSystem) -> None:
        super().__init__()
        self._options = options
        self._stamp = 0

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
        blocks = switch.system.blocks
        return self.reuse_part(
            switch.system, stamp, Part((date, *blocks) if options.position == "first" else (*blocks, date))
        )

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

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _Split(self).rewrite(conversation)


class _Split(PrefixRewriter):
    """`_version` is that of the dynamic block."""

    def __init__(self, options: SplitSystem) -> None:
        super().__init__()
        self._options = options
        self._changes = EvenSampler(options.change_rate)
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
        is_first = options.order == "dynamic_first"
        return self.reuse_part(
            switch.system, self._version, Part((dynamic, *static) if is_first else (*static, dynamic))
        )


CHANGES: dict[str, type[AgentChange]] = {"date_in_system": DateInSystem, "split_system": SplitSystem}
"""Every change by the name a scenario gives it."""
