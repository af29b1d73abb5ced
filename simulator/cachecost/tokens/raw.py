"""The counts that `import --content digest` keeps of a block, so that every counter gives the same result as with
content.

The best counter for each block: ctok where it can count, else the calibrated tiktoken.

tiktoken counts without a network, with the ranks in `ranks/` (OpenAI, MIT).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from cachecost.base.errors import CannotEvaluate
from cachecost.prompts.blocks import Block
from cachecost.prompts.render import CannotCount, Hidden
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules
from cachecost.tokens.calibration import KINDS, Calibration, calibration
from cachecost.tokens.content import parts_within, prose_of
from cachecost.tokens.ctok_ import KEYS, Ctok, has_ctok
from cachecost.tokens.textcounter import Tally, TextCounter, count_texts


class PreferredCounter:
    """A TokenCounter that uses `first`, and `second` for blocks without content that `first` never counted.

    `source` and `error_margin` are of the second one only once it was needed.
    """

    def __init__(self, first: TextCounter, second: TextCounter) -> None:
        self.name, self.source, self.error_margin = first.name, first.source, first.error_margin
        self.margins = first.margins
        self._first, self._second = first, second

    def block(self, block: Block) -> int:
        """Tokens of `block`. Raises CannotCount where neither counter can count it."""
        try:
            return self._first.block(block)
        except CannotCount:
            return self._other().block(block)

    def block_margin(self, block: Block) -> float:
        """As `block`: the relative error of its count."""
        try:
            return self._first.block_margin(block)
        except CannotCount:
            return self._other().block_margin(block)

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        """The hidden tokens of `request`. Raises CannotCount where neither counter can tell."""
        try:
            return self._first.hidden(request, rules)
        except CannotCount:
            return self._other().hidden(request, rules)

    def _other(self) -> TextCounter:
        self.source = f"{self._first.source}; where only its counts were recorded, {self._second.source}"
        self.error_margin = max(self._first.error_margin, self._second.error_margin)
        return self._second


RANKS = {
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}
"""Encoding: (the file in `ranks/`, with the name that tiktoken looks for, and its SHA-256)."""
RANKS_FOLDER = Path(__file__).with_name("ranks")
CACHE_VARIABLE = "TIKTOKEN_CACHE_DIR"
ENCODING = "cl100k_base"


@cache
def encoder(name: str) -> Callable[[str], list[int]]:
    """The encoding `name` ("cl100k_base", "o200k_base"); special tokens are text like any other.

    tiktoken downloads the ranks, or reads them from the folder that a variable names; it names ours here alone, so that
    other uses of tiktoken in this process keep theirs. Raises CannotEvaluate where our file is damaged.
    """
    import tiktoken

    file, digest = RANKS[name]
    try:
        is_whole = sha256((RANKS_FOLDER / file).read_bytes()).hexdigest() == digest
    except OSError:
        is_whole = False
    if not is_whole:
        raise CannotEvaluate(f"{RANKS_FOLDER / file} is damaged: install cachecost again")
    before = os.environ.get(CACHE_VARIABLE)
    os.environ[CACHE_VARIABLE] = str(RANKS_FOLDER)
    try:
        return tiktoken.get_encoding(name).encode_ordinary
    finally:
        os.environ.pop(CACHE_VARIABLE)
        if before is not None:
            os.environ[CACHE_VARIABLE] = before


class Cl100k:
    """Tokens of tiktoken's cl100k_base; special tokens are text like any other."""

    key = "cl100k"
    advice = "import the recording again with --content digest"

    def __call__(self, text: str) -> int:
        """Tokens of `text`. The first call loads the ranks, about 0.2 s."""
        return len(encoder(ENCODING)(text))


def tiktoken_counter(generation: str) -> TextCounter:
    """cl100k tokens × the generation's ratio for the content kind, + its structure constants."""
    measured = calibration(generation)
    return TextCounter("tiktoken", _source(measured), measured, Cl100k(), measured.ratio)


def _source(measured: Calibration) -> str:
    if not measured.source:
        return f"tiktoken cl100k, calibrated for {measured.generation} on {measured.fitted}"
    told = [measured.ratio[kind] for kind in KINDS]
    worth = f"tiktoken cl100k × {min(told):.2f} to {max(told):.2f}"
    return f"{worth}, {measured.confidence} for {measured.generation} on {measured.fitted}: {measured.source}"


def count_content(block: Block) -> tuple[Mapping[str, int], str]:
    """(counts, content kind) of a block: the values of `Block.counts` and `Block.prose` without its content.

    Counts are of its texts by tokenizer ("cl100k"; "ctok-3", "ctok-4.7", "ctok-4.8" where ctok is installed), and the
    facts of its content that cost tokens ("parameter": 2, "330x291 image": 1, … see `Parts`). A block without content
    keeps its counts; one with a stated count has none.
    """
    if block.content is None or block.tokens is not None:
        return block.counts, block.prose
    parts = parts_within(block, block.content)
    tallies: list[Tally] = [Cl100k()]
    if has_ctok():
        tallies += map(Ctok, KEYS)
    counts = {tally.key: count_texts(tally, parts.texts) for tally in tallies}
    return {**counts, **parts.facts}, prose_of(block.kind, parts)
