"""What a run says first: in few words, of every seed, with the error, and with the command that was typed."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from case_files import Run, json_of

from cachecost.analysis.comparison.run import run
from cachecost.base.errors import InputError
from cachecost.scenario import from_mapping
from cachecost.scenario.models import MOST_WORDS, fits_verdict
from slow_cases import mostly_slow

CASE = "51-one-seed"
SMALL: dict[str, Any] = {
    "format": 1,
    "name": "small",
    "model": "claude-sonnet-4-6",
    "tokens": "bytes",
    "conversation": {"synthetic": {"turns": 2, "calls": 3, "inquiries": {"rate": 1}}},
    "strategies": [
        {"name": "schema", "preset": "structured output, same tools"},
        {"name": "tool", "preset": "answer tool, auto", "inquiry": {"retry_rate": 0}},
    ],
}


@pytest.mark.slow
def test_the_spread_of_five_seeds_is_beside_the_margin_and_the_winner_is_counted(run_case: Run) -> None:
    parsed = json_of(run_case(CASE, "run", "agent.yaml", "--json", "--no-report"))
    assert [one["seed"] for one in parsed["seeds"]] == [2, 3, 4, 5]
    for each in parsed["seeds"]:
        seed = ("--set", f"conversation.synthetic.seed={each['seed']}")
        alone = json_of(run_case(CASE, "run", "agent.yaml", "--json", "--no-report", *seed))
        costs_alone = {one["name"]: one["cost_usd"] for one in alone["strategies"]}
        assert {one["name"]: one["cost_usd"] for one in each["strategies"]} == costs_alone
    assert parsed["verdict"].endswith("It wins in all five seeds.")
    costs = [Decimal(each["strategies"][0]["cost_usd"]) for each in [parsed, *parsed["seeds"]]]
    printed = run_case(CASE, "run", "agent.yaml").stdout
    assert f"“structured, 5m” costs ${min(costs):.2f} to ${max(costs):.2f}" in " ".join(printed.split())
    assert (round(min(costs), 1), round(max(costs), 1)) == (Decimal("3.7"), Decimal("8.3"))


def test_a_seed_in_which_another_one_wins_is_not_hidden() -> None:
    drawn = {"synthetic": {"turns": 1, "calls": {"choices": [2, 30]}, "tools": 1, "pauses": {"loop": [1, 590]}}}
    arms = [{"name": ttl, "breakpoints": ["last_message"], "ttl": ttl} for ttl in ("5m", "1h")]
    result = run(from_mapping({**SMALL, "conversation": drawn, "strategies": arms}, Path()), Path())
    winners = {result.main.best.strategy, *(each.best.strategy for each in result.seeds)}
    seed = next(one for one in result.assumptions if one.name == "Seed of the synthetic conversation")
    assert seed.changes is (len(winners) > 1)
    assert len(winners) == 1 or " of five seeds" in result.verdict


@pytest.mark.parametrize(
    ("synthetic", "seeds"),
    [
        ({}, 0),
        ({"calls": [2, 4]}, 4),
        ({"tools": {"mean": 2, "sd": 1}}, 4),
        ({"sizes": {"tool_result": [100, 900]}}, 4),
        ({"pauses": {"turn": {"choices": [60, 900]}}}, 4),
        ({"inquiries": {"rate": 0.5}}, 4),
        ({"inquiries": {"rate": 1, "batch": [1, 3]}}, 4),
        ({"forks": {"after": [1]}}, 0),
        ({"forks": {"rate": 0.5}}, 4),
        ({"seed": 3, "calls": [2, 4]}, 4),
    ],
)
def test_seeds_are_tried_where_a_number_is_drawn(synthetic: dict[str, Any], seeds: int) -> None:
    conversation = {"synthetic": {**SMALL["conversation"]["synthetic"], **synthetic}}
    result = run(from_mapping({**SMALL, "conversation": conversation}, Path()), Path())
    assert len(result.seeds) == seeds
    assert len({each.variant for each in result.seeds}) == seeds
    assert ("seeds" in result.verdict) is bool(seeds)


@pytest.mark.parametrize("path", mostly_slow(["sub/my agent.yaml", "agent.yaml", "./agent.yaml"], 1))
def test_run_it_again_is_what_was_typed(run_case: Run, tmp_path: Path, path: str) -> None:
    run_case(CASE, "run", "agent.yaml", "--no-report")
    folder = tmp_path / CASE
    (folder / "sub").mkdir()
    (folder / "sub" / "my agent.yaml").write_bytes((folder / "agent.yaml").read_bytes())
    done = run_case(CASE, "run", path, "--set", "conversation.synthetic.turns=1", "--out", "here")
    assert done.returncode == 0, done.stderr
    page = (folder / "here" / "report.md").read_text(encoding="utf-8")
    quoted = f"'{path}'" if " " in path else path.removeprefix("./")
    assert f"\ncachecost run {quoted} --set conversation.synthetic.turns=1\n" in page


def concluded(say: str, *holds: str, **more: Any) -> str:
    return run(
        from_mapping({**SMALL, "conclusion": [{"say": say, "holds": list(holds)}], **more}, Path()), Path()
    ).verdict


def test_a_conclusion_is_said_where_it_holds_and_nowhere_else() -> None:
    say = "Use the tool: {question: tool} a question, {cost: tool} in all."
    right = concluded(say, "tool < schema", "schema >= tool")
    assert right.startswith("Use the tool: $0.0") and right.count("$") == 2
    for wrong in ("tool > schema", "tool = schema", "tool >= schema"):
        assert concluded(say, wrong).startswith("A question costs $")
    variants = [{"name": "long", "conversation": {"synthetic": {"turns": 9}}}]
    assert concluded(say, "long | tool < schema", variants=variants) == right
    assert concluded(say, "long | tool > schema", variants=variants) != right
    no_variants = concluded(say, "long | tool < schema", variants=[])
    assert no_variants.startswith("A question costs $"), "as under --set variants=[]"


@pytest.mark.parametrize(
    ("conclusion", "fault"),
    [
        ({"say": "{cost: nobody}", "holds": ["tool < schema"]}, "conclusion[0].say"),
        ({"say": "x", "holds": ["tool < nobody"]}, "conclusion[0].holds[0]"),
        ({"say": "x", "holds": ["late | tool < schema"]}, "conclusion[0].holds[0]"),
        ({"say": "x", "holds": ["long | tool < schemas"]}, "conclusion[0].holds[0]"),
        ({"say": "x", "holds": ["tool is cheap"]}, "conclusion[0]"),
        ({"say": "x", "holds": []}, "conclusion[0].holds"),
        ({"say": "x"}, "conclusion[0].holds"),
        ({"say": " ".join(["word"] * 41), "holds": ["tool < schema"]}, "conclusion[0]"),
        ({"say": "1, 2 and 3", "holds": ["tool < schema"]}, "conclusion[0]"),
    ],
)
def test_a_conclusion_that_cannot_be_is_an_error(conclusion: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError, match="conclusion") as raised:
        from_mapping({**SMALL, "conclusion": [conclusion], "variants": [{"name": "long"}]}, Path())
    assert any(one.message.startswith(fault) for one in raised.value.faults), raised.value.faults


@pytest.mark.parametrize("count", [2, 3, 9])
@pytest.mark.parametrize("about", [0, 2])
@pytest.mark.parametrize("name", ["a", "a very long name of a strategy, with its options and why"])
def test_a_verdict_is_never_longer(count: int, about: int, name: str) -> None:
    arms = [
        {"name": f"{name} {number}", "preset": "answer tool, auto", "inquiry": {"retry_rate": number / 10}}
        for number in range(count)
    ]
    variants = [{"name": f"turns {turns}", "conversation": {"synthetic": {"turns": turns}}} for turns in (1, 3)]
    names = [arm["name"] for arm in arms[:about]]
    scenario = {**SMALL, "strategies": arms, "variants": variants, "question_about": names}
    verdict = run(from_mapping(scenario, Path()), Path()).verdict
    assert fits_verdict(verdict) and len(verdict.split()) <= MOST_WORDS
    assert not fits_verdict(f"{verdict} 1 2 3")
