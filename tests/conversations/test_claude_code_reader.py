"""Claude Code transcripts as calls: threads from the tree of records, heads from bills, breakpoints as the client
sets.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.calls import BillTotal, Call
from cachecost.conversations.readers.claude_code.reader import calls
from cachecost.conversations.sessions import conversations_of
from cachecost.prompts.request import Breakpoint
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.simulation.workload import recorded_workload
from conversations.test_transcript_reader import CALL, MODEL, RESULT, SAYS, START, answer, system, user
from step_records import read_steps

PRICES = PriceBook.load(None, None)
HOUR = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 900,
    "cache_read_input_tokens": 0,
    "cache_creation": {"ephemeral_1h_input_tokens": 900, "ephemeral_5m_input_tokens": 0},
    "output_tokens": 7,
}


def calls_of(folder: Path, lines: Sequence[dict[str, Any]], name: str = "session.jsonl") -> list[Call]:
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return list(calls(path))


def told(call: Call) -> list[tuple[str, list[str]]]:
    """The messages of a call: who, and what in a word each."""
    return [(message.role, [_word(block.content) for block in message.blocks]) for message in _messages(call)]


def _messages(call: Call) -> list[Any]:
    return call.request.thread.messages()


def _word(content: Any) -> str:
    return str(content.get("text") or content.get("thinking") or content.get("content") or content.get("id"))


def turns(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    return [user("a", None, 0), answer("b", "a", 3, (10, 0, 5000, 30), CALL, sessionId="s"), *lines]


NEXT = ("f", "z", 9, (2, 5010, 400, 55), SAYS, "msg_2", "req_2")


def test_a_request_is_the_thread_up_to_it(tmp_path: Path) -> None:
    first, second = calls_of(tmp_path, turns(user("z", "b", 7, RESULT), answer(*NEXT, sessionId="s")))
    assert told(first) == [("user", ["please"])]
    assert told(second) == [("user", ["please"]), ("assistant", ["toolu_1"]), ("user", ["ok"])]
    assert (second.start, second.first_token_s, second.billed) == (START + 7, 2.0, Usage(2, 5010, 400, 0, 55))
    assert (second.request.model, second.session, second.id) == (MODEL, "s", "msg_2 req_2")
    assert [block.content for block in second.response] == SAYS


def test_records_of_one_side_are_one_message(tmp_path: Path) -> None:
    lines = turns(user("y", "b", 7, RESULT), user("z", "y", 8, "and quickly"), answer(*NEXT))
    assert told(calls_of(tmp_path, lines)[1])[-1] == ("user", ["ok", "and quickly"])


def test_results_of_tools_that_ran_at_once_stand_on_branches_and_belong_to_the_request(tmp_path: Path) -> None:
    other = [{**CALL[0], "id": "toolu_2"}]
    lines = turns(
        answer("c", "b", 4, (10, 0, 5000, 60), other),
        user("d", "b", 5, RESULT),
        user("z", "c", 6, [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "too"}]),
        answer(*NEXT),
    )
    second = calls_of(tmp_path, lines)[1]
    assert told(second)[1:] == [("assistant", ["toolu_1", "toolu_2"]), ("user", ["ok", "too"])]


def test_words_of_an_abandoned_branch_do_not(tmp_path: Path) -> None:
    lines = turns(user("y", "b", 7, "no, wait"), user("z", "b", 8, RESULT), answer(*NEXT))
    assert told(calls_of(tmp_path, lines)[1])[-1] == ("user", ["ok"])


@pytest.mark.parametrize("boundary", [True, False])
def test_after_a_compaction_only_the_summary_is_sent(tmp_path: Path, boundary: bool) -> None:
    cut = [system("y", None, 7, "compact_boundary", logicalParentUuid="b")] if boundary else []
    lines = turns(*cut, user("z", "y" if boundary else "b", 8, "in short", isCompactSummary=True), answer(*NEXT))
    assert told(calls_of(tmp_path, lines)[1]) == [("user", ["in short"])]


def test_the_head_is_what_the_first_bill_leaves_and_what_it_read_is_shared(tmp_path: Path) -> None:
    lines = [
        user("a", None, 0, version="2.1.30"),
        answer("b", "a", 3, (10, 4000, 1000, 30), SAYS, version="2.1.30"),
        user("c", None, 9, isSidechain=True, agentId="x", version="2.1.30"),
        answer("d", "c", 12, (5, 4000, 500, 9), SAYS, "msg_2", isSidechain=True, agentId="x", version="2.1.30"),
    ]
    main, side = calls_of(tmp_path, lines)
    message = main.request.thread.messages()[0].blocks[0].size // 4
    assert [block.tokens for block in main.request.system.blocks] == [4000, 1010 - message]
    assert [block.tokens for block in side.request.system.blocks] == [4000, 505 - message]
    assert main.request.system.blocks[0].digest == side.request.system.blocks[0].digest
    assert [(call.session, call.agent) for call in (main, side)] == [("", ""), ("", "x")]


def test_a_chain_that_wrote_the_head_shares_it_with_those_that_read_it(tmp_path: Path) -> None:
    lines = [
        user("a", None, 0),
        answer("b", "a", 3, (10, 0, 5000, 30), SAYS),
        user("c", None, 9, isSidechain=True),
        answer("d", "c", 12, (5, 4000, 500, 9), SAYS, "msg_2", isSidechain=True),
    ]
    main, side = calls_of(tmp_path, lines)
    assert main.request.system.blocks[0].digest == side.request.system.blocks[0].digest
    assert (
        sum(block.tokens or 0 for block in main.request.system.blocks)
        == 5010 - main.request.thread.messages()[0].blocks[0].size // 4
    )


def test_breakpoints_are_those_of_the_client_with_the_lifetime_that_the_bill_tells(tmp_path: Path) -> None:
    lines = [
        user("a", None, 0),
        answer("b", "a", 3, HOUR, [{"type": "thinking", "thinking": "hm"}, *CALL]),
        user("z", "b", 7, RESULT),
        answer(*NEXT[:3], {**HOUR, "cache_creation_input_tokens": 0, "cache_creation": None}, *NEXT[4:]),
    ]
    for call in calls_of(tmp_path, lines):
        system_breakpoint, message_breakpoint = call.request.breakpoints
        assert (system_breakpoint.layer, system_breakpoint.index, system_breakpoint.ttl) == ("system", 0, "1h")
        assert message_breakpoint == Breakpoint(message_breakpoint.layer, 0, "1h", call.request.thread)


def breakpoints_of(call: Call) -> list[tuple[str, int]]:
    """The breakpoints in messages: role and index of the block."""
    nodes = [(one.node, one.index) for one in call.request.breakpoints if one.node is not None]
    return [(node.message.role, index) for node, index in nodes if node.message]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.0.32", [("assistant", 1), ("user", 0)]),
        ("2.1.58", [("assistant", 1), ("user", 0)]),
        ("2.1.59", [("user", 0)]),
        ("2.1.330", [("user", 0)]),
        ("", [("user", 0)]),
    ],
)
def test_old_clients_place_a_breakpoint_on_the_last_two_messages(
    tmp_path: Path, version: str, expected: list[tuple[str, int]]
) -> None:
    said = [*SAYS, *CALL, {"type": "thinking", "thinking": "hm"}]
    lines = [
        user("a", None, 0, version=version),
        answer("b", "a", 3, (10, 0, 5000, 30), said, version=version),
        user("z", "b", 7, RESULT, version=version),
        answer(*NEXT, version=version),
    ]
    first, second = calls_of(tmp_path, lines)
    assert breakpoints_of(first) == [("user", 0)]
    assert breakpoints_of(second) == expected


def request_line(*breakpoints: object) -> dict[str, Any]:
    """A request as 2.1.282 and later record it."""
    return {"type": "api-request", "id": "request-2", "sessionId": "s", "cacheControl": list(breakpoints)}


def at(*path: str | int, ttl: str | None = None) -> dict[str, Any]:
    return {"path": list(path), "value": {"type": "ephemeral"} | ({"ttl": ttl} if ttl else {})}


@pytest.mark.parametrize(
    ("breakpoints", "expected"),
    [
        ([at("system", 0, ttl="1h"), at("messages", 2, "content", 0)], [("system", "1h"), ("user", "5m")]),
        (
            [at("tools", 3), at("messages", 1, "content", 0, ttl="1h"), at("messages", 2, "content", 0)],
            [("system", "5m"), ("assistant", "1h"), ("user", "5m")],
        ),
        ([at("messages", 2, "content", 0)], [("user", "5m")]),
        ([], []),
        ([at("system", 0, ttl="2h")], [("system", "5m"), ("user", "5m")]),
        ([{"path": "system"}], [("system", "5m"), ("user", "5m")]),
        (["system"], [("system", "5m"), ("user", "5m")]),
        (
            [at("system", 0, ttl="1h"), {"path": ["messages"], "value": {"ttl": ["1h"]}}],
            [("system", "5m"), ("user", "5m")],
        ),
    ],
)
def test_recorded_breakpoints_win_over_those_of_the_version(
    tmp_path: Path, breakpoints: list[object], expected: list[tuple[str, str]]
) -> None:
    """What cannot be read leaves those of the version, with the TTL in the usage."""
    lines = [
        user("a", None, 0, version="2.1.330"),
        answer("b", "a", 3, HOUR, CALL, version="2.1.330"),
        user("z", "b", 7, RESULT, version="2.1.330"),
        request_line(*breakpoints),
        answer(*NEXT, version="2.1.330", requestRef="request-2"),
    ]
    found = calls_of(tmp_path, lines)[1].request.breakpoints
    assert [(one.node.message.role if one.node and one.node.message else str(one.layer), one.ttl) for one in found] == (
        expected
    )


@pytest.mark.parametrize(("version", "read"), [("2.1.58", True), ("2.1.59", False)])
def test_twelve_tools_at_once_are_read_in_full_by_old_clients_only(tmp_path: Path, version: str, read: bool) -> None:
    """24 blocks lie between two ends of a request; a breakpoint looks back over 20."""
    names = [f"toolu_{number}" for number in range(12)]
    lines = [
        user("a", None, 0, version=version),
        answer("b", "a", 3, (10, 0, 5000, 30), [{**CALL[0], "id": name} for name in names], version=version),
        user("z", "b", 7, [{**RESULT[0], "tool_use_id": name} for name in names], version=version),
        answer(*NEXT, version=version),
    ]
    made = calls_of(tmp_path, lines)
    workload = recorded_workload("log", made, ReplaySetup(RuleBook(), PRICES, bills=made))
    first, second = workload.simulation().rows(made)
    assert first.cause == "cold_start"
    assert second.cause == ("hit" if read else "lookback_exceeded")
    assert (second.usage.read == 5000) is read


def test_a_copy_of_a_call_in_another_file_has_the_same_id(tmp_path: Path) -> None:
    whole = turns(user("z", "b", 7, RESULT), answer(*NEXT))
    copied = [{**line, "uuid": f"copy {line['uuid']}", "parentUuid": None} for line in whole]
    assert [call.id for call in calls_of(tmp_path, whole)] == [
        call.id for call in calls_of(tmp_path, copied, "resumed.jsonl")
    ]


def test_an_answer_copied_by_a_fork_with_a_usage_of_zero_is_no_call(tmp_path: Path) -> None:
    """It stays part of the next request. What remains of its 5m part is not charged again."""
    zero = {
        **dict.fromkeys(("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"), 0),
        "cache_creation": {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 0},
    }
    lines = [
        user("a", None, 0, "in short", isCompactSummary=True),
        answer("b", "a", 3, zero, SAYS),
        user("z", "b", 7, "and now"),
        answer(*NEXT),
    ]
    (only,) = calls_of(tmp_path, lines)
    assert told(only) == [("user", ["in short"]), ("assistant", ["done"]), ("user", ["and now"])]
    assert only.billed == Usage(2, 5010, 400, 0, 55)
    assert [(step.number, step.before) for step in read_steps(tmp_path / "session.jsonl")] == [(1, None)]


@pytest.mark.parametrize("name", ["input_tokens", "output_tokens", "cache_read_input_tokens"])
def test_an_answer_that_counts_one_token_is_a_call(tmp_path: Path, name: str) -> None:
    usage = {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0}
    (only,) = calls_of(tmp_path, [user("a", None, 0), answer("b", "a", 3, {**usage, name: 1}, SAYS)])
    if name == "output_tokens":  # every prompt has tokens: a usage without any is no bill
        assert (only.billed, only.output_billed) == (None, 1)
    else:
        assert only.billed is not None
        assert only.billed.total_input == 1


def test_blocks_whose_words_somebody_took_out_are_known_by_their_digests(tmp_path: Path) -> None:
    free = [{"type": "text", "chars": 400, "digest": "ab"}]
    (call,) = calls_of(tmp_path, [user("a", None, 0, free), answer("b", "a", 3, (10, 0, 5000, 30), SAYS)])
    (block,) = call.request.thread.messages()[0].blocks
    assert (block.kind, block.size, block.tokens, block.content) == ("text", 400, 100, None)


def test_planned_anew_it_costs_what_was_billed_to_the_token(tmp_path: Path) -> None:
    """Uncached, the input of all calls is the sum of their bills, whatever the tokenizer thinks of the messages."""
    lines = turns(user("z", "b", 7, RESULT), answer(*NEXT))
    made = calls_of(tmp_path, lines)
    bill = BillTotal(PRICES)
    assert list(bill.add_all(made)) == made
    ledger = replay_strategy("none", conversations_of(made), ReplaySetup(RuleBook(), PRICES, bills=made))
    assert ledger.usage == Usage(5010 + 5412, 0, 0, 0, 85)
    assert bill.usage.total_input == 10_422
    # claude-opus-4-5: 5 in, 25 out, 0.5 read, 6.25 written, USD per million
    assert bill.dollars == (12 * 5 + 85 * 25 + 5010 * Decimal("0.5") + 5400 * Decimal("6.25")) / 10**6
    assert ledger.cost.total == Decimal(10_422 * 5 + 85 * 25) / 10**6


def test_an_empty_file_and_a_damaged_line_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"session\.jsonl is empty; expected a transcript"):
        calls_of(tmp_path, [])
    with pytest.raises(
        InputError, match=r"session\.jsonl:1 message\.content: expected a text or an array of blocks; got 5"
    ):
        calls_of(tmp_path, [user("a", None, 0, 5)])
