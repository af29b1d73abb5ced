"""Counting blocks with a tokenizer: texts by ratio, structure by constants, each block once."""

from __future__ import annotations

from collections.abc import Mapping
from json import dumps
from typing import Protocol

from cachecost.faults import nearest
from cachecost.prompts.blocks import Block
from cachecost.prompts.counting import CannotCount, Hidden
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules
from cachecost.tokens.calibration import Calibration
from cachecost.tokens.content import STORED_FACTS, facts_of, parts_of, prose_of, well_formed
from cachecost.tokens.hidden import hidden_tokens


class Tally(Protocol):
    """A tokenizer. `key` is its name in `Block.counts`; `advice` ends the error where a count is missing."""

    key: str
    advice: str

    def __call__(self, text: str) -> int:
        """Tokens of a text that is not empty and has no lone surrogates."""
        ...


def count_texts(tally: Tally, texts: tuple[str, ...]) -> int:
    """Tokens of all `texts`, each counted by itself."""
    return sum(tally(well_formed(text)) for text in texts if text)


class TextCounter:
    """A TokenCounter over a tokenizer. A block without content counts exactly as it did with it.

    `ratio` is tokens per token of the tally, by content kind. `guessed` holds the kinds of blocks met
    so far that no rule counts (images, documents, server tools' results): their JSON was counted.
    """

    def __init__(
        self, name: str, source: str, calibration: Calibration, tally: Tally, ratio: Mapping[str, float]
    ) -> None:
        self.name = name
        self.source = source
        self.band = calibration.band[name]
        self.guessed: set[str] = set()
        self._calibration = calibration
        self._tally = tally
        self._ratio = ratio
        self._blocks: dict[bytes, int] = {}
        self._schemas: dict[str, int] = {}

    def block(self, block: Block) -> int:
        """Tokens of `block`; a given count wins. Raises CannotCount."""
        if block.tokens is not None:
            return block.tokens
        tokens = self._blocks.get(block.digest)
        if tokens is None:
            tokens = self._blocks[block.digest] = self._count(block)
        return tokens

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        """The hidden tokens of `request`, its structured output prompt counted from the schema."""
        return hidden_tokens(request, rules, self._calibration, self._format(request))

    def _count(self, block: Block) -> int:
        prose, raw, stored = self._measured(block)
        if "guessed" in stored:
            self.guessed.add(block.kind)
        return round(raw * self._worth(prose) + self._structure({**facts_of(block), **stored}))

    def _measured(self, block: Block) -> tuple[str, int, Mapping[str, int]]:
        if block.content is not None:
            parts = parts_of(block.kind, block.content)
            return prose_of(block.kind, parts), count_texts(self._tally, parts.texts), parts.facts
        if self._tally.key not in block.counts:
            known = ", ".join(sorted(block.counts)) or "none"
            raise CannotCount(
                f"{block.kind} block {block.digest.hex()[:8]} has no content and no {self._tally.key} count "
                f"(counts: {known}): {self._tally.advice}"
            )
        stored = {name: block.counts[name] for name in STORED_FACTS if name in block.counts}
        return block.prose, block.counts[self._tally.key], stored

    def _worth(self, prose: str) -> float:
        if prose not in self._ratio:
            known = ", ".join(self._ratio)
            raise CannotCount(f"prose '{prose}': expected one of {known}{nearest(prose, self._ratio)}")
        return self._ratio[prose]

    def _structure(self, facts: Mapping[str, int]) -> float:
        constants = self._calibration.structure
        return sum(constants.get(name, 0) * number for name, number in facts.items())

    def _format(self, request: Request) -> int:
        """Tokens of the structured output prompt: a constant and the schema, indented by 2; 0 without one."""
        wanted = (request.params.get("output_config") or {}).get("format") or request.params.get("output_format")
        if not isinstance(wanted, Mapping):
            return 0
        schema = dumps(wanted.get("schema"), indent=2, ensure_ascii=False, sort_keys=True)
        if schema not in self._schemas:
            raw = count_texts(self._tally, (schema,))
            self._schemas[schema] = round(raw * self._worth("tools") + self._structure({"format": 1}))
        return self._schemas[schema]
