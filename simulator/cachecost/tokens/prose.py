"""The content kinds of a text, which determine how many Claude tokens one cl100k token is worth.

They follow from the text alone, by counting characters and a few words: cheap and deterministic. A text is a blend of
kinds, whose shares grow steadily with what is counted: no small edit moves a count by more than the edit is worth.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.prompts.prose_shares import WHOLE, write_shares

KINDS = ("text", "code", "data", "tools")
"""Sentences · source code, paths, markup · numbers, ids, logs · tool definitions and schemas."""
DATA_SHARE = 0.12
"""At this share of digits a text is data, and below in proportion: Claude's tokenizers cut numbers finer than words."""
SYMBOL_SHARE = 0.08
"""At this share of symbols the rest of a text is code, and below in proportion; what is left is sentences …"""
WORD_SHARE = 0.04
"""… in any language, and fewer of it code with common English words: none at this many a character (Markdown)."""
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


def prose_of_texts(texts: Sequence[str]) -> str:
    """The blend of kinds of all `texts` together: a kind alone ("text"), or shares of `WHOLE` ("data:1200,text:8800").

    No text at all is "text".
    """
    length = max(1, sum(map(len, texts)))
    data = _part(_number_of(DIGITS, texts), DATA_SHARE * length)
    symbols = _part(_number_of(SYMBOLS, texts), SYMBOL_SHARE * length)
    words = _part(_number_of(COMMON_WORDS, texts), WORD_SHARE * length)
    digits = round(WHOLE * data)
    code = min(WHOLE - digits, round(WHOLE * (1 - data) * symbols * (1 - words)))  # two halves may both be rounded up
    return write_shares({"code": code, "data": digits, "text": WHOLE - code - digits})


def _part(number: int, whole: float) -> float:
    return min(1.0, number / whole)


def _number_of(wanted: Sequence[str], texts: Sequence[str]) -> int:
    return sum(text.count(item) for text in texts for item in wanted)
