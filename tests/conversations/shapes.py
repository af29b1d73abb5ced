"""What two conversations must share to be equal: blocks have no equality of their own."""

from __future__ import annotations

from typing import Any

from cachecost.conversations.model import Conversation, Inquiry, Reply
from cachecost.prompts.blocks import Block


def block_shape(block: Block, identity: bool = True) -> tuple[Any, ...]:
    return (
        block.kind,
        block.role,
        block.digest if identity else None,
        block.size,
        block.content if identity else None,
        block.tokens,
        dict(block.counts),
        block.prose,
        block.has_image,
        block.has_citations,
        block.is_empty_text,
    )


def blocks_of(conversation: Conversation) -> list[Block]:
    """Every block, in order, with repetitions."""
    blocks = [*conversation.tools.blocks, *conversation.system.blocks]
    for event in conversation.events:
        blocks += [event.question, event.answer] if isinstance(event, Inquiry) else event.blocks
    return blocks


def event_shapes(conversation: Conversation) -> list[tuple[Any, ...]]:
    """Everything about the events but their blocks' content."""
    shapes: list[tuple[Any, ...]] = []
    for event in conversation.events:
        count = 2 if isinstance(event, Inquiry) else len(event.blocks)
        shape: tuple[Any, ...] = (type(event), event.at, count)
        if isinstance(event, Reply):
            shape += (event.first_token_s, event.output_tokens)
        if isinstance(event, Inquiry):
            shape += (event.batch,)
        shapes.append(shape)
    return shapes


def whole(conversation: Conversation) -> tuple[Any, ...]:
    """Everything."""
    words = [(event.answer_type, event.tool_use) for event in conversation.inquiries]
    return (
        [block_shape(block) for block in blocks_of(conversation)],
        (len(conversation.tools.blocks), len(conversation.system.blocks)),
        event_shapes(conversation),
        words,
        (conversation.name, conversation.model, conversation.source, conversation.licence, dict(conversation.params)),
    )


def pattern(digests: list[bytes]) -> list[int]:
    """Which of them are equal: the first place of each."""
    return [digests.index(digest) for digest in digests]
