"""Counts blocks with a tokenizer: texts by ratio, structure by constants, each block once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from cachecost.base.errors import nearest
from cachecost.prompts.blocks import WHOLE, Block, digest_of, shares_in
from cachecost.prompts.compare import first_difference, text_of
from cachecost.prompts.exact_json import has_content
from cachecost.prompts.output_format import counts_unseen, output_format, schema_text
from cachecost.prompts.render import CannotCount, Hidden
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules
from cachecost.tokens.calibration import KINDS, Calibration
from cachecost.tokens.disk_counts import BlockCount, DiskCounts, disk_counts
from cachecost.tokens.hidden import hidden_tokens
from cachecost.tokens.margins import FILES, content_kind, general_margin, margins_of
from cachecost.tokens.parts import (
    GUESSED,
    BlockParts,
    constant_of,
    facts_of,
    parts_within,
    prose_of,
    size_tokens,
    well_formed,
)


class Tally(Protocol):
    """A tokenizer. `key` is its name in `Block.counts`; `advice` ends the error where a count is missing."""

    key: str

    @property
    def advice(self) -> str: ...

    def __call__(self, text: str) -> int:
        """Tokens of a nonempty text without lone surrogates."""
        ...


def count_texts(tally: Tally, texts: tuple[str, ...]) -> int:
    """Tokens of all `texts`, each counted separately."""
    return sum(tally(well_formed(text)) for text in texts if text)


class TextCounter:
    """A TokenCounter over a tokenizer. A block without content counts exactly as with it.

    `ratio` is tokens per token of the tally, by content kind; a schema uses that of tools where it has none.
    """

    def __init__(
        self, name: str, source: str, calibration: Calibration, tally: Tally, ratio: Mapping[str, float]
    ) -> None:
        self.name = name
        self.source = source
        measured = calibration.error_margin
        self.error_margin = general_margin(calibration.generation, name) or measured.get(name, measured["tiktoken"])
        self._guessed: set[str] = set()
        self._calibration = calibration
        self._tally = tally
        self._ratio = {kind: worth for kind, worth in ratio.items() if kind in KINDS}
        self._schema_ratio = ratio.get("schema")
        self._disk: DiskCounts | None = disk_counts(tally.key)
        self._blocks: dict[bytes, int] = {}
        self._kinds: dict[bytes, str] = {}
        self._wholes: dict[bytes, int] = {}
        """The tally of whole texts, where their beginnings are asked for."""
        self.margins = margins_of(calibration.generation, name, self.error_margin)
        self._schemas: dict[str, int] = {}
        self._costs: dict[str, float] = {}

    @property
    def guessed_kinds(self) -> tuple[str, ...]:
        """The kinds of blocks so far whose tokens are a guess, without recording or documentation. Sorted."""
        return tuple(sorted(self._guessed))

    def block(self, block: Block) -> int:
        """Tokens of `block`; a stated count wins. Raises CannotCount."""
        if block.tokens is not None:
            return block.tokens
        tokens = self._blocks.get(block.digest)
        if tokens is None:
            tokens = self._blocks[block.digest] = self._count(block)
        return tokens

    def shared(self, one: Block, other: Block) -> int:
        """The tokens that two blocks begin with: as large a share of the block as of the tokens of its text. The bytes
        of files are no text."""
        if not (has_content(one) and has_content(other)) or one.tokens is not None:
            return 0
        try:
            if self.content_kind(one) in FILES:
                return 0
        except CannotCount:
            return 0
        text = text_of(one)
        begin = text[: first_difference(text, text_of(other))]
        if one.digest not in self._wholes:
            self._wholes[one.digest] = max(count_texts(self._tally, (text,)), 1)
        return self.block(one) * count_texts(self._tally, (begin,)) // self._wholes[one.digest]

    def content_kind(self, block: Block) -> str:
        """The content kind of `block`, which decides its margin: a stated count is somebody's count, or a guess, and no
        surer than ours. Raises CannotCount."""
        if block.tokens is not None:
            return content_kind(block, block.counts, block.prose)
        self.block(block)
        return self._kinds[block.digest]

    def block_margin(self, block: Block) -> float:
        """The relative error of the count of `block`, nine times out of ten. Raises CannotCount."""
        return self.margins.kinds[self.content_kind(block)]

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        """The hidden tokens of `request`, its structured output prompt counted from the schema."""
        return hidden_tokens(request, rules, self._calibration, self._format(request))

    def _count(self, block: Block) -> int:
        if has_content(block):
            counted = self._count_once(block.digest, block.kind, lambda: parts_within(block, block.content or {}))
        elif self._tally.key in block.counts:
            counted = BlockCount(block.prose, block.counts[self._tally.key], block.counts)
        else:
            raise self._cannot_count(f"{block.kind} block {block.digest.hex()[:8]}", block.counts)
        facts = {**facts_of(block), **counted.facts}
        guessed = self._calibration.guessed
        if GUESSED in counted.facts or (guessed and any(constant_of(fact) in guessed for fact in facts)):
            self._guessed.add(block.kind)
        self._kinds[block.digest] = content_kind(block, facts, counted.prose)
        tokens = counted.tokens * self._worth(counted.prose) + self._structure(facts)
        if block.kind == "tool":
            tokens = max(tokens, counted.tokens * self._calibration.tool_least)
        return round(tokens)

    def _count_once(self, digest: bytes, kind: str, read: Callable[[], BlockParts]) -> BlockCount:
        if self._disk and (known := self._disk.get(digest)):
            return known
        parts = read()
        measured = BlockCount(prose_of(kind, parts), count_texts(self._tally, parts.texts), parts.facts)
        if self._disk:
            self._disk.put(digest, measured)
        return measured

    def _worth(self, prose: str) -> float:
        """Tokens per token of the tally for a blend of kinds."""
        shares = shares_in(prose)
        for kind in shares:
            if kind not in self._ratio:
                known = ", ".join(self._ratio)
                raise CannotCount(f"prose '{kind}': expected one of {known}{nearest(kind, self._ratio)}")
        return sum(share * self._ratio[kind] for kind, share in shares.items()) / WHOLE

    def _structure(self, facts: Mapping[str, int]) -> float:
        """Tokens of facts: a constant plus a size, each found once. Counts of texts among them cost nothing."""
        for fact in facts:
            if fact not in self._costs:
                constant = self._calibration.structure.get(constant_of(fact), 0)
                self._costs[fact] = constant + size_tokens(fact, self._calibration.generation)
        return sum(self._costs[name] * number for name, number in facts.items())

    def _format(self, request: Request) -> int:
        """Tokens of the structured output prompt: a constant and the schema, indented by 2; 0 without one."""
        wanted = output_format(request.params)
        if not isinstance(wanted, Mapping):
            return 0
        unseen = counts_unseen(wanted)
        schema = schema_text(wanted.get("schema"))
        if schema in self._schemas:
            return self._schemas[schema]
        if unseen is None:
            digest = digest_of("", "schema", schema.encode("utf-8", "surrogatepass"))
            raw = self._count_once(digest, "text", lambda: BlockParts((schema,))).tokens
        elif self._tally.key in unseen:
            raw = unseen[self._tally.key]
        else:
            raise self._cannot_count(f"schema {schema}", unseen)
        worth = self._worth("tools") if self._schema_ratio is None else self._schema_ratio
        tokens = self._schemas[schema] = round(raw * worth + self._structure({"format": 1}))
        return tokens

    def _cannot_count(self, what: str, counts: Mapping[str, int]) -> CannotCount:
        known = ", ".join(sorted(counts)) or "none"
        return CannotCount(
            f"{what} has no content and no {self._tally.key} count (counts: {known}): {self._tally.advice}"
        )
