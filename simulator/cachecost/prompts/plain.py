"""A fast path for messages of text blocks whose bytes already are the compact JSON of rule 19: no parse needed.

`plain_message` takes one element of `messages` that is valid UTF-8 and valid JSON, and returns what `parse_message`
would, or None where it cannot be sure. It is sure where the bytes begin and end like compact JSON of text blocks and
contain exactly the quotes of that form: quotes within a text are escaped, so nothing else fits. Escapes that Python
would write differently (`\\u00e9`, `\\/`) are left to `parse_message`.
"""

from __future__ import annotations

import re

from cachecost.prompts.blocks import Block, Message, digesting, message_digest
from cachecost.prompts.request import TTL
from cachecost.prompts.wire import ParsedMessage

TEXT = b'{"type":"text","text":"'
OPENINGS = [(b'{"role":"%b","content":[%b' % (role.encode(), TEXT), role) for role in ("user", "assistant")]
BETWEEN = b'"},' + TEXT
CLOSING = b'"}'
TEXT_AND_CLOSING = len(TEXT + CLOSING)
BEGUN = {role: digesting(role, "text", TEXT) for _, role in OPENINGS}
"""The digests of text blocks as far as all those of a role are alike."""
ENDS: tuple[tuple[bytes, int, TTL | None], ...] = (
    (b'"}]}', 1, None),
    (b'","cache_control":{"type":"ephemeral"}}]}', 7, "5m"),
    (b'","cache_control":{"type":"ephemeral","ttl":"1h"}}]}', 11, "1h"),
    (b'","cache_control":{"type":"ephemeral","ttl":"5m"}}]}', 11, "5m"),
)
"""How a message may end: the bytes, the quotes in them, the breakpoint on its last block."""
TWO, NEWLINE, QUOTE = rb"\\", rb"\n", rb"\""
ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
SAME = frozenset(b'nrtbf"\\'[index : index + 1] for index in range(7))
"""What may follow a backslash where Python's encoder writes it the same way."""
QUOTES_OF_MESSAGE, QUOTES_OF_BLOCK = 6, 7


def plain_message(data: bytes) -> ParsedMessage | None:
    """The message of these bytes, without its content; None where it has to be parsed."""
    for opening, role in OPENINGS:
        if data.startswith(opening):
            for end, quotes, ttl in ENDS:
                if data.endswith(end):
                    return _of(role, data, len(opening), end, quotes, ttl)
    return None


def _of(role: str, data: bytes, start: int, end: bytes, quotes: int, ttl: TTL | None) -> ParsedMessage | None:
    texts = data[start : -len(end)].split(BETWEEN)
    expected = QUOTES_OF_MESSAGE + QUOTES_OF_BLOCK * len(texts) + len(texts) - 1 + quotes
    escaped = _escaped_quotes(data)
    if escaped is None or data.count(b'"') - escaped != expected:
        return None
    is_plain = len(data) >= start + len(end) and not (ttl and not texts[-1])
    return _parse(role, texts, ttl) if is_plain else None


def _escaped_quotes(data: bytes) -> int | None:
    """The number of escaped quotes; None if an escape is not written as Python's encoder writes it."""
    backslashes = data.count(b"\\")
    if not backslashes:
        return 0
    quotes = data.count(QUOTE)
    if TWO not in data and backslashes == quotes + data.count(NEWLINE):  # then each begins an escape: most texts
        return quotes
    escapes = ESCAPE.findall(data)
    return escapes.count(b'"') if SAME.issuperset(escapes) else None


def _parse(role: str, texts: list[bytes], ttl: TTL | None) -> ParsedMessage:
    begun, closing = BEGUN[role], CLOSING
    blocks = []
    for text in texts:
        hashed = begun.copy()
        hashed.update(text + closing)
        size = TEXT_AND_CLOSING + len(text)
        blocks.append(Block("text", role, hashed.digest(), size, is_empty_text=not text))
    message = Message(role, tuple(blocks), message_digest(role, blocks), role == "user")
    return ParsedMessage(message, ((len(blocks) - 1, ttl),)) if ttl else ParsedMessage(message)
