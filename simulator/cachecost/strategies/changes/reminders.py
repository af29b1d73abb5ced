"""Reminders beside what is said: kept where they were, or moved on with each message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from cachecost.conversations.model import Conversation, Event, Reply, ThreadRewrite
from cachecost.prompts.blocks import Message, given_block
from cachecost.strategies.changes.base import AgentChange, CallRewriter, starts_turn
from cachecost.strategies.model_facts import Facts


@dataclass(frozen=True, slots=True)
class Reminder(AgentChange):
    """A text of `tokens` goes with each human message, or with all that comes before a call (`when` "every_call").

    It is the last or the first block of its message. `earlier` "kept": it stays in the history. "removed": only the
    latest message has one; it is taken out of the earlier one, and all behind that is new (Kilo-Org/kilocode#7778).
    Beside tool results it makes a message human to the API: models that drop thinking of earlier turns do so there.
    Source: hook content of amplifier-module-provider-claude (2026-01-21). Tokens: assumed.
    """

    tokens: int = 200
    when: Literal["human", "every_call"] = "human"
    earlier: Literal["kept", "removed"] = "kept"
    position: Literal["first", "last"] = "last"
    least: ClassVar[int] = 1

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _ReminderRewriter(self, conversation).rewrite(conversation)


class _ReminderRewriter(CallRewriter):
    """`_last` is the message that has the reminder, where only one has."""

    def __init__(self, options: Reminder, conversation: Conversation) -> None:
        super().__init__(conversation)
        self._options = options
        self._last: int | None = None

    def rewrite_event(self, event: Event) -> Iterator[Event]:
        if self._options.earlier == "removed" and isinstance(event, Reply):
            yield from self._move_reminder(event.at)
        yield from CallRewriter.rewrite_event(self, event)

    def rewrite_message(self, message: Message) -> Message:
        is_kept = self._options.earlier == "kept" and (
            message.role == "user" if self._options.when == "every_call" else starts_turn(message)
        )
        return self._reminding(message) if is_kept else message

    def forget(self, keep: int) -> None:
        if self._last is not None and self._last >= keep:
            self._last = None

    def _move_reminder(self, at: float) -> Iterable[ThreadRewrite]:
        latest = self._latest()
        if latest is None or latest == self._last:
            return
        other = {latest: self._reminding(self.sent_messages[latest])}
        if self._last is not None:
            other[self._last] = self.recorded_messages[self.spans[self._last][0]]
        self._last = latest
        yield self.replace_messages(at, other)

    def _latest(self) -> int | None:
        if self._options.when == "human":
            return self.turns[-1] if self.turns else None
        return next(
            (n for n in range(len(self.sent_messages) - 1, -1, -1) if self.sent_messages[n].role == "user"), None
        )

    def _reminding(self, message: Message) -> Message:
        reminder = given_block("text", "user", f"reminder {self._options.tokens}", self._options.tokens)
        is_first = self._options.position == "first"
        return Message.of("user", (reminder, *message.blocks) if is_first else (*message.blocks, reminder))


CHANGES: dict[str, type[AgentChange]] = {"reminder": Reminder}
"""Every change by the name a scenario gives it."""
