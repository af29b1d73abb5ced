"""The cause of each call of small logs with one fault, by replays and by explain, on models that keep thinking or not.

A row of `FAULTS` plants a fault into ten healthy calls and says which calls pay for it, and why. All other calls have
no loss: they read what was sent before, or are the first of their conversation.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from loops import EPHEMERAL, Body, Sending, calls_of, explained, healthy, simulation, words, workload_of

from cachecost.caches.breakpoints import PrefixCache
from cachecost.caches.losses import Loss
from cachecost.changes.observed_replay import observe_replay
from cachecost.changes.steps import Replays
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.scenario import load
from cachecost.simulation.workload import scenario_workloads

SCENARIOS = Path(__file__).parents[2] / "scenarios"
KEEPS, STRIPS = "claude-opus-4-8", "claude-sonnet-4-5"
WITHOUT_LOSS = {"hit", "new_content", "cold_start", "warm_start"}
Plant = Callable[[list[Sending]], "list[Sending] | None"]


def replayed(calls: list[Call]) -> tuple[list[CallRow], list[Loss]]:
    """The rows and the losses of a replay. The same losses are found by explain, and rows have the largest one's."""
    simulated = simulation(PrefixCache())
    made = [simulated.simulate(call) for call in calls]
    losses = [loss for one in made for loss in one.losses]
    replays = Replays(workload_of(calls))
    observed = observe_replay(replays, replays.recorded).losses
    assert [(one.call, one.cause, one.depth, one.tokens) for one in observed] == [
        (one.call, one.cause, one.depth, one.tokens) for one in losses
    ]
    for one in made:
        largest = max(one.losses, key=lambda loss: loss.tokens, default=None)
        assert one.row.cause == largest.cause if largest else one.row.cause in WITHOUT_LOSS, one.row
    return [one.row for one in made], losses


def found(sendings: list[Sending]) -> dict[int, str]:
    rows, losses = replayed(calls_of(sendings))
    lost = {loss.call for loss in losses}
    return {row.call: str(row.cause) for row in rows if row.call in lost}


def thoughtful(model: str, calls: int = 10) -> list[Sending]:
    """A healthy tool loop whose first answer has thinking."""
    sendings = healthy(calls, model)
    for sending in sendings[1:]:
        thought = {"type": "thinking", "thinking": words("hm", 30), "signature": "s"}
        sending.body["messages"][1]["content"].insert(0, thought)
    return sendings


def texts(sending: Sending) -> list[Body]:
    return [message["content"][0] for message in sending.body["messages"]]


def each(change: Callable[[Body], object], first: int = 5, last: int = 10, step: int = 1) -> Plant:
    def plant(sendings: list[Sending]) -> None:
        for sending in sendings[first - 1 : last : step]:
            change(sending.body)

    return plant


def put(**fields: Any) -> Callable[[Body], object]:
    return lambda body: body.update(deepcopy(fields))


def edit(body: Body) -> None:
    body["messages"][2]["content"][0]["content"] += " and more"


def edit_first(body: Body) -> None:
    body["messages"][0]["content"][0]["text"] += " please"


def insert(body: Body) -> None:
    body["messages"][3]["content"].insert(0, {"type": "text", "text": words("by the way", 9)})


def insert_messages(body: Body) -> None:
    more = [
        {"role": role, "content": [{"type": "text", "text": words(f"so {role}", 9)}]} for role in ("user", "assistant")
    ]
    body["messages"][:0] = more


def reorder_keys(body: Body) -> None:
    use = body["messages"][3]["content"][-1]
    body["messages"][3]["content"][-1] = dict(reversed(use.items()))


def drop_block(body: Body) -> None:
    del body["messages"][3]["content"][0]


def drop_messages(body: Body) -> None:
    del body["messages"][3:5]


def compact(body: Body) -> None:
    messages = body["messages"]
    summary = {"role": "assistant", "content": [{"type": "text", "text": words("in short", 20)}]}
    body["messages"] = [messages[0], summary, *messages[9:]]


def compact_all(body: Body) -> None:
    """The history becomes one message of the user, and the last exchanges follow."""
    summary = {"role": "user", "content": [{"type": "text", "text": words("in short", 20)}]}
    body["messages"] = [summary, *body["messages"][9:]]


def unmark(body: Body) -> None:
    for block in [*body["tools"], *body["system"], *body["messages"][-1]["content"]]:
        block.pop("cache_control", None)


def speak(sendings: list[Sending]) -> None:
    """A person speaks before the seventh call, so that models of the older class drop the thinking before."""
    for sending in sendings[6:]:
        sending.body["messages"][12]["content"].append({"type": "text", "text": "Go on, please."})


def speak_and_edit(sendings: list[Sending]) -> None:
    """The thinking is dropped, too, but an earlier block changed before it."""
    speak(sendings)
    each(edit_first, 7)(sendings)


def add_tool(body: Body) -> None:
    del body["tools"][-1]["cache_control"]
    more = {"name": "late", "description": words("late", 900), "input_schema": {"type": "object"}}
    body["tools"].append({**more, "cache_control": EPHEMERAL})


def clock(sendings: list[Sending]) -> None:
    for number, sending in enumerate(sendings):
        sending.body["system"][1]["text"] = f"Current time: 12:{number:02d}. " + words("folder", 40)


def clock_and_unmarked(sendings: list[Sending]) -> None:
    clock(sendings)
    for sending in sendings:
        del sending.body["messages"][-1]["content"][-1]["cache_control"]


def pause(sendings: list[Sending]) -> None:
    for sending in sendings[5:]:
        sending.start += 60_000


def elsewhere(sendings: list[Sending]) -> None:
    for sending in sendings[4:]:
        sending.workspace = "other"


LATER = range(2, 11)
FAULTS: dict[str, tuple[Plant, dict[int, str]]] = {
    "nothing": (lambda sendings: None, {}),
    "an edit": (each(edit), {5: "content_changed"}),
    "an edit of the first message": (each(edit_first), {5: "content_changed"}),
    "an edit of the first message of the second call": (each(edit_first, 2), {2: "content_changed"}),
    "an edit that is reverted": (each(edit, 5, 5), {5: "content_changed", 6: "content_changed"}),
    "an edit of every other call": (each(edit, 4, 10, 2), dict.fromkeys(range(4, 11), "content_changed")),
    "an inserted block": (each(insert), {5: "content_changed"}),
    "inserted messages": (each(insert_messages), {5: "content_changed"}),
    "reordered keys": (each(reorder_keys), {5: "content_changed"}),
    "a dropped block": (each(drop_block), {5: "content_changed"}),
    "dropped messages": (each(drop_messages), {5: "content_changed"}),
    "compaction": (each(compact, 7), {7: "compaction"}),
    "compaction into a first message": (each(compact_all, 7), {7: "compaction"}),
    "another tool": (each(add_tool), {5: "tools_changed"}),
    "a clock in the system prompt": (clock, dict.fromkeys(LATER, "system_changed")),
    "a clock, and an unmarked last message": (clock_and_unmarked, dict.fromkeys(LATER, "system_changed")),
    "tool_choice that alternates": (
        each(put(tool_choice={"type": "any"}), 2, 10, 2),
        dict.fromkeys(LATER, "tool_choice_changed"),
    ),
    "another tool_choice once": (
        each(put(tool_choice={"type": "any"}), 5, 5),
        {5: "tool_choice_changed", 6: "tool_choice_changed"},
    ),
    "a model that alternates": (
        each(put(model="claude-opus-4-7"), 2, 10, 2),
        dict.fromkeys(LATER, "model_changed"),
    ),
    "no breakpoint at all in one call": (each(unmark, 5, 5), {5: "no_breakpoint", 6: "no_breakpoint"}),
    "no breakpoint at all": (each(unmark, 1), dict.fromkeys(LATER, "no_breakpoint")),
    "a night": (pause, {6: "ttl_expired"}),
    "a night, and compaction after it": (
        lambda sendings: (pause(sendings), each(compact, 7)(sendings), None)[-1],
        {6: "ttl_expired", 7: "compaction"},
    ),
    "compaction after a night": (
        lambda sendings: (pause(sendings), each(compact, 6)(sendings), None)[-1],
        {6: "ttl_expired"},
    ),
    "another workspace": (elsewhere, {5: "unknown"}),
}


@pytest.mark.parametrize("model", [KEEPS, STRIPS])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_its_cause_at_its_calls_and_no_other_call_has_any(fault: str, model: str) -> None:
    plant, causes = FAULTS[fault]
    for make in (healthy, thoughtful):
        sendings = make(model=model)
        plant(sendings)
        assert found(sendings) == causes, make


def test_thinking_is_stripped_only_where_a_person_spoke_on_a_model_that_strips_it() -> None:
    for model, causes in ((STRIPS, {7: "thinking_stripped"}), (KEEPS, {})):
        sendings = thoughtful(model)
        speak(sendings)
        assert found(sendings) == causes


def test_an_edit_before_stripped_thinking_is_the_cause() -> None:
    sendings = thoughtful(STRIPS)
    speak_and_edit(sendings)
    assert found(sendings) == {7: "content_changed"}


def test_thinking_that_the_client_leaves_out_is_changed_content() -> None:
    for model in (KEEPS, STRIPS):
        sendings = thoughtful(model)
        for sending in sendings[6:]:
            del sending.body["messages"][1]["content"][0]
        assert found(sendings) == {7: "content_changed"}


@pytest.mark.parametrize("name", ["compaction", "thinking", "two-or-four-breakpoints"])
def test_a_run_names_the_cause_of_the_largest_loss(name: str) -> None:
    for workload in scenario_workloads(load(SCENARIOS / f"{name}.yaml"), SCENARIOS):
        simulated = workload.simulation()
        replays = Replays(workload)
        losses = observe_replay(replays, replays.recorded).losses
        for call in workload.calls:
            row = simulated.row(call)
            largest = max(
                (loss for loss in losses if loss.call == row.call), key=lambda loss: loss.tokens, default=None
            )
            assert row.cause == largest.cause if largest else row.cause in WITHOUT_LOSS, row


@pytest.mark.parametrize("fault", FAULTS)
def test_findings_have_the_causes_of_the_rows(fault: str) -> None:
    sendings = healthy(model=STRIPS)
    FAULTS[fault][0](sendings)
    rows = [*simulation(PrefixCache()).rows(calls_of(sendings))]
    told = explained(sendings)
    named = {(one.call, one.cause) for one in (*told.findings, *told.notes)}
    lost = {(row.call, row.cause) for row in rows if row.cause not in WITHOUT_LOSS}
    assert lost <= named  # others are hidden behind these
    assert {one.call for one in told.findings if one.cause != "written_never_read"} <= set(FAULTS[fault][1])


# ----------------------------------------------------------------------------------- healthy shapes


def shifted(sendings: list[Sending], seconds: float) -> list[Sending]:
    for sending in sendings:
        sending.start += seconds
    return sendings


def one_shots(count: int, apart: float, model: str = KEEPS) -> list[Sending]:
    """Questions that share tools and system prompt and nothing else."""
    return [shifted(healthy(1, model, f"topic {n}"), apart * n)[0] for n in range(count)]


def subagent(model: str = KEEPS) -> list[Sending]:
    """A conversation with some of the tools and another system prompt, in the middle of the main one."""
    sendings = shifted(healthy(4, model, "sub"), 65)
    for sending in sendings:
        sending.body["tools"] = [*sending.body["tools"][:1], {**sending.body["tools"][2], "cache_control": EPHEMERAL}]
        sending.body["system"] = [{"type": "text", "text": words("explore", 500), "cache_control": EPHEMERAL}]
    return sendings


def reviewer(model: str = KEEPS) -> list[Sending]:
    """A conversation with the tools of the main one and another system prompt."""
    sendings = shifted(healthy(4, model, "review"), 67)
    for sending in sendings:
        sending.body["system"] = [{"type": "text", "text": words("review", 500), "cache_control": EPHEMERAL}]
    return sendings


def ending_alike(topic: str, seconds: float) -> list[Sending]:
    """A conversation whose people always say the same, and which begins as others do."""
    sendings = shifted(healthy(6, topic=topic), seconds)
    for sending in sendings:
        first, *rest = sending.body["messages"]
        first["content"][0]["text"] = "Hello. Help me, please."
        for message in rest[1::2]:
            message["content"].append({"type": "text", "text": "Continue."})
        for message in sending.body["messages"]:
            for block in message["content"]:
                block.pop("cache_control", None)
        sending.body["messages"][-1]["content"][-1]["cache_control"] = EPHEMERAL
    return sendings


def retried(sendings: list[Sending]) -> list[Sending]:
    again = [deepcopy(sending) for sending in sendings[3:5]]
    return [*sendings, *shifted(again, 7)]


def side_questions() -> list[Sending]:
    """Between the calls of a conversation a question goes aside, and nothing goes on from it."""
    sendings = healthy()
    aside = [deepcopy(sending) for sending in sendings[3:8:2]]
    for number, sending in enumerate(aside):
        sending.start += 5
        last = sending.body["messages"][-1]["content"]
        last[-1].pop("cache_control")
        last.append({"type": "text", "text": words(f"aside {number}", 9), "cache_control": EPHEMERAL})
    return [*sendings, *aside]


HEALTHY: dict[str, Callable[[], list[Sending]]] = {
    "two conversations in turns": lambda: [*healthy(), *shifted(healthy(topic="two"), 7)],
    "on two models": lambda: [*healthy(), *shifted(healthy(model=STRIPS, topic="two"), 7)],
    "one conversation on two models at once": lambda: [*healthy(), *shifted(healthy(model=STRIPS), 7)],
    "a sub-agent of its own": lambda: [*healthy(), *subagent()],
    "two sub-agents": lambda: [*healthy(), *subagent(), *shifted(reviewer(), 3)],
    "conversations that begin alike": lambda: [*ending_alike("one", 0), *ending_alike("two", 7)],
    "retries": lambda: retried(healthy()),
    "side questions": side_questions,
    "one-shot questions": lambda: one_shots(6, 30),
    "parallel conversations": lambda: [*healthy(), *shifted(healthy(topic="two"), 1), *shifted(healthy(topic="x"), 2)],
}


@pytest.mark.parametrize("shape", HEALTHY)
def test_a_healthy_shape_has_no_loss(shape: str) -> None:
    assert found(HEALTHY[shape]()) == {}


def test_questions_hours_apart_lose_only_to_time() -> None:
    """What they share expired, and nothing else is said of them."""
    assert found(one_shots(4, 10_000)) == dict.fromkeys((2, 3, 4), "ttl_expired")


# ----------------------------------------------------------------------------------- places and extents


def test_a_shared_system_prompt_without_a_breakpoint_is_where_the_loss_is() -> None:
    sendings = one_shots(4, 30)
    for sending in sendings:
        for block in [*sending.body["tools"], *sending.body["system"]]:
            block.pop("cache_control", None)
    rows, losses = replayed(calls_of(sendings))
    assert [row.cause for row in rows] == ["cold_start", *["breakpoint_misplaced"] * 3]
    static = rows[0].usage.total_input - len_of(sendings[0].body["messages"][0]["content"][0])
    assert [(loss.depth, loss.tokens) for loss in losses] == [(6, static)] * 3


def len_of(block: Body) -> int:
    call = calls_of([Sending({"model": KEEPS, "max_tokens": 9, "messages": [{"role": "user", "content": [block]}]}, 0)])
    return simulation(PrefixCache()).row(call[0]).usage.total_input


def test_the_tokens_of_an_added_tool_are_its_own() -> None:
    sendings = healthy()
    each(add_tool)(sendings)
    rows, losses = replayed(calls_of(sendings))
    before = calls_of(healthy())
    whole = simulation(PrefixCache())
    sent = [whole.row(call).usage for call in before][3].total_input
    (loss,) = losses
    tool = rows[4].usage.total_input - [*simulation(PrefixCache()).rows(before)][4].usage.total_input
    assert loss.tokens + rows[4].usage.read == sent
    assert loss.added == tool


@pytest.mark.parametrize("model", [KEEPS, STRIPS])
def test_a_prompt_that_is_edited_and_sent_again_is_no_compaction(model: str) -> None:
    """A person goes back to the fourth call, edits its last message, and goes on from there."""
    sendings = thoughtful(model, 6)
    again = deepcopy(sendings[3])
    again.start = sendings[-1].start + 20
    again.body["messages"][-1]["content"][0]["content"] += " or rather this"
    assert set(found([*sendings, again]).values()) <= {"fork"}
    short = deepcopy(sendings[-1])
    short.start += 20
    short.body["messages"][-1]["content"][0]["content"] += " or rather this"
    assert set(found([*sendings, short]).values()) <= {"fork"}


def test_a_workspace_is_named_by_both_sides() -> None:
    sendings = healthy()
    elsewhere(sendings)
    _, (loss,) = replayed(calls_of(sendings))
    assert loss.since is not None
    assert (loss.place_before, loss.place, loss.since.number) == ("anthropic/", "anthropic/other", 4)


def test_every_turn_of_an_alternation_loses_what_the_other_model_was_sent() -> None:
    """Each call reads what its own model has, and pays for the message that the other one was sent before."""
    sendings = healthy()
    each(put(model="claude-opus-4-7"), 2, 10, 2)(sendings)
    rows, losses = replayed(calls_of(sendings))
    assert all(row.usage.read for row in rows[2:])
    totals = [row.usage.total_input for row in rows]
    assert [loss.tokens + row.usage.read for loss, row in zip(losses, rows[1:], strict=True)] == totals[:-1]
