"""Messages of text blocks whose bytes are already the compact JSON of rule 19: nothing of them has to be parsed.

`plain_message` takes one element of `messages` that is valid UTF-8 and valid JSON, and says what `parse_message`
would, or None where it is not sure. It is sure where the bytes begin and end as compact JSON of text blocks does, and
hold just the quotes that these have: a quote within a text is escaped, so there is no room for anything else. Escapes
that Python would write otherwise (`\\u00e9`, `\\/`) are left to `parse_message`.
"""

from __future__ import annotations

import re

from cachecost.prompts.blocks import Block, Message, digest_of, message_digest
from cachecost.prompts.request import TTL
from cachecost.prompts.wire import ParsedMessage

TEXT = b'{"type":"text","text":"'
OPENINGS = [(b'{"role":"%b","content":[%b' % (role.encode(), TEXT), role) for role in ("user", "assistant")]
BETWEEN = b'"},' + TEXT
EMPTY = TEXT + b'"}'
ENDS: tuple[tuple[bytes, int, TTL | None], ...] = (
    (b'"}]}', 1, None),
    (b'","cache_control":{"type":"ephemeral"}}]}', 7, "5m"),
    (b'","cache_control":{"type":"ephemeral","ttl":"1h"}}]}', 11, "1h"),
    (b'","cache_control":{"type":"ephemeral","ttl":"5m"}}]}', 11, "5m"),
)
"""How a message may end: the bytes, the quotes in them, the mark on its last block."""
ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
SAME = frozenset(b'nrtbf"\\'[index : index + 1] for index in range(7))
"""What may follow a backslash where Python's encoder writes it the same way."""
QUOTES_OF_MESSAGE, QUOTES_OF_BLOCK = 6, 7


def plain_message(data: bytes) -> ParsedMessage | None:
    """The message of these bytes, without its content; None where only parsing tells."""
    for opening, role in OPENINGS:
        if data.startswith(opening):
            for end, quotes, ttl in ENDS:
                if data.endswith(end):
                    return _of(role, data, len(opening), end, quotes, ttl)
    return None


def _of(role: str, data: bytes, start: int, end: bytes, quotes: int, ttl: TTL | None) -> ParsedMessage | None:
    texts = data[start : -len(end)].split(BETWEEN)
    expected = QUOTES_OF_MESSAGE + QUOTES_OF_BLOCK * len(texts) + len(texts) - 1 + quotes
    found = data.count(b'"')
    if b"\\" in data:
        escapes = ESCAPE.findall(data)
        if not SAME.issuperset(escapes):
            return None
        found -= escapes.count(b'"')
    is_plain = found == expected and len(data) >= start + len(end) and not (ttl and not texts[-1])
    return _parsed(role, texts, ttl) if is_plain else None


def _parsed(role: str, texts: list[bytes], ttl: TTL | None) -> ParsedMessage:
    blocks = tuple([_block(role, b'%b%b"}' % (TEXT, text)) for text in texts])
    message = Message(role, blocks, message_digest(role, blocks), role == "user")
    return ParsedMessage(message, ((len(blocks) - 1, ttl),)) if ttl else ParsedMessage(message)


def _block(role: str, payload: bytes) -> Block:
    return Block("text", role, digest_of(role, "text", payload), len(payload), is_empty_text=payload == EMPTY)
