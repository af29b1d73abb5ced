"""Old tool calls cleared in place: their results, their arguments, or both become a short placeholder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from cachecost.conversations.model import Conversation, Event, Human, Reply, ThreadRewrite
from cachecost.prompts.blocks import Message, estimate_tokens
from cachecost.strategies.changes.base import AgentChange, ThreadRewriter, placeholder_for
from cachecost.strategies.model_facts import Facts

CLEARED = "cleared"


@dataclass(frozen=True, slots=True)
class Prune(AgentChange):
    """Tool results but the last `keep_results`, of turns before the last `keep_turns`, become a placeholder.

    They do before the first call of each `every_turns`-th turn (0: before every call) in which the estimated context
    passes `above_tokens`, and only if that saves `at_least_tokens`. So 1 clears a little each turn, and a
    higher number clears in steps: the cut, and with it what must be written again, moves rarely. Results that no call
    has sent yet stay. `clears` is jp's hint
    for tools (RFD 064, D17), here one for all: "requests" are arguments. A placeholder is `placeholder_tokens` long.

    Three results kept is the default of the API's own clear_tool_uses_20250919; 12 tokens are an assumption.
    """

    keep_results: int = 3
    keep_turns: int = 0
    every_turns: int = 1
    above_tokens: int = 0
    at_least_tokens: int = 0
    clears: Literal["responses", "requests", "both"] = "responses"
    placeholder_tokens: int = 12

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _PruneRewriter(self, conversation).rewrite(conversation)


@dataclass(frozen=True, slots=True)
class _ClearableBlock:
    """A block that can be cleared: its message, its place in that, and the tokens it loses."""

    message: int
    block: int
    saves: int


class _PruneRewriter(ThreadRewriter):
    """`_open` are the tool results and the tool calls that are not cleared, in the order of the thread.

    The n-th result answers the n-th call: recordings without content do not say more.
    """

    def __init__(self, options: Prune, conversation: Conversation) -> None:
        super().__init__()
        self._options = options
        self._head = sum(
            estimate_tokens(block) for part in (conversation.tools, conversation.system) for block in part.blocks
        )
        self._open: dict[str, list[_ClearableBlock]] = {"tool_result": [], "tool_use": []}
        self._turn = 0
        self._is_due = False

    def step(self, event: Event) -> Iterator[Event]:
        if isinstance(event, Human):
            self._turn += 1
            every = self._options.every_turns
            self._is_due = every > 0 and (self._turn - 1) % every == 0
        elif isinstance(event, Reply):
            if self._is_due or not self._options.every_turns:
                yield from self._clear_old(event.at)
            self._is_due = False
        yield self.take(event)

    def rewrite_message(self, message: Message) -> Message:
        for place, block in enumerate(message.blocks):
            if block.kind in self._open:
                saves = estimate_tokens(block) - self._options.placeholder_tokens
                self._open[block.kind].append(_ClearableBlock(len(self.sent_messages), place, saves))
        return message

    def forget(self, keep: int) -> None:
        for places in self._open.values():
            while places and places[-1].message >= keep:
                places.pop()

    def _clear_old(self, at: float) -> Iterator[ThreadRewrite]:
        """The thread with its old calls cleared, where that is due and worth it."""
        options, old = self._options, self._old()
        if self._head + self.tokens <= options.above_tokens:
            return
        kinds = {"responses": ["tool_result"], "requests": ["tool_use"], "both": ["tool_result", "tool_use"]}
        chosen = [each for kind in kinds[options.clears] for each in self._open[kind][:old] if each.saves > 0]
        if chosen and sum(each.saves for each in chosen) >= options.at_least_tokens:
            for places in self._open.values():
                del places[:old]
            yield self.replace_messages(at, self._with_placeholders(chosen))

    def _old(self) -> int:
        """How many of the results that are not cleared are old."""
        options, results = self._options, self._open["tool_result"]
        old = max(len(results) - options.keep_results, 0)
        while old and results[old - 1].message >= self._first_kept():
            old -= 1
        return old

    def _first_kept(self) -> int:
        """The last message, whose results no call has sent yet, or the first of the turns that are kept."""
        turns = self._options.keep_turns
        if not turns:
            return len(self.sent_messages) - 1
        return min(self.turns[-turns], len(self.sent_messages) - 1) if len(self.turns) >= turns else 0

    def _with_placeholders(self, chosen: list[_ClearableBlock]) -> dict[int, Message]:
        at: defaultdict[int, set[int]] = defaultdict(set)
        for each in chosen:
            at[each.message].add(each.block)
        return {message: self._with_placeholder(self.sent_messages[message], places) for message, places in at.items()}

    def _with_placeholder(self, message: Message, places: set[int]) -> Message:
        tokens = self._options.placeholder_tokens
        blocks = enumerate(message.blocks)
        kept = (placeholder_for(block, CLEARED, tokens) if place in places else block for place, block in blocks)
        return Message.of(message.role, tuple(kept))


CHANGES: dict[str, type[AgentChange]] = {"prune": Prune}
