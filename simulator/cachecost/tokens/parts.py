"""The countable parts of a block: texts, and facts that cost tokens of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Content = Mapping[str, Any]
NO_FACTS: Mapping[str, int] = {}
GUESSED = "guessed"
"""The fact that the tokens of a block are a guess, without recording or documentation."""
FILE = "file"
"""The fact of a file that no rule counts: video, sound, a document of an unknown format."""


@dataclass(frozen=True, slots=True)
class BlockParts:
    """The texts of a block, and the number of each fact in its content:

    `parameter`, `error`, `reference` (a tool it names), `cited` (a citation in an answer), `sentence` (of a document
    to be cited), `found` (a search result), `sealed` (characters of its encrypted content), `unseen` (bytes of
    text that only a signature or a file holds), `mcp` (a server that the provider calls), `guessed`, `file`;
    `330x291 image` (pixels), `612x792 page` (points), and a provider's tool by its type (`sizes.py`).
    """

    texts: tuple[str, ...] = ()
    facts: Mapping[str, int] = field(default_factory=lambda: NO_FACTS)


Reader = Callable[[str, Content], BlockParts]
"""What is counted of a block by its kind, for the blocks inside another one."""


def nonzero(**facts: int) -> dict[str, int]:
    """`facts` without the zeros."""
    return {name: number for name, number in facts.items() if number}


def guess(*texts: str) -> BlockParts:
    """Parts whose tokens are a guess."""
    return BlockParts(texts, {GUESSED: 1})


def merge_parts(parts: Iterable[BlockParts]) -> BlockParts:
    """All `parts` as those of one block."""
    texts: list[str] = []
    facts: dict[str, int] = {}
    for part in parts:
        texts += part.texts
        for name, number in part.facts.items():
            facts[name] = facts.get(name, 0) + number
    return BlockParts(tuple(texts), facts)
