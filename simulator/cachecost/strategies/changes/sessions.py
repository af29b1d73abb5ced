"""Sessions that a client resumes: what it costs when they are lost, or when the client sends what was sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from cachecost.conversations.model import Conversation, Event, Human
from cachecost.prompts.blocks import Block
from cachecost.strategies.changes.base import AgentChange, CallRewriter, message_of
from cachecost.strategies.changes.texts import in_one_text
from cachecost.strategies.model_facts import EvenSampler, Facts


@dataclass(frozen=True, slots=True)
class SessionResume(AgentChange):
    """The client sends only what is new and the server adds the session: each call is billed whole, as without.

    At `loss_rate` of the human messages after the first the session is gone: a new one begins, in which one message
    holds the whole history as text, thinking left out, and then what is new. At `duplicated_resend_rate` the client
    has lost count: the same text stands before the human message, and the session has it twice from then on.

    Source: amplifier-module-provider-claude (2026-01; resent messages tripled a context: commit 04a183d). Rates are
    assumed.
    """

    loss_rate: float = 0.0
    duplicated_resend_rate: float = 0.0

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _ResumeRewriter(self, conversation).rewrite(conversation)


class _ResumeRewriter(CallRewriter):
    def __init__(self, options: SessionResume, conversation: Conversation) -> None:
        super().__init__(conversation)
        self._is_lost = EvenSampler(options.loss_rate)
        self._is_resent = EvenSampler(options.duplicated_resend_rate)

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        if not isinstance(event, Human) or not event.blocks or not (history := self._history()):
            return CallRewriter.rewrite_event(self, event)
        if self._is_lost():
            return self._anew(event, history)
        if self._is_resent():
            return self.replace_event(event, (_behind(history, event),))
        return CallRewriter.rewrite_event(self, event)

    def _history(self) -> list[Block]:
        return [block for message in self.recorded_messages for block in message.blocks if not block.is_thinking]

    def _anew(self, event: Human, history: list[Block]) -> Iterator[Event]:
        yield self.resend(event.at, 0, (), (), "edit")
        sent = _behind(history, event)
        self.recorded_messages.append(message_of(event))
        self._append(message_of(sent), (0, len(self.recorded_messages)))
        yield sent


def _behind(history: list[Block], event: Human) -> Human:
    return replace(event, blocks=(in_one_text("user", history), *event.blocks))


CHANGES: dict[str, type[AgentChange]] = {"session_resume": SessionResume}
"""Every change by the name a scenario gives it."""
