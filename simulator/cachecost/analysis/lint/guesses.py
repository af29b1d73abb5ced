"""What may change in the next request, guessed from one alone: times, ids and counters before a breakpoint."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import takewhile

from cachecost.analysis.lint.excerpts import excerpt, texts
from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.loaded_request import LAYERS, LoadedRequest, Place, message_blocks, message_place
from cachecost.analysis.lint.volatile import KIND_NAMES, VolatileWord, find_volatile_words
from cachecost.prompts.blocks import Block, Layer

SURE, MAYBE = "CC531", "CC532"
Candidate = tuple[str, str, VolatileWord]
"""Path within the block, the text there, the word in it."""


class Guesser:
    """Looks through the blocks that stand before a breakpoint. Each block is read once, however many requests
    repeat it.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Candidate, ...]] = {}
        self._sent: dict[bytes, tuple[float, float]] = {}

    def may_have_stood_still(self, digest: bytes) -> bool:
        """Whether all requests with this block were sent before the time of day in it could be another."""
        first, last = self._sent.get(digest, (0.0, math.inf))
        return last - first < max((word.step_s for _, _, word in self._known.get(digest, ())), default=0.0)

    def guesses(self, loaded: LoadedRequest) -> Iterator[LintFinding]:
        """One finding a text that holds a candidate: the surest, the first of equals."""
        for place, block in _early_blocks(loaded):
            if not loaded.reaches(place):
                return
            for candidate in self._candidates(block):
                if loaded.start is not None:
                    first, last = self._sent.get(block.digest, (loaded.start, loaded.start))
                    self._sent[block.digest] = min(first, loaded.start), max(last, loaded.start)
                yield _finding(loaded, place, block, candidate)

    def _candidates(self, block: Block) -> tuple[Candidate, ...]:
        found = self._known.get(block.digest)
        if found is None:
            found = self._known[block.digest] = tuple(_find_candidates(block))
        return found


def early_blocks(loaded: LoadedRequest) -> Iterator[Block]:
    """The blocks that are looked through, as long as a breakpoint covers them."""
    return (block for _, block in _early_blocks(loaded))


def _early_blocks(loaded: LoadedRequest) -> Iterator[tuple[Place, Block]]:
    """Tools, system, and what stands in messages before the first answer, tool results left out."""
    yield from loaded.head()
    messages = takewhile(lambda node: node.message is None or node.message.role != "assistant", loaded.messages())
    for node in messages:
        for index, block in enumerate(message_blocks(node)):
            if block.kind == "text":
                yield message_place(node, index), block


def _find_candidates(block: Block) -> Iterator[Candidate]:
    if block.content is None:
        return
    for path, text in texts(block.content):
        found = sorted(find_volatile_words(text), key=lambda one: not one.strong)
        if found:
            yield path, text, found[0]


def _finding(loaded: LoadedRequest, place: Place, block: Block, candidate: Candidate) -> LintFinding:
    inner, text, word = candidate
    in_head = LAYERS[place[0]] is not Layer.MESSAGES
    path = inner_path(loaded.path(place), inner)
    shown = excerpt(text, word.end, word.end - word.start)
    words = f'{KIND_NAMES[word.kind]} at character {word.start:,}: "{shown}"'
    code = SURE if word.strong and in_head else MAYBE
    return LintFinding(code, path, words, loaded.behind(block), word.start, shown, digest=block.digest)


def inner_path(path: str, inner: str) -> str:
    """The path of a text within a block; that of a text block is the block's own."""
    return path if inner in ("", "text") else f"{path}.{inner}"
