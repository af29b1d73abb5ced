"""A fast path for messages of text blocks whose bytes already are the compact JSON of rule 19: no parse needed.

`plain_message` takes one element of `messages` that is valid UTF-8 and valid JSON, and returns what `parse_message`
would, or None where it cannot be sure. It is sure where the bytes begin and end like compact JSON of text blocks and
contain no quotes but those between such blocks: quotes within a text are escaped, so nothing else fits. Escapes that
Python would write differently (`\\u00e9`, `\\/`) are left to `parse_message`.
"""

from __future__ import annotations

import re

from cachecost.prompts.blocks import NO_COUNTS, Block, Message, digesting, message_digest
from cachecost.prompts.request import TTL
from cachecost.prompts.wire import ParsedMessage

TEXT = b'{"type":"text","text":"'
OPENINGS = [(b'{"role":"%b","content":[%b' % (role.encode(), TEXT), role) for role in ("user", "assistant")]
BETWEEN, QUOTES_BETWEEN = b'"},' + TEXT, 8
CLOSING = b'"}'
TEXT_AND_CLOSING = len(TEXT + CLOSING)
BEGUN = {role: digesting(role, "text", TEXT) for _, role in OPENINGS}
"""The digests of text blocks as far as all those of a role are alike."""
ENDS: tuple[tuple[bytes, TTL | None], ...] = (
    (b'"}]}', None),
    (b'","cache_control":{"type":"ephemeral"}}]}', "5m"),
    (b'","cache_control":{"type":"ephemeral","ttl":"1h"}}]}', "1h"),
    (b'","cache_control":{"type":"ephemeral","ttl":"5m"}}]}', "5m"),
)
"""How a message may end, with the breakpoint on its last block."""
BACKSLASH, NEWLINE, QUOTE = b"\\", rb"\n", rb"\""
ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
SAME = frozenset(b'nrtbf"\\'[index : index + 1] for index in range(7))
"""What may follow a backslash where Python's encoder writes it the same way."""


def plain_message(data: bytes) -> ParsedMessage | None:
    """The message of these bytes, without its content; None where it has to be parsed."""
    for opening, role in OPENINGS:
        if data.startswith(opening):
            for end, ttl in ENDS:
                if data.endswith(end) and len(data) >= len(opening) + len(end):
                    return _of(role, data[len(opening) : -len(end)], ttl)
    return None


def _of(role: str, inner: bytes, ttl: TTL | None) -> ParsedMessage | None:
    """The message of the texts in `inner` and what stands between them."""
    escaped = _escaped_quotes(inner) if BACKSLASH in inner else 0
    if escaped is None:
        return None
    quotes = inner.count(b'"') - escaped
    texts = inner.split(BETWEEN) if quotes else [inner]
    if quotes != QUOTES_BETWEEN * (len(texts) - 1) or (ttl and not texts[-1]):
        return None
    return _parse(role, texts, ttl)


def _escaped_quotes(data: bytes) -> int | None:
    """The number of escaped quotes; None if an escape is not written as Python's encoder writes it."""
    others = data.count(BACKSLASH) - data.count(NEWLINE)
    if not others or data.count(QUOTE) == others:  # each backslash begins one of these, as in most texts
        return others
    escapes = ESCAPE.findall(data)
    return escapes.count(b'"') if SAME.issuperset(escapes) else None


def _parse(role: str, texts: list[bytes], ttl: TTL | None) -> ParsedMessage:
    blocks = tuple([_text_block(role, text) for text in texts]) if len(texts) > 1 else (_text_block(role, texts[0]),)
    message = Message(role, blocks, message_digest(role, blocks), role == "user")
    return ParsedMessage(message, ((len(blocks) - 1, ttl),)) if ttl else ParsedMessage(message)


def _text_block(role: str, text: bytes) -> Block:
    hashed = BEGUN[role].copy()
    hashed.update(text + CLOSING)
    size = TEXT_AND_CLOSING + len(text)
    return Block("text", role, hashed.digest(), size, None, None, NO_COUNTS, is_empty_text=not text)
