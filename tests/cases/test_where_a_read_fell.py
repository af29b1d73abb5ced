"""A loss that nothing explains says where the read fell to, what stood before it, and how often: no more, no less."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from case_files import Run, json_of

from bill_sessions import SessionWriter
from command_runs import run_here

HOME = "home/.claude/projects"
UNKNOWN = "billed_not_explained"
STAYED = "(tools and system prompt) were found: all messages were written again"


def losses(done: Any) -> list[dict[str, Any]]:
    rewrites: list[dict[str, Any]] = json_of(done)["rewrites"]
    return rewrites


def test_messages_are_written_again_after_a_tool_search_and_after_a_skill(run_case: Run) -> None:
    """claude-opus-5-5 writes for an hour at 8 and reads at 0.2 per million."""
    found = losses(run_case("11-toolsearch-rewrite", "bill", HOME, "--json"))
    assert [one["cause"] for one in found] == [UNKNOWN] * 2
    lost = [121_890 - 33_390, 125_090 - 33_390]
    assert [one["tokens"] for one in found] == lost
    search, skill = (one["message"] for one in found)
    assert all(f"only the first 33,390 {STAYED}" in words for words in (search, skill))
    assert ", after a ToolSearch result;" in search and ", after a skill was loaded;" in skill
    assert all("2 calls of this session fell to this length" in words for words in (search, skill))
    assert [one["broke_at"] for one in found] == [
        {"place": "messages_start", "tokens": 33_390, "call": None, "calls_back": 0}
    ] * 2
    assert [one["stood_before"] for one in found] == [["tool_search"], ["skill"]]
    assert [one["known_fault"]["report"] for one in found] == ["anthropics/claude-code#91514"] * 2
    text = run_case("11-toolsearch-rewrite", "bill", HOME).stdout
    assert "cause unknown" in text and "transcript does not show it" in text
    assert "as in claude-code#91514, mended in 2.1.259" in " ".join(text.split())


def test_equal_events_have_one_answer(run_case: Run) -> None:
    first, second = losses(run_case("12-resume-rewrites", "bill", HOME, "--json"))
    assert first["cause"] == second["cause"] == UNKNOWN
    nothing = "nothing was found: tools, system prompt and messages were written again, "
    assert [one["message"].partition(nothing)[2] for one in (first, second)] == [
        "after the session was resumed, at a user message; as in claude-code#42338",
        "at a user message",
    ]
    assert [one["broke_at"]["place"] for one in (first, second)] == ["start"] * 2
    assert "upgrade" not in run_case("12-resume-rewrites", "bill", HOME).stdout


def test_the_end_of_tools_and_system_is_known_where_it_is_read_alone(run_case: Run) -> None:
    """The first call read nothing, so that only the later reads tell where its message began."""
    found = losses(run_case("48-falls-to-the-same-length", "bill", HOME, "--json"))
    assert sum(one["tokens"] for one in found) == 101_900
    assert sum(Decimal(one["cost_usd"]) for one in found) == 101_900 * Decimal("4.8") / 10**6
    for one in found:
        counts = "3 of 3 such losses, 0 of 17 healthy calls"
        assert f"only the first 16,606 {STAYED}, at a user message ({counts})" in one["message"]
        assert one["known_fault"] is None
        assert one["message"].endswith("; 3 calls of this session fell to this length")


@pytest.mark.parametrize("case", ["11-toolsearch-rewrite", "12-resume-rewrites", "48-falls-to-the-same-length"])
def test_explain_says_the_same(run_case: Run, case: str) -> None:
    bill, explain = (json_of(run_case(case, command, HOME, "--json")) for command in ("bill", "explain"))
    said = sorted((one["message"], one["cost_usd"]) for one in bill["rewrites"])
    assert sorted((one["message"], one["cost_usd"]) for one in explain["not_explained"]) == said


# -------------------------------------------------------------------------------------------------- siblings


def written(folder: Path, name: str = "s", begin: int = 0, agent: str = "", **then: Any) -> None:
    """A session that is answered twice, then reads only `read`."""
    made = SessionWriter(name, "/p", agent, at=then.get("at", 0.0))
    made.write_message("begin")
    made.answer(begin, 30_000 - begin)
    made.write_message("go on")
    made.answer(30_000, 5_000)
    for kind, fields in then.get("between", [("user", {"message": {"role": "user", "content": "go on"}})]):
        made.add(kind, **fields)
    read = then["read"]
    made.answer(read, 36_000 - read)
    made.save(folder / f"{name}{agent}.jsonl")


def messages(folder: Path) -> list[str]:
    return [one["message"] for one in losses(run_here("bill", folder, "--json", CACHECOST_STORE="off"))]


@pytest.mark.parametrize(
    ("begin", "read", "expected"),
    [
        (20_000, 20_000, f"only the first 20,000 {STAYED}"),
        (0, 20_000, f"only the first 20,000 {STAYED}"),
        (20_000, 20_017, f"only the first 20,017 {STAYED}"),
        (0, 0, "nothing was found: tools, system prompt and messages were written again"),
        (20_000, 0, "nothing was found: tools, system prompt and messages were written again"),
        (20_000, 12_000, "only the first 12,000 were found, a part of tools and system prompt, "),
        (0, 30_000, "only the first 30,000 were found: what call 1 had cached, 2 calls before, "),
        (20_000, 29_998, "only the first 29,998 were found: what call 1 had cached, 2 calls before, "),
        (20_000, 33_000, "only the first 33,000 were found: later messages were written again, "),
    ],
)
@pytest.mark.parametrize("agent", ["", "a1"])
def test_the_place_is_said_as_far_as_it_shows(tmp_path: Path, begin: int, read: int, expected: str, agent: str) -> None:
    written(tmp_path, begin=begin, read=read, agent=agent)
    (words,) = messages(tmp_path)
    assert words.startswith("2 s after caching 35,000 tokens ") and expected in words


RESULT = ("user", {"message": {"role": "user", "content": [{"type": "tool_result", "content": "ok"}]}})
QUOTED = (
    "user",
    {"message": {"role": "user", "content": [{"type": "tool_result", "content": '"Skill" "ToolSearch"'}]}},
)


@pytest.mark.parametrize("between", [[RESULT], [QUOTED]])
def test_no_place_is_named_where_none_shows(tmp_path: Path, between: Any) -> None:
    written(tmp_path, begin=20_000, read=20_000, between=between)
    assert messages(tmp_path)[0].endswith(STAYED)


def test_other_sessions_count(tmp_path: Path) -> None:
    for number in range(3):
        written(tmp_path, f"s{number}", begin=20_000, read=20_000, at=number * 10.0)
    assert all(words.endswith("; 3 calls of all sessions fell to this length") for words in messages(tmp_path))


def test_where_tools_changed_a_part_of_them_is_not_taken_for_all(tmp_path: Path) -> None:
    between = [("attachment", {"attachment": {"type": "deferred_tools_delta"}}), RESULT]
    written(tmp_path, begin=0, read=20_000, between=between)
    (one,) = losses(run_here("bill", tmp_path, "--json", CACHECOST_STORE="off"))
    assert one["cause"] == "tools_changed"


def text(words: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "user", {"message": {"role": "user", "content": words}, **fields}


def result(*blocks: Any) -> tuple[str, dict[str, Any]]:
    return "user", {"message": {"role": "user", "content": [{"type": "tool_result", "content": list(blocks)}]}}


def attached(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "attachment", {"attachment": fields}


IMAGE, PDF = ({"type": kind, "source": {"type": "base64", "data": "AA=="}} for kind in ("image", "document"))
TASK = "<task-notification>\n<task-id>b1</task-id>"


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ([attached(type="hook_additional_context", content=["x"]), RESULT], ["hook"]),
        ([attached(type="hook_success", hookName="PostToolUse:Bash", content=""), RESULT], []),
        ([text("Stop hook feedback:\n[check] failed", isMeta=True)], ["hook"]),
        ([text("the Stop hook feedback was wrong")], ["human"]),
        ([attached(type="plan_mode_exit"), RESULT], ["plan"]),
        ([text("go on", permissionMode="plan")], ["human"]),
        ([text("a", permissionMode="plan"), text("b", permissionMode="acceptEdits")], ["plan", "human"]),
        ([text("a", permissionMode="default"), text("b", permissionMode="acceptEdits")], ["human"]),
        ([attached(type="task_status"), RESULT], ["task"]),
        ([attached(type="queued_command", commandMode="task-notification"), RESULT], ["task"]),
        ([attached(type="queued_command", commandMode="prompt"), RESULT], []),
        ([text(TASK)], ["task"]),
        ([("user", {"message": {"role": "user", "content": [{"type": "text", "text": TASK}]}})], ["task"]),
        ([text(f"what is {TASK}")], ["human"]),
        ([text("<command-name>/review</command-name>")], ["command"]),
        ([text("<command-message>review</command-message>\n<command-name>/review</command-name>")], ["command"]),
        ([result(IMAGE)], ["media"]),
        ([result(PDF)], ["media"]),
        ([result({"type": "text", "text": 'an "image" in words'})], []),
        ([("user", {**RESULT[1], "cwd": "/p"})], []),
        ([("user", {**RESULT[1], "cwd": "/p/sub"})], ["folder"]),
        ([("system", {"subtype": "api_error"}), RESULT], ["error"]),
    ],
)
def test_what_stood_before(tmp_path: Path, between: Any, expected: list[str]) -> None:
    written(tmp_path, begin=20_000, read=20_000, between=between)
    (one,) = losses(run_here("bill", tmp_path, "--json", CACHECOST_STORE="off"))
    assert one["cause"] == UNKNOWN and one["stood_before"] == expected


@pytest.mark.parametrize("fields", [{}, {"isMeta": True}])
def test_a_sub_agent_that_gets_another_message_was_woken(tmp_path: Path, fields: Any) -> None:
    written(tmp_path, begin=20_000, read=20_000, agent="a1", between=[text("more", **fields)])
    (one,) = losses(run_here("bill", tmp_path, "--json", CACHECOST_STORE="off"))
    assert one["stood_before"] == (["human"] if fields else ["woken"])


def test_a_turn_without_thinking_after_one_with_it(tmp_path: Path) -> None:
    """What a skill brings in begins a turn that asks for no thinking; what a person writes asks for it."""
    made = SessionWriter("s", "/p")
    asks = {"thinkingMetadata": {"maxThinkingTokens": 31_999}}
    made.add("user", message={"role": "user", "content": "begin"}, **asks)
    made.answer(20_000, 10_000, model="claude-opus-4-6")
    made.lines[-1]["message"]["content"] = [{"type": "tool_use", "id": "t", "name": "Skill", "input": {}}]
    made.return_result()
    made.add("user", message={"role": "user", "content": [{"type": "text", "text": "Steps"}]}, isMeta=True)
    made.answer(20_000, 11_000, model="claude-opus-4-6")
    made.at += 9
    made.add("user", message={"role": "user", "content": "go on"}, **asks)
    made.answer(20_000, 12_000, model="claude-opus-4-6")
    made.save(tmp_path / "s.jsonl")
    found = losses(run_here("bill", tmp_path, "--json", CACHECOST_STORE="off"))
    assert [one["cause"] for one in found] == ["thinking_changed"] * 2
    assert [one["message"].partition(":")[0] for one in found] == [
        "thinking was switched off",
        "thinking was switched on",
    ]
    assert all(one["broke_at"] is None and one["stood_before"] == [] for one in found)
    assert [one["known_fault"]["report"] for one in found] == ["anthropics/claude-code#21919"] * 2
    assert all(one["message"].endswith("; as in claude-code#21919") for one in found)
