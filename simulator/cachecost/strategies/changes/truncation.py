"""The oldest messages dropped to fit a window: in steps, so that the cut stays for a while, or exactly."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cachecost.conversations.model import Conversation, Event, Reply, Switch
from cachecost.prompts.blocks import Message
from cachecost.strategies.agent import GRANULES, Window
from cachecost.strategies.changes.base import AgentChange, Span, ThreadRewriter, model_window, starts_turn
from cachecost.strategies.model_facts import Facts


@dataclass(frozen=True, slots=True)
class Truncate(AgentChange):
    """Before a call that would pass 90 % of the window, the oldest messages go until 80 % are left (jp, see window.py).

    `in_steps` rounds what must go up to tenths of those 80 %, as jp does: the cut moves once in a while. Without, it
    moves on whenever one more turn must go, and everything after the head is written again. What stays begins with a
    human message, the last one at the latest: a turn that is too long alone is sent, and may be refused. The window is
    `window_tokens`, else the model's; unknown, nothing is cut.
    """

    in_steps: bool = True
    window_tokens: int | None = None

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _TruncationRewriter(self, conversation, facts).rewrite(conversation)


class _TruncationRewriter(ThreadRewriter):
    """`_ends` are bytes up to and with each recorded message, `_humans` the human ones among them."""

    def __init__(self, options: Truncate, conversation: Conversation, facts: Facts | None) -> None:
        super().__init__()
        self._options = options
        self._facts = facts
        self._ends: list[int] = []
        self._humans: list[int] = []
        self._cut = 0
        self._fit(Switch(0, conversation.model or "", conversation.tools, conversation.system, conversation.params))

    def step(self, event: Event) -> Iterator[Event]:
        if isinstance(event, Switch):
            self._fit(event)
        elif isinstance(event, Reply):
            cut = self._first_kept()
            start = self.spans[0][0] if self.spans else len(self.recorded_messages)
            if cut != start and self.recorded_messages:
                spans: list[Span] = [(place, place + 1) for place in range(cut, len(self.recorded_messages))]
                yield self.resend(event.at, 0, self.recorded_messages[cut:], spans, "edit")
        yield self.take(event)
        self._unlearn(len(self.recorded_messages))
        for message in self.recorded_messages[len(self._ends) :]:
            if starts_turn(message):
                self._humans.append(len(self._ends))
            self._ends.append((self._ends[-1] if self._ends else 0) + sum(block.size for block in message.blocks))

    def _fit(self, head: Switch) -> None:
        tokens = self._options.window_tokens or model_window(head.model, self._facts)
        self._window = Window(tokens, (head.tools, head.system)) if tokens else None

    def rewrite_message(self, message: Message) -> Message:
        self._unlearn(len(self.recorded_messages) - 1)
        return message

    def _unlearn(self, start: int) -> None:
        """The recorded messages from `start` on are others now."""
        del self._ends[start:]
        while self._humans and self._humans[-1] >= start:
            self._humans.pop()

    def _first_kept(self) -> int:
        total = self._ends[-1] if self._ends else 0
        if self._window is None or total <= self._window.budget:
            return 0
        granule = max(self._window.target // GRANULES, 1) if self._options.in_steps else 1
        surplus = -(-(total - self._window.target) // granule) * granule
        human = bisect_left(self._humans, bisect_left(self._ends, surplus) + 1)
        return self._humans[min(human, len(self._humans) - 1)] if self._humans else 0


CHANGES: dict[str, type[AgentChange]] = {"truncate": Truncate}
