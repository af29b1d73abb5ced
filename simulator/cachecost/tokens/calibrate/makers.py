"""`python -m cachecost.tokens.calibrate.makers LOG…`: what other makers' tokenizers make of recorded texts.

No bill of theirs is needed: each tokenizer counts the texts itself, and how many tokens it has for one of cl100k is
the median over texts by length, as for Claude. What stands around the texts is OpenAI's published format.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from cachecost.faults import CannotEvaluate, InputError
from cachecost.prompts.blocks import Block
from cachecost.prompts.output_format import schema_text
from cachecost.tokens.calibrate import harmony
from cachecost.tokens.calibrate.fit import (
    Bill,
    Text,
    is_filler,
    least_absolute,
    median,
    percentile,
    ratio,
    tokens_per_byte,
)
from cachecost.tokens.calibrate.samples import Sample, Samples
from cachecost.tokens.calibrate.texts import texts_in
from cachecost.tokens.calibrate.vocabularies import OPENAI, Count, encoded_by, tokenizer
from cachecost.tokens.calibration import MAKERS
from cachecost.tokens.content import facts_of, parts_of, prose_of
from cachecost.tokens.prose import KINDS, kind_of
from cachecost.tokens.tiktoken_ import encoder

HEAD = """\
# Written by `python -m cachecost.tokens.calibrate.makers LOG… --write`; do not edit by hand.
#
# Tokenizers of other makers than Anthropic. What a row has is as in calibration.toml, but for:
# confidence: measured (a tokenizer counted the texts; no bill was seen) or assumed (no tokenizer is to be had: the
#   ratios in the middle of those measured, and the widest error that these have with any tokenizer measured).
# ratio: tokens per cl100k token; tools: of a definition as Claude is shown it, as JSON; schema: of a schema indented
#   by 2, as compact JSON. OpenAI's published rendering of a definition has its words without the JSON around them:
#   there a definition is what it is as text less a constant (`tool`), and at least a share (`tool_least`).
# structure: turn opens a run of equal roles, end opens the answer, tools stands around all definitions, system around
#   a system block, tool_use and tool_result around a call and its result. Fitted on recorded prompts in the harmony
#   format, which OpenAI publishes for gpt-oss; end: 3 (OpenAI's cookbook; LiteLLM measured 3 uncached on gpt-5.6).
#   The other makers' are assumed to be the same.
# guessed: facts whose tokens are a guess; OpenAI's formula for images is that of gpt-4o and gpt-4.1.
# error: of a prompt's length as the tokenizer counts it, each source judged by a fit on all the others; for o200k with
#   all that the format puts around the texts, for the others of the texts alone.
"""
SOURCES: Mapping[str, str] = {
    OPENAI: "o200k_base and the prompt format that OpenAI publishes",
    "gemini": "the tokenizer of Gemma 3, which google-genai takes for Gemini 2.0 to 3.0; structure assumed",
    "deepseek": "the tokenizer of DeepSeek V4; structure assumed",
    "mistral": "Mistral's tekken of September 2024; structure assumed",
    "qwen": "the tokenizer of Qwen 3.6; structure assumed",
}
ASSUMED: Mapping[str, str] = {
    "grok": "no tokenizer to be had, as the middle of five other makers",
    "minimax": "no tokenizer to be had, as the middle of five other makers",
    "open": "the model is not known, as the middle of five makers",
}
STARTS = {"tools": 20, "system": 6, "turn": 4, "tool_use": 12, "parameter": 4, "tool_result": 8}
"""Where the constants start: the special tokens and headings of the published format, counted by hand."""
END = 3
"""Tokens of the opening of the answer: OpenAI's cookbook, and what LiteLLM measured."""
SCHEMA_HEADING = 12
"""Tokens of the heading that the published format puts before a schema."""
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


class Desk:
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
            self._known[block.digest] = Piece(prose_of(block.kind, parts), cl100k, tokens, shown or tokens[OPENAI])
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
                    self._keep(known, sample.source, *self._schema(block.content or {}))
        for file in files:
            for text in texts_in(file):
                piece = Piece(kind_of((text,)), self._cl100k(text), self._texts([text]), 0)
                self._keep(known, str(file), piece, text)
        return list(known.values())

    def _schema(self, content: Mapping[str, Any]) -> tuple[Piece, str]:
        schema = content.get("input_schema")
        text = schema_text(schema)
        compact = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        return Piece(SCHEMA, self._cl100k(text), self._texts([compact]), 0), text

    def _keep(self, known: dict[tuple[str, str, str], Text], source: str, piece: Piece, whole: str) -> None:
        key = (source, piece.kind, whole if piece.kind in ("tools", SCHEMA) else whole[:64])
        if whole and key not in known and not is_filler(whole):
            size = len(whole.encode("utf-8", "replace"))
            known[key] = Text(source, piece.kind, size, piece.cl100k, piece.tokens)

    def openai(self, samples: Sequence[Sample], texts: Sequence[Text]) -> Fit:
        """The fit of OpenAI's: constants fitted on prompts in the published format."""
        bills: list[Bill] = []
        for sample in filter(_is_shown, samples):
            total = harmony.prompt_tokens(sample.blocks)
            words = sum(self.piece(block).shown for block in sample.blocks)
            bills.append(Bill(features_of(sample.blocks), total - words, total))
        structure = {**least_absolute(bills, STARTS), "end": END, "format": SCHEMA_HEADING}
        ratios = {**ratios_of(texts, OPENAI), "tools": 1.0}
        told = self._definitions(samples)
        short = [piece.shown / piece.cl100k for piece in told if piece.cl100k <= SHORT]
        less = round(median([piece.shown - piece.cl100k for piece in told if piece.cl100k > SHORT]))
        return Fit(ratios, {"tool": less, **structure}, round(median(short), 3))

    def _definitions(self, samples: Sequence[Sample]) -> list[Piece]:
        known = {
            block.digest: self.piece(block)
            for sample in samples
            for block in sample.blocks
            if block.kind == "tool" and not is_filler(_as_json(block.content or {}))
        }
        return list(known.values())

    def openai_error(self, sample: Sample, fit: Fit) -> float | None:
        """Relative error of a prompt in the published format; None: it cannot be shown in it."""
        if not _is_shown(sample):
            return None
        true = harmony.prompt_tokens(sample.blocks)
        around = sum(fit.structure[name] * n for name, n in features_of(sample.blocks).items())
        told = around + sum(fit.tokens(self.piece(block)) for block in sample.blocks)
        return abs(told - true) / true

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


def features_of(blocks: Sequence[Block]) -> dict[str, int]:
    """How often each constant occurs in a prompt."""
    found: dict[str, int] = {"tools": int(any(block.kind == "tool" for block in blocks))}
    spoken = [block.role for block in blocks if block.kind != "tool" and block.role != "system"]
    found["turn"] = sum(role != before for before, role in zip(["", *spoken], spoken, strict=False))
    for block in blocks:
        for name, n in {**facts_of(block), **parts_of(block.kind, block.content or {}).facts}.items():
            found[name] = found.get(name, 0) + n
    return {name: n for name, n in found.items() if n and name in STARTS}


def _is_shown(sample: Sample) -> bool:
    return harmony.can_be_shown(sample.blocks)


def ratios_of(texts: Sequence[Text], maker: str) -> dict[str, float]:
    """Tokens of a maker per cl100k token, by content kind."""
    return {kind: ratio(texts, kind, maker) for kind in (*KINDS, SCHEMA)}


def middle(texts: Sequence[Text], makers: Iterable[str]) -> dict[str, float]:
    """The middle of all makers' ratios, by content kind."""
    each = [ratios_of(texts, maker) for maker in makers]
    return {kind: median([ratios[kind] for ratios in each]) for kind in each[0]}


def errors(desk: Desk, samples: Sequence[Sample], texts: Sequence[Text]) -> dict[str, list[float]]:
    """Errors by maker; those of a maker with no tokenizer are the widest that the middle has with any."""
    found: dict[str, list[float]] = {maker: [] for maker in desk.makers}
    crossed: dict[str, list[float]] = {maker: [] for maker in desk.makers}
    for source in sorted({sample.source for sample in samples}):
        others = [text for text in texts if text.source != source]
        mine = [sample for sample in samples if sample.source == source]
        openai = desk.openai([sample for sample in samples if sample.source != source], others)
        found[OPENAI] += _told(desk.openai_error(sample, openai) for sample in mine)
        between = middle(others, desk.makers)
        for maker in desk.makers:
            crossed[maker] += _told(desk.error(sample, maker, between) for sample in mine)
            if maker != OPENAI:
                ratios = ratios_of(others, maker)
                found[maker] += _told(desk.error(sample, maker, ratios) for sample in mine)
    widest = max(crossed.values(), key=lambda values: percentile(values, 95))
    return {**found, **dict.fromkeys(ASSUMED, widest)}


def _told(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def toml(desk: Desk, samples: Sequence[Sample], texts: Sequence[Text], day: date, files: int) -> str:
    """The file of other makers' calibrations."""
    found, openai = errors(desk, samples, texts), desk.openai(samples, texts)
    lines = [HEAD, "[fit]", f"date = {day}", f"requests = {len(samples)}"]
    lines += [f"texts = {len(texts)}", f"text_files = {files}"]
    lines += _row(OPENAI, "measured", openai, texts, found)
    lines += ['guessed = ["image"]', f"tool_least = {openai.tool_least}"]
    around = {name: value for name, value in openai.structure.items() if name != "tool"}
    for maker in desk.makers:
        if maker != OPENAI:
            lines += _row(maker, "measured", Fit(ratios_of(texts, maker), around), texts, found)
    for maker in ASSUMED:
        lines += _row(maker, "assumed", Fit(middle(texts, desk.makers), around), texts, found)
    return "\n".join(lines) + "\n"


def _row(
    maker: str, confidence: str, fit: Fit, texts: Sequence[Text], found: Mapping[str, Sequence[float]]
) -> list[str]:
    unseen = tokens_per_byte(texts, "text", maker if maker in texts[0].tokens else OPENAI)
    return [
        "",
        f'[generations."{maker}"]',
        f'confidence = "{confidence}"',
        f'source = "{ASSUMED.get(maker) or SOURCES[maker]}"',
        f"ratio = {_table(fit.ratios)}",
        f"structure = {_table({name: value for name, value in fit.structure.items() if value} | {'unseen': unseen})}",
        f"error.tiktoken = {_error(found[maker])}",
    ]


def _error(values: Sequence[float]) -> str:
    return f"{{ median = {percentile(values, 50):.4f}, p95 = {percentile(values, 95):.4f}, requests = {len(values)} }}"


def _table(values: Mapping[str, float]) -> str:
    return "{ " + ", ".join(f"{name} = {value}" for name, value in values.items()) + " }"


def main(arguments: list[str] | None = None) -> int:
    """Run the measurement; returns the exit code: 2 for a damaged log, 3 for what cannot be measured."""
    given = _parser().parse_args(arguments)
    files = dict(one.split("=", 1) for one in given.tokenizer)
    try:
        desk = Desk({maker: tokenizer(maker, files.get(maker, "")) for maker in SOURCES})
        samples = Samples().read(given.logs)
        report = toml(desk, samples, desk.texts(samples, given.text), given.date, len(given.text))
    except (InputError, CannotEvaluate) as fault:
        sys.stderr.write(f"{fault}\n")
        return 2 if isinstance(fault, InputError) else 3
    sys.stdout.write(report)
    if given.write:
        given.write.write_text(report, encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cachecost.tokens.calibrate.makers", description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, help='JSON Lines: {"source", "request", "usage", …}')
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="the day of the fit, YYYY-MM-DD")
    parser.add_argument("--text", nargs="*", default=[], type=Path, help="JSON (Lines) files whose texts tell ratios")
    parser.add_argument("--tokenizer", nargs="*", default=[], help="MAKER=FILE: a tokenizer.json, or Mistral's tekken")
    parser.add_argument("--write", type=Path, help=f"where to write the result, e.g. {MAKERS}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
