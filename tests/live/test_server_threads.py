"""Conversations that the server holds: the SDK's tool runner and threads, and what cannot be continued."""

import asyncio
import copy

import anthropic
import pytest
from server_fakes import BODY, MODEL, Letters, Says, lines_of, post, sdk_of, served_by

from cachecost.live.clock import SteppingClock
from cachecost.live.request_log import CallLog
from cachecost.live.server.model import ModelAnswer, ResolvedCall, Threads, without_breakpoints
from cachecost.live.server.state import Meter, faults_from
from cachecost.prompts.request import MessageThread
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup

CREATE = {"type": "create"}
BREAKPOINT = {"type": "ephemeral"}
TOOLS = [{"name": "add", "description": "Add.", "input_schema": {"type": "object"}, "cache_control": BREAKPOINT}]


def going_on(message_id):
    return {"type": "continue", "previous_message_id": message_id}


def error_of(response):
    error = response.json()["error"]
    return response.status_code, error["type"], error.get("details", {}).get("error_code")


def test_a_continued_call_is_the_whole_conversation(tmp_path):
    answerer = Says({"type": "text", "text": "First."})
    first = {**BODY, "tools": TOOLS, "system": "Be brief.", "thread": CREATE}
    asks = {"role": "user", "content": [{"type": "text", "text": "One", "cache_control": BREAKPOINT}]}
    with CallLog(tmp_path / "log.jsonl") as log:
        served = served_by(answerer, Letters(), log=log)
        one = post(served, {**first, "messages": [asks]}).json()
        two = post(served, {**BODY, "thread": going_on(one["id"]), "messages": [{"role": "user", "content": "Two"}]})
    assert two.status_code == 200
    body = answerer.asked[1].body
    assert "thread" not in body
    assert (body["tools"], body["system"]) == (TOOLS, "Be brief.")
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "One"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "First."}]},
        {"role": "user", "content": "Two"},
    ]
    assert [asked.turn for asked in answerer.asked] == [0, 1]
    assert [line["request"] for line in lines_of(tmp_path / "log.jsonl")] == [asked.body for asked in answerer.asked]
    assert asks["content"][0]["cache_control"] == BREAKPOINT


def test_a_thread_goes_on_from_each_answer_once():
    served = served_by()
    one = post(served, {**BODY, "thread": CREATE}).json()["id"]
    two = post(served, {**BODY, "thread": going_on(one)}).json()["id"]
    again = post(served, {**BODY, "thread": going_on(one)})
    assert error_of(again) == (400, "invalid_request_error", "thread_already_continued")
    assert post(served, {**BODY, "thread": going_on(two)}).status_code == 200


def test_what_cannot_be_continued():
    served = served_by()
    plain = post(served, BODY).json()["id"]
    held = post(served, {**BODY, "thread": CREATE}).json()["id"]
    lost = (404, "not_found_error", "thread_not_found")
    assert error_of(post(served, {**BODY, "thread": going_on("msg_none")})) == lost
    assert error_of(post(served, {**BODY, "thread": going_on(plain)})) == lost
    other = {"x-api-key": "another", "anthropic-version": "2023-06-01"}
    assert error_of(post(served, {**BODY, "thread": going_on(held)}, head=other)) == lost
    told = (400, "invalid_request_error", "thread_fingerprint_mismatch")
    assert error_of(post(served, {**BODY, "thread": going_on(held), "tools": TOOLS})) == told
    assert error_of(post(served, {**BODY, "thread": {"type": "fork"}}))[:2] == (400, "invalid_request_error")
    assert error_of(post(served, {**BODY, "thread": {"type": "continue"}}))[:2] == (400, "invalid_request_error")


def test_a_refused_turn_can_be_sent_again():
    served = served_by()
    one = post(served, {**BODY, "thread": CREATE}).json()["id"]
    assert post(served, {**BODY, "max_tokens": -1, "thread": going_on(one)}).status_code == 400
    assert post(served, {**BODY, "thread": going_on(one)}).status_code == 200


def test_the_oldest_threads_go_first(monkeypatch):
    monkeypatch.setattr("cachecost.live.server.model.MOST_KEPT", 2)
    threads = Threads()
    for number in range(3):
        threads.keep("w", ResolvedCall({"messages": []}, MessageThread("")), {"id": f"m{number}", "content": []})
    assert [isinstance(threads.resolve("w", {"thread": going_on(f"m{n}")}), ResolvedCall) for n in range(3)] == [
        False, True, True,
    ]  # fmt: skip


def test_breakpoints_are_taken_off_blocks_and_off_nothing_else():
    call = {
        "type": "tool_use",
        "id": "t",
        "name": "n",
        "input": {"cache_control": 1, "content": [{"cache_control": 2}]},
    }
    result = {
        "type": "tool_result",
        "content": [{"type": "text", "text": "x", "cache_control": BREAKPOINT}],
        "cache_control": BREAKPOINT,
    }
    message = {"role": "user", "content": [call, result]}
    before = copy.deepcopy(message)
    bare = without_breakpoints(message)
    assert message == before
    assert bare["content"] == [call, {"type": "tool_result", "content": [{"type": "text", "text": "x"}]}]


def agent(asked):
    """Two tool calls, then the end."""
    if asked.turn < 2:
        call = {"type": "tool_use", "id": f"toolu_{asked.turn}", "name": "add", "input": {"a": asked.turn, "b": 1}}
        return ModelAnswer((call,), "tool_use")
    return ModelAnswer(({"type": "text", "text": "Done."},))


@pytest.mark.parametrize("streams", [False, True])
def test_the_sdks_tool_runner_runs_a_loop(tmp_path, streams):
    added = []

    @anthropic.beta_async_tool
    async def add(a: int, b: int) -> str:
        """Add two numbers."""
        added.append((a, b))
        return str(a + b)

    with CallLog(tmp_path / "log.jsonl") as log:
        answerer = Says(by=agent)
        served = served_by(answerer, Letters(), log=log)

        async def run():
            async with sdk_of(served) as client:
                runner = client.beta.messages.tool_runner(
                    model=MODEL,
                    max_tokens=500,
                    tools=[add],
                    stream=streams,
                    messages=[{"role": "user", "content": "?"}],
                )
                return await runner.until_done()

        message = asyncio.run(run())
    assert message.content[0].text == "Done."
    assert added == [(0, 1), (1, 1)]
    lines = lines_of(tmp_path / "log.jsonl")
    assert [line["status"] for line in lines] == [200, 200, 200]
    assert [len(line["request"]["messages"]) for line in lines] == [1, 3, 5]
    assert all(line["request"]["tools"] == lines[0]["request"]["tools"] for line in lines)
    assert [one["content"] for one in lines[2]["request"]["messages"]][-1][0]["content"] in (
        "2",
        [{"type": "text", "text": "2"}],
    )


def test_the_sdk_replays_a_thread_that_was_lost():
    served = served_by(Says(by=agent))

    async def run():
        async with sdk_of(served) as client:
            thread = client.beta.messages.thread(model=MODEL, max_tokens=500)
            await thread.send({"role": "user", "content": "?"})
            served.threads = Threads()
            return await thread.send({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_0"}]})

    assert asyncio.run(run()).content[0].id == "toolu_1"


def test_a_tool_loop_survives_faults(monkeypatch):
    monkeypatch.setattr("anthropic._base_client.INITIAL_RETRY_DELAY", 0.001)
    served = served_by(Says(by=agent), faults=faults_from(["1:529", "3:cut", "5:500"]))

    @anthropic.beta_async_tool
    async def add(a: int, b: int) -> str:
        """Add two numbers."""
        return str(a + b)

    async def run():
        async with sdk_of(served, retries=2) as client:
            asks = [{"role": "user", "content": "?"}]
            runner = client.beta.messages.tool_runner(model=MODEL, max_tokens=500, tools=[add], messages=asks)
            return await runner.until_done()

    assert asyncio.run(run()).content[0].text == "Done."


def billed_by_rules(host="anthropic", step_s=2.0):
    """A server on 7 November 2026 whose meter follows the rules."""
    meter = Meter(ReplaySetup(RuleBook(), PriceBook.load(), host, "bytes"))
    return served_by(meters=meter, clock=SteppingClock(step_s, 1_793_000_000 + 1_000_000))


def marked(*texts):
    return [{"type": "text", "text": text, "cache_control": BREAKPOINT} for text in texts]


def test_a_fourth_breakpoint_in_a_thread_is_refused():
    served = billed_by_rules()
    asked = {**BODY, "model": "claude-opus-5-5", "messages": [{"role": "user", "content": marked("a", "b", "c", "d")}]}
    assert post(served, asked).status_code == 200
    refused = post(served, {**asked, "thread": CREATE})
    assert error_of(refused) == (400, "invalid_request_error", "thread_unsupported_request")
    assert refused.json()["error"]["message"].endswith("last cache-eligible block. Found 4.")
    three = {**asked, "system": marked("s"), "messages": [{"role": "user", "content": marked("a", "b")}]}
    one = post(served, {**three, "thread": CREATE})
    assert one.status_code == 200
    new = {**asked, "messages": [{"role": "user", "content": marked("a", "b", "c")}]}
    assert post(served, {**new, "thread": going_on(one.json()["id"])}).status_code == 200


@pytest.mark.parametrize(("seconds", "found"), [(300.0, True), (301.0, False)])
def test_a_thread_expires(seconds, found):
    served, asked = billed_by_rules(step_s=seconds), {**BODY, "model": "claude-opus-5-5"}
    one = post(served, {**asked, "thread": CREATE}).json()["id"]
    again = post(served, {**asked, "thread": going_on(one)})
    assert again.status_code == (200 if found else 404)
    assert found or error_of(again) == (404, "not_found_error", "thread_not_found")


def test_bedrock_has_no_threads():
    refused = post(billed_by_rules("bedrock"), {**BODY, "model": "anthropic.claude-opus-4-6-v1", "thread": CREATE})
    assert error_of(refused)[:2] == (400, "invalid_request_error")
    assert refused.json()["error"]["message"] == "thread: Extra inputs are not permitted"
