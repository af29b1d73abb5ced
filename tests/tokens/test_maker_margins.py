"""Error margins of other makers' models: how they are fitted, what they hold, and how often."""

from __future__ import annotations

import tomllib
from datetime import date
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.structs import replace
from cachecost.prompts.intake import Intake
from cachecost.prompts.render import Renderer
from cachecost.providers.rules import RuleBook
from cachecost.tokens.calibration import SCRIPTS
from cachecost.tokens.factory import make_counter
from cachecost.tokens.margins import FITTED, MAKERS, PromptMargins, general_margin, margins_of
from cachecost.tokens.textcounter import TextCounter
from tools.calibrate.maker_margins import fit_maker, judge_logs, toml
from tools.calibrate.margins import BilledCount, holds

RECORDINGS = Path(__file__).parents[2] / "scenarios" / "recordings" / "traffic"
HOSTS = {"deepseek": "deepseek", "gemini": "gemini", "grok": "xai", "mistral": "mistral"}


def judged(generation: str) -> list[BilledCount]:
    """The distinct bills of the committed recordings of a maker's own host, counted without any bill."""
    found = judge_logs(sorted((RECORDINGS / HOSTS[generation]).glob("*.jsonl")), "tiktoken")
    return [one for one in found if one.generation == generation]


@pytest.mark.parametrize("generation", HOSTS)
def test_the_shipped_margins_are_those_of_the_fitted_recordings(generation: str) -> None:
    calls, general = judged(generation), make_counter("tiktoken", generation)
    told = toml({"tiktoken": calls, "native": ()}, date(2026, 11, 24)).splitlines()
    shipped = files("cachecost.tokens").joinpath(MAKERS).read_text(encoding="utf-8")
    assert f'[margins."{generation}".tiktoken]' in told
    assert all(line in shipped.splitlines() for line in told if line.startswith(("base", "answer", *FITTED)))
    assert isinstance(general, TextCounter) and general.margins == margins_of(generation, "tiktoken", 9.0)


@pytest.mark.parametrize(("generation", "least"), [("deepseek", 10), ("gemini", 5), ("grok", 10)])
def test_margins_hold_for_nine_of_ten_held_out_calls(generation: str, least: int) -> None:
    calls = [one for one in judged(generation) if one.is_held_out]
    right, all_ = holds(calls, margins_of(generation, "tiktoken", 9.0))
    assert all_ >= least
    assert right >= 0.85 * all_, (right, all_)


def call(error: int, words: int = 100, answers: int = 0, name: str = "a") -> BilledCount:
    return BilledCount(name, "grok", Kinds(text=words), words + 50, error, answers)


class Kinds(dict[str, int]):
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def test_a_short_prompt_tells_the_base_a_long_one_the_words_and_the_rest_the_answers() -> None:
    margins = fit_maker([call(-40), call(90, words=1000), call(-300, answers=2)], general=0.2)
    assert (margins.base, margins.kinds["text"], margins.answer) == (40.0, 0.05, 128.0)  # (300 - 40 - 5) / 2, up
    assert margins.kinds["image"] == 0.2, "no call tells it"


def test_words_are_no_surer_than_assumed_ratios() -> None:
    told = [call(-40), call(90, words=1000), call(-300, answers=2)]
    assert fit_maker(told, general=0.2, least=0.125).kinds["text"] == 0.125
    assert fit_maker(told, general=0.2, least=0.01).kinds["text"] == 0.05


def test_without_calls_of_a_kind_its_figure_is_least() -> None:
    margins = fit_maker([call(0)], general=0.2)
    assert (margins.base, margins.kinds["text"], margins.answer) == (2.0, 0.0, 0.0)


@given(st.lists(st.tuples(st.integers(-500, 500), st.integers(1, 5000), st.integers(0, 4)), min_size=1, max_size=9))
def test_few_calls_are_all_within_their_own_margins(told: list[tuple[int, int, int]]) -> None:
    calls = [call(error, words, answers) for error, words, answers in told]
    right, all_ = holds(calls, fit_maker(calls, general=0.2))
    assert right == all_


def test_each_answer_in_a_prompt_adds_to_its_margin() -> None:
    counter = make_counter("tiktoken", "grok")
    assert isinstance(counter, TextCounter)
    turn = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "Well. " * 9}]
    margins = PromptMargins(counter)
    doubts = []
    for turns in (0, 1, 2):
        body = {"model": "grok-4.3", "messages": [*turn * turns, turn[0]]}
        prompt = Renderer(counter).render(Intake(keep_content=True).body(body), (), RuleBook().rules("xai", "grok-4.3"))
        doubts.append(margins.of([prompt]) * prompt.total_tokens)
    first, second = doubts[1] - doubts[0], doubts[2] - doubts[1]
    assert first == pytest.approx(second)
    assert counter.margins.answer < first < counter.margins.answer + 10, "and its words"
    assert doubts[0] == pytest.approx(counter.margins.base, abs=1)


def test_the_error_of_all_prompts_is_stated_with_the_margins() -> None:
    data = tomllib.loads(files("cachecost.tokens").joinpath(MAKERS).read_text(encoding="utf-8"))["margins"]
    for generation, rows in data.items():
        for counter, row in rows.items():
            assert list(row) == ["error", "base", "answer", *FITTED]
            assert general_margin(generation, counter) == row["error"]["p95"]
    assert general_margin("qwen", "tiktoken") is None
    for generation in ("o200k", "mistral"):
        native, tiktoken = (margins_of(generation, counter, 0.3) for counter in ("native", "tiktoken"))
        assert native == replace(tiktoken, kinds=dict(tiktoken.kinds) | dict.fromkeys(SCRIPTS, native.kinds["text"])), (
            "no counter is less sure, but for letters of which cl100k knows few words"
        )
