"""Message threads are replayed as the whole requests that they stand for, or named where the log lacks a part."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cachecost.conversations.calls import BillTotal
from cachecost.conversations.importing import ImportOptions, import_files
from cachecost.conversations.readers.detect import read_calls
from cachecost.conversations.sessions import conversations_of
from cachecost.providers.prices import PriceBook
from command_runs import run_here
from row_places import without_place

Row = dict[str, Any]
LONG = "word " * 2_000
SYSTEM = [{"type": "text", "text": "be kind " * 2_000, "cache_control": {"type": "ephemeral"}}]
TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
HEAD: Row = {"model": "claude-opus-5-5", "max_tokens": 9}


def user(text: str, marked: bool = True) -> Row:
    breakpoint = {"cache_control": {"type": "ephemeral"}} if marked else {}
    return {"role": "user", "content": [{"type": "text", "text": f"{text} {LONG}", **breakpoint}]}


def said(number: int) -> list[Row]:
    return [{"type": "text", "text": f"answer {number}"}]


def row(number: int, request: Row, **fields: Any) -> Row:
    response = {"id": f"msg_{number}", "content": said(number)}
    return {
        "timestamp": f"2026-11-07T10:00:{number:02}Z",
        "request": {**HEAD, **request},
        "response": response,
        **fields,
    }


def goes_on(number: int) -> Row:
    return {"type": "continue", "previous_message_id": f"msg_{number}"}


THREAD = [
    row(1, {"system": SYSTEM, "tools": TOOLS, "messages": [user("a")], "thread": {"type": "create"}}),
    row(2, {"messages": [user("b")], "thread": goes_on(1)}),
    row(3, {"messages": [user("c")], "thread": goes_on(2)}),
    row(4, {"messages": [user("fork")], "thread": goes_on(1)}),
]


def whole() -> list[Row]:
    """The same calls, each sent in full."""
    first = [user("a", False), {"role": "assistant", "content": said(1)}]
    second = [*first, user("b", False), {"role": "assistant", "content": said(2)}]
    messages = [[user("a")], [*first, user("b")], [*second, user("c")], [*first, user("fork")]]
    head = {"system": SYSTEM, "tools": TOOLS}
    return [row(number, {**head, "messages": sent}) for number, sent in enumerate(messages, 1)]


def saved(path: Path, *rows: Row) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def replayed(log: Path, tokens: str, code: int = 0) -> list[Row]:
    done = run_here("replay", log, "--tokens", tokens, "--json")
    assert done.returncode == code, done.stderr
    return [without_place(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("tokens", ["bytes", "tiktoken"])
def test_a_thread_costs_what_its_whole_requests_cost(tmp_path: Path, tokens: str) -> None:
    threads = replayed(saved(tmp_path / "threads.jsonl", *THREAD), tokens)
    assert threads == replayed(saved(tmp_path / "whole.jsonl", *whole()), tokens)
    assert [one["usage"]["cache_read_input_tokens"] > 0 for one in threads] == [False, True, True, True]


def test_what_is_read_are_the_whole_requests(tmp_path: Path) -> None:
    logs = (saved(tmp_path / "threads.jsonl", *THREAD), saved(tmp_path / "whole.jsonl", *whole()))
    threads, sent = (list(read_calls(log)) for log in logs)
    for one, other in zip(threads, sent, strict=True):
        assert one.request.params == other.request.params
        assert [message.digest for message in one.request.thread.messages()] == [
            message.digest for message in other.request.thread.messages()
        ]
        assert [breakpoint.block_key for breakpoint in one.request.breakpoints] == [
            breakpoint.block_key for breakpoint in other.request.breakpoints
        ]
    assert len(conversations_of(threads)) == len(conversations_of(sent))


def test_a_call_whose_thread_began_before_the_log_is_named(tmp_path: Path) -> None:
    log = saved(tmp_path / "late.jsonl", *THREAD[1:3], whole()[2])
    made = replayed(log, "bytes", code=3)
    why = "message thread (thread: continue): the log has no answer msg_{} to continue from"
    assert [one.get("error") for one in made] == [
        {"type": "not_evaluated", "message": why.format(1)},
        {"type": "not_evaluated", "message": why.format(2)},
        None,
    ]
    import_files([log], tmp_path / "made.jsonl")
    assert replayed(tmp_path / "made.jsonl", "bytes", code=3) == made
    import_files([log], tmp_path / "free.jsonl", ImportOptions("digest"))
    free = replayed(tmp_path / "free.jsonl", "bytes", code=3)
    assert ["message thread" in one.get("error", {}).get("message", "") for one in free] == [True, True, False]


@pytest.mark.parametrize("lost", [{"status": 404}, {"response": {"id": "msg_1"}}])
def test_an_answer_that_is_not_there_cannot_be_gone_on_from(tmp_path: Path, lost: Row) -> None:
    first = {**THREAD[0], **lost}
    log = saved(tmp_path / "log.jsonl", {**first, "response": {"id": "msg_1"}}, THREAD[1])
    assert "message thread" in replayed(log, "bytes", code=3)[1]["error"]["message"]


def test_a_thread_that_was_lost_is_sent_whole_again(tmp_path: Path) -> None:
    lost = {**THREAD[2], "status": 404, "response": None}
    again = row(5, {**whole()[2]["request"], "thread": {"type": "create"}})
    made = replayed(saved(tmp_path / "log.jsonl", *THREAD[1:2], lost, again), "bytes", code=3)
    assert [bool(one.get("error")) for one in made] == [True, False, False]


def test_other_tools_that_are_sent_again_count(tmp_path: Path) -> None:
    other = [{"name": "write", "input_schema": {"type": "object"}}]
    rows = [THREAD[0], row(2, {"messages": [user("b")], "tools": other, "thread": goes_on(1)})]
    call = list(read_calls(saved(tmp_path / "log.jsonl", *rows)))[1]
    assert [block.content["name"] for block in call.request.tools.blocks if block.content] == ["write"]
    assert len(call.request.system.blocks) == 1


def test_on_demand_compaction_is_named_where_its_bill_is_not_in_the_log(tmp_path: Path) -> None:
    request = {"messages": [user("a")], "compaction": {"type": "summarize"}}
    (made,) = replayed(saved(tmp_path / "log.jsonl", row(1, request)), "bytes", code=3)
    assert made["error"]["type"] == "not_evaluated"
    assert made["error"]["message"].startswith("on-demand compaction (compaction: summarize): ")


def test_on_demand_compaction_costs_its_iteration(tmp_path: Path) -> None:
    """By hand: 9,000 tokens of input at 5, 300 of output at 25 dollars a million."""
    request = {**HEAD, "model": "claude-opus-4-6", "messages": [user("a", False)], "compaction": {"type": "summarize"}}
    passed = {"type": "compaction", "input_tokens": 9_000, "output_tokens": 300}
    usage = {"input_tokens": 0, "output_tokens": 0, "iterations": [passed]}
    response = {"id": "msg_1", "content": [{"type": "compaction", "content": "all that was said"}]}
    log = saved(tmp_path / "log.jsonl", row(1, request, usage=usage, response=response))
    (made,) = replayed(log, "calibrated")
    assert (made["usage"]["input_tokens"], made["usage"]["output_tokens"]) == (9_000, 300)
    assert made["cost_usd"] == "0.0525"


def parsed(command: str, log: Path) -> Any:
    done = run_here(command, log.name, "--json", cwd=log.parent)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", ["explain", "validate", "whatif"])
def test_every_command_sees_the_whole_requests(tmp_path: Path, command: str) -> None:
    """The bills are those of the whole requests, as `replay` counts them."""
    bills = [one["usage"] for one in replayed(saved(tmp_path / "log.jsonl", *whole()), "tiktoken")]
    made = []
    for rows in (THREAD, whole()):
        billed = [{**one, "usage": bill} for one, bill in zip(rows, bills, strict=True)]
        made.append(parsed(command, saved(tmp_path / "log.jsonl", *billed)))
    if command == "whatif":
        moved, _ = (_pop(one["alternatives"], "host=bedrock") for one in made)
        assert moved["supported"].endswith("the API refuses 4 calls: thread: Extra inputs are not permitted")
    if command == "validate":
        assert (made[0]["hits"], made[0]["cold"]) == ({"knowable": 3, "exact": 3}, {"knowable": 1, "exact": 1})
    assert made[0] == made[1]


def _pop(alternatives: list[Row], name: str) -> Row:
    return alternatives.pop([one["name"] for one in alternatives].index(name))


def test_what_cannot_be_simulated_is_billed_all_the_same(tmp_path: Path) -> None:
    """By hand: a million tokens of input at 4 dollars, ten thousand of output at 20 dollars a million."""
    usage = {"input_tokens": 1_000_000, "output_tokens": 10_000}
    compacting = row(1, {"messages": [user("a")], "compaction": {"type": "summarize"}}, usage=usage)
    unknown = row(2, {"messages": [user("b")], "thread": goes_on(7)}, usage=usage)
    total = BillTotal(PriceBook.load())
    for call in read_calls(saved(tmp_path / "log.jsonl", compacting, unknown)):
        assert call.why_unknown
        total.add(call)
    assert (total.calls, total.usage.input_tokens, total.dollars) == (2, 2_000_000, 2 * Decimal("4.2"))
