"""Ranges of reads: their bounds in tokens, which calls have one, and whether recorded calls keep to them."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_fidelity import Crude
from test_fidelity_hosts import ASK, MORE, judged

from bodies import Body, assistant, body, text, tool, tool_result, tool_use, user
from cachecost.analysis.fidelity.checker import FidelityChecker
from cachecost.analysis.fidelity.judging import find_refuted_claims
from cachecost.base.structs import replace
from cachecost.base.times import seconds
from cachecost.caches.breakpoints import Outcome
from cachecost.caches.reporting import read_bounds, with_shared_prefix
from cachecost.conversations.calls import Call
from cachecost.ledger.results import Judgement
from cachecost.prompts.intake import Intake
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import BOUNDS, ModelRules, RuleBook, StatedRange
from cachecost.providers.usage import Usage
from cachecost.views.fidelity.scores import Score
from cachecost.views.fidelity.text import judgement_row

XAI = RuleBook().rules("xai", "grok-4.7")
"""Steps of 64, 128 tokens of xAI's own before each prompt, answers not kept."""


def outcome(read: int, uncached: int) -> Outcome:
    return Outcome(read, 0, 0, uncached, None, ())


def bounds(rules: ModelRules, predicted: int, reach: int, total: int = 10_000) -> tuple[int, int, float] | None:
    found = read_bounds(rules, rules.shared_by_all(False), predicted, reach, total)
    return (found.least, found.most, found.coverage) if found else None


def xai(*rows: tuple[Body, Usage], model: str = "grok-4.7") -> list[Judgement]:
    return judged("xai", model, *rows)


@pytest.mark.parametrize(
    ("predicted", "reach", "expected"),
    [
        (640, 640, (128, 640, 1.0)),
        (640, 703, (128, 640, 1.0)),  # the answer does not fill a step
        (640, 704, (128, 704, 1.0)),  # it does: it may have been kept
        (128, 0, (0, 128, 1.0)),  # nobody says that its own text is always read
        (0, 0, None),
        (64, 64, (0, 64, 1.0)),
    ],
)
def test_a_range_is_from_the_hosts_own_text_to_all_that_was_sent(
    predicted: int, reach: int, expected: tuple[int, int, float] | None
) -> None:
    assert bounds(XAI, predicted, reach) == expected


@pytest.mark.parametrize(("least", "tokens"), [(0.0, 128), (0.2, 128), (0.25, 160), (1.0, 640)])
def test_the_least_is_a_share_where_the_rules_state_one(least: float, tokens: int) -> None:
    rules = replace(XAI, read_range=StatedRange(least, 0.9))
    assert bounds(rules, 640, 640) == (tokens, 640, 0.9)


def test_a_host_whose_hits_are_certain_has_no_range() -> None:
    assert bounds(RuleBook().rules("deepseek", "deepseek-flash"), 640, 640) is None
    assert bounds(RuleBook().rules("anthropic", "claude-sonnet-4-5"), 640, 640) is None
    assert RuleBook().rules("gemini", "gemini-3.8-flash").read_range == BOUNDS


@given(st.integers(128, 5000), st.integers(0, 5000), st.floats(0, 1), st.floats(0.5, 1))
def test_bounds_hold_what_is_predicted_and_nothing_more_than_was_sent(
    predicted: int, reach: int, least: float, coverage: float
) -> None:
    rules = replace(XAI, read_range=StatedRange(least, coverage))
    found = read_bounds(rules, XAI.shared_by_all(False), predicted, reach, 5000)
    assert found is not None and found.coverage == coverage
    assert 0 <= found.least <= found.most and predicted <= found.most <= max(predicted, reach)
    assert found.hold(predicted, 0) or predicted < found.least
    assert not found.hold(found.most + 1, 0) and not found.hold(found.least - 1, 0)


@pytest.mark.parametrize(
    ("read", "uncached", "expected"),
    [(0, 500, (128, 372)), (127, 373, (128, 372)), (128, 372, (128, 372)), (192, 308, (192, 308)), (0, 100, (100, 0))],
)
def test_the_hosts_own_text_is_read_of_every_billed_prompt(read: int, uncached: int, expected: tuple[int, int]) -> None:
    found = with_shared_prefix(outcome(read, uncached), XAI.shared_by_all(False))
    assert (found.read, found.uncached) == expected
    none = RuleBook().rules("openai", "gpt-5.2").shared_by_all(False)
    other = with_shared_prefix(outcome(read, uncached), none)
    assert (other.read, other.uncached) == (read, uncached)


@pytest.mark.parametrize(
    ("read", "kind", "exact", "holds"),
    [
        (1984, "hit", True, True),
        (1920, "hit", False, True),
        (128, "hit", False, True),  # another machine answered: its own text alone
        (64, "hit", False, False),
        (0, "cold", False, False),
        (2240, "hit", False, True),  # the answer was kept
        (2400, "hit", False, False),
    ],
)
def test_a_call_of_xai_is_exact_or_in_its_range_or_neither(read: int, kind: str, exact: bool, holds: bool) -> None:
    first, second = xai((body(ASK), Usage(1872, 128)), (body(*MORE), Usage(2500 - read, read)))
    assert (first.kind, first.exact, first.holds) == ("hit", True, True)
    assert (second.kind, second.exact, second.holds) == (kind, exact, holds)
    assert second.has_range and second.is_right == exact


def test_scores_count_exact_hits_and_ranges_apart() -> None:
    judgements = xai((body(ASK), Usage(1872, 128)), (body(*MORE), Usage(2372, 128)), (body(*MORE), Usage(2500)))
    told = Score("xai", judgements)
    assert (told.hits, told.exact_hits, told.cold, told.exact_cold) == (2, 1, 1, 0)
    assert (told.ranges, told.held, told.coverage, told.spanning) == (2, 2, 1.0, 1)  # the last one's is 128 to 2,496
    assert (told.ranges_in_words, told.width_in_words) == ("2 of 2 (100%)", "84%, 1 all")
    part = Score("xai", [replace(one, coverage=0.9) for one in judgements])
    assert part.ranges_in_words == "2 of 2 (90%)"
    row = judgement_row(judgements[1])
    shown = {"width": 0.8448, "spans_prompt": False}
    assert row["range"] == {"least": 128, "most": 2240, "coverage": 1.0, "holds": True, **shown}


def test_a_host_without_a_range_has_none_in_its_rows() -> None:
    rows = judged("deepseek", "deepseek-flash", (body(ASK), Usage(2000)), (body(*MORE), Usage(324, 2176)))
    assert [judgement_row(one)["range"] for one in rows] == [None, None]
    assert Score("deepseek", rows).ranges == 0


THEN = user(text(90, "then"))


@pytest.mark.parametrize(
    ("output", "read", "exact"),
    [
        (123, 2123, True),  # the answer as billed, not as counted
        (123, 2120, False),
        (0, 2100, True),  # no output: as counted
        (132, 2132, True),
        (133, 2000, True),  # over 32 tokens more than came back: reasoning was before it, so it is not what was cached
        (92, 2092, True),
        (91, 2000, True),  # over 8 tokens less: the client wrote it
    ],
)
def test_the_length_of_an_answer_is_that_of_its_bill(output: int, read: int, exact: bool) -> None:
    rows = (
        (body(ASK), Usage(1852, 148, output_tokens=output)),
        (body(ASK, assistant(text(100)), THEN), Usage(2400 - read, read)),
    )
    second = judged_early(*rows)[1]
    assert (second.kind, second.exact) == ("hit", exact)


def judged_early(
    *rows: tuple[Body, Usage], model: str = "grok-4.20", day: str = "2026-04-01T12:00:00Z"
) -> list[Judgement]:
    """Judge calls before xAI's steps of 64: everything that was sent or answered is read."""
    intake = Intake(keep_content=True)
    calls = [
        Call(
            intake.body({**request, "model": model}),
            seconds(day) + 10 * number,
            timestamp=day,
            host="xai",
            billed=bill,
            line=number,
        )
        for number, (request, bill) in enumerate(rows, 1)
    ]
    checker = FidelityChecker(RuleBook(), PriceBook.load(), lambda generation: Crude())
    return checker.check_calls("log", calls)[0]


@pytest.mark.parametrize(
    ("read", "exact", "holds"),
    [(2176, True, True), (1920, False, True), (0, False, True), (2560, False, False)],
)
def test_an_answer_of_gpt_5_without_reasoning_may_be_read_or_not(read: int, exact: bool, holds: bool) -> None:
    """Seen 40 times with the answer of 300 tokens and 12 times without: the range takes in both."""
    answered = Usage(2000, output_tokens=300)
    second = judged("openai", "gpt-5", (body(ASK), answered), (body(*MORE), Usage(2500 - read, read)))[1]
    assert (second.exact, second.holds) == (exact, holds)


@pytest.mark.parametrize(
    ("model", "day", "has_tools", "expected"),
    [
        ("grok-4-fast", "2025-11-18", False, (0, 117, 174)),
        ("grok-4-fast", "2025-11-18", True, (0, 265, 266)),
        ("grok-4-fast", "2025-11-19", True, (0, 148, 174)),
        ("grok-code-fast-1", "2025-10-23", False, (0, 192, 192)),
        ("grok-code-fast-1", "2025-10-23", True, (0, 320, 320)),
        ("grok-3-mini", "2026-04-29", True, (0, 148, 174)),
        ("grok-3-mini", "2026-04-30", True, (128, 128, 192)),
    ],
)
def test_what_all_share_is_a_matter_of_model_tools_and_day(
    model: str, day: str, has_tools: bool, expected: tuple[int, int, int]
) -> None:
    assert RuleBook().rules("xai", model, date.fromisoformat(day)).shared_by_all(has_tools) == expected


@pytest.mark.parametrize(("calls", "read"), [((90,), 2301), ((90, 80), 2220)])
def test_of_parallel_calls_only_the_first_is_read_with_the_reasoning_before_it(
    calls: tuple[int, ...], read: int
) -> None:
    """The answer is billed 300 tokens, most of them reasoning that no client sends back."""
    names = [(size, f"c{number}") for number, size in enumerate(calls)]
    then = body(ASK, assistant(*(tool_use(*one) for one in names)), user(*(tool_result(80, name) for _, name in names)))
    rows = (body(ASK), Usage(1883, 117, output_tokens=300)), (then, Usage(300, read))
    first, second = judged_early(*rows, model="grok-4-fast", day="2025-09-26T11:00:00Z")
    assert second.predicted.read == read
    assert first.predicted.total_input == 2000, "the bill of the second counts reasoning that the first has not"


@pytest.mark.parametrize(
    ("sent", "has_tools", "expected"),
    [(2000, True, (2000, 43)), (2000, False, (2000, 0)), (286, True, (43, 43)), (287, True, (287, 43))],
)
def test_zai_reads_the_words_before_tools_and_no_short_conversation(
    sent: int, has_tools: bool, expected: tuple[int, int]
) -> None:
    """Of the second call of a prompt, and of the first."""
    ask = body(user(text(sent - 100 * has_tools, "ask")), **({"tools": [tool(100)]} if has_tools else {}))
    first, second = judged("zai", "glm-4.6", (ask, Usage(sent)), (ask, Usage(sent)))
    assert (second.predicted.read, first.predicted.read) == expected


def test_gpt_5_nano_may_read_nothing_of_what_a_call_has_read() -> None:
    """Its machines were seen to differ more often than those of its siblings."""
    rows = [(body(ASK), Usage(2000)), (body(ASK), Usage(80, 1920)), (body(ASK, user(text(90))), Usage(2090))]
    assert [judged("openai", model, *rows)[2].holds for model in ("gpt-5-nano", "gpt-5-mini")] == [True, False]


@pytest.mark.parametrize(("read", "refuted"), [(43, []), (44, []), (45, ["minimum"]), (286, ["minimum"]), (287, [])])
def test_a_read_of_the_hosts_own_text_refutes_no_minimum(read: int, refuted: list[str]) -> None:
    rules = RuleBook().rules("zai", "glm-4.6")
    assert list(find_refuted_claims(rules, Usage(1000, read))) == refuted
