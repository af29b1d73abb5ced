"""A strategy that sends less of the conversation, or assumes other rules, is compared apart and never wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cachecost.analysis.comparison.run import run
from cachecost.analysis.comparison.summary import apart_sentences, summarise
from cachecost.ledger.results import RunResult
from cachecost.ledger.rows import LESS
from cachecost.scenario import from_mapping
from cachecost.views.run.report import report_markdown, run_object, run_text

ASKING = {"preset": "structured output, same tools"}
CUT = {"name": "cut", "preset": "cheaper model, cold", "inquiry": {"window_tokens": 4_000}}


def compared(*strategies: dict[str, Any] | str, **keys: Any) -> RunResult:
    scenario = {
        "format": 1,
        "name": "apart",
        "as_of": "2026-11-21",
        "model": "claude-opus-4-6",
        "tokens": "bytes",
        "conversation": {
            "synthetic": {"seed": 5, "turns": 4, "calls": 4, "tools": 2, "inquiries": {"rate": 1.0}},
            "head": {"tools": {"count": 3, "tokens": 2_000}, "system": {"tokens": 1_500}},
        },
        "strategies": list(strategies),
        **keys,
    }
    return run(from_mapping(scenario, Path()), Path())


def test_questions_cut_to_a_window_are_compared_apart() -> None:
    result = compared(ASKING, CUT, "answer tool, auto")
    summary = summarise(result.main)
    cut = summary.lines[-1]
    assert (cut.name, cut.is_apart) == ("cut", True)
    assert cut.effort < min(line.effort for line in summary.lines[:-1])
    assert summary.best is not None and summary.best.name == result.main.best.strategy == "answer tool, auto"
    assert "cut" not in result.verdict, "what is barred from the ranking is no figure of the answer"
    (footnote,) = apart_sentences(summary)
    assert footnote == (
        "† compared apart, never the cheapest: “cut” (12 questions send a mean of 346 of 14k tokens of conversation, "
        "11 of them under 1,000)"
    )
    found = {one["name"]: one for one in run_object(result)["strategies"]}
    assert list(found) == ["structured output, same tools", "cut", "answer tool, auto"], "the scenario's order"
    assert found["cut"]["compared_apart"] and found["cut"]["sees_less"]["of"] == "questions"
    assert found["cut"]["sees_less"]["mean_tokens"] < LESS * found["cut"]["sees_less"]["mean_tokens_compared"]
    assert not found["answer tool, auto"]["compared_apart"] and found["answer tool, auto"]["sees_less"] is None
    assert "| cut † |" in report_markdown(result) and "cut †" in run_text(result, width=200)


def test_a_scenario_may_compare_them_all_the_same_and_says_so() -> None:
    result = compared(ASKING, {**CUT, "ranked": True}, "answer tool, auto")
    summary = summarise(result.main)
    assert summary.best is not None and summary.best.name == "cut" and summary.apart == ()
    assert apart_sentences(summary)[0].startswith("compared all the same, as the scenario says: “cut” (")
    missed = next(one for one in result.assumptions if one.name == "What “cut” leaves out is never missed")
    assert "“cut” costs as much as “structured output, same tools” after " in missed.effect


@pytest.mark.parametrize("key", [{"leaves_out": "the images"}, {"ranked": False}])
def test_a_scenario_may_say_that_a_strategy_is_not_comparable(key: dict[str, Any]) -> None:
    result = compared(ASKING, {"preset": "answer tool, auto", **key})
    assert result.main.best.strategy == "structured output, same tools"
    reason = " (the images)" if "leaves_out" in key else ""
    assert apart_sentences(summarise(result.main)) == [
        f"† compared apart, never the cheapest: “answer tool, auto”{reason}"
    ]


def test_rules_of_its_own_are_compared_apart_unless_the_comparison_has_them_too() -> None:
    own = {"tool_choice_invalidation": "never"}
    apart = summarise(compared(ASKING, {"preset": "answer tool, auto", "rules": own}).main)
    assert [line.assumes for line in apart.apart] == ["tool_choice_invalidation=never"]
    shared = summarise(compared(ASKING, {"preset": "answer tool, auto", "rules": own}, rules=own).main)
    assert shared.apart == ()


def test_a_strategy_that_asks_no_questions_does_not_beat_one_that_does() -> None:
    summary = summarise(compared(ASKING, "automatic").main)
    (silent,) = summary.apart
    assert silent.name == "automatic" and silent.less is not None
    assert silent.less.unasked == silent.less.calls > 0
    assert summarise(compared("automatic", ASKING).main).apart == ()


def test_the_verdict_answers_what_the_question_is_about() -> None:
    result = compared(ASKING, "answer_inquiry, forced", "answer tool, auto", question_about=["answer_inquiry, forced"])
    start, _, rest = result.verdict.partition(". ")
    assert start.startswith("A question costs $") and start.endswith(" through “structured output, same tools”")
    assert rest.startswith("“answer_inquiry, forced” costs ") and "“structured output, same tools”." in rest
