"""Budgets: both sides of every edge, and what makes a baseline say nothing."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.baseline import (
    Baseline,
    baseline_of,
    baseline_text,
    differences,
    read_baseline,
    write_baseline,
)
from cachecost.budget import Verdict, check, exit_code, overall, text_lines, verdict_json
from cachecost.faults import InputError
from cachecost.ledger import CallRow, Comparison, Cost, Ledger, RunResult
from cachecost.providers.usage import Usage
from cachecost.scenario import Scenario, from_mapping

REFUSED = "A maximum of 4 blocks with cache_control may be provided. Found 5."


def row(cost: str, error: str | None = None) -> CallRow:
    usage = Usage() if error else Usage(input_tokens=3, read=1_000, write_5m=200, write_1h=10, output_tokens=7)
    dollars = Cost() if error else Cost(read=Decimal(cost))
    return CallRow(1, 0.0, None, "s", "m", usage, dollars, "hit", {}, {}, error=error)


def ledger(strategy: str, *costs: str, errors: int = 0) -> Ledger:
    rows = [*(row(cost) for cost in costs), *(row("0", REFUSED) for _ in range(errors))]
    return Ledger(strategy, rows, token_source="tiktoken, calibrated", band=0.03)


def result(*ledgers: Ledger) -> RunResult:
    main = Comparison("", "anthropic", "claude-opus-4-6", date(2026, 3, 7), {}, list(ledgers), ledgers[0].strategy)
    dearer = replace(main, variant="another day", ledgers=[ledger(one.strategy, "1000000") for one in ledgers])
    versions = {"cachecost": "0.1.0", "prices": "genai-prices 0.2.3", "rules": "2026-11-21", "tiktoken": "0.9.0"}
    return RunResult("mine", "?", "", "", [main, dearer], [], versions=versions)


def scenario(*budgets: dict[str, Any], strategies: tuple[str, ...] = ("progressive", "none")) -> Scenario:
    value = {
        "format": 1,
        "name": "mine",
        "model": "claude-opus-4-6",
        "conversation": {"synthetic": {}},
        "strategies": list(strategies),
        "budget": list(budgets),
    }
    return from_mapping(value, Path())


def cost_verdict(cost: str, limit: str) -> Verdict:
    (verdict,) = check(
        scenario({"strategy": "progressive", "max_cost_usd": Decimal(limit)}), result(ledger("progressive", cost)), None
    )
    return verdict


def regression_verdict(cost: str, before: str, limit: str) -> Verdict:
    baseline = baseline_of(result(ledger("progressive", before)))
    (verdict,) = check(
        scenario({"strategy": "progressive", "max_regression": limit}), result(ledger("progressive", cost)), baseline
    )
    return verdict


# ---------------------------------------------------------------------------------------------- edges

COSTS = [
    ("39.99", "40", "pass", "progressive costs $39.99; the limit is $40.00."),
    ("40", "40", "pass", "progressive costs $40.00; the limit is $40.00."),
    ("40.00", "40", "pass", "progressive costs $40.00; the limit is $40.00."),
    ("43.1", "40", "fail", "progressive costs $43.10, $3.10 more than the limit of $40.00."),
    (
        "40.0000000001",
        "40",
        "fail",
        "progressive costs $40.0000000001, $0.0000000001 more than the limit of $40.00.",
    ),
    ("39.9999999999", "40", "pass", "progressive costs $39.9999999999; the limit is $40.00."),
    ("0", "0", "pass", "progressive costs $0.00; the limit is $0.00."),
    ("0.59375", "0.59375", "pass", "progressive costs $0.59375; the limit is $0.59375."),
    ("0.5938", "0.59375", "fail", "progressive costs $0.5938, $0.00005 more than the limit of $0.59375."),
    ("0.6", "0.59375", "fail", "progressive costs $0.60, $0.00625 more than the limit of $0.59375."),
]


@pytest.mark.parametrize(("cost", "limit", "state", "message"), COSTS)
def test_a_limit_of_dollars(cost: str, limit: str, state: str, message: str) -> None:
    verdict = cost_verdict(cost, limit)
    assert (verdict.verdict, verdict.message) == (state, message)
    assert (verdict.budget, verdict.limit, verdict.actual) == ("max_cost_usd", Decimal(limit), Decimal(cost))


REGRESSIONS = [
    ("24.10", "24.10", "5%", "pass", "costs $24.10, as in the baseline; the limit is 5 %."),
    ("24.1", "24.10", "0%", "pass", "costs $24.10, as in the baseline; the limit is 0 %."),
    ("26.028", "24.10", "5%", "fail", "costs $26.03, 8 % more than the baseline ($24.10); the limit is 5 %."),
    ("105", "100", "5%", "pass", "costs $105.00, 5 % more than the baseline ($100.00); the limit is 5 %."),
    (
        "105.0000000001",
        "100",
        "5%",
        "fail",
        "costs $105.00, 5.0000000001 % more than the baseline ($100.00); the limit is 5 %.",
    ),
    (
        "104.9999999999",
        "100",
        "5%",
        "pass",
        "costs $105.00, 4.9999999999 % more than the baseline ($100.00); the limit is 5 %.",
    ),
    (
        "0.000000000000000000000000000001000001",
        "0.000000000000000000000000000001",
        "0.0001%",
        "pass",
        "costs $0.000000000000000000000000000001000001, 0.0001 % more than the baseline "
        "($0.000000000000000000000000000001); the limit is 0.0001 %.",
    ),
    ("3.01", "3", "0.33%", "fail", "costs $3.01, 0.333 % more than the baseline ($3.00); the limit is 0.33 %."),
    (
        "100.000001",
        "100",
        "0%",
        "fail",
        "costs $100.000001, 0.000001 % more than the baseline ($100.00); the limit is 0 %.",
    ),
    ("12", "24", "5%", "pass", "costs $12.00, 50 % less than the baseline ($24.00); the limit is 5 %."),
    ("0", "24", "5%", "pass", "costs $0.00, 100 % less than the baseline ($24.00); the limit is 5 %."),
    ("0", "0", "0%", "pass", "costs $0.00, as in the baseline; the limit is 0 %."),
    ("0.01", "0", "500%", "fail", "costs $0.01, and nothing in the baseline; the limit is 500 %."),
]


@pytest.mark.parametrize(("cost", "before", "limit", "state", "message"), REGRESSIONS)
def test_a_limit_of_regression(cost: str, before: str, limit: str, state: str, message: str) -> None:
    verdict = regression_verdict(cost, before, limit)
    assert (verdict.verdict, verdict.message) == (state, f"progressive {message}")


money = st.decimals("0.000001", "10000", places=6)


@given(money, money, st.integers(0, 2_000))
def test_regression_is_the_exact_share(now: Decimal, before: Decimal, hundredths: int) -> None:
    limit = f"{Decimal(hundredths) / 100:f}%"
    broken = int(now * 10**6) * 10_000 > int(before * 10**6) * (10_000 + hundredths)
    verdict = regression_verdict(str(now), str(before), limit)
    assert verdict.verdict == ("fail" if broken else "pass")
    assert verdict.actual is not None
    assert abs(verdict.actual * before - (now - before)) < Decimal("1e-20")


def test_a_budget_without_a_strategy_holds_each(tmp_path: Path) -> None:
    both = result(ledger("progressive", "3"), ledger("none", "5"))
    verdicts = check(
        scenario({"max_cost_usd": 4, "max_regression": "0%"}, {"max_cost_usd": 5}), both, baseline_of(both)
    )
    assert [(verdict.strategy, verdict.budget, verdict.verdict) for verdict in verdicts] == [
        ("progressive", "max_cost_usd", "pass"),
        ("progressive", "max_regression", "pass"),
        ("none", "max_cost_usd", "fail"),
        ("none", "max_regression", "pass"),
        ("progressive", "max_cost_usd", "pass"),
        ("none", "max_cost_usd", "pass"),
    ]


def test_all_calls_are_summed() -> None:
    verdicts = check(scenario({"max_cost_usd": 3}), result(ledger("progressive", "1", "1", "1.01")), None)
    assert [verdict.actual for verdict in verdicts] == [Decimal("3.01")]


def test_a_strategy_that_was_not_run_is_no_pass() -> None:
    with pytest.raises(ValueError, match=r"budget.strategy='none': the result has no such strategy"):
        check(scenario({"strategy": "none", "max_cost_usd": 3}), result(ledger("progressive", "1")), None)


# ------------------------------------------------------------------------------------- not comparable

LEAD = "progressive is not comparable with its baseline, whatever became of the prompts: "
OTHER_STATES: list[tuple[dict[str, Any], str]] = [
    ({"as_of": "2026-03-08"}, LEAD + "as_of 2026-03-08, now 2026-03-07."),
    ({"model": "claude-opus-4-5"}, LEAD + "model claude-opus-4-5, now claude-opus-4-6."),
    ({"host": "bedrock"}, LEAD + "host bedrock, now anthropic."),
    ({"rules": {"ttl_in_key": "true"}}, LEAD + "ttl_in_key true, now at its default."),
    (
        {"versions": {"cachecost": "0.0.9", "rules": "2026-08-22", "prices": "genai-prices 0.2.3"}},
        LEAD + "rules 2026-08-22, now 2026-11-21.",
    ),
    (
        {"versions": {"rules": "2026-08-22", "prices": "genai-prices 0.2.2"}},
        LEAD + "prices genai-prices 0.2.2, now genai-prices 0.2.3; rules 2026-08-22, now 2026-11-21.",
    ),
    ({"versions": {"rules": "2026-11-21"}}, LEAD + "prices unknown, now genai-prices 0.2.3."),
    ({"strategies": {}}, "progressive is not in the baseline."),
]


@pytest.mark.parametrize(("other", "message"), OTHER_STATES)
def test_what_else_changed_makes_a_baseline_not_comparable(other: dict[str, Any], message: str) -> None:
    now = result(ledger("progressive", "24.10"))
    baseline = baseline_of(now).model_copy(update=other)
    verdicts = check(scenario({"max_regression": "5%", "max_cost_usd": 30}), now, baseline)
    assert [(verdict.verdict, verdict.actual) for verdict in verdicts] == [
        ("pass", Decimal("24.10")),
        ("not_comparable", None),
    ]
    assert verdicts[1].message == message
    assert exit_code(verdicts) == 3


SAME_STATES: list[dict[str, Any]] = [
    {},
    {"versions": {"cachecost": "9.9", "rules": "2026-11-21", "prices": "genai-prices 0.2.3", "tiktoken": "1.0"}},
    {"scenario": "its old name"},
]


@pytest.mark.parametrize("other", SAME_STATES)
def test_what_does_not_make_it_so(other: dict[str, Any]) -> None:
    now = result(ledger("progressive", "24.10"))
    baseline = baseline_of(now).model_copy(update=other)
    assert differences(baseline, now) == []
    assert exit_code(check(scenario({"max_regression": "5%"}), now, baseline)) == 0


def test_another_way_to_count_tokens_is_not_comparable() -> None:
    now = result(replace(ledger("progressive", "24.10"), token_source="UTF-8 bytes"))
    (verdict,) = check(scenario({"max_regression": "5%"}), now, baseline_of(result(ledger("progressive", "24.10"))))
    assert verdict.message == LEAD + "tokens by tiktoken, calibrated, now by UTF-8 bytes."


def test_no_baseline() -> None:
    (verdict,) = check(scenario({"max_regression": "5%"}), result(ledger("progressive", "24.10")), None)
    assert (verdict.verdict, verdict.message) == ("not_comparable", "progressive has no baseline to be compared with.")


def test_dollars_that_leave_out_refused_calls_say_nothing() -> None:
    now = result(ledger("progressive", "1", errors=2))
    before = baseline_of(result(ledger("progressive", "1")))
    verdicts = check(scenario({"max_cost_usd": 30, "max_regression": "5%"}), now, before)
    told = f"progressive has 2 of 3 calls without a cost, so its dollars say nothing: {REFUSED}"
    assert [(verdict.verdict, verdict.message) for verdict in verdicts] == [("not_comparable", told)] * 2


def test_as_many_refused_calls_as_before_can_be_compared() -> None:
    before = baseline_of(result(ledger("progressive", "1", errors=2)))
    (verdict,) = check(scenario({"max_regression": "5%"}), result(ledger("progressive", "1.2", errors=2)), before)
    assert verdict.verdict == "fail"


def test_a_strategy_without_calls_is_no_pass() -> None:
    empty = result(ledger("progressive"))
    verdicts = check(scenario({"max_cost_usd": 30, "max_regression": "5%"}), empty, baseline_of(empty))
    told = ("not_comparable", "progressive makes no call, so it has no cost.")
    assert [(verdict.verdict, verdict.message) for verdict in verdicts] == [told] * 2


# --------------------------------------------------------------------------------- verdicts as output


def verdict(state: Any, budget: str = "max_regression", name: str = "mine") -> Verdict:
    return Verdict(name, "progressive", budget, Decimal("0.050"), None, state, f"progressive is {state}.")


EXITS: list[tuple[list[str], str, int]] = [
    ([], "pass", 0),
    (["pass"], "pass", 0),
    (["pass", "not_comparable"], "not_comparable", 3),
    (["fail", "pass"], "fail", 1),
    (["not_comparable", "fail"], "fail", 1),
]


@pytest.mark.parametrize(("states", "whole", "code"), EXITS)
def test_the_exit_code_is_that_of_the_worst(states: list[str], whole: str, code: int) -> None:
    verdicts = [verdict(state) for state in states]
    assert (overall(verdicts), exit_code(verdicts)) == (whole, code)


def test_json_as_in_the_contract() -> None:
    now = result(ledger("progressive", "24.10"))
    told = verdict_json(check(scenario({"max_cost_usd": 20, "max_regression": "5.0%"}), now, None))
    assert told == {
        "format": 1,
        "verdict": "fail",
        "budgets": [
            {
                "scenario": "mine",
                "strategy": "progressive",
                "budget": "max_cost_usd",
                "limit": "20",
                "actual": "24.1",
                "verdict": "fail",
                "message": "progressive costs $24.10, $4.10 more than the limit of $20.00.",
            },
            {
                "scenario": "mine",
                "strategy": "progressive",
                "budget": "max_regression",
                "limit": "0.05",
                "actual": None,
                "verdict": "not_comparable",
                "message": "progressive has no baseline to be compared with.",
            },
        ],
    }
    assert json.loads(json.dumps(told)) == told


def test_what_broke_is_told_first_and_how_to_accept_it_last() -> None:
    verdicts = [verdict("pass"), verdict("not_comparable"), verdict("fail"), verdict("fail", "max_cost_usd", "other")]
    paths = {"mine": "scenarios/mine.yaml", "other": "scenarios/other.yaml"}
    assert text_lines(verdicts, paths) == [
        "✗ mine: progressive is fail.",
        "✗ other: progressive is fail.",
        "? mine: progressive is not_comparable.",
        "✓ mine: progressive is pass.",
        "  accept it with: cachecost check --update scenarios/mine.yaml",
    ]
    assert text_lines(verdicts[:1], paths) == ["✓ mine: progressive is pass."]
    assert text_lines([]) == ["No budget is set, so nothing was checked."]


# ------------------------------------------------------------------------------------------- the file

BASELINE = """\
{
  "as_of": "2026-03-07",
  "format": 1,
  "host": "anthropic",
  "model": "claude-opus-4-6",
  "rules": {},
  "scenario": "mine",
  "strategies": {
    "none": {
      "cache_read_input_tokens": 1000,
      "calls": 1,
      "cost_usd": "5",
      "ephemeral_1h_input_tokens": 10,
      "ephemeral_5m_input_tokens": 200,
      "errors": 0,
      "input_tokens": 3,
      "output_tokens": 7,
      "tokens": "tiktoken, calibrated"
    },
    "progressive": {
      "cache_read_input_tokens": 2000,
      "calls": 3,
      "cost_usd": "24.1",
      "ephemeral_1h_input_tokens": 20,
      "ephemeral_5m_input_tokens": 400,
      "errors": 1,
      "input_tokens": 6,
      "output_tokens": 14,
      "tokens": "tiktoken, calibrated"
    }
  },
  "versions": {
    "cachecost": "0.1.0",
    "prices": "genai-prices 0.2.3",
    "rules": "2026-11-21",
    "tiktoken": "0.9.0"
  }
}
"""


def test_a_baseline_is_a_number_a_line_whatever_the_order(tmp_path: Path) -> None:
    ledgers = [ledger("progressive", "24", "0.10", errors=1), ledger("none", "5.00")]
    for order in (ledgers, ledgers[::-1]):
        baseline = baseline_of(result(*order))
        assert baseline_text(baseline) == BASELINE
        write_baseline(tmp_path / "reports" / "mine" / "baseline.json", baseline)
        assert read_baseline(tmp_path / "reports" / "mine" / "baseline.json") == baseline
    assert [path.name for path in (tmp_path / "reports" / "mine").iterdir()] == ["baseline.json"]
    assert json.loads(BASELINE)["strategies"]["none"]["cost_usd"] == "5"


def test_no_file_is_no_baseline(tmp_path: Path) -> None:
    assert read_baseline(tmp_path / "baseline.json") is None


COST = 'strategies.progressive.cost_usd: expected dollars as text, like "24.1"; got'
BROKEN = [
    ("{", "1:2 not valid YAML: expected the node content, but found '<stream end>'"),
    ("", "1:1 expected a mapping; got an empty file"),
    ("[]", "1:1 expected a mapping; got a list of 0"),
    (BASELINE.replace('"24.1"', "24.1"), f"23:7 {COST} 24.1"),
    (BASELINE.replace('"24.1"', '"-1"'), f"23:7 {COST} '-1'"),
    (BASELINE.replace('"24.1"', '"NaN"'), f"23:7 {COST} 'NaN'"),
    (BASELINE.replace('"calls": 3', '"calls": -3'), "22:7 strategies.progressive.calls: expected at least 0; got -3"),
    (BASELINE.replace('"format": 1', '"format": 2'), "3:3 format: expected 1; got 2"),
    (BASELINE.replace('"rules": {}', '"rules": {}, "rulse": {}'), "6:16 rulse: unknown key (did you mean 'rules'?)"),
    (
        BASELINE.replace('      "input_tokens": 3,\n', ""),
        "9:5 strategies.none.input_tokens: expected a whole number; got nothing",
    ),
    (BASELINE.replace('"rules": {}', '"rules": {}, "rules": {}'), "6:16 rules: given twice; first in line 6"),
]


@pytest.mark.parametrize(("text", "fault"), BROKEN)
def test_a_damaged_baseline_is_faults_with_their_lines(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_baseline(path)
    assert str(raised.value) == f"{path}:{fault}"


def test_all_faults_of_a_baseline_at_once(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(
        BASELINE.replace('"format": 1', '"format": 2').replace('"calls": 3', '"calls": "3"')
    )
    with pytest.raises(InputError) as raised:
        read_baseline(tmp_path / "b.json")
    assert len(raised.value.faults) == 2


@pytest.mark.parametrize("blocked", ["reports", "reports/mine"])
def test_a_folder_that_cannot_be_written_is_a_fault_and_leaves_nothing(tmp_path: Path, blocked: str) -> None:
    (tmp_path / blocked).parent.mkdir(exist_ok=True)
    (tmp_path / blocked).write_text("in the way")
    path = tmp_path / "reports" / "mine" / "baseline.json"
    with pytest.raises(InputError, match=r"baseline.json cannot be written: (Not a directory|File exists)"):
        write_baseline(path, baseline_of(result(ledger("progressive", "1"))))
    assert (tmp_path / blocked).read_text() == "in the way"


def test_a_write_that_breaks_off_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "baseline.json"
    old = baseline_of(result(ledger("progressive", "1")))
    write_baseline(path, old)

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match=r"cannot be written: No space left on device"):
        write_baseline(path, baseline_of(result(ledger("progressive", "2"))))
    assert read_baseline(path) == old
    assert [found.name for found in tmp_path.iterdir()] == ["baseline.json"]


def test_a_baseline_written_by_hand_is_one(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(BASELINE.replace('"24.1"', '"24.10"'))
    baseline = read_baseline(tmp_path / "b.json")
    assert isinstance(baseline, Baseline)
    assert baseline_text(baseline) == BASELINE


def test_limits_that_hold_are_counted_not_listed() -> None:
    verdicts = [verdict("pass"), verdict("pass", "max_cost_usd"), verdict("pass", "max_cost_usd", "other")]
    assert text_lines(verdicts) == ["✓ mine: 2 limits hold.", "✓ other: progressive is pass."]
