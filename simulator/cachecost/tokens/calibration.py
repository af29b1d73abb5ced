"""Measurements of each tokenizer generation: ratios, structure constants, error margins.

Claude's are in `calibration.toml`, those of other providers in `makers.toml`. A ratio is that of the content kinds of a
text, which determine how many Claude tokens one cl100k token is worth.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path

from cachecost.base.errors import CannotEvaluate, nearest
from cachecost.prompts.blocks import WHOLE, write_shares

DATA = "calibration.toml"
MAKERS = "makers.toml"
"""Of other makers than Anthropic."""
SEALED_SHARE = 0.93
"""Bytes of unseen text for each character of encrypted content, where no bill of a search tells (another maker's)."""
CLAUDE = "claude-"
"""What Anthropic's generations begin with."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measured facts of one tokenizer generation.

    `ratio` is tokens per cl100k token by content kind; `structure` tokens per fact of a block
    (and `format`, for a request with structured output); `tool_prompt_head` how many tokens of the
    tool-use system prompt come before the tool definitions; the rest comes after the system prompt.
    `error_margin` is, by counter name, the relative error of a prompt's length at the 95th percentile, on
    sources held out of the fit.

    For other providers: `confidence` is "measured" (their tokenizer counted texts) or "assumed",
    `source` says how; facts in `guessed` are guesses; a tool definition has at least `tool_least`
    tokens per cl100k token.
    """

    generation: str
    ratio: Mapping[str, float]
    structure: Mapping[str, float]
    tool_prompt_head: int
    error_margin: Mapping[str, float]
    fitted: date
    confidence: str = "fitted"
    source: str = ""
    guessed: frozenset[str] = field(default_factory=frozenset)
    tool_least: float = 0.0


def calibration(generation: str) -> Calibration:
    """The calibration of a tokenizer generation. Raises CannotEvaluate naming the nearest."""
    known = _calibrations()
    if generation not in known:
        raise CannotEvaluate(
            f"tokenizer generation '{generation}' is not calibrated: expected one of {', '.join(known)}"
            f"{nearest(generation, known)}"
        )
    return known[generation]


@cache
def _calibrations() -> dict[str, Calibration]:
    found: dict[str, Calibration] = {}
    for name in (DATA, MAKERS):
        data = tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
        for generation, row in data["generations"].items():
            found[generation] = Calibration(
                generation,
                ratio=row["ratio"],
                structure={"sealed": SEALED_SHARE * row["structure"].get("unseen", 0), **row["structure"]},
                tool_prompt_head=row.get("tool_prompt_head", 0),
                error_margin={counter: error["p95"] for counter, error in row["error"].items()},
                fitted=data["fit"]["date"],
                confidence=row.get("confidence", "fitted"),
                source=row.get("source", ""),
                guessed=frozenset(row.get("guessed", ())),
                tool_least=row.get("tool_least", 0.0),
            )
    return found


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
COMMON_WORDS = (
    *(" the ", " of ", " to ", " and ", " a ", " is ", " in ", " that ", " for "),
    *(" you ", " it ", " with ", " be ", " not ", " this ", " on ", " as "),
)


def prose_of_texts(texts: Sequence[str]) -> str:
    """The blend of kinds of all `texts` together: a kind alone ("text"), or shares of `WHOLE` ("data:1200,text:8800").

    No text at all is "text".
    """
    length = max(1, sum(map(len, texts)))
    data, symbols, words = (
        min(1.0, sum(text.count(item) for text in texts for item in wanted) / (whole * length))
        for wanted, whole in ((DIGITS, DATA_SHARE), (SYMBOLS, SYMBOL_SHARE), (COMMON_WORDS, WORD_SHARE))
    )
    digits = round(WHOLE * data)
    code = min(WHOLE - digits, round(WHOLE * (1 - data) * symbols * (1 - words)))  # two halves may both be rounded up
    return write_shares({"code": code, "data": digits, "text": WHOLE - code - digits})
