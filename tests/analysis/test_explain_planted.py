"""One planted fault of each code: it is found, with its code, place and dollars, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal

import pytest
from loops import EPHEMERAL, Sending, cost_of, explained, healthy, words

from cachecost.account.causes import causes, coded_causes

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def from_call(number: int, change: Callable[[Sending], None]) -> Callable[[list[Sending]], None]:
    """Do something to the `number`-th call (from 1) and all that follow."""

    def plant(sendings: list[Sending]) -> None:
        for sending in sendings[number - 1 :]:
            change(sending)

    return plant


def only(number: int, change: Callable[[Sending], None]) -> Callable[[list[Sending]], None]:
    def plant(sendings: list[Sending]) -> None:
        change(sendings[number - 1])

    return plant


def put(**fields: object) -> Callable[[Sending], None]:
    return lambda sending: sending.body.update(fields)


def edit_tool(sending: Sending) -> None:
    sending.body["tools"][2]["description"] += " and more"


def reorder_tools(sending: Sending) -> None:
    tools = sending.body["tools"]
    tools[0], tools[1] = tools[1], tools[0]


def edit_system(sending: Sending) -> None:
    sending.body["system"][1]["text"] += " moved"


def edit_message(sending: Sending) -> None:
    sending.body["messages"][0]["content"][0]["text"] += " please"


def clock_in_system(sendings: list[Sending]) -> None:
    for number, sending in enumerate(sendings):
        sending.body["system"][1]["text"] = f"Current time: 12:{number:02d}. " + words("folder", 40)


def compact(sendings: list[Sending]) -> None:
    """The history between the first message and the last two is told in a summary."""
    for sending in sendings[6:]:
        messages = sending.body["messages"]
        summary = {"role": "assistant", "content": [{"type": "text", "text": words("in short", 20)}]}
        sending.body["messages"] = [messages[0], summary, *messages[9:]]


def pause(sendings: list[Sending]) -> None:
    for sending in sendings[5:]:
        sending.start += 290


def together(sendings: list[Sending]) -> None:
    sendings[1].start = sendings[0].start + 0.2
    sendings[1].body["messages"] = deepcopy(sendings[0].body["messages"])


def elsewhere(sendings: list[Sending]) -> None:
    for sending in sendings[4:]:
        sending.workspace = "other"


def burst(sendings: list[Sending]) -> None:
    """Thirty texts stand between the breakpoint of one call and that of the next."""
    for sending in sendings[4:]:
        extra = [{"type": "text", "text": words(f"note {number}", 3)} for number in range(30)]
        sending.body["messages"][8]["content"] = [*sending.body["messages"][8]["content"], *extra]
        for message in sending.body["messages"]:
            for block in message["content"]:
                block.pop("cache_control", None)
        sending.body["messages"][-1]["content"][-1]["cache_control"] = EPHEMERAL


def unmark_messages(sendings: list[Sending]) -> None:
    for sending in sendings:
        del sending.body["messages"][-1]["content"][-1]["cache_control"]


def breakpoint_on_reminder(sendings: list[Sending]) -> None:
    """Each call ends with a reminder that the next one does not have any more, and it carries the breakpoint."""
    for number, sending in enumerate(sendings):
        last = sending.body["messages"][-1]["content"]
        del last[-1]["cache_control"]
        last.append({"type": "text", "text": words(f"remember {number}", 5), "cache_control": EPHEMERAL})


def too_short(sendings: list[Sending]) -> None:
    for sending in sendings:
        sending.body["model"] = "claude-haiku-4-5"
        sending.body["tools"] = sending.body["tools"][3:]
        sending.body["system"] = []
        sending.body["messages"] = [sending.body["messages"][0]]
        sending.body["messages"][0]["content"][-1].pop("cache_control", None)


def thinking_stripped(sendings: list[Sending]) -> None:
    """The first answer had thinking; a person speaks before the seventh call."""
    for number, sending in enumerate(sendings):
        messages = sending.body["messages"]
        if len(messages) > 1:
            messages[1]["content"].insert(0, {"type": "thinking", "thinking": words("hm", 30), "signature": "s"})
        if number >= 6:
            messages[12]["content"].append({"type": "text", "text": "Go on, please."})


def moved_breakpoint_of_messages(sendings: list[Sending]) -> None:
    for message in sendings[6].body["messages"]:
        for block in message["content"]:
            block.pop("cache_control", None)
    sendings[6].body["messages"][2]["content"][0]["cache_control"] = EPHEMERAL


PLANTS = {
    "model_changed": (from_call(5, put(model="claude-opus-4-1")), [5]),
    "unknown": (elsewhere, [5]),
    "speed_changed": (from_call(5, put(speed="fast")), [5]),
    "tools_changed": (from_call(5, edit_tool), [5]),
    "system_changed": (from_call(5, edit_system), [5]),
    "content_changed": (from_call(5, edit_message), [5]),
    "tool_choice_changed": (from_call(5, put(tool_choice={"type": "any"})), [5]),
    "output_format_changed": (from_call(5, put(output_config={"format": {"type": "json_schema", "schema": {}}})), [5]),
    "thinking_changed": (from_call(5, put(thinking={"type": "enabled", "budget_tokens": 2048})), [5]),
    "effort_changed": (from_call(5, put(output_config={"effort": "low"})), [5]),
    "images_changed": (from_call(5, lambda one: one.body["messages"][8]["content"].insert(0, dict(IMAGE))), [5]),
    "ttl_expired": (pause, [6]),
    "concurrent_write": (together, [2]),
    "lookback_exceeded": (burst, [5]),
    "no_breakpoint": (unmark_messages, list(range(2, 11))),
    "breakpoint_misplaced": (breakpoint_on_reminder, list(range(2, 11))),
}


NOTES = {"compaction": (compact, 7), "thinking_stripped": (thinking_stripped, 7)}


def test_healthy_traffic_gives_no_finding() -> None:
    others = [*healthy(topic="two"), *healthy(model="claude-opus-5")]
    for sending in others:
        sending.start += 3
    found = explained([*healthy(), *others])
    assert (found.findings, found.avoidable) == ([], 0)


@pytest.mark.parametrize("cause", PLANTS)
def test_a_planted_fault_is_found_and_nothing_else(cause: str) -> None:
    model = {"speed_changed": "claude-opus-4-8", "effort_changed": "claude-opus-4-5"}.get(cause, "claude-sonnet-4-5")
    sendings = healthy(model=model)
    plant, calls = PLANTS[cause]
    plant(sendings)
    found = explained(sendings)
    assert [(finding.cause, finding.call) for finding in found.findings] == [(cause, call) for call in calls]
    assert {finding.code for finding in found.findings} == {causes()[cause].code}
    assert all(finding.cost > 0 and finding.tokens > 0 for finding in found.findings)
    assert found.cost == cost_of(sendings)


@pytest.mark.parametrize("cause", ["tools_changed", "system_changed", "content_changed", "tool_choice_changed"])
def test_the_dollars_are_those_of_the_log_without_the_fault(cause: str) -> None:
    """Changing back what was changed costs exactly so much less; new words are sent in the last message instead."""
    swaps: dict[str, Callable[[Sending], None]] = {
        "tools_changed": reorder_tools,
        "system_changed": lambda one: one.body["system"][1].update(text=words("floder", 40)),
        "content_changed": lambda one: one.body["messages"][0]["content"][0].update(text=words("quistion one", 60)),
        "tool_choice_changed": put(tool_choice={"type": "any"}),
    }
    sendings = healthy()
    from_call(5, swaps[cause])(sendings)
    found = explained(sendings)
    assert [finding.cause for finding in found.findings] == [cause]
    sent_anyway = cost_of(sendings) - cost_of(healthy()) - found.avoidable
    tokens = sent_anyway / (Decimal("3.75") + 5 * Decimal("0.3")) * 10**6  # written once, read by the five calls after
    assert tokens == int(tokens)
    has_new_words = cause in ("system_changed", "content_changed")
    assert (0 < tokens < 1000) if has_new_words else tokens == 0


@pytest.mark.parametrize("cause", NOTES)
def test_what_no_fix_makes_cheaper_is_a_note(cause: str) -> None:
    """The summary is cheaper than the history, and what moves behind dropped thinking moves anyway."""
    sendings = healthy()
    plant, call = NOTES[cause]
    plant(sendings)
    found = explained(sendings)
    assert (found.findings, found.avoidable) == ([], 0)
    first = found.notes[0]
    assert (first.cause, first.call, first.code) == (cause, call, causes()[cause].code)
    assert first.cost == 0 < first.paid_again
    assert first.tokens > 0


def test_a_prefix_that_is_too_short_hides_messages_that_are_sent_again() -> None:
    sendings = healthy()
    too_short(sendings)
    found = explained(sendings)
    calls = {cause: [one.call for one in found.findings if one.cause == cause] for cause in coded_causes()}
    assert calls["below_minimum"] == calls["no_breakpoint"] == list(range(2, 11))
    assert found.avoidable == sum(one.cost for one in found.findings)


def test_another_workspace_is_named() -> None:
    sendings = healthy()
    elsewhere(sendings)
    (found,) = explained(sendings).findings
    assert (found.code, found.message) == ("CC103", "workspace changed from the default one to other")


def test_a_clock_in_the_system_prompt_is_shown_where_it_ticks() -> None:
    sendings = healthy()
    clock_in_system(sendings)
    found = explained(sendings)
    assert {finding.cause for finding in found.findings} == {"system_changed"}
    assert [finding.call for finding in found.findings] == list(range(2, 11))
    first = found.findings[0]
    assert (first.block, str(first.layer), first.since) == ("system.1", "system", 1)
    assert first.excerpt == "Current time: 12:0▮1. folder-0 at character 18"


def test_one_shot_calls_that_write_in_vain() -> None:
    """Three conversations of one call each: their own questions are written, and nobody reads them."""
    sendings = [healthy(1, topic=topic)[0] for topic in ("one", "two", "three")]
    for number, sending in enumerate(sendings):
        sending.start += 20 * number
    found = explained(sendings)
    assert [(finding.cause, finding.call) for finding in found.findings] == [
        ("written_never_read", 1),
        ("written_never_read", 2),
        ("written_never_read", 3),
    ] or [finding.call for finding in found.findings] == [2, 3]


def test_a_fork_to_where_nothing_lives() -> None:
    """The second call is retried from the middle of a long message that no breakpoint stood in."""
    sendings = healthy()
    late = deepcopy(sendings[9])
    late.start += 20
    results = [{"type": "text", "text": words(f"part {n}", 60)} for n in range(15)]
    for one in (sendings[9], late):
        one.body["messages"][-1]["content"] = [*one.body["messages"][-1]["content"][:1], *results]
        one.body["messages"][-1]["content"][0].pop("cache_control", None)
    sendings[9].body["messages"][-1]["content"][-1]["cache_control"] = EPHEMERAL
    late.body["messages"][-1]["content"] = late.body["messages"][-1]["content"][:12]
    late.body["messages"][-1]["content"].append({"type": "text", "text": words("otherwise", 9)})
    late.body["messages"][-1]["content"][-1]["cache_control"] = EPHEMERAL
    found = explained([*sendings, late])
    assert [(finding.cause, finding.call) for finding in found.findings] == [("fork", 11)]


def test_every_cause_of_the_table_is_planted_here() -> None:
    elsewhere = {"written_never_read", "hour_unused", "fork", "unknown", "upstream_changed", *NOTES, "below_minimum"}
    in_bills = {code.cause for code in coded_causes().values() if code.fixed_in == "bill"}
    assert set(coded_causes()) == set(PLANTS) | elsewhere | in_bills
