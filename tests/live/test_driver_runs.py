"""A plan is sent: what was priced is what is billed, faults are survived, and nothing is paid twice."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from driver_fake import BILLED, KEY, FakeApi, FakeClock, Killed, driven, journal_of, small_plan

from cachecost.base.errors import InputError
from cachecost.conversations.readers.request_log import calls
from cachecost.live.driver.sending import read_journal

PLAN = small_plan()


def only(*faults: str):  # type: ignore[no-untyped-def]
    """The n-th attempt meets the n-th fault; later ones none."""
    return lambda number: faults[number - 1] if number <= len(faults) else ""


def test_without_faults_what_was_predicted_is_what_is_billed(tmp_path: Path) -> None:
    api = FakeApi(FakeClock())
    result = driven(PLAN, api, tmp_path)
    assert [outcome.exact for outcome in result.outcomes] == [4, 4]
    for outcome in result.outcomes:
        assert outcome.predicted_usd == outcome.billed_usd
        assert all(call.predicted == call.sent.usage for call in outcome.calls)
    assert result.billed == api.billed == sum(outcome.billed_usd for outcome in result.outcomes)
    assert result.unknown == 0 and not result.ended.why and not result.ended.undone
    assert result.outcomes[0].usage.read > 0 == result.outcomes[1].usage.read


def test_the_bodies_that_were_priced_are_sent(tmp_path: Path) -> None:
    api = FakeApi(FakeClock())
    driven(PLAN, api, tmp_path)
    assert api.bodies == [{**step.body, "stream": True} for step in PLAN.steps]
    assert set(api.retries) == {"0"}


def test_pauses_are_kept_and_scaled(tmp_path: Path) -> None:
    offsets = [step.offset for step in PLAN.strategies[0].steps]
    api = FakeApi(FakeClock())
    result = driven(PLAN, api, tmp_path)
    starts = [call.sent.start for call in result.outcomes[0].calls]
    assert [start - starts[0] for start in starts] == pytest.approx(offsets)
    halved = [step.offset for step in small_plan().strategies[0].steps]
    from cachecost.live.driver.planning import LiveOptions

    whole = [step.offset for step in small_plan(options=LiveOptions(pace=1.0)).strategies[0].steps]
    assert halved == pytest.approx([offset / 2 for offset in whole])


def test_a_recording_by_time_which_reads(tmp_path: Path) -> None:
    api = FakeApi(FakeClock(), only("", "cut"))
    result = driven(PLAN, api, tmp_path, parallel=2)
    logged = list(calls(result.recording))
    assert len(logged) == 9 and sum(call.billed is None for call in logged) == 1
    assert [call.start for call in logged] == sorted(call.start for call in logged)
    assert {call.workspace for call in logged} == {call.session for call in logged} == {"progressive", "none"}


@pytest.mark.parametrize("fault", ["429", "429 date", "500", "529", "connect"])
def test_what_was_not_billed_is_sent_again_and_costs_nothing(tmp_path: Path, fault: str) -> None:
    api = FakeApi(FakeClock(), only(fault, fault))
    result = driven(PLAN, api, tmp_path)
    assert result.billed == api.billed and result.unknown == 0
    assert api.attempts == 10 and api.retries[:3] == ["0", "1", "2"]
    waited = {"429": [3.0, 3.0], "429 date": [0.25, 0.25]}
    if fault in waited:
        assert api.clock.slept[:2] == waited[fault]
    else:
        assert 0.375 < api.clock.slept[0] <= 0.5 < api.clock.slept[1] <= 1.0


@pytest.mark.parametrize("fault", BILLED)
def test_what_may_have_been_billed_stays_charged(tmp_path: Path, fault: str) -> None:
    api = FakeApi(FakeClock(), only(fault))
    result = driven(PLAN, api, tmp_path)
    assert not result.ended.undone and api.attempts == 9
    assert result.billed < api.billed <= result.billed + result.unknown
    assert result.outcomes[0].notes == (
        "Attempts whose bill is unknown, and that may have written to the cache: progressive/1.",
    )
    again = read_journal(result.journal)
    assert (again.billed_usd, again.unknown) == (result.billed, result.unknown)


def test_an_answer_that_began_takes_part_in_the_prediction(tmp_path: Path) -> None:
    """It wrote to the cache, so the retry reads: predicted, too."""
    result = driven(PLAN, FakeApi(FakeClock(), only("cut")), tmp_path)
    first = result.outcomes[0].calls[0]
    assert first.predicted == first.sent.usage and first.sent.usage.read > 0


def test_five_faults_are_too_many(tmp_path: Path) -> None:
    api = FakeApi(FakeClock(), lambda number: "529")
    result = driven(PLAN, api, tmp_path)
    assert api.attempts == 5
    assert result.ended.why == "stopped after progressive/1 failed: 529 overloaded_error: Overloaded"
    assert len(result.ended.undone) == 8 and result.billed + result.unknown == 0


def test_a_server_that_says_no_is_not_asked_again(tmp_path: Path) -> None:
    api = FakeApi(FakeClock(), only("no retry"))
    assert driven(PLAN, api, tmp_path).ended.why.startswith("stopped after progressive/1 failed: 500 api_error: no")
    assert api.attempts == 1


def test_a_refused_body_is_one_call_and_the_others_go_on(tmp_path: Path) -> None:
    api = FakeApi(FakeClock(), only("400"))
    result = driven(PLAN, api, tmp_path)
    assert result.ended.failed == {"progressive/1": "400 authentication_error: invalid x-api-key [key]"}
    assert result.ended.undone == ["progressive/1"] and not result.ended.why and api.attempts == 8


def test_the_budget_stops_in_order_and_more_of_it_goes_on(tmp_path: Path) -> None:
    api = FakeApi(FakeClock())
    whole = driven(PLAN, FakeApi(FakeClock()), tmp_path / "whole").billed
    part = driven(PLAN, api, tmp_path / "part", limit=str(whole * Decimal("0.5")))
    assert 0 < api.billed == part.billed < whole / 2
    assert part.ended.why.startswith("stopped before ") and "the next call may cost $0." in part.ended.why
    assert part.ended.undone
    rest = driven(PLAN, api, tmp_path / "part", limit=str(whole * 2))
    assert not rest.ended.undone and rest.billed == api.billed
    assert set(api.answered.values()) == {1} and len(api.answered) == 8


def test_a_bill_above_the_worst_case_stops_at_once(tmp_path: Path) -> None:
    api = FakeApi(FakeClock(), overbill=100_000)
    result = driven(PLAN, api, tmp_path)
    assert api.attempts == 1
    assert result.ended.why.startswith("stopped after progressive/1: a call was billed $")


def test_without_count_tokens_bytes_bound_a_call(tmp_path: Path) -> None:
    api = FakeApi(FakeClock(), count_status=404)
    result = driven(PLAN, api, tmp_path)
    assert not result.ended.undone and result.billed == api.billed
    first = json.loads((tmp_path / "journal.jsonl").read_text().splitlines()[1])
    assert Decimal(first["usd"]) > result.outcomes[0].calls[0].billed_usd


def test_strategies_at_once_reserve_each_their_own(tmp_path: Path) -> None:
    api = FakeApi(FakeClock())
    result = driven(PLAN, api, tmp_path, parallel=2)
    assert api.most_at_once == 2 and result.billed == api.billed and not result.ended.undone


@pytest.mark.parametrize("fault", ["kill before", "kill after"])
def test_who_was_killed_goes_on(tmp_path: Path, fault: str) -> None:
    api = FakeApi(FakeClock(), only("", "", fault))
    with pytest.raises(BaseExceptionGroup) as caught:
        driven(PLAN, api, tmp_path)
    assert caught.group_contains(Killed)
    story = read_journal(tmp_path / "journal.jsonl")
    assert len(story.done) == 2 and story.unknown > 0
    result = driven(PLAN, api, tmp_path)
    assert not result.ended.undone and api.billed <= result.billed + result.unknown
    assert set(api.answered.values()) == {1} and len(api.answered) == 8
    assert len(list(calls(result.recording))) == 8


def test_a_torn_line_is_cut_off_and_a_damaged_one_told(tmp_path: Path) -> None:
    api = FakeApi(FakeClock())
    driven(PLAN, api, tmp_path)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes() + b'{"kind":"reserved","call":"no')
    assert not driven(PLAN, api, tmp_path).ended.undone and api.attempts == 8
    assert path.read_bytes().endswith(b"\n")
    path.write_bytes(path.read_bytes() + b'{"kind":"reserved"}\n{"kind":"what","call":"a"}\n')
    with pytest.raises(InputError) as caught:
        read_journal(path)
    assert len(caught.value.faults) == 2
    assert str(caught.value.faults[1]).endswith("expected a line of a journal; got a damaged one (kind: got 'what')")


def test_another_scenario_does_not_go_on(tmp_path: Path) -> None:
    journal_of(PLAN, tmp_path).close()
    other = small_plan(model="claude-opus-4-5")
    with pytest.raises(InputError, match="expected the same scenario, options and version as when the run started"):
        journal_of(other, tmp_path)


def test_two_cannot_be_at_one_run(tmp_path: Path) -> None:
    with (
        journal_of(PLAN, tmp_path),
        pytest.raises(InputError, match="another `cachecost live` continues this run"),
    ):
        journal_of(PLAN, tmp_path)


def test_no_file_and_no_word_has_the_key(tmp_path: Path) -> None:
    api = FakeApi(FakeClock(), only("lost", "error event", "cut", "", "401"))
    result = driven(PLAN, api, tmp_path)
    assert result.ended.why == "stopped after progressive/2 failed: 401 authentication_error: invalid x-api-key [key]"
    for path in tmp_path.iterdir():
        data = path.read_text()
        assert KEY not in data and KEY.replace("/", "\\/") not in data
    assert "[key]" in (tmp_path / "recording.jsonl").read_text()
