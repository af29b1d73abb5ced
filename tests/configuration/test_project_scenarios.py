"""What a settings file says of scenarios: where they are, where reports go, what they do not state, and volumes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cachecost.commands.mcp_server.answers import run_for_json
from check_projects import project
from command_runs import run_here

EXPENSIVE = '[[price]]\nhost = "anthropic"\nmodel = "claude-opus-4-6"\ninput = 1000\noutput = 1000\nread = 1000\n'
PRICES = f"{EXPENSIVE}write_5m = 1000\nwrite_1h = 1000\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a project with a scenario in evals/, and own prices."""
    monkeypatch.delenv("CACHECOST_TOKENS")
    monkeypatch.chdir(tmp_path)
    project(tmp_path / "evals", budgets="  - {strategy: as recorded, max_cost_usd: 9}\n")
    (tmp_path / "evals" / "own.toml").write_text(PRICES)
    return tmp_path


def settings(text: str) -> None:
    Path("cachecost.toml").write_text(text)


def check(*words: str, cwd: Path | None = None) -> dict[str, Any]:
    done = run_here("check", "--json", *words, cwd=cwd)
    assert done.returncode in (0, 1, 3), done.stderr
    return dict(json.loads(done.stdout))


def cost(*words: str) -> float:
    return float(check(*words)["strategies"][0]["cost_usd"])


@pytest.mark.parametrize("value", ['"evals"', '"evals/mine.yaml"', '["evals/mine.yaml", "evals"]'])
@pytest.mark.parametrize("inner", [".", "evals"])
def test_check_takes_the_scenarios_of_the_file(folder: Path, value: str, inner: str) -> None:
    settings(f"scenarios = {value}\n")
    assert [one["scenario"] for one in check(cwd=folder / inner)["strategies"]] == ["mine", "mine"]


def test_named_scenarios_win_over_those_of_the_file(folder: Path) -> None:
    project(folder / "other")
    settings('scenarios = "other"\n')
    assert check("evals/mine.yaml")["budgets"][0]["limit"] == "9"
    assert check()["budgets"][0]["budget"] == "max_regression"


def test_without_a_key_the_usual_folder_is_looked_into() -> None:
    settings('host = "anthropic"\n')
    done = run_here("check")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "Error: expected SCENARIO.yaml …; there is none in scenarios/",
    )


def test_baselines_and_reports_go_to_the_folder_of_the_file(folder: Path) -> None:
    settings('scenarios = "evals"\nreports = "kept"\n')
    assert run_here("check", "--update", cwd=folder / "evals").returncode == 0
    assert run_here("run", "mine.yaml", cwd=folder / "evals").returncode == 0
    assert {path.name for path in (folder / "kept" / "mine").iterdir()} >= {"baseline.json", "report.md"}
    assert not (folder / "evals" / "reports").exists()


def test_the_reports_of_check_may_differ_and_the_command_line_wins(folder: Path) -> None:
    settings('scenarios = "evals"\nreports = "kept"\n[check]\nreports = "baselines"\n')
    run_here("check", "--update")
    run_here("check", "--update", "--reports", str(folder / "mine"))
    assert (folder / "baselines" / "mine" / "baseline.json").exists()
    assert (folder / "mine" / "mine" / "baseline.json").exists()
    assert not (folder / "kept").exists()


def test_a_link_out_of_the_project_is_no_folder_of_reports(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (folder / "kept").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    settings('scenarios = "evals"\nreports = "kept"\n')
    done = run_here("check", "--update")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "cachecost.toml:2 reports: expected a folder within that of cachecost.toml, as files are written there; "
        "got 'kept'",
    )


STATED = Path("evals/mine.yaml")


def test_a_scenario_has_the_prices_of_the_file_unless_it_states_its_own(folder: Path) -> None:
    usual = cost(str(STATED))
    settings('prices = "evals/own.toml"\n')
    own = cost(str(STATED))
    assert own > 100 * usual
    (folder / "evals" / "usual.toml").write_text(PRICES.replace("1000", "1"))
    STATED.write_text(STATED.read_text() + "prices: usual.toml\n")
    assert cost(str(STATED)) < usual


@pytest.mark.parametrize(
    "line",
    ["explain evals/mine.yaml --json", "optimize evals/mine.yaml --json", "run evals/mine.yaml --json --no-report"],
)
def test_all_commands_of_a_scenario_have_them(line: str) -> None:
    settings('prices = "evals/own.toml"\nas-of = 2026-03-01\n[rule]\nttl_in_key = true\n')
    done = run_here(*line.split())
    assert done.returncode == 0, done.stderr
    settings("")
    STATED.write_text(STATED.read_text() + "prices: own.toml\nrules: {ttl_in_key: true}\n")
    same = run_here(*line.split())
    assert (done.stdout, done.returncode) == (same.stdout, 0)


def test_a_sweep_has_them() -> None:
    line = ("sweep", "evals/mine.yaml", "--grid", "as_of=2026-03-07", "--jobs", "1", "--json")
    usual = run_here(*line).stdout
    settings('prices = "evals/own.toml"\n')
    own = run_here(*line).stdout
    settings("")
    STATED.write_text(STATED.read_text() + "prices: own.toml\n")
    assert run_here(*line).stdout == own != usual


def test_rules_of_a_scenario_win_name_by_name(folder: Path) -> None:
    from cachecost.base.yaml_text import PlacedValue, SourcePlace
    from cachecost.scenario import load

    def part(value: object) -> PlacedValue:
        return PlacedValue(value, {(): SourcePlace("cachecost.toml", 3)})

    STATED.write_text(STATED.read_text() + "rules: {ttl_in_key: true}\n")
    defaults = {("rules", "ttl_in_key"): part(False), ("rules", "seed"): part(3), ("host",): part("bedrock")}
    loaded = load(STATED, defaults=defaults)
    assert (loaded.rules, loaded.host) == ({"ttl_in_key": True, "seed": 3}, "bedrock")


def test_an_error_of_a_default_has_the_line_of_the_file() -> None:
    settings('scenarios = "evals"\n\nhost = "openai"\n')
    done = run_here("check")
    assert done.stderr.startswith("evals/mine.yaml:4:1 model: unknown model 'claude-opus-4-6' on host openai\n")
    settings('scenarios = "evals"\n\nprices = "no.toml"\n')
    assert run_here("check").stderr.startswith("cachecost.toml:3 prices: ")


def test_options_of_the_command_line_stay_refused_beside_a_scenario() -> None:
    settings('host = "bedrock"\n')
    done = run_here("explain", "evals/mine.yaml", "--host", "bedrock")
    assert done.stderr.endswith("Error: --host: not with a scenario; set it in evals/mine.yaml\n")


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("", (), None),
        ("sessions-per-day = 40\n", (), 40),
        ("sessions-per-day = 40\n", ("--sessions-per-day", "7"), 7),
        ("[volumes]\nmine = 400\n", (), 400),
        ("sessions-per-day = 40\n[volumes]\nmine = 400\n", (), 400),
        ("[volumes]\nmine = 400\n", ("--volume", "mine=9"), 9),
        ("[check]\nsessions-per-day = 5\n", (), 5),
    ],
)
def test_volumes(text: str, words: tuple[str, ...], expected: int | None) -> None:
    settings('scenarios = "evals"\n' + text)
    projected = check(*words).get("project")
    assert (projected and projected[0]["sessions_per_day"]) == expected


def test_a_volume_of_no_scenario_is_an_error_where_all_are_checked() -> None:
    settings('scenarios = "evals"\n[volumes]\nmin = 400\n')
    done = run_here("check")
    assert done.stderr.endswith(
        "--volume: expected one of mine; got 'min' (did you mean 'mine'?); --volume is set at cachecost.toml:3\n"
    )
    assert "project" not in check("evals/mine.yaml") or check("evals/mine.yaml")["project"] == []
    assert run_here("check", "evals/mine.yaml", "--volume", "min=4").returncode == 2


@pytest.mark.parametrize("word", ["mine", "mine=", "=4", "mine=0", "mine=x", "mine=1000000000", "mine=" + "9" * 5_000])
def test_a_volume_that_is_none(word: str) -> None:
    done = run_here("check", "evals/mine.yaml", "--volume", word)
    assert f"expected NAME=N, N from 1 to 999,999,999; got '{word}'" in done.stderr


def test_live_takes_neither_prices_nor_rules_from_the_file() -> None:
    """Its limit is in dollars: prices from a cloned repository could make it worth nothing."""
    line = ("live", "evals/mine.yaml", "--max-usd", "1", "--dry-run", "--strategy", "progressive")
    usual = run_here(*line)
    settings('prices = "evals/own.toml"\nas-of = 2026-03-01\n')
    done = run_here(*line)
    assert (done.returncode, done.stdout, done.stderr) == (usual.returncode, usual.stdout, usual.stderr)
    own = run_here(*line, "--prices", "evals/own.toml")
    assert (own.stdout, own.stderr) != (usual.stdout, usual.stderr)


def test_the_tools_of_the_mcp_server_have_the_defaults() -> None:
    settings('host = "bedrock"\n')
    (answer,) = run_for_json("models", [])
    assert {row["host"] for row in answer["models"]} == {"bedrock"}
