"""`cachecost optimize --emit DIR` from outside: what it writes replays to what it says, and nothing else is touched."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bodies import assistant, body, marked, text, user
from cachecost.cli import cachecost, exit_code
from cachecost.commands.optimize import optimize
from cachecost.scenario import load
from conversations.session_stores import write_lines
from slow_cases import mostly_slow

SESSION = Path(__file__).parents[1] / "scenarios" / "recordings" / "sessions" / "claude-code-56-minutes.jsonl"
FILES = ["README.md", "client.py", "requests.jsonl", "strategy.yaml"]
Row = dict[str, Any]


def run(*arguments: object) -> Result:
    done = CliRunner().invoke(cachecost, [str(one) for one in arguments], standalone_mode=False)
    assert done.exception is None, done.output
    return done


def code_of(*arguments: object) -> int:
    return exit_code(lambda: optimize.main([str(one) for one in arguments], standalone_mode=False))


def conversation(seconds: Sequence[int], grows_by: int = 900, first: int = 9_000, **more: Any) -> list[Row]:
    """A conversation with tools and a system prompt that grows by a turn a call, marked at its end."""
    rows, messages = list[Row](), list[Row]()
    head = {"tools": [{"name": "look", "input_schema": {"type": "object"}}], "system": "be brief"}
    for number, at in enumerate(seconds):
        new = text(grows_by if number else first, chr(97 + number))
        sent = {**body(*messages, user(marked(new))), **head}
        stamp = f"2026-10-01T{8 + at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z"
        rows.append({"timestamp": stamp, "request": sent, **more})
        messages += [user(new), assistant(text(200, chr(65 + number)))]
    return rows


def billed(rows: Sequence[Row], folder: Path) -> list[Row]:
    """The rows with the bill of a replay that counts bytes, so that the lengths are not those of any tokenizer."""
    log = write_lines(folder / "unbilled.jsonl", rows)
    made = run("replay", log, "--tokens", "bytes", "--json").stdout.splitlines()
    usages = [json.loads(line)["usage"] for line in made if line.startswith("{")]
    return [{**row, "usage": {**usage, "output_tokens": 70}} for row, usage in zip(rows, usages, strict=True)]


def together(folder: Path) -> list[Row]:
    """Two calls that start at once, after which nothing is left to read for either without a call before them."""
    rows = conversation([600, 600, 620], first_token_s=2.0)
    return [rows[0], {**rows[0], "session": "b"}, *rows[2:]]


def lost(folder: Path) -> list[Row]:
    """The second call's bill shows a loss that nothing explains: it reads nothing of what the first one wrote."""
    rows = billed(conversation([0, 10, 20]), folder)
    usage = rows[1]["usage"]
    whole = usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
    rows[1]["usage"] = {
        "input_tokens": usage["input_tokens"],
        "cache_creation_input_tokens": whole,
        "output_tokens": 70,
    }
    return rows


LOGS: dict[str, tuple[Callable[[Path], list[Row]], list[str]]] = {
    "growing": (lambda folder: conversation([0, 10, 20, 30]), ["--tokens", "bytes"]),
    "pauses": (lambda folder: conversation([0, 10, 20, 1400, 1410]), ["--tokens", "bytes"]),
    "one pause": (lambda folder: conversation([0, 400], grows_by=300), ["--tokens", "bytes"]),
    "counted": (lambda folder: conversation([0, 400, 800]), ["--tokens", "tiktoken"]),
    "billed": (lambda folder: billed(conversation([0, 10, 400, 410]), folder), []),
    "lost": (lost, []),
    "together": (together, ["--tokens", "bytes"]),
    "other prices": (lambda folder: conversation([0, 400]), ["--tokens", "bytes", "--as-of", "2026-10-02"]),
    "bedrock": (lambda folder: conversation([0, 10], host="bedrock"), ["--tokens", "bytes"]),
}


WITH_EXTRA_CALLS = ("one pause", "counted", "other prices", "together")


def dollars_of(log: Path, *arguments: object) -> Decimal:
    """The sum of a replay's rows."""
    rows = [json.loads(line) for line in run("replay", log, "--json", *arguments).stdout.splitlines() if line[0] == "{"]
    assert not any("error" in row for row in rows)
    return sum((Decimal(row["cost_usd"]) for row in rows), Decimal(0))


@pytest.mark.parametrize("name", mostly_slow(LOGS, 4))
def test_what_is_written_replays_to_what_is_said(name: str, tmp_path: Path) -> None:
    make, options = LOGS[name]
    log, out = write_lines(tmp_path / "log.jsonl", make(tmp_path)), tmp_path / "out"
    found = json.loads(run("optimize", log, *options, "--json", "--emit", out).stdout)
    assert sorted(path.name for path in out.iterdir()) == FILES
    assert dollars_of(out / "requests.jsonl", *options) == Decimal(found["best"]["cost_usd"])
    rows = [json.loads(line) for line in (out / "requests.jsonl").read_text().splitlines()]
    assert [row["timestamp"][:19] for row in rows] == sorted(row["timestamp"][:19] for row in rows)
    assert not any("usage" in row for row in rows)
    extras = [row for row, step in zip(rows, found["best"]["plan"], strict=True) if step["purpose"] != "main"]
    assert all(row["request"]["max_tokens"] == 0 for row in extras)
    assert bool(extras) is (name in WITH_EXTRA_CALLS)
    strategy = dollars_of(log, *options, "--strategy", out / "strategy.yaml")
    said = re.findall(r"# \$([\d.]+)$", (out / "README.md").read_text(), re.MULTILINE)
    assert [Decimal(one) for one in said] == [Decimal(found["best"]["cost_usd"]), strategy]


def placed_by_client(rows: Sequence[Row], code: str) -> list[Row]:
    """The rows as a client with the emitted code sends them, keep-alives included."""
    module: dict[str, Any] = {}
    exec(code, module)
    every_s, most = module.get("KEEP_ALIVE_S", 0), module.get("KEEP_ALIVES", 0)
    starts = [_seconds(row["timestamp"]) for row in rows]
    sent = []
    for row, at, following in zip(rows, starts, [*starts[1:], float("inf")], strict=True):
        bare = {name: value for name, value in row.items() if name != "usage"}
        placed = module["place_breakpoints"](row["request"])
        sent.append({**bare, "request": placed})
        for number in range(1, most + 1):
            if at + number * every_s < following:
                ping = module["keep_alive_body"](placed)
                sent.append({**bare, "timestamp": _stamp(at + number * every_s), "request": ping})
    return sent


def _seconds(stamp: str) -> float:
    hours, minutes, seconds = stamp[11:19].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


def _stamp(at: float) -> str:
    whole = int(at)
    return f"2026-10-01T{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}Z"


@pytest.mark.parametrize(
    ("seconds", "grows_by"), [([0, 10, 20], 900), ([0, 400, 800, 1200, 1600], 9_000), ([0, 1200, 2400], 300), ([0], 50)]
)
def test_the_code_for_a_client_costs_what_the_strategy_does(tmp_path: Path, seconds: list[int], grows_by: int) -> None:
    rows = conversation(seconds, grows_by)
    log, out = write_lines(tmp_path / "log.jsonl", rows), tmp_path / "out"
    run("optimize", log, "--tokens", "bytes", "--emit", out)
    by_code = write_lines(tmp_path / "sent.jsonl", placed_by_client(rows, (out / "client.py").read_text()))
    expected = dollars_of(log, "--tokens", "bytes", "--strategy", out / "strategy.yaml")
    assert dollars_of(by_code, "--tokens", "bytes") == expected
    assert ("keep_alive" in (out / "strategy.yaml").read_text()) is (seconds[-1] == 1600)


def test_the_strategy_is_an_item_of_a_scenario(tmp_path: Path) -> None:
    log, out = write_lines(tmp_path / "log.jsonl", conversation([0, 400, 800])), tmp_path / "out"
    run("optimize", log, "--tokens", "bytes", "--emit", out)
    item = (out / "strategy.yaml").read_text().replace("\n", "\n    ").rstrip()
    scenario = tmp_path / "s.yaml"
    head = f"format: 1\nname: s\nquestion: q?\nmodel: claude-sonnet-4-5\nconversation: {{recording: {log.name}}}\n"
    scenario.write_text(f"{head}strategies:\n  -\n    {item}\n")
    assert [spec.name for spec in load(scenario).strategies] == ["optimized"]


def test_a_scenario_is_planned_without_requests_where_it_has_no_text(tmp_path: Path) -> None:
    scenario, out = tmp_path / "s.yaml", tmp_path / "out"
    scenario.write_text(
        "format: 1\nname: s\nquestion: which?\nmodel: claude-opus-4-6\nas_of: 2026-10-01\ntokens: bytes\n"
        "conversation: {synthetic: {seed: 1, turns: 2}, head: {system: {tokens: 3000}}}\nstrategies: [progressive]\n"
    )
    run("optimize", scenario, "--emit", out)
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md",
        "breakpoints.jsonl",
        "client.py",
        "strategy.yaml",
    ]


def test_a_log_without_content_gets_its_breakpoints_by_path(tmp_path: Path) -> None:
    log, free, out = tmp_path / "log.jsonl", tmp_path / "free.jsonl", tmp_path / "out"
    write_lines(log, conversation([0, 400, 800]))
    run("import", log, "-o", free, "--content", "digest")
    run("optimize", log, "--no-pings", "--emit", out)
    done = run("optimize", free, "--no-pings", "--emit", out, "--json")
    assert "no requests.jsonl: a " in done.stderr and "has no content, so it cannot be sent" in done.stderr
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md",
        "breakpoints.jsonl",
        "client.py",
        "strategy.yaml",
    ]
    lines = [json.loads(line) for line in (out / "breakpoints.jsonl").read_text().splitlines()]
    plan = json.loads(done.stdout)["best"]["plan"]
    assert [line["breakpoints"] for line in lines] == [step["breakpoints"] for step in plan]
    assert "There is no `requests.jsonl`" in (out / "README.md").read_text()


def test_the_readme_has_the_dollars(tmp_path: Path) -> None:
    log, out = write_lines(tmp_path / "log.jsonl", conversation([0, 10, 20, 1400, 1410])), tmp_path / "out"
    found = json.loads(run("optimize", log, "--tokens", "bytes", "--json", "--emit", out).stdout)
    readme = (out / "README.md").read_text()
    for name in ("now (as recorded, simulated)", "`strategy.yaml`, `client.py`", "`requests.jsonl`", "lower bound"):
        assert f"| {name}" in readme
    assert f"{float(found['lower_bound_usd']):.4f}" in readme or f"{float(found['lower_bound_usd']):.2f}" in readme


def test_a_plan_may_be_written_again_but_nothing_else_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = write_lines(tmp_path / "log.jsonl", conversation([0, 10])), tmp_path / "out"
    out.mkdir()
    assert code_of(log, "--tokens", "bytes", "--emit", out) == 0
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    assert code_of(log, "--tokens", "bytes", "--emit", out) == 0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first
    capsys.readouterr()

    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "client.py").write_text("mine")
    assert code_of(log, "--tokens", "bytes", "--emit", tmp_path / "other") == 2
    said = "expected a new or an empty folder, or one that --emit wrote; it has other files, which stay as they are"
    assert capsys.readouterr().err.startswith(f"{tmp_path / 'other'} {said}\n")
    assert [path.read_text() for path in (tmp_path / "other").iterdir()] == ["mine"]

    file = tmp_path / "other" / "client.py"
    assert code_of(log, "--emit", file) == 2
    assert capsys.readouterr().err.startswith(f"{file} expected a folder for --emit; got a file\n")

    before = (out / "requests.jsonl").read_bytes()
    assert code_of(out / "requests.jsonl", "--emit", out) == 2
    assert f"--emit {out}: is the folder of requests.jsonl, which this command reads" in capsys.readouterr().err
    assert (out / "requests.jsonl").read_bytes() == before


def test_a_folder_that_cannot_be_made_is_said_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_lines(tmp_path / "log.jsonl", conversation([0]))
    assert code_of(log, "--tokens", "bytes", "--emit", log / "below") == 2
    assert "cannot be" in capsys.readouterr().err


STRATEGY_ERRORS = [
    ("name: x\nbreakpoints: [last_tol]\n", "strategy.yaml:2:15 breakpoints[0]: expected one of "),
    ("name: x\nbreakpoints: []\nttl: 2h\n", "strategy.yaml:3:1 ttl: expected one of 1h, 5m; got '2h'"),
    ("name: x\n", "expected preset or breakpoints in addition to the name"),
    ("- last_tool\n", "strategy.yaml:1:1 expected a strategy, a mapping with a name; got a list of 1"),
]


@pytest.mark.parametrize(("text_", "said"), STRATEGY_ERRORS)
def test_what_is_wrong_in_a_strategy_file_is_said_at_its_line(
    text_: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, path = write_lines(tmp_path / "log.jsonl", conversation([0])), tmp_path / "strategy.yaml"
    path.write_text(text_)
    from cachecost.commands.replay import replay

    words = [str(log), "--tokens", "bytes", "--strategy", str(path)]
    assert exit_code(lambda: replay.main(words, standalone_mode=False)) == 2
    assert said in capsys.readouterr().err
