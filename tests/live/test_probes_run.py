"""Plans, faults on the way, and the rules file: what was found is kept, what is missing is said."""

from __future__ import annotations

import asyncio
import json
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from probe_bench import DAY, PRICES, FakeClock, SimulatedSender, fault_over_budget, tried

from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.live.driver.budget import CallFailed, OverBilled
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.hosts import catalogue
from cachecost.providers.rules import RuleBook, own_rules
from tools.probes import ProbeFinding, plan, rules_text, select_probes, summary, write
from tools.probes import harness as bench
from tools.probes.harness import ProbeRun, ask_repeatedly, combine_rounds
from tools.probes.model import RoundResult, Unsettled

NAMES = (
    "minimum",
    "tool_choice_invalidation",
    "thinking_rendered_at",
    "structured_output_at",
    "effort",
    "ttl_in_key",
    "lookback",
    "lookback_runs",
    "visibility_lag_s",
    "ttl",
    "shallow_breakpoints",
)


def test_all_are_run_in_order_where_none_is_named() -> None:
    assert tuple(probe.name for probe in select_probes()) == NAMES
    assert [probe.name for probe in select_probes(["ttl", "minimum"])] == ["minimum", "ttl"]


def test_every_unknown_probe_is_a_fault() -> None:
    with pytest.raises(InputError) as told:
        select_probes(["tll", "minimum", "what"])
    known = ", ".join(NAMES)
    assert str(told.value) == (
        f"--probe expected one of {known}; got 'tll' (did you mean 'ttl'?)\n--probe expected one of {known}; got 'what'"
    )


def test_the_plan_tells_calls_tokens_dollars_and_waiting() -> None:
    (priced,) = plan("claude-opus-5-5", PRICES, RuleBook(), select_probes(["ttl_in_key"]), day=DAY)
    assert (priced.calls, priced.input_tokens, priced.output_tokens, priced.wait_s) == (18, 18 * 912, 18, 60.0)
    assert priced.dollars == (Decimal(18 * 912) * 8 + 18 * 20) / 10**6
    assert priced.announcement == "ttl_in_key: at most 18 calls, 16,416 input tokens, $0.1317, 60 s of waiting"
    assert summary([priced, priced]) == "2 probes: at most 36 calls and $0.26, 2 min of waiting"


def test_a_model_is_called_as_it_was_asked_for() -> None:
    run = tried("ttl_in_key", model="claude-sonnet-4.6")
    assert {body["model"] for body in run.sender.bodies} == {"claude-sonnet-4.6"}


def test_a_model_that_nobody_knows_is_told_before_anything_is_sent() -> None:
    with pytest.raises(CannotEvaluate, match=r"unknown model 'claude-opus-9'"):
        plan("claude-opus-9", PRICES, RuleBook(), select_probes())


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-8", "claude-fable-5-2", "claude-haiku-5-5"])
def test_all_probes_of_a_model_keep_to_their_plan(model: str) -> None:
    run = tried(model=model)
    assert [finding.probe for finding in run.findings] == list(NAMES)
    open_questions = [finding.probe for finding in run.findings if finding.value is None]
    refused = {
        "claude-sonnet-4-5": ["effort"],
        "claude-fable-5-2": ["tool_choice_invalidation", "thinking_rendered_at"],
    }
    assert open_questions == refused.get(model, [])


def test_every_body_is_small_and_asks_for_one_token() -> None:
    run = tried()
    assert {body["max_tokens"] for body in run.sender.bodies} == {1}
    assert {body["model"] for body in run.sender.bodies} == {"claude-sonnet-4-6"}


def test_every_prompt_that_is_written_anew_has_the_nonce() -> None:
    run = tried()
    assert all("Run 5f1d, " in json.dumps(body) for body in run.sender.bodies)


def test_a_run_is_not_helped_by_an_earlier_one() -> None:
    probes = plan("claude-sonnet-4-6", PRICES, RuleBook(), select_probes(["ttl_in_key"]), day=DAY)
    clock = FakeClock()
    sender = SimulatedSender(clock, RuleBook())

    async def twice() -> list[Any]:
        from tools.probes import verify

        return [await verify(sender, "claude-sonnet-4-6", clock, probes, nonce) for nonce in ("aaaa", "bbbb", "aaaa")]

    first, other, again = asyncio.run(twice())
    assert [taken.usage for taken in other[0].calls] == [taken.usage for taken in first[0].calls]
    assert again[0].calls[0].usage.read > 0


def test_what_was_found_before_the_budget_ran_out_is_kept() -> None:
    run = tried(faults={6: fault_over_budget()})
    minimum, choice, *others = run.findings
    assert minimum.value == 1024
    assert (choice.value, choice.explanation) == (None, "stopped: the next call could cost $0.02; $0.01 is left")
    assert len(choice.calls) == 1
    assert {finding.explanation for finding in others} == {"not run: the budget was exhausted"}
    assert len(run.said) == len(NAMES)


def test_a_call_that_fails_for_good_ends_the_run() -> None:
    run = tried(faults={5: CallFailed("overloaded, 5 attempts", 529, "overloaded_error")})
    assert run.findings[1].explanation == "stopped: overloaded, 5 attempts"
    assert {finding.explanation for finding in run.findings[2:]} == {"not run: a call failed"}
    assert len(run.sender.bodies) == 5


def test_a_refused_body_ends_one_probe_only() -> None:
    run = tried(refuses=lambda body: any("toolu_" in str(message) for message in body["messages"]))
    assert run["lookback_runs"].explanation == "stopped: refused"
    assert [finding.probe for finding in run.findings if finding.value is None] == ["lookback_runs"]


def test_bills_above_what_was_priced_end_a_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "MARGIN", 10_000)
    found = tried("ttl_in_key")["ttl_in_key"]
    assert (found.value, len(found.calls)) == (None, 2)
    assert found.explanation == "it would exceed the 18 calls and the tokens that were priced"


@pytest.mark.parametrize(
    ("values", "answer", "rounds"),
    [
        ("aab", "a", 2),
        ("aba", "a", 3),
        ("baa", "a", 3),
        ("abc", None, 3),
        ("-aa", "a", 3),
        ("a-a", "a", 3),
        ("--a", None, 2),
        ("a--", None, 3),
        (".aa", None, 1),
    ],
)
def test_two_rounds_must_agree(values: str, answer: str | None, rounds: int) -> None:
    left = iter(values)

    async def once(bench: ProbeRun) -> RoundResult:
        value = next(left)
        if value == "-":
            raise Unsettled("lost on the way")
        return RoundResult(None, "told", is_final=True) if value == "." else RoundResult(value, value)

    found = asyncio.run(ask_repeatedly(None, once))  # type: ignore[arg-type]
    assert (found.value, found.rounds) == (answer, rounds)


def test_rounds_that_differ_are_all_told() -> None:
    found = combine_rounds(
        [RoundResult("a", "reads all"), RoundResult("b", "reads nothing"), RoundResult(None, "lost")]
    )
    assert found.explanation == "reads all; another round: reads nothing; another round: lost"


def test_a_finding_is_said_as_it_comes() -> None:
    run = tried("ttl_in_key", "minimum")
    assert run.said == [finding.line for finding in run.findings]
    assert run.said[1] == (
        "ttl_in_key: false (2 of 2 rounds), 12 calls, $0.0265: written with 5m, a 1h breakpoint reads 1150; "
        "written with 1h, a 5m breakpoint reads 1150"
    )


def test_a_finding_is_kept_as_it_comes() -> None:
    kept: list[ProbeFinding] = []
    run = tried("ttl_in_key", "minimum", keep=kept.append)
    assert kept == run.findings


def test_a_bill_above_all_that_was_possible_ends_the_run() -> None:
    run = tried(faults={5: OverBilled("billed $1.00, at most $0.02 was possible")})
    assert run.findings[1].explanation == "stopped: billed $1.00, at most $0.02 was possible"
    assert {one.explanation for one in run.findings[2:]} == {"not run: a bill exceeded its upper bound"}


def test_the_file_is_read_by_every_command(tmp_path: Path) -> None:
    run = tried(assumptions={"ttl_in_key": True, "shallow_breakpoints": "ignore"}, minimum_tokens=700)
    path = tmp_path / "deep" / "rules.toml"
    write(run.findings, path, DAY)
    read = own_rules(path)
    assert assumptions_from(read.assumptions).ttl_in_key is True
    assert read.assumptions == {
        "tool_choice_invalidation": "rendered_class",
        "thinking_rendered_at": "messages",
        "structured_output_at": "system",
        "lookback_runs": "collapsed",
        "shallow_breakpoints": "ignore",
        "ttl_in_key": True,
    }
    model = catalogue("anthropic").model("claude-sonnet-4-6")
    assert read.values("anthropic", model, DAY) == {"minimum_tokens": 700}
    assert [one.name for one in path.parent.iterdir()] == ["rules.toml"]


def test_what_is_not_settled_is_evidence_and_no_reading() -> None:
    run = tried(model="claude-opus-5-5", faults={10: fault_over_budget()})
    told = tomllib.loads(rules_text(run.findings, DAY))
    assert told["assumptions"] == {}
    assert [row["value"] for row in told["minimum_tokens"]] == [512]
    assert [row["probe"] for row in told["evidence"]] == list(NAMES)
    assert [row["verdict"] for row in told["evidence"]] == ["512", *["not settled"] * 10]
    assert told["evidence"][-1]["told"] == "not run: the budget was exhausted"


def test_the_file_holds_numbers_and_nothing_that_was_sent() -> None:
    run = tried("ttl_in_key")
    text = rules_text(run.findings, DAY)
    assert "river" not in text
    evidence = tomllib.loads(text)["evidence"][0]
    usage = run.findings[0].calls[0].usage
    assert evidence["billed"][0] == [0.0, usage.input_tokens, 0, usage.write_5m, 0, 1]
    assert len(evidence["billed"]) == evidence["calls"] == 12


def test_the_file_as_it_stands() -> None:
    text = rules_text(tried("ttl_in_key", faults={3: fault_over_budget()}).findings, DAY)
    assert text == FILE


FILE = """\
# Cache behavior measured on 2026-11-22 by python -m tools.probes. Any command reads it with --rules FILE.
# [assumptions] and [[minimum_tokens]] hold what is settled; [[evidence]] lists every question.

[data]
host = "anthropic"
date = 2026-11-22
model = "claude-sonnet-4-6"
run = "5f1d"
source = "python -m tools.probes, 2 calls, run 5f1d"

[assumptions]

[[evidence]]
probe = "ttl_in_key"
model = "claude-sonnet-4-6"
question = "can an entry written with one TTL be read by a breakpoint with the other?"
verdict = "not settled"
agreed = 0
rounds = 0
calls = 2
dollars = "0.0048795"
told = "stopped: the next call could cost $0.02; $0.01 is left"
billed = [  # start (s since the first call), input, read, write 5m, write 1h, output
  [0.0, 32, 0, 1150, 0, 1],
  [6.5, 32, 1150, 0, 0, 1],
]
"""
