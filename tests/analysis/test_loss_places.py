"""Losses that nothing explains: where they broke, what stood before, known faults; and thinking that was switched."""

from __future__ import annotations

from typing import Any

import pytest
from tests.analysis.test_bill_evidence import CACHED, OPUS, STATIC, account, call, cause

from cachecost.account.causes import coded_causes, stood_before
from cachecost.analysis.bill.loss_places import LossPlace, UnexplainedLoss
from cachecost.conversations.input_files import EVENTS, BilledCall
from cachecost.providers.clients.settings import client_settings, find_fault, version_key

OPUS_46 = "claude-opus-4-6"


def grown(number: int, read: int, written: int = 500, **fields: Any) -> BilledCall:
    return call(number, (3, read, written, 0, 9), 20.0 * number, **fields)


def losses(*files: list[BilledCall]) -> list[UnexplainedLoss]:
    return [one.unexplained for one in account(*files).rewrites if one.unexplained]


def loop(read: int, *, begin: int = STATIC, **fields: Any) -> list[BilledCall]:
    """Three calls that grow, and one that reads so much of 51,000 cached tokens."""
    first = [grown(1, begin, CACHED - begin), grown(2, CACHED), grown(3, CACHED + 500)]
    return [*first, grown(4, read, CACHED + 1_500 - read, **fields)]


@pytest.mark.parametrize(
    ("read", "begin", "expected"),
    [
        (0, STATIC, LossPlace("start", 0)),
        (12_000, STATIC, LossPlace("static_prefix", 12_000)),
        (STATIC, STATIC, LossPlace("messages_start", STATIC)),
        (STATIC, 0, LossPlace("messages_start", STATIC)),
        (CACHED, STATIC, LossPlace("messages", CACHED, 1, 3)),
        (CACHED - 2, STATIC, LossPlace("messages", CACHED - 2, 1, 3)),
        (CACHED - 3, STATIC, LossPlace("messages_start", CACHED - 3)),
        (CACHED + 500, STATIC, LossPlace("messages", CACHED + 500, 2, 2)),
        (CACHED + 250, STATIC, LossPlace("messages", CACHED + 250)),
        (CACHED + 250, 0, LossPlace("unknown", CACHED + 250)),
    ],
)
def test_the_place(read: int, begin: int, expected: LossPlace) -> None:
    assert [one.place for one in losses(loop(read, begin=begin))] == [expected]


def test_a_length_that_other_sessions_begin_with_is_the_static_prefix() -> None:
    """A file that begins in the middle says nothing of its own; the version of the client must be the same."""
    middle = [grown(1, 0, 10_000), grown(2, 10_000, 40_000, events=("tools",)), grown(3, STATIC, 31_000, before=2)]
    other = [call(1, (3, STATIC, 9_000, 0, 9), 5_000, session="other")]
    old = [call(1, (3, STATIC, 9_000, 0, 9), 5_000, session="other", version="1.0.0")]
    assert [one.place.place for one in losses(middle, other)] == ["messages_start"]
    assert [one.place.place for one in losses(middle, old)] == ["unknown"]


def test_a_length_that_recurs_is_the_static_prefix() -> None:
    calls = [grown(1, 0, 10_000), grown(2, 10_000, 40_000), grown(3, STATIC, 40_000), grown(4, STATIC, 50_000)]
    found = losses(calls)
    assert [one.place.place for one in found] == ["messages_start"] * 2
    assert all("2 calls of this session fell to this length" in one.words for one in found)


@pytest.mark.parametrize("event", [event for event in stood_before() if event not in ("human", "client")])
def test_what_stood_before(event: str) -> None:
    (one,) = losses(loop(STATIC, events=(event, "human")))
    assert one.before[0] == event and stood_before()[event] in one.words


def test_only_known_events_stand_before() -> None:
    assert set(stood_before()) <= set(EVENTS)


@pytest.mark.parametrize(("healthy", "is_said"), [(1, True), (2, False)])
def test_an_event_is_said_with_its_counts_where_few_healthy_calls_have_it(healthy: int, is_said: bool) -> None:
    """Of ten healthy calls and two losses after a command."""
    calls, read = [grown(1, STATIC, 30_000)], STATIC + 30_000
    for number in range(2, 12):
        calls.append(grown(number, read, events=("command",) if number < 2 + healthy else ()))
        read += 500
    for number in (12, 13):
        calls.append(grown(number, STATIC, read - STATIC + 500, events=("command",)))
        read += 500
    words = f"at a slash command (2 of 2 such losses, {healthy} of 10 healthy calls)"
    assert [words in one.words for one in losses(calls)] == [is_said] * 2


def test_an_event_before_half_of_the_losses_is_not_said_of_them() -> None:
    calls = [grown(1, STATIC, 30_000), grown(2, STATIC, 31_000, events=("command",)), grown(3, STATIC, 32_000)]
    assert not any("such losses" in one.words for one in losses(calls))


# -------------------------------------------------------------------------------------------------- known faults


def test_every_fault_says_what_is_needed() -> None:
    places = {"start", "static_prefix", "messages_start", "messages", *coded_causes()}
    for row in client_settings().faults:
        assert row.report.startswith("anthropics/claude-code#") and row.title and row.date.startswith("20")
        assert version_key(row.since) <= version_key(row.last) < version_key(row.mended_in or "999")
        assert set(row.places) <= places and set(row.after) <= set(stood_before())


@pytest.mark.parametrize(
    ("version", "place", "before", "expected"),
    [
        ("2.1.155", "messages_start", ["skill"], None),
        ("2.1.249", "messages_start", ["skill"], "#82563"),
        ("2.1.250", "messages_start", ["skill"], "#91514"),
        ("2.1.258", "messages_start", ["tool_search"], "#91514"),
        ("2.1.259", "messages_start", ["tool_search"], "#82563"),
        ("2.1.258", "messages_start", ["human"], "#91707"),
        ("2.1.259", "messages_start", ["human"], "#82563"),
        ("2.1.273", "messages_start", ["human"], None),
        ("2.1.258", "start", ["skill"], None),
        ("2.1.260", "messages_start", ["woken"], "#87215"),
        ("2.1.261", "messages_start", ["woken"], "#82563"),
        ("2.1.212", "system_changed", ["client"], "#78418"),
        ("2.1.212", "system_changed", ["resume"], None),
        ("", "messages_start", ["skill"], None),
    ],
)
def test_a_fault_fits_by_version_place_and_what_stood_before(
    version: str, place: str, before: list[str], expected: str | None
) -> None:
    found = find_fault("claude-code", version, "claude-opus-5", place, before)
    assert (found and found.report) == (expected and f"anthropics/claude-code{expected}")
    assert find_fault("codex", version, "claude-opus-5", place, before) is None


def test_a_fault_of_one_model_is_not_said_of_another() -> None:
    found = [
        find_fault("claude-code", "2.1.202", model, "messages_start", ["human"]) for model in (OPUS, "claude-fable-5")
    ]
    assert [one and one.report for one in found] == ["anthropics/claude-code#82563", "anthropics/claude-code#76253"]


def test_a_fault_is_named_and_no_cause() -> None:
    (one,) = account(loop(STATIC, version="2.1.258", events=("skill", "human"))).rewrites
    assert one.cause == "billed_not_explained" and one.words.endswith("; as in claude-code#91514, mended in 2.1.259")


# -------------------------------------------------------------------------------------------------- thinking


def turns(read: int, model: str, before: Any, now: Any, first: int = 3, then: int = 3) -> list[BilledCall]:
    """Two calls of one turn and the first of the next, which reads so much; `before` and `now` are facts of these."""
    one = call(1, (first, STATIC, CACHED - STATIC, 0, 9), 20, model=model, events=("human",), **before)
    two = call(2, (1, CACHED, 500, 0, 9), 40, model=model, **before)
    facts = {"events": ("human",), **now}
    return [one, two, call(3, (then, read, 1_000 + CACHED - read, 0, 9), 60, model=model, **facts)]


ASKED, SHOWN, SILENT, OFF = {"thinking": True}, {"has_thinking": True}, {}, {"thinking": False}


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (SILENT, ASKED, "thinking was switched on: none of the 2 answers of the turn before has any"),
        (ASKED, SILENT, "thinking was switched off: the answer of this turn does not have any"),
        (ASKED, OFF, "thinking was switched off: the answer of this turn does not have any"),
        (SHOWN, OFF, "thinking was switched off: the answer of this turn does not have any"),
        (SILENT, SHOWN, ""),  # a model that decides by itself may think now and then
        (SHOWN, SILENT, ""),
        (ASKED, SHOWN, ""),
        (SILENT, SILENT, ""),
        (OFF, SILENT, ""),
    ],
)
def test_thinking_that_a_turn_asks_for(before: Any, now: Any, expected: str) -> None:
    (one,) = account(turns(STATIC, OPUS_46, before, now)).rewrites
    assert (one.cause == "thinking_changed") is bool(expected)
    assert not expected or one.words == f"{expected}; as in claude-code#21919"


@pytest.mark.parametrize(
    ("step", "model", "expected"),
    [
        (17, OPUS_46, "thinking was switched on: tools and system prompt are 17 tokens longer"),
        (-17, OPUS_46, "thinking was switched off: tools and system prompt are 17 tokens shorter"),
        (16, OPUS_46, ""),
        (18, OPUS_46, ""),
        (17, OPUS, ""),
    ],
)
def test_thinking_that_the_length_of_the_static_prefix_shows(step: int, model: str, expected: str) -> None:
    (one,) = account(turns(STATIC + step, model, SILENT, SILENT)).rewrites
    assert (one.cause == "thinking_changed") is bool(expected)
    assert not expected or one.words.startswith(expected)


@pytest.mark.parametrize("cut", [0, 2])
def test_a_turn_whose_beginning_is_not_recorded_shows_nothing(cut: int) -> None:
    calls = turns(STATIC, OPUS_46, SILENT, ASKED)
    calls[cut].events = ()
    assert cause(*calls) == "billed_not_explained"


def test_what_a_person_switched_is_no_fault_of_the_client() -> None:
    (one,) = account(turns(STATIC, OPUS_46, ASKED, {**OFF, "events": ("human", "thinking")})).rewrites
    assert one.cause == "thinking_changed" and one.fault is None


def test_the_length_of_the_static_prefix_follows_the_switch() -> None:
    on = turns(STATIC + 17, OPUS_46, SILENT, SILENT)
    off = call(4, (3, STATIC, CACHED + 2_000 - STATIC, 0, 9), 80, model=OPUS_46, events=("human",))
    found = account([*on, off]).rewrites
    assert [one.cause for one in found] == ["thinking_changed"] * 2 and not any(one.is_static for one in found)


@pytest.mark.parametrize(
    ("before", "now", "first", "then", "is_switched"),
    [
        (SHOWN, SILENT, 8, 3, True),
        (SILENT, SHOWN, 1, 10, True),
        (SHOWN, SILENT, 3, 3, False),
        (SILENT, SHOWN, 10, 1, False),
    ],
)
def test_models_that_always_think(before: Any, now: Any, first: int, then: int, is_switched: bool) -> None:
    """The tail of the prompt is longer with thinking: 10 or 8 tokens, else 3 or 1."""
    calls = turns(STATIC, OPUS, before, now, then=then)
    calls[1] = call(2, (first, CACHED, 500, 0, 9), 40, **before)
    assert (cause(*calls) == "thinking_changed") is is_switched


@pytest.mark.parametrize(("total", "expected"), [(-3, "content_changed"), (-2, "billed_not_explained")])
def test_a_prompt_that_became_shorter_lost_messages(total: int, expected: str) -> None:
    first = [grown(1, STATIC, 30_000), grown(2, CACHED)]
    last = grown(3, STATIC, CACHED + 500 - STATIC + total)
    assert cause(*first, last) == expected


def test_a_shorter_prompt_whose_tools_are_lost_too_is_not_explained_by_messages() -> None:
    first = [grown(1, STATIC, 30_000), grown(2, CACHED)]
    assert cause(*first, grown(3, 0, CACHED - 2_000)) == "billed_not_explained"
