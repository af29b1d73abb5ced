"""What other makers' tokenizers make of recorded prompts, and the fits on it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachecost.base.structs import replace
from cachecost.prompts.blocks import Block, main_kind
from cachecost.prompts.output_format import output_format, schema_text
from cachecost.tokens.calibration import LATIN, prose_of_texts, script_data
from cachecost.tokens.parts import facts_of, parts_of, prose_of
from cachecost.tokens.tokenizers import encoder
from tools.calibrate import harmony
from tools.calibrate.fit import Bill, Text, is_filler, least_absolute, median, ratio
from tools.calibrate.samples import Sample
from tools.calibrate.texts import texts_in
from tools.calibrate.vocabularies import OPENAI, Count, encoded_by

GEMINI = "gemini"
STARTS: Mapping[str, Mapping[str, float]] = {
    OPENAI: {
        "tools": 12,
        "system": 4,
        "turn": 4,
        "tool_use": 10,
        "parameter": 3,
        "tool_result": 4,
        "end": 3,
        "format": 10,
    },
    GEMINI: {"system": 1, "turn": 1, "tool_use": 4, "parameter": 3, "tool_result": 4},
}
"""Where the constants start: OpenAI's cookbook (3 tokens and the role a message, 3 for the answer, 12 for tools); for
Gemini what its short prompts of text are billed beyond their words."""
HELD: Mapping[str, tuple[str, ...]] = {OPENAI: ("turn", "end"), GEMINI: ("turn", "system")}
"""Every prompt has them, so bills tell them with whatever else it has; short prompts bear them out to the token
(gpt-4o, gpt-4.1; Gemini 2.5 to 3.5), and LiteLLM measured 3 after the last message on gpt-5.6."""
SCHEMA = "schema"
SHORT = 100
"""cl100k tokens of a definition up to which it is a share of what it was, and from which all but a constant."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A block as counted: its content kind, its cl100k tokens, its tokens by maker; `shown` as OpenAI publishes it."""

    kind: str
    cl100k: int
    tokens: Mapping[str, int]
    shown: int


@dataclass(frozen=True, slots=True)
class Fit:
    """What was fitted for one maker: ratios by content kind, constants around the texts, the least of a definition."""

    ratios: Mapping[str, float]
    structure: Mapping[str, float]
    tool_least: float = 0.0

    def tokens(self, piece: Piece) -> int:
        """Tokens of a block's texts."""
        told = piece.cl100k * self.ratios[piece.kind]
        return round(max(told + self._words(), piece.cl100k * self.tool_least) if piece.kind == "tools" else told)

    def _words(self) -> float:
        return self.structure.get("tool", 0)


class MakerCounts:
    """Counts by all makers' tokenizers, and what is fitted on them."""

    def __init__(self, makers: Mapping[str, Count]) -> None:
        self.makers = makers
        self._cl100k = encoded_by(encoder("cl100k_base"))
        self._known: dict[bytes, Piece] = {}

    def piece(self, block: Block) -> Piece:
        """What is counted of a block's texts; a definition as JSON, and as OpenAI publishes it."""
        if block.digest not in self._known:
            content = block.content or {}
            parts = parts_of(block.kind, content)
            texts, shown = parts.texts, 0
            if block.kind == "tool" and "input_schema" in content:
                texts, shown = (_as_json(content),), harmony.tool_tokens(content)
            tokens = self._texts(texts)
            cl100k = sum(map(self._cl100k, parts.texts))
            self._known[block.digest] = Piece(
                main_kind(prose_of(block.kind, parts)), cl100k, tokens, shown or tokens[OPENAI]
            )
        return self._known[block.digest]

    def _texts(self, texts: Sequence[str]) -> dict[str, int]:
        return {maker: sum(map(count, texts)) for maker, count in self.makers.items()}

    def texts(self, samples: Sequence[Sample], files: Sequence[Path]) -> list[Text]:
        """The texts that tell ratios, each once: blocks, schemas of tools, the long strings of `files`."""
        known: dict[tuple[str, str, str], Text] = {}
        for sample in samples:
            for block in sample.blocks:
                piece = self.piece(block)
                self._keep(known, sample.source, piece, "\n".join(parts_of(block.kind, block.content or {}).texts))
                if block.kind == "tool":
                    self._keep(known, sample.source, *self._schema((block.content or {}).get("input_schema")))
        for file in files:
            for text in texts_in(file):
                piece = Piece(main_kind(prose_of_texts((text,))), self._cl100k(text), self._texts([text]), 0)
                self._keep(known, str(file), piece, text)
        return list(known.values())

    def _schema(self, schema: Any) -> tuple[Piece, str]:
        text = schema_text(schema)
        compact = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        return Piece(SCHEMA, self._cl100k(text), self._texts([compact]), 0), text

    def _keep(self, known: dict[tuple[str, str, str], Text], source: str, piece: Piece, whole: str) -> None:
        key = (source, piece.kind, whole if piece.kind in ("tools", SCHEMA) else whole[:64])
        if whole and key not in known and not is_filler(whole):
            size = len(whole.encode("utf-8", "replace"))
            known[key] = Text(source, piece.kind, size, piece.cl100k, piece.tokens)

    def billed(self, maker: str, bills: Sequence[Sample], samples: Sequence[Sample], texts: Sequence[Text]) -> Fit:
        """The fit of OpenAI's or Gemini's: constants fitted on bills, definitions apart."""
        ratios = ratios_of(texts, maker)
        if maker == OPENAI:
            ratios, told = {**ratios, "tools": 1.0}, self._published([*bills, *samples])
        else:
            ratios, told = {**ratios, SCHEMA: 0.0}, list(self._told_by(bills, maker))
        short = [shown / cl100k for cl100k, shown in told if cl100k <= SHORT]
        less = round(median([shown - cl100k * ratios["tools"] for cl100k, shown in told if cl100k > SHORT]))
        start = Fit(ratios, {"tool": less}, round(median(short), 3))
        rows = [Bill(features_of(one, maker), one.total - self._words(one, maker, start), one.total) for one in bills]
        return replace(start, structure={"tool": less, **least_absolute(rows, STARTS[maker], HELD[maker])})

    def _words(self, sample: Sample, maker: str, fit: Fit) -> int:
        """Tokens of the texts; of OpenAI's definitions as they are published, of others' as they are fitted."""
        schema = schema_of(sample)
        pieces = [self.piece(block) for block in sample.blocks]
        told = sum(self._shown(piece, maker, fit) for piece in pieces)
        return told + (self._schema(schema)[0].tokens[maker] if schema is not None and fit.ratios[SCHEMA] else 0)

    def _shown(self, piece: Piece, maker: str, fit: Fit) -> int:
        if maker == OPENAI:
            return piece.shown
        return fit.tokens(piece) if piece.kind == "tools" else piece.tokens[maker]

    def _told_by(self, bills: Sequence[Sample], maker: str) -> Iterator[tuple[float, float]]:
        """(cl100k tokens, billed tokens) of a definition, on an average of each prompt that has no calls."""
        for one in bills:
            pieces = [self.piece(block) for block in one.blocks]
            tools = [piece.cl100k for piece in pieces if piece.kind == "tools"]
            found = features_of(one, maker)
            if tools and not found.get("tool_use"):
                around = sum(STARTS[maker][name] * n for name, n in found.items())
                words = sum(piece.tokens[maker] for piece in pieces if piece.kind != "tools")
                yield sum(tools) / len(tools), (one.total - around - words) / len(tools)

    def _published(self, samples: Sequence[Sample]) -> list[tuple[float, float]]:
        """(cl100k tokens, published tokens) of each definition."""
        known = {
            block.digest: self.piece(block)
            for sample in samples
            for block in sample.blocks
            if block.kind == "tool" and not is_filler(_as_json(block.content or {}))
        }
        return [(piece.cl100k, piece.shown) for piece in known.values()]

    def billed_error(self, sample: Sample, maker: str, fit: Fit) -> float:
        """Relative error of a billed prompt."""
        schema = schema_of(sample)
        told = sum(fit.structure.get(name, 0) * n for name, n in features_of(sample, maker).items())
        told += sum(fit.tokens(self.piece(block)) for block in sample.blocks)
        told += fit.tokens(self._schema(schema)[0]) if schema is not None else 0
        return abs(told - sample.total) / sample.total

    def error(self, sample: Sample, maker: str, ratios: Mapping[str, float]) -> float | None:
        """Relative error of a prompt's texts; None: it has none."""
        pieces = [self.piece(block) for block in sample.blocks]
        told = sum(round(piece.cl100k * ratios[piece.kind]) for piece in pieces)
        true = sum(piece.tokens[maker] for piece in pieces)
        return abs(told - true) / true if true else None


def _as_json(content: Mapping[str, Any]) -> str:
    function = {"name": content.get("name"), "description": content.get("description")}
    shown = {"type": "function", "function": {**function, "parameters": content.get("input_schema")}}
    return json.dumps(shown, ensure_ascii=False)


def schema_of(sample: Sample) -> Any:
    """The schema of a prompt's structured output; None without one."""
    wanted = output_format(sample.request.params)
    return wanted.get("schema") if isinstance(wanted, Mapping) else None


def features_of(sample: Sample, maker: str) -> dict[str, int]:
    """How often each constant occurs in a prompt."""
    blocks = sample.blocks
    spoken = [block.role for block in blocks if block.kind != "tool" and block.role != "system"]
    found = {
        "end": int(spoken[-1:] != ["assistant"]),
        "tools": int(any(block.kind == "tool" for block in blocks)),
        "format": int(schema_of(sample) is not None),
        "turn": sum(role != before for before, role in zip(["", *spoken], spoken, strict=False)),
    }
    for block in blocks:
        for name, n in {**facts_of(block), **parts_of(block.kind, block.content or {}).facts}.items():
            found[name] = found.get(name, 0) + n
    return {name: n for name, n in found.items() if n and name in STARTS[maker]}


def ratios_of(texts: Sequence[Text], maker: str) -> dict[str, float]:
    """Tokens of a maker per cl100k token, by content kind."""
    scripts = script_data()["ratio"]
    found = {kind: ratio(texts, kind, maker) for kind in (*LATIN, SCHEMA)}
    return found | scripts.get(maker, scripts["assumed"])
