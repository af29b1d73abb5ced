"""The pytest plugin: which tests it makes of scenarios, what they say, and that it costs nothing where nobody asks."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree as ET

import anthropic  # noqa: F401
import pytest
import yaml  # noqa: F401

# pytester forgets what a run imported: what is imported here is not imported anew by every run
import cachecost.budgets.check
import cachecost.testing.scenarios  # noqa: F401

pytest_plugins = ["pytester"]
SCENARIO = """
format: 1
name: mine
question: Which is cheaper?
as_of: 2026-11-09
model: claude-sonnet-5-5
tokens: tiktoken
conversation:
  synthetic: {seed: 1, turns: 2, calls: 3}
  head: {tools: {count: 3, tokens: 2_000}, system: {tokens: 1_000}}
strategies: [automatic, none]
"""
NOTHING_MORE = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:anyio")
HEAVY = ("cachecost.cli", "cachecost.testing", "cachecost.scenario", "pydantic", "numpy", "httpx2", "anthropic")


def plugin() -> tuple[str, ...]:
    """What loads the plugin where the installed package does not tell of it itself."""
    known = {one.value for one in entry_points(group="pytest11")}
    return () if "cachecost.pytest_plugin" in known else ("-p", "cachecost.pytest_plugin")


def scenario(pytester: pytest.Pytester, budget: str = "", name: str = "mine", folder: str = "scenarios") -> Path:
    place = pytester.path / folder / f"{name}.yaml"
    place.parent.mkdir(exist_ok=True)
    place.write_text(SCENARIO.replace("name: mine", f"name: {name}") + budget)
    return place


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*NOTHING_MORE, *plugin(), *args)


def test_each_budget_is_a_test(pytester: pytest.Pytester) -> None:
    scenario(
        pytester, "budget:\n  - {strategy: automatic, max_cost_usd: 9}\n  - {max_cost_usd: 9, max_breakpoints: 4}\n"
    )
    scenario(pytester, name="other")
    pytester.makepyfile("def test_own(): pass")
    result = run(pytester, "--cachecost", "-v")
    result.assert_outcomes(passed=5)
    names = [line.split(" PASSED")[0] for line in result.outlines if " PASSED" in line]
    assert sorted(names) == [
        "scenarios/mine.yaml::automatic: max_cost_usd",
        "scenarios/mine.yaml::max_breakpoints",
        "scenarios/mine.yaml::max_cost_usd",
        "scenarios/other.yaml::runs",
        "test_each_budget_is_a_test.py::test_own",
    ]
    assert "cachecost: 2 scenarios in scenarios, baselines in reports" in result.outlines


@pytest.mark.parametrize(("limit", "outcome"), [("9", "passed"), ("0.0001", "failed")])
def test_a_budget_has_two_sides(pytester: pytest.Pytester, limit: str, outcome: str) -> None:
    scenario(pytester, f"budget: {{strategy: automatic, max_cost_usd: {limit}}}\n")
    result = run(pytester, "--cachecost")
    result.assert_outcomes(**{outcome: 1})
    assert result.ret == (0 if outcome == "passed" else 1)


def test_a_broken_budget_is_told_in_the_sentences_of_check(pytester: pytest.Pytester) -> None:
    scenario(pytester, "budget: {strategy: automatic, max_cost_usd: 0.0001}\n")
    result = run(pytester, "--cachecost")
    result.stdout.re_match_lines(
        [r"_+ mine: automatic: max_cost_usd _+", r"✗ mine: automatic costs \$0\.\d+, \$0\.\d+ more than the limit of"]
    )
    assert "Traceback" not in result.stdout.str()
    assert ".py:" not in result.stdout.str()


def test_junit_has_an_entry_a_budget(pytester: pytest.Pytester) -> None:
    scenario(pytester, "budget: [{strategy: automatic, max_cost_usd: 9}, {strategy: none, max_cost_usd: 0.0001}]\n")
    run(pytester, "--cachecost", "--junitxml=junit.xml")
    cases = ET.parse(pytester.path / "junit.xml").getroot().findall(".//testcase")
    assert [(case.get("classname"), case.get("name")) for case in cases] == [
        ("scenarios.mine.yaml", "automatic: max_cost_usd"),
        ("scenarios.mine.yaml", "none: max_cost_usd"),
    ]
    properties = [(one.get("name"), one.get("value") or "") for one in cases[0].findall(".//property")]
    assert properties[0][0] == "automatic: max_cost_usd"
    assert properties[0][1].endswith("; the limit is $9.00.")
    failures = [case.find("failure") for case in cases]
    assert failures[0] is None
    assert failures[1] is not None
    assert (failures[1].text or "").startswith("✗ mine: none costs $0.")


def test_without_a_baseline_nothing_is_guarded_and_update_writes_it(pytester: pytest.Pytester) -> None:
    scenario(pytester, "budget: {strategy: automatic, max_regression: 5%}\n")
    baseline = pytester.path / "reports" / "mine" / "baseline.json"
    result = run(pytester, "--cachecost")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["[?] mine: automatic has no baseline*", "  accept it with: cachecost check --update scenarios/mine.yaml"]
    )
    assert not baseline.exists()
    run(pytester, "--cachecost", "--cachecost-update").assert_outcomes(passed=1)
    written = baseline.read_bytes()
    run(pytester, "--cachecost").assert_outcomes(passed=1)
    assert baseline.read_bytes() == written


def test_a_dearer_prompt_is_a_regression(pytester: pytest.Pytester) -> None:
    budget = "budget: {strategy: automatic, max_regression: 5%}\n"
    place = scenario(pytester, budget)
    run(pytester, "--cachecost", "--cachecost-update").assert_outcomes(passed=1)
    place.write_text(place.read_text().replace("system: {tokens: 1_000}", "system: {tokens: 3_000}"))
    result = run(pytester, "--cachecost")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"✗ mine: automatic costs \$.*% more than the baseline of .*; the limit is 5%\."])


def test_the_settings_file_names_folders_and_prices(pytester: pytest.Pytester) -> None:
    scenario(pytester, "budget: {strategy: automatic, max_regression: 5%}\n", folder="costs")
    pytester.makepyprojecttoml('[tool.cachecost]\nscenarios = "costs"\nreports = "kept"\nas-of = 2026-10-01\n')
    result = run(pytester, "--cachecost", "--cachecost-update")
    result.assert_outcomes(passed=1)
    assert (pytester.path / "kept" / "mine" / "baseline.json").exists()
    assert "cachecost: 1 scenario in pyproject.toml (scenarios), baselines in kept, rewritten" in result.outlines
    place = pytester.path / "own.toml"
    rows = "input = 900\nread = 900\nwrite_5m = 900\nwrite_1h = 900\noutput = 900\n"
    place.write_text(f'[[price]]\nmodel = "claude-sonnet-5-5"\n{rows}')
    pytester.makepyprojecttoml('[tool.cachecost]\nscenarios = "costs"\nreports = "kept"\nprices = "own.toml"\n')
    run(pytester, "--cachecost").assert_outcomes(failed=1)


def test_an_error_of_the_settings_file_is_one_of_usage(pytester: pytest.Pytester) -> None:
    scenario(pytester)
    pytester.makepyprojecttoml("[tool.cachecost]\n\nscenario = 'costs'\n")
    result = run(pytester, "--cachecost")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: *pyproject.toml:3 tool.cachecost.scenario: unknown key (did you mean*'scenarios'?)"]
    )
    pytester.makepyfile("def test_own(): pass")
    run(pytester).assert_outcomes(passed=1)


def test_folders_can_be_named(pytester: pytest.Pytester) -> None:
    place = scenario(pytester, "budget: {strategy: automatic, max_regression: 5%}\n", folder="costs")
    result = run(pytester, "--cachecost=costs", "--cachecost-reports=kept", "--cachecost-update")
    result.assert_outcomes(passed=1)
    assert (pytester.path / "kept" / "mine" / "baseline.json").exists()
    assert "cachecost: 1 scenario in costs, baselines in kept, rewritten" in result.outlines
    run(pytester, f"--cachecost={place}", "--cachecost-reports=kept").assert_outcomes(passed=1)


def test_a_scenario_that_is_not_valid_is_an_error_with_its_line(pytester: pytest.Pytester) -> None:
    scenario(pytester, "budget: {max_cost: 9}\n")
    result = run(pytester, "--cachecost")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    result.stdout.re_match_lines([r"scenarios/mine\.yaml:12:10 budget\.max_cost: unknown key \(did you mean"])


def test_a_model_that_nobody_knows_is_told_in_a_sentence(pytester: pytest.Pytester) -> None:
    place = scenario(pytester, "budget: {max_cost_usd: 9}\n")
    place.write_text(place.read_text().replace("claude-sonnet-5-5", "claude-sonnet-55"))
    result = run(pytester, "--cachecost")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*claude-sonnet-55*did you mean*"])
    assert "Traceback" not in result.stdout.str()


def test_a_folder_without_scenarios_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_own(): pass")
    result = run(pytester, "--cachecost", "test_a_folder_without_scenarios_is_a_usage_error.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*expected a scenario or a folder of them; there is none*write --cachecost=scenarios*"]
    )


@pytest.mark.parametrize("option", ["--cachecost-update", "--cachecost-reports=kept"])
def test_other_options_need_the_first(pytester: pytest.Pytester, option: str) -> None:
    result = run(pytester, option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {option.partition('=')[0]} needs --cachecost"])


def test_nothing_is_collected_or_said_where_nobody_asks(pytester: pytest.Pytester) -> None:
    scenario(pytester)
    pytester.makepyfile("def test_own(): pass")
    result = run(pytester)
    result.assert_outcomes(passed=1)
    assert not [line for line in result.outlines if line.startswith("cachecost:")]


def test_the_plugin_imports_next_to_nothing() -> None:
    code = f"import sys, cachecost.pytest_plugin; print([name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_options_stand_in_one_group_with_one_beginning(pytester: pytest.Pytester) -> None:
    lines = run(pytester, "--help").outlines
    start = lines.index("cachecost: budgets of prompt caching:")
    group = lines[start + 1 : lines.index("", start)]
    options = [line.split()[0] for line in group if line.startswith("  --")]
    assert [one.partition("=")[0] for one in options] == ["--cachecost", "--cachecost-reports", "--cachecost-update"]


@pytest.mark.slow
def test_workers_share_the_tests(pytester: pytest.Pytester) -> None:
    scenario(pytester, "budget: {max_cost_usd: 9, max_breakpoints: 4}\n")
    result = pytester.runpytest_subprocess(*NOTHING_MORE, *plugin(), "--cachecost", "-n1", timeout=60)
    result.assert_outcomes(passed=2)


def test_the_fixture_takes_its_ground_from_a_marker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.cache_cost(as_of="2026-10-05", clock="+9s")
        SAID = {"model": "claude-sonnet-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}

        @pytest.mark.cache_cost(clock="+7s")
        def test_ground(cache_cost):
            for _ in range(2):
                cache_cost.client().messages.create(**SAID)
            assert [row.timestamp[:19] for row in cache_cost.calls] == ["2026-10-05T00:00:00", "2026-10-05T00:00:07"]

        def test_calls_of_others_are_not_seen(cache_cost):
            assert cache_cost.calls == []
        """
    )
    run(pytester, "--strict-markers").assert_outcomes(passed=2)


def test_a_failed_assertion_is_shown_at_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(cache_cost):\n    cache_cost.assert_costs_at_most('1')\n")
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*AssertionError: no call reached cache_cost: give the code under test*"])
    assert "cost.py" not in result.stdout.str()
