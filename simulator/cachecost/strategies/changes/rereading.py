"""Results that left the context and are missed: the model calls their tools again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cachecost.conversations.model import Conversation, Event, Reply, Results, ThreadRewrite
from cachecost.prompts.blocks import Block, Message
from cachecost.strategies.changes.base import AgentChange, CallRewriter, assumed_block, placeholder_for
from cachecost.strategies.model_facts import EvenSampler, Facts

SHORTENED = ("compaction", "edit")
"""Why a thread is rewritten where that may take results out of it; a fork leaves them on purpose."""


@dataclass(frozen=True, slots=True)
class Reread(AgentChange):
    """At `rate` of the tool results that a change before this one took out of the context, they are read again.

    That is one call each, of `call_tokens`, before the first reply after the cut; the result is as long as it was, and
    at the next cut becomes a placeholder of `placeholder_tokens`. No result is read again twice. Name this change after
    those that compact or prune. Left at 0, nothing that was taken out is ever missed. Rate and tokens: assumed.
    """

    rate: float = 0.0
    call_tokens: int = 100
    placeholder_tokens: int = 12

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _RereadRewriter(self, conversation).rewrite(conversation)


class _RereadRewriter(CallRewriter):
    """`_missing` are the results to read again before the next reply, `_gone` the digests of all that were cut,
    `_again` what each message that was read again is after the next cut."""

    def __init__(self, options: Reread, conversation: Conversation) -> None:
        super().__init__(conversation)
        self._options = options
        self._is_missed = EvenSampler(options.rate)
        self._missing: list[Block] = []
        self._gone: set[bytes] = set()
        self._again: dict[bytes, Message] = {}

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        if isinstance(event, ThreadRewrite) and event.why in SHORTENED:
            self._missing += [block for block in self._cut(event) if self._is_missed()]
            return [*CallRewriter.rewrite_event(self, event), *self._clear_again(event.at)]
        if isinstance(event, Reply) and event.blocks and self._missing:
            missing, self._missing = self._missing, []
            return self.replace_event(event, [*self._read_again(event.at, missing), event])
        return CallRewriter.rewrite_event(self, event)

    def _cut(self, event: ThreadRewrite) -> list[Block]:
        """The results that are in the thread before the rewrite, not after it, and were never cut before."""
        left = {block.digest for block in _results(event.messages)} | self._gone
        cut = [block for block in _results(self.recorded_messages[event.keep :]) if block.digest not in left]
        self._gone |= {block.digest for block in cut}
        return cut

    def _read_again(self, at: float, missing: Iterable[Block]) -> Iterator[Reply | Results]:
        for result in missing:
            call = assumed_block("tool_use", "assistant", "read again", (result,), self._options.call_tokens)
            yield Reply(at, (call,))
            yield Results(at, (result,))
            cleared = placeholder_for(result, "cleared", self._options.placeholder_tokens)
            self._again[Message.of("user", (result,)).digest] = Message.of("user", (cleared,))

    def _clear_again(self, at: float) -> Iterator[ThreadRewrite]:
        found = enumerate(self.sent_messages)
        cleared = {place: self._again[message.digest] for place, message in found if message.digest in self._again}
        if cleared:
            yield self.replace_messages(at, cleared)


def _results(messages: Iterable[Message]) -> Iterator[Block]:
    return (block for message in messages for block in message.blocks if block.kind == "tool_result")


CHANGES: dict[str, type[AgentChange]] = {"reread": Reread}
