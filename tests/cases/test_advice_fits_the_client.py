"""Advice is a replay of these calls with one change that their client can make now."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from case_files import DATA, Run, json_of
from transcripts import OPUS_5_5, billed, cost_at_ttl, usages

from bill_sessions import SessionWriter
from command_runs import run_here

HOME = "home/.claude/projects"
CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")


def sessions_in(case: str) -> list[Path]:
    return sorted((DATA / case / HOME).rglob("*.jsonl"))


def changes(found: dict[str, Any]) -> list[tuple[str, Decimal]]:
    return [(one["change"], Decimal(one["saved_usd"])) for one in found["advice"]]


def bill_of(folder: Path, *options: object) -> Any:
    return json_of(run_here("bill", folder, "--json", *options, HOME=str(folder), CACHECOST_STORE="off"))


def test_many_pauses_are_outlasted_by_the_setting_and_by_no_keep_alives(run_case: Run) -> None:
    calls = [usages(path) for path in sessions_in("42-many-pauses")]
    saved = billed(calls, OPUS_5_5, OPUS_5_5.write_5m) - cost_at_ttl(calls, OPUS_5_5, 3600)
    found = json_of(run_case("42-many-pauses", "bill", HOME, "--json"))
    assert changes(found) == [("a 1h TTL for the main conversation", saved)]
    assert round(saved, 3) == Decimal("1.355")
    text = run_case("42-many-pauses", "bill", HOME).stdout
    assert "needs Claude Code ≥ 2.1.243; yours is 2.1.330" in text
    assert "keep-alive" not in text


def test_a_new_session_after_a_pause_is_no_loss_to_be_advised_against(run_case: Run) -> None:
    """After 2 h the old session had expired, too: going on with it would have cost $0.41 more."""
    done = run_case("43-new-session-after-pause", "bill", HOME)
    assert "--continue" not in done.stdout and "What would have saved" not in done.stdout


def test_the_ttl_that_is_advised_is_not_the_one_that_is_there(run_case: Run) -> None:
    now = [calls for path in sessions_in("44-already-at-1h") if len(calls := usages(path)) and is_of_late(path)]
    saved = billed(now, OPUS_5_5, OPUS_5_5.write_1h) - cost_at_ttl(now, OPUS_5_5, 300)
    whole = json_of(run_case("44-already-at-1h", "bill", HOME, "--json"))
    late = json_of(run_case("44-already-at-1h", "bill", HOME, "--json", "--since", "2026-11-15"))
    assert changes(whole) == changes(late) == [("a 5m TTL for the main conversation", saved)]
    assert round(saved, 4) == Decimal("0.4455")


def is_of_late(path: Path) -> bool:
    return '"2026-11-2' in path.read_text()


@pytest.mark.parametrize("form", [("--apply",), ("--apply", "promptCacheTtl"), ("--apply=promptCacheTtl",)])
def test_one_setting_is_written(run_case: Run, tmp_path: Path, form: tuple[str, ...]) -> None:
    done = run_case("44-already-at-1h", "bill", *form, "--yes")
    assert done.returncode == 0, done.stderr
    settings = tmp_path / "44-already-at-1h" / "home" / ".claude" / "settings.json"
    assert json.loads(settings.read_text())["promptCacheTtl"] == "5m"


def test_a_setting_that_is_not_advised_is_not_written(run_case: Run) -> None:
    done = run_case("44-already-at-1h", "bill", "--apply", "ENABLE_TOOL_SEARCH", "--yes")
    assert done.returncode == 2
    assert "expected one of the settings that are advised (promptCacheTtl); got 'ENABLE_TOOL_SEARCH'" in done.stderr


# ------------------------------------------------------------------------------------------ siblings: sessions


def session(folder: Path, name: str, at: float, pauses: list[float], ttl: str, version: str, agent: str = "") -> None:
    """A session that pauses before each message; all that was cached and did not expire is read."""
    made = SessionWriter(name, "/p", agent, at)
    made.version = version
    made.write_message("begin")
    made.answer(0, 50_000, ttl=ttl)
    cached = 50_000
    for pause in pauses:
        made.write_message("go on", after_s=pause - 2)
        lives = pause < (3600 if ttl == "1h" else 300)
        made.answer(cached if lives else 0, 500 if lives else cached + 500, ttl=ttl)
        cached += 500
    made.save(folder / f"{name}{agent}.jsonl")


IDLE, BUSY = [900.0] * 4, [20.0] * 4


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ((IDLE, "1h", "2.1.330"), (IDLE, "5m", "2.1.330"), "a 1h TTL for the main conversation"),
        ((BUSY, "1h", "2.1.330"), (IDLE, "1h", "2.1.330"), ""),
        ((IDLE, "5m", "2.1.60"), (BUSY, "5m", "2.1.330"), "a 1h TTL for the main conversation"),
        ((IDLE, "5m", "2.1.60"), (IDLE, "1h", "2.1.330"), ""),
        ((BUSY, "1h", "2.1.60"), (BUSY, "5m", "2.1.330"), ""),
        ((IDLE, "5m", "2.1.60"), ([4000.0] * 3, "5m", "2.1.330"), "a 1h TTL for the main conversation"),
        (([4000.0] * 3, "5m", "2.1.330"), ([4000.0] * 3, "5m", "2.1.330"), ""),
        ((BUSY, "5m", "2.1.330"), ([299.0, 200.0], "1h", "2.1.330"), "a 5m TTL for the main conversation"),
    ],
)
def test_only_what_can_be_gained_now_is_advised(tmp_path: Path, first: Any, last: Any, expected: str) -> None:
    """Of the sessions that were written with the present TTL, and no others."""
    for number, (pauses, ttl, version) in enumerate((first, last)):
        session(tmp_path, f"s{number}", number * 86_400.0, pauses, ttl, version)
    assert [one["change"] for one in bill_of(tmp_path)["advice"]] == ([expected] if expected else [])


def test_sub_agents_have_a_setting_of_their_own_and_both_together_save_the_sum(tmp_path: Path) -> None:
    session(tmp_path, "s", 0, IDLE, "5m", "2.1.37")
    session(tmp_path, "s", 100, IDLE, "5m", "2.1.37", agent="a1")
    found = bill_of(tmp_path)
    assert {one["setting"] for one in found["advice"]} == {"promptCacheTtl", "subagentPromptCacheTtl"}
    assert Decimal(found["advice_together_usd"]) == sum(Decimal(one["saved_usd"]) for one in found["advice"])
    assert {one["needs"] for one in found["advice"]} == {"needs Claude Code ≥ 2.1.243; yours is 2.1.37"}
    done = run_here("bill", tmp_path, "--apply", "--yes", HOME=str(tmp_path), CACHECOST_STORE="off")
    assert done.returncode == 2
    assert "(promptCacheTtl, subagentPromptCacheTtl)" in done.stderr
    assert not (tmp_path / ".claude").exists()


def test_compacting_earlier_and_a_ttl_save_less_together(tmp_path: Path) -> None:
    """A shorter prompt costs less to write again."""
    made = SessionWriter("s", "/p")
    made.version = "2.1.330"
    made.write_message("begin")
    made.answer(0, 20_000)
    cached = 20_000
    for number in range(60):
        made.write_message("go on", after_s=900 if number % 10 == 9 else 20)
        made.answer(0 if number % 10 == 9 else cached, 3_000 + (cached if number % 10 == 9 else 0))
        cached += 3_000
    made.compact()
    made.write_message("go on")
    made.answer(20_000, 3_000)
    made.save(tmp_path / "s.jsonl")
    found = bill_of(tmp_path)
    saved = [Decimal(one["saved_usd"]) for one in found["advice"]]
    assert {one["setting"] for one in found["advice"]} == {"promptCacheTtl", "autoCompactWindow"}
    assert max(saved) < Decimal(found["advice_together_usd"]) < sum(saved)
    assert "compacting at 87k tokens: a window of 100k less the client's reserve of 13k" in dict(changes(found))


# ----------------------------------------------------------------------------------------------- logs of requests


@pytest.mark.parametrize(
    ("log", "change", "how"),
    [
        ("log.jsonl", "system.1 changed in call 6 of log.jsonl", "or into a message"),
        ("mcp.jsonl", "13 tools instead of 5 at tools.5 in call 6 of mcp.jsonl", "every tool from the first call on"),
    ],
)
def test_a_log_gets_the_block_and_the_call(run_case: Run, log: str, change: str, how: str) -> None:
    text = run_case("38-api-log-advice", "bill", log).stdout
    found = json_of(run_case("38-api-log-advice", "bill", log, "--json"))
    assert [one for one, _ in changes(found)] == [change] and how in text
    for word in ("client", "ENABLE_TOOL_SEARCH", "settings", "--apply", "resumed"):
        assert word not in text


def test_what_a_log_is_advised_is_what_the_change_saves_net(run_case: Run) -> None:
    """Claude Opus 5 at 0.5 and 6.25: tools that come from the start are read in calls 2 to 6, and nothing is lost.

    How long the tools are that were added is told by no bill of the calls before, so that it is estimated there.
    """
    lines = (DATA / "38-api-log-advice" / "mcp.jsonl").read_text().splitlines()
    ends = [sum(json.loads(line)["usage"][name] for name in CACHED) for line in lines]
    grown = (ends[4] - ends[0]) // 4
    tools = ends[5] - ends[4] - grown
    again = ends[4] - json.loads(lines[5])["usage"][CACHED[0]]
    net = (again * Decimal("5.75") - tools * 5 * Decimal("0.5")) / 10**6
    found = json_of(run_case("38-api-log-advice", "bill", "mcp.jsonl", "--json"))
    assert abs(changes(found)[0][1] - net) < Decimal("0.15") * net


def test_a_log_without_breakpoints_is_told_what_they_save(run_case: Run) -> None:
    """From the token counts alone: each call reads what the one before had, and writes the rest."""
    totals = [
        sum(json.loads(line)["usage"][name] for name in ("input_tokens", "cache_read_input_tokens"))
        for line in (DATA / "37-no-breakpoints" / "log.jsonl").read_text().splitlines()
    ]
    pairs = list(zip([0, *totals], totals, strict=False))
    after = sum((read * Decimal("0.5") + (total - read) * Decimal("6.25") for read, total in pairs), Decimal(0))
    saved = (5 * sum(totals) - after) / 10**6
    found = json_of(run_case("37-no-breakpoints", "bill", "log.jsonl", "--json"))
    explained = json_of(run_case("37-no-breakpoints", "explain", "log.jsonl", "--json"))
    assert [change for change, _ in changes(found)] == ["sent again without a breakpoint: 7 calls"]
    assert changes(found)[0][1] == Decimal(explained["avoidable_usd"])
    assert abs(changes(found)[0][1] - saved) < Decimal("0.0005")
    assert round(saved, 4) == Decimal("0.0749")


@pytest.mark.parametrize(
    ("options", "kept"), [(("--until", "2026-11-10T09:01:30"), 0), (("--since", "2026-11-10T09:01:30"), 1)]
)
def test_advice_is_for_the_calls_of_the_period(run_case: Run, options: tuple[str, ...], kept: int) -> None:
    found = run_case("38-api-log-advice", "bill", "log.jsonl", "--json", "--timezone", "UTC", *options)
    assert len(json_of(found)["advice"]) == kept


def test_a_healthy_log_is_told_nothing(run_case: Run, tmp_path: Path) -> None:
    lines = (DATA / "38-api-log-advice" / "log.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "log.jsonl").write_text("".join(lines[:5]))
    assert bill_of(tmp_path / "log.jsonl")["advice"] == []


def test_of_several_logs_the_file_and_its_line_are_named(run_case: Run, tmp_path: Path) -> None:
    folder = tmp_path / "38-api-log-advice"
    run_case("38-api-log-advice", "bill", "log.jsonl")
    found = {change for change, _ in changes(bill_of(folder))}
    assert "13 tools instead of 5 at tools.5 in mcp.jsonl:6" in found
    assert any(one.startswith("system.1 changed in") and one.endswith(("log.jsonl:6", "of log.jsonl")) for one in found)


@pytest.mark.parametrize(
    ("case", "log", "name"),
    [
        ("04-openai-clock", "log.jsonl", "volatile=last"),
        ("33-clock-and-short-tool-counts", "log.jsonl", "volatile=last"),
        ("37-no-breakpoints", "log.jsonl", "breakpoints=added"),
        ("38-api-log-advice", "log.jsonl", "volatile=last"),
        ("38-api-log-advice", "mcp.jsonl", "tools=same"),
        ("39-fan-out", "log.jsonl", "fan-out=warm"),
    ],
)
def test_bill_explain_and_whatif_give_one_change_one_name_one_text_and_one_price(
    run_case: Run, case: str, log: str, name: str
) -> None:
    (advice,) = json_of(run_case(case, "bill", log, "--json"))["advice"]
    explanation = json_of(run_case(case, "explain", log, "--json"))
    found = {one["name"]: one for one in json_of(run_case(case, "whatif", log, "--json"))["alternatives"]}[name]
    assert {advice["alternative"], *(one["alternative"] for one in explanation["findings"])} == {name}
    assert {advice["how"], *(one["fix"] for one in explanation["findings"])} == {found["does"]}
    assert advice["saved_usd"] == explanation["avoidable_usd"] == found["saving_usd"]
