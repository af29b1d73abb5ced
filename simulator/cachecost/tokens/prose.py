"""The content kind of a text, which determines how many Claude tokens one cl100k token is worth.

It follows from the text alone, by counting characters and a few words: cheap and deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence

KINDS = ("text", "code", "data", "tools")
"""Sentences · source code, paths, markup · numbers, ids, logs · tool definitions and schemas."""
DATA_SHARE = 0.04
"""From this share of digits on, a text is data: Claude's tokenizers cut numbers finer than words."""
SYMBOL_SHARE = 0.03
"""Up to this share of symbols a text is sentences, in any language …"""
WORD_SHARE = 0.02
"""… and from this many common English words a character on, regardless of symbols (Markdown, prompts)."""
DIGITS = tuple("0123456789")
SYMBOLS = tuple('{}()[]<>;=_/\\"`|*#@$%^&+~')
COMMON_WORDS = tuple(
    f" {word} "
    for word in [
        "the",
        "of",
        "to",
        "and",
        "a",
        "is",
        "in",
        "that",
        "for",
        "you",
        "it",
        "with",
        "be",
        "not",
        "this",
        "on",
        "as",
    ]
)


def kind_of(texts: Sequence[str]) -> str:
    """The content kind of all `texts` together: "data", "text" or "code". No text at all is "text"."""
    length = sum(map(len, texts))
    if _number_of(DIGITS, texts) > DATA_SHARE * length:
        return "data"
    if _number_of(SYMBOLS, texts) <= SYMBOL_SHARE * length:
        return "text"
    return "text" if _number_of(COMMON_WORDS, texts) > WORD_SHARE * length else "code"


def _number_of(wanted: Sequence[str], texts: Sequence[str]) -> int:
    return sum(text.count(item) for text in texts for item in wanted)
