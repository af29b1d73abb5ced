"""The counts that `import --content digest` keeps of a block, so that every counter gives the same result as with
content.
"""

from __future__ import annotations

from collections.abc import Mapping

from cachecost.prompts.blocks import Block
from cachecost.tokens.content import parts_within, prose_of
from cachecost.tokens.ctok_ import KEYS, Ctok, has_ctok
from cachecost.tokens.textcounter import Tally, count_texts
from cachecost.tokens.tiktoken_ import Cl100k


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
