"""`cachecost whatif` end to end: what people read, and what machines do."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bodies import assistant, body, marked, text, user
from cachecost.cli import exit_code
from cachecost.commands.whatif import whatif
from conversations.session_stores import write_lines

SESSION = Path(__file__).parents[1] / "scenarios" / "recordings" / "sessions" / "claude-code-56-minutes.jsonl"


def run(*args: object) -> Result:
    return CliRunner().invoke(whatif, [str(arg) for arg in args], catch_exceptions=False, standalone_mode=False)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two calls with a pause of 400 s, which five minutes do not bridge."""
    first, later = text(2_000, "a"), [assistant(text(100, "b")), user(marked(text(200, "c")))]
    rows: list[dict[str, Any]] = [
        {"timestamp": "2026-10-05T09:00:00Z", "request": body(user(marked(first)), model="claude-sonnet-4-6")},
        {"timestamp": "2026-10-05T09:06:40Z", "request": body(user(first), *later, model="claude-sonnet-4-6")},
    ]
    path = tmp_path / "log.jsonl"
    return write_lines(path, rows)


@pytest.mark.parametrize("width", [80, 120])
def test_the_answer_comes_first(log: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run(log, "--tokens", "bytes", "--full").stdout.splitlines()
    assert lines[0] == f"{log}   2 calls · $0.0161 simulated"
    assert lines[1].startswith(
        "The best single change: keep-alive=295s:1 saves $0.00561 (35%): a keep-alive every 295 s of a pause"
    )
    assert lines[2].startswith("With other answers: model=")
    head = next(number for number, line in enumerate(lines) if line.startswith("  alternative"))
    table = lines[head : lines.index("", head)]
    assert max(map(len, table)) <= width
    assert not any("\x1b" in line for line in lines)
    assert "pauses   0 under 5 min, 1 of 5–60 min, 0 of an hour and more; the longest 7 min" in lines
    assert "tokens   bytes of compact JSON" in lines
    assert "assumed  effort is unchanged: no recording shows what another effort would have answered" in lines


@pytest.mark.parametrize("width", [80, 200])
def test_the_default_is_at_most_ten_lines(log: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run(log, "--tokens", "bytes").stdout.splitlines()
    assert len(lines) <= 10
    assert lines[0].startswith("$0.0161 now · keep-alive=295s:1 $0.0105, 35% less: a keep-alive every 295 s of a pause")
    assert lines[1] == f"{log}   2 calls · $0.0161 simulated"
    assert lines[2].startswith("cheaper    keep-alive=295s:3 $0.0119, 26% less · ")
    assert lines[2].endswith(" · ttl=1h $0.0144, 11% less")
    assert lines[3].startswith("trade-off  model=") and ", with other answers: " in lines[3]
    assert lines[-2].startswith(f"next       cachecost whatif {log} --full: all ")
    others = "explain (why it costs $0.0161), optimize (cheapest plan, the lower bound), lint (static checks)"
    assert lines[-1] == f"see also   cachecost COMMAND {log}: {others}"


def test_what_was_asked_for_is_in_the_default(log: Path) -> None:
    asked = ("--jointly", "ttl=1h,keep-alive=295s:1", "--action", "effort=low")
    lines = run(log, "--tokens", "bytes", *asked).stdout.splitlines()
    assert len(lines) <= 10
    assert any(line.startswith("As asked, together: ttl=1h + keep-alive=295s:1 ") for line in lines)
    assert lines[0].startswith("effort=low after call 2: the next call costs ")


ACTIONS = ("effort=low", "effort=max", "tools+=x", "tool_choice=any", "format=json")
TRAFFIC = SESSION.parents[1] / "traffic"


@pytest.mark.parametrize(
    ("log", "actions", "answers"),
    [
        (SESSION, 1, 1),
        (SESSION, 5, 5),
        (SESSION, 6, 4),
        *((path, 6, 4) for path in sorted(TRAFFIC.glob("sketch/*.jsonl"))[:2]),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else str(value),
)
def test_actions_are_answered_first_and_in_ten_lines(log: Path, actions: int, answers: int) -> None:
    names = [*ACTIONS, "effort=medium"][:actions]
    lines = run(log, *(word for name in names for word in ("--action", name))).stdout.splitlines()
    assert len(lines) <= 10
    assert [line.partition(" ")[0] for line in lines[:answers]] == names[:answers]
    assert all("the next call costs " in line for line in lines[:answers])
    assert lines[answers].startswith("… and 2 more actions: --full" if actions > answers else str(log))


def test_details_of_an_action_are_in_full_and_json(log: Path) -> None:
    asked = ("--tokens", "bytes", "--action", "effort=low")
    short, full = (run(log, *asked, *more).stdout for more in ((), ("--full",)))
    assert "The price of effort=low after call 2: " in full and "The price of" not in short
    assert "  assumed: " in full
    assert json.loads(run(log, *asked, "--json").stdout)["actions"][0]["tokens_lost"] == 0


@pytest.mark.parametrize(
    ("more", "day", "is_offered"),
    [
        ((), "2026-11-29", True),
        ((), "2026-11-30", False),
        (("--as-of", "2026-11-29"), "2026-12-24", True),
        (("--as-of", "2026-11-30"), "2026-12-24", False),
    ],
)
def test_what_is_retired_today_is_not_suggested(
    log: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], day: str, is_offered: bool
) -> None:
    """Sonnet 4.5 ends on 2026-11-30; the log is of October, on another model."""
    log.write_text(log.read_text().replace("claude-sonnet-4-5", "claude-opus-4-6"))
    monkeypatch.setenv("CACHECOST_TODAY", day)
    found = json.loads(run(log, "--tokens", "bytes", "--json", *more).stdout)
    assert ("model=claude-sonnet-4-5" in {one["name"] for one in found["alternatives"]}) is is_offered
    gone = {} if is_offered or more else {"claude-sonnet-4-5": "2026-11-29"}
    assert found["retired_models"] == gone
    full = run(log, "--tokens", "bytes", "--full", *more).stdout
    words = "retired, so not suggested: claude-sonnet-4-5 (last day 2026-11-29); --as-of 2026-10-05 prices them"
    assert (words in full.splitlines()) is bool(gone)


def test_today_must_be_a_date(log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CACHECOST_TODAY", "soon")
    assert code_of(log, "--tokens", "bytes") == 2
    assert "CACHECOST_TODAY expected a date like 2026-11-24; got 'soon'" in capsys.readouterr().err


def test_nothing_saves_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    sent = [[user(text(50))], [user(text(50)), assistant(text(60)), user(text(70))]]
    rows = [{"timestamp": f"2026-10-05T09:00:0{n}Z", "request": body(*messages)} for n, messages in enumerate(sent)]
    write_lines(path, rows)
    first = run(path, "--tokens", "bytes").stdout.splitlines()[0]
    assert first.endswith(" now; no single change that keeps the answers saves anything that these data support")


def test_json(log: Path) -> None:
    asked = ("--jointly", "ttl=1h,keep-alive=295s:1", "--action", "effort=low")
    parsed = json.loads(run(log, "--tokens", "bytes", "--json", *asked).stdout)
    assert (parsed["format"], parsed["cost_usd"]) == (1, "0.016125")
    assert "billed_usd" not in parsed
    keys = {"name", "cost_usd", "saving_usd", "supported", "assumption", "depends_on", "does", "share"}
    assert all(keys <= one.keys() for one in parsed["alternatives"])
    known = {one["name"]: one for one in parsed["alternatives"]}
    assert known["ttl=1h"]["cost_usd"] == "0.0144"
    assert known["ttl=1h"]["saving_usd"] == "0.001725"
    assert known["us"]["cost_usd"] == "0.0177375"  # 1.1 times
    savings = [Decimal(one["saving_usd"]) for one in parsed["alternatives"] if one["saving_usd"] is not None]
    assert savings == sorted(savings, reverse=True)
    assert parsed["jointly"]["names"] == ["keep-alive=295s:1"]
    assert parsed["asked"]["names"] == ["ttl=1h", "keep-alive=295s:1"]
    assert parsed["asked"]["why"]
    assert parsed["actions"][0]["name"] == "effort=low"
    assert parsed["break_even"]["pauses"] == {"under_5m": 0, "5m_to_1h": 1, "from_1h": 0}


def test_a_recording_with_bills_says_how_far_the_simulation_is_off() -> None:
    parsed = json.loads(run(SESSION, "--json").stdout)
    assert parsed["cost_usd"] == parsed["billed_usd"]
    for one in parsed["alternatives"]:
        if one["saving_usd"] is not None:
            assert Decimal(one["cost_usd"]) + Decimal(one["saving_usd"]) == Decimal(parsed["billed_usd"])
    first = run(SESSION, "--full").stdout.splitlines()[0]
    assert "billed; $" in first and " simulated (" in first
    assert "only differences are simulated" in first


def code_of(*args: object) -> int:
    words = [str(arg) for arg in args]
    return exit_code(lambda: whatif.main(args=words, prog_name="cachecost whatif", standalone_mode=False))


def test_bad_names_are_told_all_at_once(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(log, "--tokens", "bytes", "--jointly", "ttl=1h,ttl=5m,tool=sorted") == 2
    said = capsys.readouterr().err
    assert "got 'tool=sorted' (did you mean 'tools=sorted'?)" in said
    assert "--jointly 'ttl=1h' and 'ttl=5m' cannot be combined" in said
    assert "2 errors; nothing was run." in said
    assert code_of(log, "--tokens", "bytes", "--action", "effort=lo", "--action", "speed=fast") == 2
    assert "2 errors" in capsys.readouterr().err


def test_what_cannot_be_evaluated(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(log, "--tokens", "bytes", "--action", "model=claude-nobody") == 3
    assert "unknown model 'claude-nobody'" in capsys.readouterr().err
    empty = tmp_path / "empty.jsonl"
    empty.write_text("", encoding="utf-8")
    assert code_of(empty, "--format", "request-log") in (2, 3)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from cachecost.commands.whatif import whatif\n"
        "assert CliRunner().invoke(whatif, ['--help']).exit_code == 0\n"
        "heavy = {'pandas', 'matplotlib', 'tiktoken', 'pydantic', 'yaml', 'starlette', 'anthropic', 'httpx2'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("width", [80, 100, 110, 120, 200])
def test_the_answer_stands_at_every_width(log: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run(log, "--tokens", "bytes", "--full").stdout.splitlines()
    head = next(line for line in lines if line.startswith("  alternative"))
    assert all(name in head for name in ("cost", "saving", "sure?"))
    assert ("what it does" in head) is (width > 80)
    assert lines[-1].startswith("(column “what it does” needs ") is (width == 80)


def test_what_saves_the_same_is_named(log: Path) -> None:
    parsed = json.loads(run(log, "--tokens", "bytes", "--json").stdout)["alternatives"]
    line = run(log, "--tokens", "bytes", "--full").stdout.splitlines()[1]
    first = line.removeprefix("The best single change: ").partition(" ")[0]
    best = next(one for one in parsed if one["name"] == first)
    same = [one["name"] for one in parsed if one["saving_usd"] == best["saving_usd"] and one["name"] != first]
    assert line.endswith("save the same." if len(same) > 1 else "saves the same." if same else best["does"] + ".")
