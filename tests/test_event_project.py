"""The generated projects are what they promise: known events, consistent usage, nothing else remarkable."""

import json
from collections import Counter
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.providers.usage import Usage
from event_cache import EMPTY, EventCall, Prefix, bill_calls
from event_project import VERSIONS, Project, event_project, random_project
from event_threads import AGENT_TYPES
from step_records import read_steps

CAUSES = ["concurrent_write", "concurrent_write", "ttl_expired", "model_changed", "model_changed", "tools_changed",
          "compaction", "ttl_expired"]  # fmt: skip
SHARED = sum(AGENT_TYPES["Explore"])


def rows(project: Project, path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in project.files[path].splitlines()]


def digest(project: Project) -> str:
    return sha256(b"".join(path.encode() + text for path, text in sorted(project.files.items()))).hexdigest()


def check_calls(project: Project) -> None:
    """Every call with an event writes something again; every other one reads all that was cached."""
    for call in project.calls:
        assert call.bill.read + call.bill.written == call.prompt.size
        if call.before is not None:
            assert bool(call.rewritten) == bool(call.event)
            assert call.event or call.bill.read == call.before.cached
    assert project.rewritten_usd == sum((finding.cost_usd for finding in project.findings), Decimal())


def check_places(project: Project) -> None:
    """Each finding names the first line of its call's answer, and the call's number in that file."""
    for finding in project.findings:
        lines = rows(project, finding.file)
        line = lines[finding.line - 1]
        ids = list(dict.fromkeys(row["message"]["id"] for row in lines if "requestId" in row))
        assert ids.index(line["message"]["id"]) + 1 == finding.call
        assert lines[finding.line - 2].get("message", {}).get("id") != line["message"]["id"]
        assert (line["sessionId"], line.get("agentId", "")) == (finding.session, finding.agent)


def check_bills(project: Project) -> None:
    """The files add up to the calls, each call once; its last line has its output."""
    bills: dict[str, dict[str, Any]] = {}
    for path in project.files:
        if path.endswith(".jsonl"):
            bills |= {
                row["message"]["id"]: row["message"]["usage"] for row in rows(project, path) if "requestId" in row
            }
    assert len(bills) == len(project.calls)
    for call in project.calls:
        usage = bills[call.id]
        ttl = "1h" if call.ttl == "1h" else "5m"
        assert usage["input_tokens"] == call.uncached
        assert usage["cache_read_input_tokens"] == call.bill.read
        assert usage["cache_creation"][f"ephemeral_{ttl}_input_tokens"] == call.bill.written
        assert sum(usage["cache_creation"].values()) == usage["cache_creation_input_tokens"] == call.bill.written
        assert usage["output_tokens"] == call.output


@pytest.mark.parametrize("ttl", ["5m", "1h"])
def test_each_event_is_found_once_and_nothing_else(ttl: str) -> None:
    project = event_project(ttl)
    assert [finding.cause for finding in project.findings] == CAUSES
    assert 105 <= len(project.calls) <= 115
    assert len(project.cold_starts) == 2
    assert {finding.session for finding in project.findings} == {project.calls[0].session}
    check_calls(project)
    check_places(project)
    check_bills(project)


def test_the_rewrite_after_the_mcp_server_is_103k_tokens() -> None:
    (finding,) = [finding for finding in event_project().findings if finding.cause == "tools_changed"]
    assert 102_000 <= finding.tokens <= 104_000
    assert finding.cost_usd == finding.tokens * Decimal("4.8") / 10**6


def test_an_hour_costs_its_own_price_on_the_main_thread_and_agents_write_for_five_minutes() -> None:
    findings = event_project("1h").findings
    assert [finding.cost_usd for finding in findings[:2]] == [SHARED * Decimal("1.15") / 10**6] * 2
    assert findings[2].cost_usd == findings[2].tokens * Decimal("7.8") / 10**6


def test_agents_at_once_write_what_a_later_one_reads() -> None:
    calls = [call for call in event_project().calls if call.agent and call.before is None]
    assert [(call.bill.read, call.rewritten) for call in calls] == [(0, 0), (0, SHARED), (0, SHARED), (SHARED, 0)]


def test_the_end_of_a_compaction_is_paid_as_input() -> None:
    """All that the call wrote and sent uncached was rewritten: written tokens count first."""
    (call,) = [call for call in event_project().calls if call.event == "compaction"]
    assert call.rewritten == call.bill.written + call.bill.uncached
    dollars = call.bill.written * Decimal("4.8") + call.bill.uncached * Decimal("3.8")
    assert call.rewritten_usd == dollars / 10**6


def test_only_newer_clients_say_what_the_api_says_of_a_miss() -> None:
    for version, kinds in zip(VERSIONS, (0, 4), strict=True):
        project = event_project(version=version)
        lines = [row for path in project.files if path.endswith("l") for row in rows(project, path)]
        reasons = [row["message"]["diagnostics"] for row in lines if "requestId" in row]
        assert {row["version"] for row in lines if "version" in row} == {version}
        assert len({reason["cache_miss_reason"]["type"] for reason in reasons if reason}) == kinds


def test_newer_clients_record_each_request_with_what_it_adds() -> None:
    project = event_project(version=VERSIONS[1])
    lines = [row for path in sorted(project.files) if path.endswith("l") for row in rows(project, path)]
    requests = {row["id"]: row for row in lines if row["type"] == "api-request"}
    assert len(requests) == len(project.calls)
    assert {row["requestRef"] for row in lines if "requestId" in row} == set(requests)
    starts = [row for row in requests.values() if "base" not in row]
    assert len(starts) == 1 + 4 + 2, "the session, its agents, the compaction and the resume"
    for row in requests.values():
        base = requests.get(row.get("base", ""))
        assert row["keep"] == (base["keep"] + len(base["tail"]) if base else 0)
        assert row["tail"]
    shapes = [row["shapeHash"] for row in lines if row["type"] == "api-request-shape" and "agentId" not in row]
    assert len(shapes) == 3 and len(set(shapes)) == 2, "once more after the compaction"


def test_shorter_sessions_have_one_event_each_and_start_warm() -> None:
    project = event_project(sessions=5)
    later = [finding for finding in project.findings if finding.session != project.calls[0].session]
    assert [finding.cause for finding in later] == ["ttl_expired", "compaction", "tools_changed", "ttl_expired"]
    assert len({finding.session for finding in later}) == 4
    assert len(project.cold_starts) == 2
    check_calls(project)
    check_places(project)


def test_a_fork_copies_the_lines_since_the_compaction_and_goes_on() -> None:
    project = event_project(copied=True)
    first, fork = sorted(path for path in project.files if path.count("/") == 1)
    copies = {row["uuid"] for row in rows(project, first) if "uuid" in row} & {
        row["uuid"] for row in rows(project, fork) if "uuid" in row
    }
    assert rows(project, fork)[0]["subtype"] == "compact_boundary"
    assert len(copies) > 30
    assert [finding.cause for finding in project.findings] == [*CAUSES, "ttl_expired"]
    assert project.findings[-1].file == fork
    check_calls(project)
    check_places(project)
    check_bills(project)


def test_same_options_same_bytes() -> None:
    assert digest(event_project()) == digest(event_project())
    assert digest(random_project(7)) == digest(random_project(7))
    assert digest(event_project()) != digest(event_project("1h"))
    assert digest(random_project(7)) != digest(random_project(8))


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_random_projects_have_known_events_only(seed: int) -> None:
    project = random_project(seed)
    check_calls(project)
    check_places(project)
    check_bills(project)


def test_random_projects_have_every_cause() -> None:
    causes = Counter(finding.cause for seed in range(20) for finding in random_project(seed).findings)
    assert set(causes) == {*CAUSES, "billed_not_explained"}


def test_the_reader_sees_the_calls_that_were_planned(tmp_path: Path) -> None:
    project = event_project("1h")
    project.write(tmp_path)
    for path in {call.file for call in project.calls}:
        calls = [call for call in project.calls if call.file == path]
        steps = read_steps(tmp_path / path)
        assert [step.usage for step in steps] == [_usage(call) for call in calls]
        assert [step.line for step in steps] == [call.line for call in calls]
        assert [step.before for step in steps] == [None, *range(1, len(calls))]
        compacted = [call.number for call in calls if call.event == "compaction"]
        assert [step.number for step in steps if "compaction" in step.between] == compacted


def _usage(call: EventCall) -> Usage:
    hour = call.ttl == "1h"
    written = (0, call.bill.written) if hour else (call.bill.written, 0)
    return Usage(call.bill.uncached, call.bill.read, *written, call.output)


def planned(start: float, prompt: Prefix, before: EventCall | None = None) -> EventCall:
    static = next(node for node in prompt.back() if node.size <= 100)
    return EventCall("s", "", 1, start, "claude-opus-5-5", "5m", static, prompt, 3, 10, before)


@pytest.mark.parametrize(
    ("start", "read", "pending"), [(1.99, 0, 100), (2.0, 100, 0), (299.99, 100, 0), (300.0, 0, 0), (301.0, 0, 0)]
)
def test_an_entry_is_readable_after_the_first_token_and_until_its_ttl(start: float, read: int, pending: int) -> None:
    static = EMPTY.then("static", 100)
    calls = [planned(0, static.then("a", 50)), planned(start, static.then("b", 70))]
    bill_calls(calls)
    assert (calls[0].bill.read, calls[0].bill.written) == (0, 150)
    assert (calls[1].bill.read, calls[1].bill.written, calls[1].bill.pending) == (read, 170 - read, pending)


def test_a_read_starts_the_ttl_anew() -> None:
    prompt = EMPTY.then("static", 100).then("a", 50)
    calls = [planned(start, prompt) for start in (0.0, 250.0, 500.0, 801.0)]
    bill_calls(calls)
    assert [call.bill.read for call in calls] == [0, 150, 150, 0]
