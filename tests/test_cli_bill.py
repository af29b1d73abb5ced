"""`cachecost bill` as it is typed: what it finds, what it counts, what it says of the rest, and its exit codes."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.sessions.small_sessions import MODEL, answer, line, stamp, write

from cachecost.cli import cachecost, exit_code

DAY = 86_400
MAIN_CALLS = (
    line("user", 0, uuid="u0", message={"content": "go"}),
    answer(1, (3, 20_000, 5_000, 0, 90), parentUuid="u0"),
    answer(9, (3, 25_000, 100, 0, 90), parentUuid="u-msg_1-1"),
    line("user", 1992, uuid="u1", parentUuid="u-msg_1-9", message={"content": "and now"}),
    answer(2000, (3, 20_000, 5_200, 0, 90), "late", parentUuid="u1"),
)
SIDE_CALLS = (answer(20, (3, 0, 4_000, 0, 9), "side", "claude-haiku-4-5", isSidechain=True, agentId="a1"),)
NEXT_DAY = (answer(DAY, (3, 0, 26_000, 0, 90), "next").replace(b'"s"', b'"t"').replace(b"shop", b"cli"),)
CONTRACT = (
    *("format", "billed_usd", "necessary_usd", "rewritten_usd", "calls", "sessions", "hit_rate"),
    *("saved_by_caching_usd", "usage", "causes", "rows", "skipped"),
)
ROW = (
    *("session", "project", "agent", "model", "first", "last", "calls", "hit_rate"),
    *("usage", "cost_usd", "rewritten_usd", "causes"),
)
ZERO = Decimal(0)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the sessions or the store of this machine."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CACHECOST_STORE", "off")
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    write(folder / "a.jsonl", *MAIN_CALLS)
    write(folder / "sub" / "agent-a1.jsonl", *SIDE_CALLS)
    write(folder / "t.jsonl", *NEXT_DAY)
    return folder


def run(*args: object) -> Result:
    return CliRunner().invoke(cachecost, ["bill", *map(str, args)], standalone_mode=False)


def code_of(*args: object) -> int:
    return exit_code(lambda: cachecost.main(["bill", *map(str, args)], standalone_mode=False))


def bill(*args: object) -> dict[str, Any]:
    found = run(*args, "--json")
    assert found.stdout.count("\n") == 1
    result: dict[str, Any] = json.loads(found.stdout)
    return result


def dollars(rows: list[dict[str, Any]], key: str = "cost_usd") -> Decimal:
    return sum((Decimal(row[key]) for row in rows), ZERO)


def test_the_json_has_the_fields_of_the_contract(logs: Path) -> None:
    found = bill(logs)
    assert set(CONTRACT) <= set(found)
    assert (found["format"], found["calls"], found["sessions"], found["skipped"]) == (1, 5, 2, [])
    billed, necessary, rewritten = (Decimal(found[f"{name}_usd"]) for name in ("billed", "necessary", "rewritten"))
    assert necessary + rewritten == billed
    assert dollars(found["causes"]) == rewritten > 0
    assert all(set(ROW) <= set(row) for row in found["rows"])
    assert all(set(one) == {"cause", "times", "tokens", "cost_usd"} for one in found["causes"])
    expired = next(one for one in found["rewrites"] if one["cause"] == "ttl_expired")
    assert (expired["line"], expired["file"], expired["tokens"]) == (5, str(logs / "a.jsonl"), 5_100)
    assert (expired["session"], expired["project"], expired["idle_s"]) == ("s", "/home/u/shop", 1991.0)
    assert Decimal(expired["cost_usd"]) == 5_100 * (Decimal("6.25") - Decimal("0.5")) / 10**6


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("session", {"s", "t"}),
        ("project", {"/home/u/shop", "/home/u/cli"}),
        ("day", {"2026-03-02", "2026-03-03"}),
        ("week", {"2026-W10"}),
        ("month", {"2026-03"}),
        ("model", {"claude-opus-4-5", "claude-haiku-4-5"}),
        ("agent", {"main thread", "sub-agent"}),
    ],
)
def test_rows_by_each_key_add_up(logs: Path, by: str, keys: set[str]) -> None:
    found = bill(logs, "--by", by)
    assert (found["by"], {row["key"] for row in found["rows"]}) == (by, keys)
    assert dollars(found["rows"]) == Decimal(found["billed_usd"])
    assert dollars(found["rows"], "rewritten_usd") == Decimal(found["rewritten_usd"])
    assert sum(row["calls"] for row in found["rows"]) == 5


def test_the_csv_has_the_rows(logs: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    found = bill(logs, "--by", "project", "--csv", path)
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["cost_usd"] for row in rows] == [row["cost_usd"] for row in found["rows"]]
    assert sum(Decimal(row["ttl_expired_usd"] or 0) for row in rows) == dollars(
        [one for one in found["causes"] if one["cause"] == "ttl_expired"]
    )


# --------------------------------------------------------------------------------- what cannot be read


@pytest.mark.parametrize("skip", [False, True])
def test_the_rest_of_a_folder_counts(logs: Path, skip: bool) -> None:
    whole = bill(logs)["billed_usd"]
    write(logs / "damaged.jsonl", answer(5, (3, 0, 0, 0, 9), "d"), b"{damaged}\n", answer(6, (3, 0, 0, 0, 9), "e"))
    write(logs / "empty.jsonl")
    write(logs / "foreign.jsonl", b'{"type": "mood"}\n')
    args = [logs, *(["--skip"] if skip else [])]
    found, result = bill(*args), run(*args)
    assert code_of(*args) == (0 if skip else 2)
    assert (found["calls"], Decimal(found["billed_usd"]) > Decimal(whole)) == (7, True)
    lines = result.stderr.splitlines()
    assert lines[0] == f"{logs}/empty.jsonl: empty, ignored"
    assert lines[1].startswith(
        f"{logs}/damaged.jsonl:2 damaged JSON: Expecting property name enclosed in double quotes"
    )
    assert lines[1].endswith("; the other lines count")
    assert lines[2:] == [
        f"{logs}/foreign.jsonl: unrecognized format, skipped (nearest: claude-code; name it with --format)",
        f"2 files skipped{'' if skip else ': --skip accepts that'}",
    ]
    assert [(one["file"], one["line"]) for one in found["skipped"]] == [
        (f"{logs}/damaged.jsonl", 2),
        (f"{logs}/foreign.jsonl", None),
    ]


def test_a_session_that_is_being_written_is_read_so_far(logs: Path) -> None:
    path = write(logs / "a.jsonl", *MAIN_CALLS, b'{"type": "assistant", "uu')
    result = run(logs)
    assert result.stderr == f"{path}:6 the last line is cut off (still being written?): skipped\n"
    assert (bill(logs)["calls"], code_of(logs)) == (5, 0)


def test_an_unknown_model_is_said_and_not_evaluated(logs: Path) -> None:
    write(logs / "u.jsonl", answer(5, (3, 0, 10, 0, 9), "u", "gnome-7"))
    found = bill(logs)
    assert found["unpriced"] == [{"reason": "unknown model 'gnome-7' on host anthropic", "calls": 1, "tokens": 22}]
    assert (found["calls"], code_of(logs)) == (6, 3)
    row = next(row for row in bill(logs, "--by", "model")["rows"] if row["key"] == "gnome-7")
    assert (row["calls"], row["cost_usd"]) == (1, "0")


def test_a_file_that_is_named_twice_counts_once(logs: Path) -> None:
    assert bill(logs, logs / "a.jsonl", logs)["billed_usd"] == bill(logs)["billed_usd"]


# --------------------------------------------------------------------------------------------- periods


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        (("--since", "2026-03-03"), 1),
        (("--until", "2026-03-03"), 4),
        (("--since", stamp(20)), 3),
        (("--since", stamp(20.001)), 2),
        (("--until", stamp(20)), 2),
        (("--since", "2026-03-02T11:00:20+01:00", "--until", "2026-03-02T10:00:21"), 1),
        (("--since", "99999d"), 5),
        (("--since", "1h"), 0),
        (("--until", "1h"), 5),
        (("--since", "1970-01-01"), 5),
    ],
)
def test_the_period(logs: Path, options: tuple[str, ...], calls: int) -> None:
    assert bill(logs, *options)["calls"] == calls


@pytest.mark.parametrize(
    "value", ["30", "d", "30y", "12m", "yesterday", "-3d", "2026-13-01", "", "9" * 500 + "d", "9999-01-01"]
)
@pytest.mark.parametrize("option", ["--since", "--until"])
def test_a_period_that_is_none(logs: Path, option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(logs, f"{option}={value}") == 2
    expected = f"'{option}': expected a span (30d, 12h, 2w) or a date (2026-03-07); got '{value}'"
    assert expected[:100] in capsys.readouterr().err.replace("\n", " ")


def test_a_period_that_is_empty(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(logs, "--since", "2026-03-03", "--until", "2026-03-03") == 2
    assert "--since must be before --until" in capsys.readouterr().err


def test_calls_without_a_time_are_in_no_period(logs: Path) -> None:
    timeless = answer(5, (3, 0, 10, 0, 9), "n").replace(f'"timestamp": "{stamp(5)}", '.encode(), b"")
    write(logs / "n.jsonl", timeless)
    assert bill(logs)["calls"] == 6
    assert run(logs, "--since", "99999d").stderr == "1 call without a time left out: in no period\n"
    assert bill(logs, "--since", "99999d")["calls"] == 5


def test_one_project(logs: Path) -> None:
    found = bill(logs, "--project", "shop")
    assert (found["calls"], [row["project"] for row in found["rows"]]) == (4, ["/home/u/shop"])
    assert bill(logs, "--project", "nowhere")["calls"] == 0


# ------------------------------------------------------------------------------------- without a PATH


def test_the_sessions_of_this_machine(tmp_path: Path) -> None:
    write(tmp_path / "home/.claude/projects/shop/s.jsonl", *MAIN_CALLS)
    write(tmp_path / "home/.claude/projects/shop/s/subagents/agent-a1.jsonl", *SIDE_CALLS)
    write(tmp_path / "home/.config/claude/projects/cli/t.jsonl", *NEXT_DAY)
    write(tmp_path / "home/.claude/history.jsonl", b'{"display": "no session"}\n')
    found = bill()
    assert (found["calls"], found["sessions"], code_of()) == (5, 2, 0)


def test_the_variable_moves_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "home/.claude/projects/shop/s.jsonl", *MAIN_CALLS)
    write(tmp_path / "one/projects/shop/a1.jsonl", *SIDE_CALLS)
    write(tmp_path / "two/projects/cli/t.jsonl", *NEXT_DAY)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{tmp_path}/one,{tmp_path}/two,{tmp_path}/one")
    assert bill()["calls"] == 2


def test_no_sessions_on_this_machine(tmp_path: Path) -> None:
    result = run()
    home = tmp_path / "home"
    assert result.stderr.startswith(f"no sessions found in {home} (Claude Code, Codex CLI, ")
    assert result.stderr.endswith(
        "; name files or folders: cachecost bill PATH; a session to look at: cachecost demo\n"
    )
    assert (result.stderr.count("\n"), result.stdout, code_of()) == (1, "", 0)
    assert (bill()["billed_usd"], bill()["rows"]) == ("0", [])


def test_no_sessions_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    assert run(tmp_path / "logs").stderr == (
        f"no sessions found in {tmp_path}/logs; name files or folders: cachecost bill PATH\n"
    )


# ------------------------------------------------------------------------------------------ the store


def test_the_store_is_where_it_is_told_or_nowhere(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bill(logs)
    assert not (tmp_path / "home").exists()
    monkeypatch.setenv("CACHECOST_STORE", str(tmp_path / "mine"))
    assert first == bill(logs) == bill(logs)
    assert (tmp_path / "mine/store.sqlite").is_file()
    monkeypatch.delenv("CACHECOST_STORE")
    assert bill(logs) == first
    assert (tmp_path / "home/.cache/cachecost/store.sqlite").is_file()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert bill(logs) == first
    assert (tmp_path / "xdg/cachecost/store.sqlite").is_file()


def test_a_store_that_cannot_be_used_is_said(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "store.sqlite", b"dear reader")
    monkeypatch.setenv("CACHECOST_STORE", str(tmp_path))
    assert run(logs).stderr == f"{path}: sessions are not remembered: it is another program's file\n"
    assert (code_of(logs), path.read_bytes(), bill(logs)["calls"]) == (0, b"dear reader", 5)


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="a system without devices")
def test_a_device_needs_a_named_format() -> None:
    assert run("/dev/null").stderr.splitlines() == [
        "/dev/null is not a regular file; name its format with --format",
        "1 file skipped: --skip accepts that",
    ]
    assert code_of("/dev/null") == 2
    assert run("/dev/null", "--format", "claude-code").stderr == (
        "no sessions found in /dev/null; name files or folders: cachecost bill PATH\n"
    )


def test_the_dollars_are_split_by_what_they_were_paid_for(logs: Path) -> None:
    """By hand, at 0.50, 6.25, 5 and 25 dollars per million for Opus, 0.10, 1.25, 1 and 5 for Haiku."""
    shown = run(logs).stdout.splitlines()
    assert shown[1] == "  Of it: $0.03 cache reads · $0.23 5m writes · <$0.01 uncached · $0.01 output"
    found = bill(logs)
    assert found["cost_by_class_usd"] == {
        "read": "0.0325",
        "write_5m": "0.231875",
        "write_1h": "0",
        "input": "0.000063",
        "output": "0.009045",
        "fees": "0",
    }
    for row in (found | {"cost_usd": found["billed_usd"]}, *found["rows"]):
        assert sum(map(Decimal, row["cost_by_class_usd"].values()), ZERO) == Decimal(row["cost_usd"])


COMPLETE, PARTIAL, UNSTATED = {"stop_reason": "end_turn"}, {"stop_reason": None}, dict[str, Any]()
STREAMED: list[tuple[list[dict[str, Any]], int]] = [
    ([PARTIAL, COMPLETE], 0),
    ([PARTIAL, PARTIAL], 1),
    ([COMPLETE, PARTIAL], 0),
    ([UNSTATED], 0),
    ([PARTIAL], 1),
]
"""Lines of one answer, and how many answers are not complete."""


@pytest.mark.parametrize(("lines", "partial"), STREAMED)
def test_an_answer_recorded_before_it_was_complete_is_a_lower_bound(
    tmp_path: Path, lines: list[dict[str, Any]], partial: int
) -> None:
    answers = [answer(n, (3, 0, 5_000, 0, 1 + n), "one", message=message) for n, message in enumerate(lines)]
    log = write(tmp_path / "a.jsonl", *answers, answer(60, (3, 5_000, 10, 0, 9), "two", message=COMPLETE))
    assert bill(log)["partial_outputs"] == partial
    said = "  Output is understated: Claude Code logged only the first tokens of 1 of 2 answers"
    assert (said in run(log).stdout) == bool(partial)
    assert (said in run(log, "--session", "s").stdout) == bool(partial)


NO_MATCH: list[tuple[tuple[str, ...], str]] = [
    (("--since", "2027-01-01"), "--since 2027-01-01T00:00:00Z"),
    (("--until", "2020-01-01"), "--until 2020-01-01T00:00:00Z"),
    (("--project", "shoop"), "--project shoop"),
    (("--project", "shop", "--since", "2026-03-04"), "--project shop --since 2026-03-04T00:00:00Z"),
]


@pytest.mark.parametrize(("options", "named"), NO_MATCH)
def test_filters_that_no_call_matches_are_named_with_what_there_is(
    logs: Path, options: tuple[str, ...], named: str
) -> None:
    found = run(logs, *options)
    assert found.stderr == (
        f"no call matches {named}; found: 3 session files, 2026-03-02 to 2026-03-03, projects cli, shop\n"
    )
    assert found.stdout == "$0.00 in 0 sessions, 0 calls · cache hit rate –\n"
    assert code_of(logs, *options) == 0


def test_filters_that_a_call_matches_are_not_named(logs: Path) -> None:
    assert run(logs, "--project", "shop", "--since", "2026-03-02").stderr == ""


def test_each_agent_is_named_once_where_none_has_sessions() -> None:
    said = run().stderr
    assert "opencode, Cline, Roo Code, Kilo Code); name files or folders: cachecost bill PATH; a session" in said
    assert said.count("Cline") == 1


def test_a_session_without_an_id_has_the_name_of_its_file_wherever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
    row = {"timestamp": stamp(0), "request": request, "usage": {"input_tokens": 10, "output_tokens": 5}}
    (tmp_path / "tuesday-night.jsonl").write_text(json.dumps(row) + "\n")
    monkeypatch.chdir(tmp_path)
    for path in ("tuesday-night.jsonl", tmp_path / "tuesday-night.jsonl"):
        assert "\n  tuesday-night " in run(path).stdout
        assert "--session tuesday-night for its calls" in run(path).stdout
    assert run("tuesday-night.jsonl", "--session", "tuesday-night").stdout.startswith("$0.000175 in 1 call, ")
