"""What `bill` prints, call by call and as a whole: pinned at several widths, and the fields of its JSON."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bill_sessions import MAIN, SMALL, write_sessions
from cachecost.commands.bill import BY, bill
from goldens import Golden


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sessions in the folder where the command runs, so that paths are the same everywhere."""
    monkeypatch.chdir(tmp_path)
    write_sessions(tmp_path / "sessions")
    return Path("sessions")


def run(*arguments: str, columns: int = 180) -> Result:
    environment = {"CACHECOST_STORE": "off", "COLUMNS": str(columns)}
    return CliRunner().invoke(bill, arguments, env=environment, standalone_mode=True)


def shown(*arguments: str, columns: int = 180) -> str:
    done = run(*arguments, columns=columns)
    assert done.exit_code == 0 and not done.stderr, (done.stderr, done.exception)
    return done.stdout


def as_json(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shown(*arguments, "--json"))
    return found


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("options", ["", "--all-calls"])
def test_a_session_call_by_call(folder: Path, golden: Golden, options: str, columns: int) -> None:
    golden.check(shown("sessions", "--session", "1e0816ef", *options.split(), columns=columns))


@pytest.mark.parametrize("columns", [60, 80, 100, 120, 180])
@pytest.mark.parametrize("by", ["", "--by day", "--by project", "--by model", "--by agent", "--session 1e0816ef"])
def test_no_line_ends_with_blanks_or_is_wider_than_the_terminal(folder: Path, by: str, columns: int) -> None:
    lines = shown("sessions", *by.split(), columns=columns).splitlines()
    assert not [line for line in lines if line.endswith(" ")]
    assert not [line for line in lines if len(line) > max(columns, 80) and " " in line.strip()]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_answer_is_never_hidden(folder: Path, columns: int) -> None:
    head = next(line for line in shown("sessions", columns=columns).splitlines() if "main cause" in line)
    assert head.split()[0] == "session" and head.split()[-4:] == ["cost", "rewritten", "main", "cause"]


def test_json_has_the_calls_in_order_of_time(folder: Path) -> None:
    found = as_json("sessions", "--session", MAIN)
    calls = found["calls"]
    assert [one["number"] for one in calls] == list(range(1, 15))
    assert [one["time"] for one in calls] == sorted(one["time"] for one in calls)
    assert {one["session"] for one in calls} == {MAIN}
    assert sum(Decimal(one["cost_usd"]) for one in calls) == Decimal(found["billed_usd"])
    assert sum(Decimal(one["rewritten_usd"]) for one in calls) == Decimal(found["rewritten_usd"]) > 0
    assert [one["agent"] for one in calls if one["agent"]] == ["a1", "b2", "a1", "b2"]


def test_json_tells_cause_idle_time_and_place(folder: Path) -> None:
    calls = as_json("sessions", "--session", MAIN)["calls"]
    expired = next(one for one in calls if one["cause"] == "ttl_expired")
    assert expired | {"cost_usd": "", "usage": {}, "rewritten_usd": ""} == {
        "number": 6,
        "time": "2026-03-03T00:03:19.000000Z",
        "session": MAIN,
        "agent": "",
        "agent_type": "",
        "model": "claude-opus-4-5-20251101",
        "file": f"sessions/work/{MAIN}.jsonl",
        "line": 12,
        "usage": {},
        "cost_usd": "",
        "cause": "ttl_expired",
        "rewritten_tokens": 32_000,
        "rewritten_usd": "",
        "message": "idle for 13 min, longer than the 5m TTL",
        "events": ["human"],
        "idle_s": 782.0,
        "cache_miss_reason": None,
    }
    assert expired["usage"]["cache_creation_input_tokens"] == 32_200
    causes = [one["cause"] for one in calls]
    assert causes[:5] == ["warm_start", "hit", "hit", "hit", "hit"]
    assert causes[7] == "model_changed" and causes[-1] == "compaction"
    assert calls[0]["idle_s"] is None and calls[1]["idle_s"] == 3.0


def test_without_session_there_are_no_calls(folder: Path) -> None:
    assert "calls" in as_json("sessions") and isinstance(as_json("sessions")["calls"], int)


def test_words_of_a_person_are_shown_and_go_nowhere_else(folder: Path) -> None:
    assert "“Fix it.”" in shown("sessions", "--session", MAIN)
    assert "Fix it." not in shown("sessions", "--session", MAIN, "--json")
    assert "Search the code." not in shown("sessions", "--session", MAIN, "--all-calls")


def test_a_session_is_named_by_its_title_else_by_its_first_message(folder: Path) -> None:
    first = "Why does the login"
    rows = [line for line in shown("sessions").splitlines() if line.startswith("  1e08")]
    assert first in rows[0] and "Hello?" in rows[1]
    page = run("sessions", "--csv", "rows.csv", "--html", "page.html")
    assert page.exit_code == 0
    for text in (shown("sessions", "--json"), *(Path(name).read_text("utf-8") for name in ("rows.csv", "page.html"))):
        assert first not in text and "Hello?" not in text
    with (folder / "work" / f"{MAIN}.jsonl").open("a") as file:
        file.write(json.dumps({"type": "ai-title", "aiTitle": "Login on Windows", "sessionId": MAIN}) + "\n")
    assert "Login on Windows" in shown("sessions") and first not in shown("sessions")
    assert "  title: Login on Windows\n" in shown("sessions", "--session", MAIN)
    assert [row["title"] for row in as_json("sessions")["rows"]] == ["Login on Windows", ""]


@pytest.mark.parametrize("by", BY)
def test_every_table_ends_with_its_total(folder: Path, by: str) -> None:
    wide, narrow = shown("sessions", "--by", by, columns=180), shown("sessions", "--by", by, columns=80)
    assert wide.count("16 calls") == 1  # of the headline
    found = as_json("sessions", "--by", by)
    totals = [line.split() for line in wide.splitlines() if line.startswith("  total ")]
    assert len(totals) == (len(found["rows"]) > 1)
    assert all({"262k", "123k", "1.6k", "$0.85", "$0.51"} < set(total) for total in totals)
    heads = [next(line for line in text.splitlines() if line.endswith("main cause")) for text in (wide, narrow)]
    assert ["  cache read  cache write  output " in head for head in heads] == [True, False]
    for field, whole in (("cost_usd", "billed_usd"), ("rewritten_usd", "rewritten_usd")):
        assert sum(Decimal(row[field]) for row in found["rows"]) == Decimal(found[whole])


def test_times_are_those_of_the_zone_that_was_asked_for(folder: Path) -> None:
    assert run("sessions", "--timezone", "Asia/Tokyo", "--html", "page.html").exit_code == 0
    page = Path("page.html").read_text("utf-8")
    assert "times in Asia/Tokyo" in page and "--timezone Asia/Tokyo" in page
    assert "2026-03-03 08:50:05" in page and "2026-03-02 23:50:05" not in page
    done = run("sessions", "--timezone", "Asia/Tokyo", "--since", "2026-04-01")
    assert "found: 4 session files, 2026-03-03 to 2026-03-04" in done.stderr


ERRORS = {
    "1e0816": f"--session: 2 sessions begin with '1e0816': {SMALL}, {MAIN}",
    "1e0817": f"--session: no session begins with '1e0817'; the nearest: {SMALL}, {MAIN}",
    "zz": f"--session: no session begins with 'zz'; the most recent: {SMALL}, {MAIN}",
}


@pytest.mark.parametrize("named", ERRORS)
def test_a_session_that_is_not_there_or_not_the_only_one(folder: Path, named: str) -> None:
    done = run("sessions", "--session", named)
    assert done.exit_code == 2 and not done.stdout
    assert done.stderr.splitlines()[-1] == f"Error: {ERRORS[named]}"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("--session 1e0816ef --by day", "--by: not with --session, which shows one session call by call"),
        ("--all-calls", "--all-calls: only with --session"),
    ],
)
def test_options_that_do_not_go_together(folder: Path, options: str, error: str) -> None:
    done = run("sessions", *options.split())
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, f"Error: {error}")


def test_the_period_holds_for_the_calls_of_a_session(folder: Path) -> None:
    calls = as_json("sessions", "--session", MAIN, "--since", "2026-03-03")["calls"]
    assert [one["cause"] for one in calls][:2] == ["ttl_expired", "hit"]


def test_csv_has_a_row_a_call(folder: Path) -> None:
    done = run("sessions", "--session", MAIN, "--csv", "calls.csv")
    assert done.exit_code == 0 and done.stderr == "calls.csv written\n"
    lines = Path("calls.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 15 and lines[0].startswith("number,time,session,agent,agent_type,model,file,line,usage.")


def test_a_page_is_written_and_says_how_to_write_it_again(folder: Path) -> None:
    done = run("sessions", "--session", "1e0816ef", "--since", "2026-03-02", "--html", "bill page.html")
    assert (done.exit_code, done.stderr) == (0, "bill page.html written\n")
    again = (
        "cachecost bill sessions --since 2026-03-02T00:00:00.000000Z --session 1e0816ef --html &#39;bill page.html&#39;"
    )
    assert f"<pre><code>{again}</code></pre>" in Path("bill page.html").read_text(encoding="utf-8")
