"""`--tokens auto`: ctok for Claude's models, makers' own tokenizers for theirs, the calibrated tiktoken elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cachecost.base.structs import replace
from cachecost.cli import cachecost
from cachecost.prompts.request import text_block
from cachecost.tokens import factory
from cachecost.tokens.factory import counter_name, make_counter
from cachecost.tokens.tokenizers import count_content, ctok_counter, has_ctok, native_counter, tiktoken_counter

TEXT = text_block("user", "Prompt caching makes long conversations affordable. " * 9)
needs_ctok = pytest.mark.skipif(not has_ctok(), reason="ctok is not installed for this Python")


@pytest.fixture(autouse=True)
def chosen_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(factory.VARIABLE, raising=False)


def test_bills_come_first_then_what_is_named_then_the_best_there_is() -> None:
    assert counter_name(None, has_bills=True) == counter_name("calibrated", has_bills=True) == "tiktoken"
    assert counter_name(None, has_bills=False) == counter_name("calibrated", has_bills=False) == "auto"
    assert counter_name("bytes", has_bills=True) == counter_name("bytes", has_bills=False) == "bytes"


@needs_ctok
def test_claude_is_counted_by_ctok_where_it_is_installed() -> None:
    auto, ctok = make_counter("auto", "claude-4.8"), ctok_counter("claude-4.8")
    assert (auto.block(TEXT), auto.name, auto.source, auto.error_margin) == (
        ctok.block(TEXT),
        "ctok",
        ctok.source,
        ctok.error_margin,
    )


def test_claude_is_counted_by_tiktoken_where_ctok_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachecost.tokens.tokenizers.is_installed", lambda name: name != "ctok")
    auto, tiktoken = make_counter("auto", "claude-4.8"), tiktoken_counter("claude-4.8")
    assert (auto.block(TEXT), auto.source) == (tiktoken.block(TEXT), tiktoken.source)


def test_models_without_a_tokenizer_to_be_had_are_counted_by_tiktoken() -> None:
    assert make_counter("auto", "grok").source == tiktoken_counter("grok").source


def test_other_makers_models_are_counted_by_their_own_tokenizers() -> None:
    auto, native = make_counter("auto", "o200k"), native_counter("o200k")
    assert (auto.block(TEXT), auto.name, auto.source) == (native.block(TEXT), "native", native.source)
    assert auto.error_margin == tiktoken_counter("o200k").error_margin, "it was not measured apart"


def test_a_maker_whose_package_is_missing_is_counted_by_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachecost.tokens.tokenizers.is_installed", lambda name: False)
    assert make_counter("auto", "deepseek").source == tiktoken_counter("deepseek").source


def test_a_recording_without_content_falls_back_to_its_counts() -> None:
    counts, prose = count_content(TEXT)
    bare = replace(TEXT, content=None, prose=prose, counts=counts)
    auto = make_counter("auto", "o200k")
    assert auto.block(bare) == tiktoken_counter("o200k").block(bare)
    assert auto.source.endswith(tiktoken_counter("o200k").source)


def test_a_machine_may_choose_another_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(factory.VARIABLE, "bytes")
    assert make_counter("auto", "claude-3").block(TEXT) == TEXT.size
    assert make_counter("tiktoken", "claude-3").block(TEXT) != TEXT.size


@needs_ctok
def test_a_block_without_content_is_counted_by_what_was_recorded_of_it() -> None:
    counts, prose = count_content(TEXT)
    bare = replace(TEXT, content=None, prose=prose, counts={"cl100k": counts["cl100k"]})
    auto = make_counter("auto", "claude-3")
    before = auto.source, auto.error_margin
    assert auto.block(bare) == tiktoken_counter("claude-3").block(bare)
    assert auto.block(TEXT) == ctok_counter("claude-3").block(TEXT)
    assert (auto.source, auto.error_margin) != before
    assert auto.source.startswith(before[0]) and "tiktoken cl100k" in auto.source
    assert auto.error_margin == tiktoken_counter("claude-3").error_margin


@needs_ctok
def test_replay_counts_a_log_without_bills_by_ctok(tmp_path: Path) -> None:
    body = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "Prompt caching. " * 99}]}
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"request": body}) + "\n")
    plain, named = (
        CliRunner().invoke(cachecost, ["replay", str(log), "--json", *more], catch_exceptions=False).stdout
        for more in ([], ["--tokens", "ctok"])
    )
    assert json.loads(plain)["usage"] == json.loads(named)["usage"]
