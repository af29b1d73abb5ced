"""Tool results as they come in: a repeated one becomes a reference, a long one is cut."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from cachecost.conversations.model import Conversation
from cachecost.prompts.blocks import Block, Message, compact, digest_of, estimate_tokens
from cachecost.strategies.changes.base import AgentChange, ThreadRewriter, placeholder_for
from cachecost.strategies.model_facts import Facts


@dataclass(frozen=True, slots=True)
class Deduplicate(AgentChange):
    """A tool result that was sent whole within the last `turns` turns becomes a reference of `reference_tokens`.

    Only results of `least_bytes` or more do, and only while the one they point to is in the thread. What is equal:
    the result's content; in a recording without content the whole block, which holds the id of its call, so there
    next to nothing is found. Source: jp RFD 067 (300 bytes, 30 turns, 40 to 50 tokens for the reference), which looks
    at the resource's address, too: recordings do not tell it.
    """

    turns: int = 30
    least_bytes: int = 300
    reference_tokens: int = 45

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _DuplicateRewriter(self).rewrite(conversation)


class _DuplicateRewriter(ThreadRewriter):
    """`_whole` are the results sent whole, in order: message and content; `_at` where each content was, latest last."""

    def __init__(self, options: Deduplicate) -> None:
        super().__init__()
        self._options = options
        self._whole: list[tuple[int, bytes]] = []
        self._at: dict[bytes, list[tuple[int, int]]] = {}

    def rewrite_message(self, message: Message) -> Message:
        blocks = tuple(map(self._as_sent, message.blocks))
        return message if blocks == message.blocks else Message.of(message.role, blocks)

    def forget(self, keep: int) -> None:
        while self._whole and self._whole[-1][0] >= keep:
            self._at[self._whole.pop()[1]].pop()

    def _as_sent(self, block: Block) -> Block:
        if block.kind != "tool_result" or block.size < self._options.least_bytes:
            return block
        content, turn = _content_of(block), len(self.turns)
        places = self._at.setdefault(content, [])
        if places and places[-1][1] >= turn - self._options.turns:
            return placeholder_for(block, "reference", self._options.reference_tokens)
        place = (len(self.sent_messages), turn)
        places.append(place)
        self._whole.append((place[0], content))
        return block


def _content_of(block: Block) -> bytes:
    """What a result says, whichever call it answers."""
    if block.content is None or "content" not in block.content:
        return block.digest
    return digest_of("", "result", compact({"content": block.content["content"]}))


@dataclass(frozen=True, slots=True)
class OutputCap(AgentChange):
    """Tool results are cut to `tool_bytes` each, then those of one message to `batch_bytes` together, longest first.

    Bytes are those of a block's compact JSON, four a token for given counts; a cut result keeps that share of its
    tokens. Results with images are not cut: their bytes are no text. Source: jp RFD D24 (256 KB, 2 MB).
    """

    tool_bytes: int = 256 * 1024
    batch_bytes: int = 2 * 1024 * 1024
    least: ClassVar[int] = 1

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _CapRewriter(self).rewrite(conversation)


class _CapRewriter(ThreadRewriter):
    def __init__(self, options: OutputCap) -> None:
        super().__init__()
        self._options = options

    def rewrite_message(self, message: Message) -> Message:
        sizes = [min(block.size, self._options.tool_bytes) for block in message.blocks if _is_cut(block)]
        level = min(_level(sizes, self._options.batch_bytes), self._options.tool_bytes)
        if not any(_is_cut(block) and block.size > level for block in message.blocks):
            return message
        return Message.of(message.role, tuple(_cut(block, level) for block in message.blocks))


def _is_cut(block: Block) -> bool:
    return block.kind == "tool_result" and not block.has_image


def _level(sizes: list[int], budget: int) -> int:
    """The size to cut to, so that together they fit: what shorter ones leave is for longer ones."""
    left = budget
    for shorter, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - shorter)
        if size > share:
            return share
        left -= size
    return budget


def _cut(block: Block, level: int) -> Block:
    if not _is_cut(block) or block.size <= level:
        return block
    return placeholder_for(block, "cut", estimate_tokens(block) * level // block.size)


CHANGES: dict[str, type[AgentChange]] = {"deduplicate": Deduplicate, "tool_output_cap": OutputCap}
