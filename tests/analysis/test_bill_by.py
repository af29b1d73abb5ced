"""Rows by branch, pull request and version, and by what the results of tools cost while they were in the prompt."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bill_sessions import OPUS, SessionWriter, list_prices
from cachecost.analysis.bill.account import BillAccount, account_for
from cachecost.analysis.bill.prompt_results import prompt_results
from cachecost.analysis.bill.summary import NO_RESULTS, REST, ROWS_BY, BillRow, summarize
from cachecost.base.structs import replace
from cachecost.conversations.input_files import BilledCall, SessionFile, ToolResults, pack_results
from cachecost.providers.usage import Usage
from cachecost.sessions.reading import SessionReading
from conversations.session_stores import codex_session, qwen_session, write_lines

PRICE = {"input": Decimal(5), "read": Decimal("0.5"), "five": Decimal("6.25"), "output": Decimal(25)}
"""USD per million tokens of Claude Opus 4.5 (2026)."""


class ToolSession(SessionWriter):
    """A session on a branch, whose calls call tools."""

    def __init__(self, session: str, project: str = "/p", branch: str = "main", **more: Any) -> None:
        super().__init__(session, project, **more)
        self.branch, self.asked = branch, 0

    def add(self, kind: str, **fields: Any) -> None:
        super().add(kind, gitBranch=self.branch, **fields)

    def ask(self, read: int, written: int, *tools: tuple[str, dict[str, Any]], output: int = 100) -> None:
        """A call that asks for these tools."""
        self.answer(read, written, output=output)
        content = self.lines[-1]["message"]["content"] = []
        for name, value in tools:
            self.asked += 1
            content.append({"type": "tool_use", "id": f"t{self.asked}", "name": name, "input": value})

    def send(self, *results: tuple[int, int], text: int = 0) -> None:
        """The results of tools: (number, bytes as JSON) of each; and a text."""
        self.at += 1
        blocks: list[dict[str, Any]] = [
            {"type": "tool_result", "tool_use_id": f"t{number}", "content": "x" * (size - 2)}
            for number, size in results
        ]
        blocks += [{"type": "text", "text": "y" * (text - 2)}] if text else []
        self.add("user", message={"role": "user", "content": blocks})


def account_in(folder: Path) -> BillAccount:
    files = sorted(folder.rglob("*.jsonl"))
    return account_for(SessionReading(None).read_all(files).sessions, list_prices())


def rows_by(account: BillAccount, by: str) -> dict[str, BillRow]:
    summary = summarize(account, by)
    assert sum((row.cost for row in summary.rows), Decimal(0)) == summary.total.cost == summarize(account).total.cost
    assert sum((row.rewritten for row in summary.rows), Decimal(0)) == summary.total.rewritten
    assert sum((row.usage for row in summary.rows), Usage()) == summary.total.usage
    return {row.key: row for row in summary.rows}


def dollars(**tokens: int) -> Decimal:
    return sum((count * PRICE[name] for name, count in tokens.items()), Decimal(0)) / 10**6


def read_and_search(session: ToolSession) -> None:
    """10,003 tokens, an answer of 100, and then 1,000 more: 600 of Read, 200 of Bash, 200 of words."""
    session.write_message("Hello")
    session.ask(0, 10_000, ("Read", {}), ("Bash", {}))
    session.send((1, 3_000), (2, 1_000), text=1_000)
    session.ask(10_000, 1_100)


def test_results_are_written_then_read(tmp_path: Path) -> None:
    session = ToolSession("s")
    read_and_search(session)
    session.write_message("Go on", after_s=5)
    session.ask(11_100, 50)
    session.save(tmp_path / "s.jsonl")
    found = rows_by(account_in(tmp_path), "tool")
    assert (found["Read"].results, found["Read"].result_tokens, found["Read"].calls) == (1, 600, 2)
    assert found["Read"].cost == dollars(five=600, read=600)
    # three tokens at the end are not cached, and none of a result
    assert found["Bash"].cost == dollars(five=200, read=200)
    assert found["Bash"].usage == Usage(read=200, write_5m=200)
    assert set(found) == {"Read", "Bash", REST}
    assert found[REST].usage.output_tokens == 300


def test_what_is_rewritten_is_rewritten_by_its_tool(tmp_path: Path) -> None:
    session = ToolSession("s")
    read_and_search(session)
    session.write_message("Go on", after_s=1_000)
    session.ask(0, 11_150)
    session.save(tmp_path / "s.jsonl")
    found = rows_by(account_in(tmp_path), "tool")
    assert found["Read"].cost == dollars(five=1_200)
    assert found["Read"].rewritten == dollars(five=600) - dollars(read=600)
    (total,) = found["Read"].causes.values()
    assert (total.cause, total.times, total.tokens) == ("ttl_expired", 1, 600)


def test_no_result_outlives_a_compaction(tmp_path: Path) -> None:
    session = ToolSession("s")
    read_and_search(session)
    session.compact()
    session.ask(9_000, 2_000)
    session.save(tmp_path / "s.jsonl")
    assert rows_by(account_in(tmp_path), "tool")["Read"].cost == dollars(five=600)


def test_a_micro_compaction_takes_the_oldest_results(tmp_path: Path) -> None:
    session = ToolSession("s")
    read_and_search(session)
    session.add("system", subtype="microcompact_boundary", content="x")
    session.ask(9_900, 700)  # 11,103 and an answer of 100 became 10,603: 600 are gone, those of Read
    session.save(tmp_path / "s.jsonl")
    found = rows_by(account_in(tmp_path), "tool")
    assert (found["Read"].calls, found["Bash"].calls) == (1, 2)
    # those of Bash stood from 10,803 on: from 10,203 on now
    assert found["Bash"].cost == dollars(five=400)


def test_a_micro_compaction_takes_results_that_no_row_is_for(tmp_path: Path) -> None:
    session = ToolSession("s")
    session.write_message("Hello")
    session.ask(0, 10_000, ("Read", {}), ("mcp__docs__search", {}))
    session.send((1, 3_000), (2, 2_000))
    session.ask(10_000, 1_100)
    session.add("system", subtype="microcompact_boundary", content="x")
    session.ask(9_900, 700)
    session.save(tmp_path / "s.jsonl")
    account = account_in(tmp_path)
    docs, search = rows_by(account, "server")["docs"], rows_by(account, "tool")["mcp__docs__search"]
    assert (docs.cost, docs.calls, docs.usage) == (search.cost, search.calls, search.usage)
    assert docs.calls == 2


def test_servers_and_skills(tmp_path: Path) -> None:
    session = ToolSession("s")
    session.write_message("Hello")
    tools = ("mcp__docs__search", {}), ("mcp__docs__get__page", {}), ("Skill", {"skill": "pdf"}), ("a tool", {})
    session.ask(0, 10_000, *tools)
    session.send((1, 1_000), (2, 1_000), (3, 100), (4, 900))
    session.add("user", isMeta=True, sourceToolUseID="t3", message={"role": "user", "content": "z" * 998})
    session.ask(10_000, 1_100)
    session.save(tmp_path / "s.jsonl")
    account = account_in(tmp_path)
    found = rows_by(account, "server")
    assert {key: (row.results, row.result_tokens) for key, row in found.items()} == {"docs": (2, 500), REST: (0, 0)}
    found = rows_by(account, "skill")
    assert {key: (row.results, row.result_tokens) for key, row in found.items()} == {"pdf": (2, 275), REST: (0, 0)}
    tools_found = rows_by(account, "tool")
    assert {"a tool", "Skill", "mcp__docs__get__page"} < set(tools_found)
    assert tools_found["Skill"].cost == found["pdf"].cost == dollars(five=272, input=3)


def test_an_image_is_no_long_text(tmp_path: Path) -> None:
    session = ToolSession("s")
    session.write_message("Hello")
    session.ask(0, 10_000, ("Screenshot", {}), ("Bash", {}))
    session.send((1, 2), (2, 6_000))
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 400_000}}
    session.lines[-1]["message"]["content"][0]["content"] = [image]
    session.ask(10_000, 3_100)
    session.save(tmp_path / "s.jsonl")
    found = rows_by(account_in(tmp_path), "tool")
    assert found["Screenshot"].result_tokens == found["Bash"].result_tokens == 1_500


def test_what_the_bill_adds_beyond_a_result_is_something_else(tmp_path: Path) -> None:
    session = ToolSession("s")
    session.write_message("Hello")
    session.ask(0, 10_000, ("Bash", {}))
    session.send((1, 100))
    session.ask(10_000, 5_000)  # a file that the client attached
    session.save(tmp_path / "s.jsonl")
    assert rows_by(account_in(tmp_path), "tool")["Bash"].result_tokens == 50


def test_a_charge_is_divided_to_the_last_digit() -> None:
    charge = Decimal("0.0700000000000001")
    calls = [
        BilledCall(1, 1, OPUS, (3, 0, 10_000, 0, 100), 1.775e9),
        BilledCall(2, 2, OPUS, (3, 10_000, 1_100, 0, 77), 1.775e9 + 5, before=1, charged_usd=charge),
    ]
    results = pack_results([ToolResults(2, 3_000, [("Read", 1_000), ("Bash", 2_000)])])
    found = rows_by(account_for([SessionFile("s", "claude-code", "p", calls, results=results)], list_prices()), "tool")
    listed = dollars(input=3, read=10_000, five=1_100, output=77)
    assert abs(found["Read"].cost - dollars(five=333) * charge / listed) < Decimal("1e-9")
    assert (
        found["Read"].cost + found["Bash"].cost + found[REST].cost == dollars(input=3, five=10_000, output=100) + charge
    )


def test_a_call_belongs_to_the_branch_at_its_time(tmp_path: Path) -> None:
    """A resumed session writes its branch and version on the lines that it copies, one of them with a larger bill."""
    first = ToolSession("s1", branch="main")
    read_and_search(first)
    first.save(tmp_path / "1.jsonl")
    second = ToolSession("s2", branch="fix", at=first.at)
    second.version, second.asked = "2.1.9", first.asked
    about = {"sessionId": "s2", "gitBranch": "fix", "version": "2.1.9"}
    second.lines = [{**line, **about} for line in first.lines]
    longer = second.lines[-1]["message"]
    second.lines[-1]["message"] = {**longer, "usage": {**longer["usage"], "output_tokens": 120}}
    second.write_message("Go on", after_s=5)
    second.ask(11_100, 50)
    second.save(tmp_path / "2.jsonl")
    account = account_in(tmp_path)
    assert account.copies == 2
    assert {key: row.calls for key, row in rows_by(account, "branch").items()} == {"main": 2, "fix": 1}
    assert {key: row.calls for key, row in rows_by(account, "version").items()} == {
        "claude-code 2.1.4": 2,
        "claude-code 2.1.9": 1,
    }
    names = {row.key: (row.branches, row.versions) for row in summarize(account).rows}
    assert names == {"s1": (["main"], ["2.1.4"]), "s2": (["main", "fix"], ["2.1.4", "2.1.9"])}


def test_a_session_goes_on_on_another_branch(tmp_path: Path) -> None:
    session = ToolSession("s", "/home/ann/api")
    read_and_search(session)
    session.branch = "fix"
    session.write_message("Go on")
    session.ask(11_100, 50)
    agent = ToolSession("s", "/home/ann/api", "fix", agent="a1", at=session.at)
    agent.write_message("Search.")
    agent.ask(0, 9_000)
    agent.save(tmp_path / "agent-a1.jsonl")
    session.save(tmp_path / "s.jsonl")
    ToolSession("t", "/home/ann/web", "").save(tmp_path / "none.jsonl")
    other = ToolSession("u", "/home/ann/web", "fix")
    read_and_search(other)
    other.save(tmp_path / "u.jsonl")
    rows = summarize(account_in(tmp_path), "branch").rows
    assert {(row.key, row.project): row.calls for row in rows} == {
        ("main", "/home/ann/api"): 2,
        ("fix", "/home/ann/api"): 2,
        ("fix", "/home/ann/web"): 2,
    }


def link(session: str, at: str, number: int) -> dict[str, Any]:
    return {
        "type": "pr-link",
        "sessionId": session,
        "prNumber": number,
        "prUrl": f"https://github.com/ann/api/pull/{number}",
        "prRepository": "ann/api",
        "timestamp": f"2026-03-{at}.000Z",
    }


def test_calls_belong_to_the_pull_request_that_their_session_links_next(tmp_path: Path) -> None:
    session, other = ToolSession("s"), ToolSession("t")
    read_and_search(session)
    for after_s in (3_600, 3_600):
        session.write_message("Go on", after_s=after_s)
        session.ask(11_100, 50)
    assert session.lines[-1]["timestamp"].startswith("2026-03-03T01:50")
    links = [link("s", "03T00:10:00", 7), link("s", "03T01:00:00", 9), link("s", "03T02:00:00", 9)]
    links += [link("s", "03T00:00:00", 11) | {"prNumber": "11"}, link("u", "no time", 12)]  # as it never was written
    write_lines(tmp_path / "s.jsonl", [*session.lines, *links])
    other.write_message("See https://github.com/ann/api/pull/7")
    other.ask(0, 10_000)
    other.save(tmp_path / "t.jsonl")
    found = rows_by(account_in(tmp_path), "pr")
    assert {key: row.calls for key, row in found.items()} == {
        "ann/api#7": 2,
        "ann/api#9": 2,
        "no pull request recorded": 1,
    }


def test_titles_that_were_recorded(tmp_path: Path) -> None:
    session = ToolSession("s")
    read_and_search(session)
    titles = [
        ("custom-title", "customTitle", "My name"),
        ("ai-title", "aiTitle", "Its name"),
        ("ai-title", "aiTitle", "B"),
    ]
    for kept, title in ((titles[1:], "B"), (titles, "My name")):
        lines = [{"type": kind, key: text, "sessionId": "s"} for kind, key, text in kept]
        write_lines(tmp_path / "s.jsonl", [*session.lines, *lines])
        assert [row.title for row in summarize(account_in(tmp_path)).rows] == [title]


@pytest.fixture
def home(tmp_path: Path) -> BillAccount:
    """Sessions of three clients."""
    session = ToolSession("s")
    read_and_search(session)
    session.save(tmp_path / "s.jsonl")
    codex = codex_session()
    codex[0]["payload"]["git"] = {"branch": "fix", "commit_hash": "0", "repository_url": "x"}
    write_lines(tmp_path / "rollout-2026-11-20T10-00-00-t-1.jsonl", codex)
    write_lines(tmp_path / "chats" / "q.jsonl", [{**row, "gitBranch": "main"} for row in qwen_session()])
    return account_in(tmp_path)


def test_several_makers(home: BillAccount) -> None:
    assert {file.client for file in home.files} == {"claude-code", "codex", "qwen-code"}
    for by in ROWS_BY:
        rows_by(home, by)
    assert {(row.key, row.project) for row in summarize(home, "branch").rows} == {
        ("main", "/p"),
        ("fix", "/home/me/proj"),
        ("main", "/home/me/proj"),
    }
    assert {key.split()[0] for key in rows_by(home, "version")} == {"claude-code", "codex", "qwen-code"}
    found = rows_by(home, "tool")
    assert set(found) == {"Read", "Bash", "exec", REST, NO_RESULTS}
    assert found[NO_RESULTS].calls == 2


def test_with_other_calls_a_row_is_another(home: BillAccount) -> None:
    """The period decides which dollars count, and not which results are in the prompt."""
    late = replace(home, is_counted=lambda call: call.before > 0, _priced=[])
    found = {row.key: row for row in summarize(late, "tool").rows}
    assert found["Read"].cost == dollars(five=600) and found["Read"].calls == 1


BEFORE = BilledCall(1, 1, OPUS, (0, 0, 10_000, 0, 100), 1.775e9)
ADDS = BilledCall(2, 2, OPUS, (0, 10_000, 1_100, 0, 77), 1.775e9 + 5, before=1)
"""It adds a result of 1,000 tokens, which ends at 11,100."""
NEXT = BilledCall(3, 3, OPUS, (0, 11_100, 200, 0, 10), 1.775e9 + 9, before=2)


def tokens_of(*calls: BilledCall, size: int = 4_000) -> list[list[int]]:
    """The tokens of the one tool in each prompt, in the order of a bill."""
    file = SessionFile(
        "s", "claude-code", calls=list(calls), results=pack_results([ToolResults(2, size, [("A", size)])])
    )
    return [prompt.tokens(call).get("A", []) for call, prompt in prompt_results(file, str)]


WRITTEN = [0, 0, 1_000, 0, 0]
SITUATIONS: dict[str, tuple[list[BilledCall], list[list[int]]]] = {
    "it is written, then read": ([BEFORE, ADDS, NEXT], [[], WRITTEN, [0, 1_000, 0, 0, 0]]),
    "a read ends in it": (
        [BEFORE, ADDS, replace(NEXT, tokens=(300, 10_500, 400, 100, 10))],
        [[], WRITTEN, [100, 400, 400, 100, 0]],
    ),
    "it is uncached": ([BEFORE, replace(ADDS, tokens=(1_100, 10_000, 0, 0, 77))], [[], [1_000, 0, 0, 0, 0]]),
    "the answer was billed longer than it was recorded": (
        [replace(BEFORE, is_output_partial=True, answer_bytes=100_000), ADDS],
        [[], []],
    ),
    "a usage of several passes is no length": ([BEFORE, replace(ADDS, is_summed=True), NEXT], [[], [], []]),
    "nor is that before": ([replace(BEFORE, is_summed=True), ADDS], [[], []]),
    "the prompt is shorter than what was in it": (
        [BEFORE, ADDS, replace(NEXT, tokens=(0, 9_000, 0, 0, 10))],
        [[], WRITTEN, []],
    ),
    "the history was cleared": ([BEFORE, ADDS, replace(NEXT, events=("clear",))], [[], WRITTEN, []]),
    "another call goes on from before": ([BEFORE, ADDS, replace(NEXT, before=1)], [[], WRITTEN, []]),
    "a first call does not say how long its results are": ([replace(BEFORE, number=2)], [[]]),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_where_a_result_stands_decides(situation: str) -> None:
    calls, expected = SITUATIONS[situation]
    assert tokens_of(*calls) == expected
