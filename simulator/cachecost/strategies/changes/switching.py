"""Another model, effort or thinking from some turn on: what is cached under the one is not under the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from cachecost.conversations.model import Conversation, Event, Human, Switch
from cachecost.strategies.changes.base import AgentChange
from cachecost.strategies.model_facts import Facts


@dataclass(frozen=True, slots=True)
class SwitchAt(AgentChange):
    """From the human message `turn` on (1 is the first), every `every` turns again and back: another model or effort.

    `model` and `effort` left out stay; `thinking` is "off" or a budget in tokens.
    """

    turn: int = 2
    model: str | None = None
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    thinking: Literal["off"] | int | None = None
    every: int = 0
    least: ClassVar[int] = 0

    def __post_init__(self) -> None:
        AgentChange.__post_init__(self)
        if self.turn < 1:
            raise ValueError(f"turn={self.turn}: expected at least 1, the first human message")

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        events: list[Event] = []
        turn, is_other = 0, False
        for event in conversation.events:
            if isinstance(event, Human):
                turn += 1
                if self._is_other(turn) != is_other:
                    is_other = not is_other
                    events.append(self._switch(event.at, conversation, is_other))
            events.append(event)
        yield replace(conversation, events=tuple(events))

    def _is_other(self, turn: int) -> bool:
        since = turn - self.turn
        return since >= 0 and (not self.every or (since // self.every) % 2 == 0)

    def _switch(self, at: float, conversation: Conversation, is_other: bool) -> Switch:
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


CHANGES: dict[str, type[AgentChange]] = {"switch": SwitchAt}
