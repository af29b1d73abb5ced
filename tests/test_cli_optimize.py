"""`cachecost optimize` from outside: the answer, the documented JSON, exit codes."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cachecost.cli import exit_code
from cachecost.commands.optimize import optimize
from conversations.session_stores import write_lines

BREAKPOINT = {"type": "ephemeral"}
SESSION = Path(__file__).parent.parent / "scenarios/recordings/sessions/claude-code-56-minutes.jsonl"


def log_of(path: Path, seconds: list[int], model: str = "claude-sonnet-4-5", **more: Any) -> Path:
    """A conversation that grows by a turn a call, marked at its end, at these seconds after eight."""
    messages: list[dict[str, Any]] = []
    with path.open("w") as file:
        for number, at in enumerate(seconds):
            text = {"type": "text", "text": f"{number} " + "word " * 900}
            sent = [*messages, {"role": "user", "content": [{**text, "cache_control": BREAKPOINT}]}]
            body = {"model": model, "max_tokens": 100, "messages": sent}
            stamp = f"2026-10-01T{8 + at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z"
            file.write(json.dumps({"timestamp": stamp, "request": body, **more}) + "\n")
            messages += [{"role": "user", "content": [text]}, {"role": "assistant", "content": f"answer {number}"}]
    return path


def run(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(optimize, [str(one) for one in arguments], standalone_mode=False)


def test_the_answer_comes_first_then_the_table_then_how_sure(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log.jsonl", [0, 10, 20, 1400, 1410])
    result = run(log, "--tokens", "bytes", "--no-pings", "--full")
    assert result.exit_code == 0 and result.exception is None
    lines = result.output.splitlines()
    assert lines[0].endswith("5 calls")
    place = "the end of the last message (in 4 of 5 calls)"
    assert lines[2].startswith(f"Place breakpoints at {place} with TTL 5m, and with 1h before pauses over 5")
    rows = [line.split("  ")[1].strip() for line in lines if line.startswith("  ")]
    none = next(number for number, row in enumerate(rows) if row.startswith("none"))
    assert rows.index("strategy") < rows.index("this plan") < rows.index("as recorded") < none
    assert none < rows.index("lower bound for these prompts") < rows.index("tokens") < rows.index("rules")
    assert "  seconds   not supported by the data: the recording has no times to the first token" in lines
    assert all(line == line.rstrip() and len(line) <= 120 for line in lines[1:])


@pytest.mark.parametrize("columns", ["80", "100", "200"])
@pytest.mark.parametrize("seconds", [[0], [0, 10, 20], [0, 10, 20, 1400, 1410], list(range(0, 4000, 160))])
def test_the_default_is_at_most_ten_lines(tmp_path: Path, seconds: list[int], columns: str) -> None:
    log = log_of(tmp_path / "log.jsonl", seconds)
    words = [str(log), "--tokens", "bytes", "--no-pings"]
    result = CliRunner(env={"COLUMNS": columns}).invoke(optimize, words, standalone_mode=False)
    lines = result.output.splitlines()
    assert result.exit_code == 0 and len(lines) <= 10
    assert lines[0].startswith("Place ")
    assert [line.split("  ")[0] for line in lines[-5:]] == ["cheaper", "minimum", "accuracy", "next", "see also"]
    others = "explain (why it costs this), whatif (other models, TTLs, hosts), lint (static checks)"
    assert lines[-1] == f"see also   cachecost COMMAND {log}: {others}"


def test_the_default_says_dollars_now_dollars_then_and_what_saves_too(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log.jsonl", [0, 10, 20, 1400, 1410])
    lines = run(log, "--tokens", "bytes", "--no-pings").output.splitlines()
    answer = next(number for number, line in enumerate(lines) if " now " in line)
    assert lines[answer].startswith("$0.15 now (as recorded, simulated) · $0.11 with this plan: 28% less   ")
    assert lines[answer + 1].count("less") == 3
    assert lines[answer + 2] == "minimum    at the lower bound of $0.11, but not under every assumption"


def test_calls_without_breakpoints_cost_now_what_no_breakpoints_cost(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log.jsonl", [0, 10])
    log.write_text(log.read_text().replace('"cache_control": {"type": "ephemeral"}', '"cache_control": null'))
    found = json.loads(run(log, "--tokens", "bytes", "--json").output)["strategies"]
    line = next(line for line in run(log, "--tokens", "bytes").output.splitlines() if " now " in line)
    assert "as recorded" not in found and line.startswith(
        f"${float(found['none']):.4f} now (no breakpoints, simulated) ·"
    )


def test_json_is_the_contracts(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log.jsonl", [0, 10, 20, 1400, 1410])
    found = json.loads(run(log, "--tokens", "bytes", "--json", "--no-pings").output)
    best, lower_bound = Decimal(found["best"]["cost_usd"]), Decimal(found["lower_bound_usd"])
    assert found["format"] == 1 and isinstance(found["proved_optimal"], bool)
    assert lower_bound <= best <= min(map(Decimal, found["strategies"].values()))
    assert {"as recorded", "automatic", "automatic@1h", "progressive", "system-only", "none"} <= set(
        found["strategies"]
    )
    plan = found["best"]["plan"]
    assert [step["purpose"] for step in plan] == ["main"] * 5
    assert plan[0]["breakpoints"] == [{"path": "messages.0.content.0", "ttl": "5m"}]
    assert plan[2]["breakpoints"][-1] == {"path": "messages.4.content.0", "ttl": "1h"}
    assert plan[4]["breakpoints"] == [{"path": "messages.6.content.0", "ttl": "5m"}]
    assert found["prefill"]["plan"]["mean_share"] <= found["prefill"]["as recorded"]["mean_share"]


def test_the_plan_can_be_checked_with_replay(tmp_path: Path) -> None:
    """Breakpoints of the JSON put into the log cost what the JSON says."""
    from cachecost.commands.replay import replay

    log = log_of(tmp_path / "log.jsonl", [0, 10, 20, 1400, 1410])
    found = json.loads(run(log, "--tokens", "bytes", "--json", "--no-pings").output)
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    for row, step in zip(rows, found["best"]["plan"], strict=True):
        breakpoints = {breakpoint["path"]: breakpoint["ttl"] for breakpoint in step["breakpoints"]}
        for number, message in enumerate(row["request"]["messages"]):
            for block in message["content"] if isinstance(message["content"], list) else ():
                block.pop("cache_control", None)
                if ttl := breakpoints.pop(f"messages.{number}.content.0", None):
                    block["cache_control"] = {**BREAKPOINT, "ttl": ttl}
        assert not breakpoints
    write_lines(tmp_path / "marked.jsonl", rows)
    out = CliRunner().invoke(
        replay, [str(tmp_path / "marked.jsonl"), "--json", "--tokens", "bytes"], standalone_mode=False
    )
    total = sum(Decimal(json.loads(line)["cost_usd"]) for line in out.output.splitlines() if line.startswith("{"))
    assert total == Decimal(found["best"]["cost_usd"])


def test_a_scenario_is_what_its_first_strategy_sends(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "format: 1\nname: s\nquestion: which?\nmodel: claude-opus-4-6\nas_of: 2026-10-01\n"
        "conversation: {synthetic: {seed: 1, turns: 2}, head: {system: {tokens: 3000}}}\n"
        "strategies: [progressive, none]\n"
    )
    found = json.loads(run(tmp_path / "s.yaml", "--json").output)
    assert found["strategies"]["progressive"] >= found["best"]["cost_usd"]
    assert Decimal(found["lower_bound_usd"]) <= Decimal(found["best"]["cost_usd"])


def test_bills_anchor_the_sizes(tmp_path: Path) -> None:
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 7_000, "output_tokens": 10}
    log = log_of(tmp_path / "log.jsonl", [0], usage=usage)
    found = json.loads(run(log, "--json").output)
    assert found["strategies"]["none"] == str(Decimal(7_005) * 3 / 10**6 + Decimal(10) * 15 / 10**6)


def test_a_log_of_which_nothing_can_be_evaluated_is_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = log_of(tmp_path / "log.jsonl", [0], model="claude-imaginary-9")
    assert exit_code(lambda: optimize.main([str(log)], standalone_mode=False)) == 3
    assert capsys.readouterr().err.startswith("nothing to optimise: ")


def test_a_damaged_line_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = log_of(tmp_path / "log.jsonl", [0])
    log.write_text(log.read_text() + '{"request": 3}\n')
    assert exit_code(lambda: optimize.main([str(log)], standalone_mode=False)) == 2
    assert "log.jsonl:2" in capsys.readouterr().err


def test_a_scenario_says_itself_what_the_ground_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.yaml").write_text("format: 1\n")
    arguments = [str(tmp_path / "s.yaml"), "--host", "bedrock", "--as-of", "2026-10-01"]
    assert exit_code(lambda: optimize.main(arguments, standalone_mode=False)) == 2
    assert "--as-of, --host: " in capsys.readouterr().err


def test_no_place_is_named_in_more_calls_than_there_are() -> None:
    """A call can have two breakpoints at the end of what earlier calls sent: it is one call."""
    answer = " ".join(run(SESSION).stdout.split())
    assert "the end of what an earlier call sent, in 61 calls, so that" in answer
    assert "(in 59 of 62 calls)" in answer
