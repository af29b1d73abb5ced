"""Attached files: read again and put into the first message whenever they change, or left as they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from cachecost.conversations.model import Conversation, Event, Human
from cachecost.prompts.blocks import Block, Message, given_block
from cachecost.strategies.changes.base import AgentChange, ThreadRewriter, starts_turn
from cachecost.strategies.model_facts import EvenSampler, Facts


@dataclass(frozen=True, slots=True)
class Attachments(AgentChange):
    """With the human message `turn` (1 is the first), `count` files of `tokens` each are attached.

    `where` "first_message": they stand before the first human message, whenever they were attached, and are read again
    each turn; one that changed makes all after it new (jp before RFD 065). "insertion": they stand before the message
    they came with, as they were then (RFD 065). Then a change is not seen, but with `again` a file that
    changed is attached once more, with the message before which it did. `change_rate` is the share of files that
    change between two turns. Sizes and rates are assumptions.
    """

    where: Literal["first_message", "insertion"] = "first_message"
    turn: int = 1
    count: int = 1
    tokens: int = 5_000
    change_rate: float = 0.2
    again: bool = False

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _AttachmentRewriter(self).rewrite(conversation)


class _AttachmentRewriter(ThreadRewriter):
    """`_versions` are those of the files, `_waiting` the blocks for the next human message.

    `_held` says, in order, which messages hold which files: where the conversation goes back before one of them, the
    next human message has its files, as they are then.
    """

    def __init__(self, options: Attachments) -> None:
        super().__init__()
        self._options = options
        self._changes = EvenSampler(options.change_rate)
        self._versions: list[int] = []
        self._waiting: list[int] = []
        self._held: list[tuple[int, list[int]]] = []
        self._turn = 0

    def step(self, event: Event) -> Iterator[Event]:
        if isinstance(event, Human):
            self._turn += 1
            changed = self._change_files()
            if self._turn == self._options.turn:
                self._versions = [0] * self._options.count
                changed = list(range(self._options.count))
            is_new = self._turn == self._options.turn
            if self._options.where == "first_message" and self.turns and changed:
                yield self._first_again(event.at)
            elif is_new or (self._options.again and self._options.where == "insertion"):
                self._waiting = sorted({*self._waiting, *changed})
        yield self.take(event)

    def _change_files(self) -> list[int]:
        """The files that have changed since the last turn, now in their new version."""
        changed = [number for number in range(len(self._versions)) if self._changes()]
        for number in changed:
            self._versions[number] += 1
        return changed

    def _first_again(self, at: float) -> Event:
        first = self.turns[0]
        files = list(range(self._options.count))
        self._held = [(first, files)]
        recorded = self.recorded_messages[self.spans[first][0]]
        return self.replace_messages(at, {first: self._with(recorded, files)})

    def rewrite_message(self, message: Message) -> Message:
        if not self._waiting or not starts_turn(message):
            return message
        files, self._waiting = self._waiting, []
        self._held.append((len(self.sent_messages), files))
        return self._with(message, files)

    def forget(self, keep: int) -> None:
        while self._held and self._held[-1][0] >= keep:
            self._waiting = sorted({*self._waiting, *self._held.pop()[1]})

    def _with(self, message: Message, files: list[int]) -> Message:
        return Message.of(message.role, (*map(self._file, files), *message.blocks))

    def _file(self, number: int) -> Block:
        tokens = self._options.tokens
        return given_block("text", "user", f"file {number}, version {self._versions[number]}: {tokens}", tokens)


CHANGES: dict[str, type[AgentChange]] = {"attachments": Attachments}
