"""Measurements of each tokenizer generation: ratios, structure constants, error margins.

Claude's are in `calibration.toml`, those of other providers in `makers.toml`. A ratio is that of the content kinds of a
text, which determine how many Claude tokens one cl100k token is worth.
"""

from __future__ import annotations

import re
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
SCRIPTS_DATA = "scripts.toml"
"""Ratios of texts that are not in Latin letters, of all makers."""
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
def script_data() -> dict[str, dict[str, dict[str, float]]]:
    """Ratios and error margins of texts that are not in Latin letters, by tokenizer generation and kind."""
    data: dict[str, dict[str, dict[str, float]]] = tomllib.loads(
        Path(__file__).with_name(SCRIPTS_DATA).read_text(encoding="utf-8")
    )
    return data


@cache
def _calibrations() -> dict[str, Calibration]:
    found: dict[str, Calibration] = {}
    scripts = script_data()["ratio"]
    for name in (DATA, MAKERS):
        data = tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
        for generation, row in data["generations"].items():
            found[generation] = Calibration(
                generation,
                ratio={**row["ratio"], **scripts.get(generation, scripts["assumed"])},
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


LATIN = ("text", "code", "data", "tools")
"""Sentences · source code, paths, markup · numbers, ids, logs · tool definitions and schemas."""
SCRIPTS = {
    "cjk": "\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff",
    "cyrillic": "\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f",
    "script": "\u0370-\u03ff\u0530-\u10ff\u1200-\u1c7f\u1cd0-\u1cff\u1f00-\u1fff\u2c00-\u2ddf\ua000-\ua63f\ua980-\uabff"
    "\ufb13-\ufdff\ufe70-\ufefe",
}
"""Chinese, Japanese and Korean · Cyrillic · Greek, Arabic, Hebrew, Indic and all others, by their characters. A text is
of them by its share of UTF-8 bytes, which are nearer to cl100k tokens than characters are."""
KINDS = (*LATIN, *SCRIPTS)
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
    scripts, texts = _take_scripts(texts)
    rest = WHOLE - sum(scripts.values())
    length = max(1, sum(map(len, texts)))
    data, symbols, words = (
        min(1.0, sum(text.count(item) for text in texts for item in wanted) / (whole * length))
        for wanted, whole in ((DIGITS, DATA_SHARE), (SYMBOLS, SYMBOL_SHARE), (COMMON_WORDS, WORD_SHARE))
    )
    digits = round(rest * data)
    code = min(rest - digits, round(rest * (1 - data) * symbols * (1 - words)))  # two halves may both be rounded up
    return write_shares({"code": code, "data": digits, "text": rest - code - digits, **scripts})


def _take_scripts(texts: Sequence[str]) -> tuple[dict[str, int], Sequence[str]]:
    if all(map(str.isascii, texts)):
        return {}, texts
    left = whole = _bytes_of(texts)
    shares, used = dict[str, int](), "".join(set().union(*texts))
    for script, characters in SCRIPTS.items():
        if not re.search(f"[{characters}]", used):  # most texts have no more than a dash or an arrow
            continue
        texts = [re.sub(f"[{characters}]+", "", text) for text in texts]
        before, left = left, _bytes_of(texts)
        shares[script] = WHOLE * (before - left) // whole
    return shares, texts


def _bytes_of(texts: Sequence[str]) -> int:
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
