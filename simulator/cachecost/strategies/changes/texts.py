"""Blocks as text: what a protocol without tools, or a history that is told anew, makes of them.

Failed calls that are repeated: unknown tools, unreadable replies, lost results, unprompted tool calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cachecost.conversations.model import Conversation, Event, Reply, Results
from cachecost.prompts.blocks import BYTES_PER_TOKEN, Block, compact, digest_of, estimate_tokens
from cachecost.prompts.request import text_block
from cachecost.strategies.changes.base import (
    AgentChange,
    CallRewriter,
    assumed_block,
    failed_attempt,
    feedback,
    find_tool_calls,
    placeholder_for,
)
from cachecost.strategies.model_facts import EvenSampler, Facts

IMAGES = frozenset({"image", "document"})


def in_one_text(role: str, blocks: Sequence[Block]) -> Block:
    """One text block that says what `blocks` say, as JSON, images left out.

    Without content it has as many tokens as they have. Where some are given and some counted, all are estimated.
    """
    if all(block.tokens is None and block.content is not None for block in blocks):
        return text_block(role, "\n".join(compact(_without_images(block.content or {})).decode() for block in blocks))
    digest = digest_of(role, "text", b"as text:" + b"".join(block.digest for block in blocks))
    if any(block.tokens is not None or block.content is not None for block in blocks):
        tokens = sum(map(estimate_tokens, blocks))
        return Block("text", role, digest, tokens * BYTES_PER_TOKEN, tokens=tokens)
    return Block("text", role, digest, sum(block.size for block in blocks), counts=_counts(blocks))


def _counts(blocks: Sequence[Block]) -> dict[str, int]:
    """The counts that all of them have."""
    names = set.intersection(*(set(block.counts) for block in blocks)) if blocks else set()
    return {name: sum(block.counts[name] for block in blocks) for name in sorted(names)}


def _without_images(content: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = content.get("content")
    if not isinstance(inner, list):
        return content
    return {**content, "content": [sub for sub in inner if not (isinstance(sub, dict) and sub.get("type") in IMAGES)]}


@dataclass(frozen=True, slots=True)
class Repairs(AgentChange):
    """What a client repairs in a tool loop. Each mishap stays in the thread and costs one call.

    At `invalid_tool_rate` a reply that calls tools names ones that there are not, at `parse_error_rate` its calls
    cannot be read and are text: it is answered by `error_tokens`, and the model calls again. At `orphan_rate` a result
    is lost: a placeholder of `error_tokens` stands for it and, with `calls_again`, the model repeats the call
    (`call_tokens`).

    Source: amplifier-module-provider-claude, docs/ARCHITECTURE.md (2026-01-21). Rates and tokens: assumed.
    """

    invalid_tool_rate: float = 0.0
    parse_error_rate: float = 0.0
    orphan_rate: float = 0.0
    calls_again: bool = True
    error_tokens: int = 60
    call_tokens: int = 100

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _RepairRewriter(self, conversation).rewrite(conversation)


class _RepairRewriter(CallRewriter):
    def __init__(self, options: Repairs, conversation: Conversation) -> None:
        super().__init__(conversation)
        self._options = options
        self._calling = iter(find_tool_calls(conversation.events))
        self._is_invalid = EvenSampler(options.invalid_tool_rate)
        self._is_unreadable = EvenSampler(options.parse_error_rate)
        self._is_lost = EvenSampler(options.orphan_rate)

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        is_call = next(self._calling)
        if isinstance(event, Reply) and is_call and (failures := list(self._failures(event))):
            return self.replace_event(event, (*failures, event))
        if isinstance(event, Results) and (lost := self._find_lost(event)):
            return self.replace_event(event, self._repair(event, lost))
        return CallRewriter.rewrite_event(self, event)

    def _failures(self, reply: Reply) -> Iterator[Reply | Results]:
        """The attempts that come before `reply`."""
        if self._is_invalid():
            yield from self._fail(failed_attempt(reply, "no such tool"))
        if self._is_unreadable():
            blocks = (
                in_one_text(block.role, (block,)) if block.kind == "tool_use" else block for block in reply.blocks
            )
            yield from self._fail(failed_attempt(replace(reply, blocks=tuple(blocks)), "not readable"))

    def _fail(self, attempt: Reply) -> Iterator[Reply | Results]:
        yield attempt
        yield feedback(attempt, "repair", self._options.error_tokens)

    def _find_lost(self, event: Results) -> list[int]:
        results = [n for n, block in enumerate(event.blocks) if block.kind == "tool_result"]
        return [n for n in results or range(len(event.blocks)) if self._is_lost()]

    def _repair(self, event: Results, lost: list[int]) -> list[Reply | Results]:
        sent = list(event.blocks)
        for n in lost:
            sent[n] = placeholder_for(sent[n], "lost", self._options.error_tokens)
        repaired = replace(event, blocks=tuple(sent))
        if not self._options.calls_again:
            return [repaired]
        missing = tuple(event.blocks[n] for n in lost)
        again = Reply(event.at, tuple(map(self._call_again, missing)))
        return [repaired, again, replace(event, blocks=missing)]

    def _call_again(self, result: Block) -> Block:
        kind = "tool_use" if result.kind == "tool_result" else "text"
        return assumed_block(kind, "assistant", "again", (result,), self._options.call_tokens)


@dataclass(frozen=True, slots=True)
class Unprompted(AgentChange):
    """At `rate` of the replies the model first calls the tool that answers questions, though nobody asked: one call.

    The call is of `call_tokens`, the error that answers it of `error_tokens`. The tool itself comes with `inquiry`.
    Source: jp RFD 033 (its executor returns an error). Rate and tokens: assumed.
    """

    rate: float = 0.02
    call_tokens: int = 40
    error_tokens: int = 30

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _UnpromptedRewriter(self, conversation).rewrite(conversation)


class _UnpromptedRewriter(CallRewriter):
    def __init__(self, options: Unprompted, conversation: Conversation) -> None:
        super().__init__(conversation)
        self._options = options
        self._happens = EvenSampler(options.rate)

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        if not isinstance(event, Reply) or not event.blocks or not self._happens():
            return CallRewriter.rewrite_event(self, event)
        call = assumed_block("tool_use", "assistant", "unprompted", event.blocks, self._options.call_tokens)
        attempt = replace(event, blocks=(call,), output_tokens=None)
        return self.replace_event(
            event, (attempt, feedback(attempt, "nobody asked", self._options.error_tokens), event)
        )


CHANGES: dict[str, type[AgentChange]] = {"repairs": Repairs, "unprompted": Unprompted}
"""Every change by the name a scenario gives it."""
