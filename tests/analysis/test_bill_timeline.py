"""The calls of a session in order, folded, and their dollars divided."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bill_sessions import MAIN, OPUS, SMALL, SONNET, SessionWriter, account_in, list_prices, write_sessions
from cachecost.analysis.bill.account import BilledRewrite, account_for
from cachecost.analysis.bill.summary import summarize
from cachecost.analysis.bill.timeline import (
    LONG_IDLE_S,
    CallDollars,
    TimelineCall,
    call_cost,
    call_dollars,
    fold_timeline,
    session_account,
    session_timelines,
    sessions_by_time,
)
from cachecost.conversations.input_files import BilledCall, SessionFile

PRICES = list_prices()
FILE = SessionFile("session.jsonl", "claude-code")


def calls_in(folder: Path, key: str) -> list[TimelineCall]:
    return session_timelines(account_in(folder), [key])[key]


def rewrite(call: BilledCall, tokens: int) -> BilledRewrite:
    return BilledRewrite(FILE, call, None, "ttl_expired", tokens, PRICES.rewrite_cost(call, tokens), "")


@given(
    st.tuples(*[st.integers(0, 300_000)] * 5),
    st.integers(0, 10**6),
    st.sampled_from([OPUS, SONNET]),
)
def test_the_parts_of_a_call_add_up_and_none_is_negative(
    tokens: tuple[int, int, int, int, int], rewritten: int, model: str
) -> None:
    call = BilledCall(1, 1, model, tokens, start=1_772_000_000.0, extra=((SONNET, (5, 0, 0, 0, 7)),))
    again = min(rewritten, call.written + tokens[0])
    parts = call_dollars(call, rewrite(call, again) if again else None, PRICES)
    assert sum(parts) == call_cost(call, PRICES) and min(parts) >= 0


def test_what_is_rewritten_is_taken_from_writes_before_uncached_input() -> None:
    call = BilledCall(1, 1, OPUS, (1_000, 0, 2_000, 0, 0), start=1_772_000_000.0)
    parts = call_dollars(call, rewrite(call, 2_500), PRICES)
    assert parts == CallDollars(
        written=2_000 * Decimal("0.50") / 10**6,
        uncached=(1_000 * Decimal(5) - 500 * Decimal("4.50")) / 10**6,
        rewritten=(2_000 * Decimal("5.75") + 500 * Decimal("4.50")) / 10**6,
    )


def test_a_call_without_a_price_has_no_cost() -> None:
    call = BilledCall(1, 1, "some-model", (1, 2, 3, 4, 5), start=1_772_000_000.0)
    assert call_cost(call, PRICES) is None and call_dollars(call, None, PRICES) == CallDollars()


def timeline(*events: str, idle_s: Sequence[float] = ()) -> list[TimelineCall]:
    """Calls with these events; "" is a call in which nothing happened."""
    calls = []
    for number, event in enumerate(events, 1):
        call = BilledCall(number, number, OPUS, (0, 1, 0, 0, 0), events=(event,) if event else ())
        idle = idle_s[number - 1] if idle_s else 1.0
        calls.append(TimelineCall(number, FILE, call, call, 0, None, CallDollars(), "hit", None, idle))
    return calls


@pytest.mark.parametrize(
    ("events", "lengths"),
    [
        ((), []),
        (("",), [1]),
        (("", ""), [1, 1]),
        (("", "", ""), [3]),
        (("human", "", "", "", "human"), [1, 3, 1]),
        (("human", "", "", "compaction", "", "", ""), [1, 1, 1, 1, 3]),
    ],
)
def test_three_calls_in_which_nothing_happened_are_one_group(events: Sequence[str], lengths: list[int]) -> None:
    groups = list(fold_timeline(timeline(*events)))
    assert [len(group) for group in groups] == lengths
    assert [one.number for group in groups for one in group] == list(range(1, len(events) + 1))


@pytest.mark.parametrize(("idle_s", "lengths"), [(LONG_IDLE_S - 0.1, [3]), (LONG_IDLE_S, [1, 1, 1])])
def test_a_pause_as_long_as_the_shortest_ttl_is_shown(idle_s: float, lengths: list[int]) -> None:
    groups = fold_timeline(timeline("", "", "", idle_s=[1, idle_s, 1]))
    assert [len(group) for group in groups] == lengths


def test_sub_agents_stand_between_the_calls_of_the_main_thread(tmp_path: Path) -> None:
    calls = calls_in(write_sessions(tmp_path), MAIN)
    assert [one.number for one in calls] == list(range(1, 15))
    assert [one.agent_number for one in calls] == [0] * 9 + [1, 2, 1, 2, 0]
    assert [one.before is None for one in calls] == [one.number in (1, 10, 11) for one in calls]


def test_a_session_resumed_in_another_file_goes_on(tmp_path: Path) -> None:
    first = SessionWriter("s1", "/p")
    first.write_message("A")
    first.answer(0, 5_000)
    first.save(tmp_path / "a.jsonl")
    second = SessionWriter("s1", "/p", at=60)
    second.write_message("B")
    second.answer(5_000, 100)
    second.save(tmp_path / "b.jsonl")
    one, two = calls_in(tmp_path, "s1")
    assert (one.cause, one.before, one.idle_s) == ("cold_start", None, None)
    assert (two.cause, two.before, two.idle_s) == ("hit", one.call, 60.0)


def test_calls_without_a_time_stay_behind_those_before_them(tmp_path: Path) -> None:
    calls = [
        BilledCall(1, 1, OPUS, (1, 0, 0, 0, 0), start=5.0, session="s"),
        BilledCall(2, 2, OPUS, (2, 0, 0, 0, 0), session="s"),
    ]
    other = [BilledCall(1, 1, OPUS, (3, 0, 0, 0, 0), start=9.0, session="s", agent="a")]
    files = [SessionFile("a", "c", calls=calls), SessionFile("b", "c", calls=other)]
    found = session_timelines(account_for(files, PRICES), ["s"])["s"]
    assert [one.call.tokens[0] for one in found] == [1, 2, 3]


def test_sessions_by_time_and_one_of_them() -> None:
    calls = [BilledCall(n, n, OPUS, (1, 0, 0, 0, 0), start=float(n), session=f"s{n % 2}") for n in (1, 2, 3)]
    nameless = [BilledCall(1, 1, OPUS, (1, 0, 0, 0, 0), start=9.0)]
    files = [SessionFile("a", "c", calls=calls), SessionFile("/b/c.jsonl", "c", calls=nameless)]
    account = account_for(files, PRICES)
    assert sessions_by_time(account) == ["/b/c.jsonl", "s1", "s0"]
    assert [call.number for _, call in session_account(account, "s1").calls()] == [1, 3]
    assert [call for _, call in session_account(account, "/b/c.jsonl").calls()] == nameless
    late = account_for(files, PRICES, lambda call: call.start is not None and call.start > 1)
    assert [call.number for _, call in session_account(late, "s1").calls()] == [3]


def test_a_session_alone_has_its_own_rewrites_and_warm_starts(tmp_path: Path) -> None:
    account = account_in(write_sessions(tmp_path))
    main, small = session_account(account, MAIN), session_account(account, SMALL)
    assert [one.cause for one in main.rewrites] == ["ttl_expired", "model_changed", "concurrent_write", "compaction"]
    assert [one.cause for one in small.rewrites] == ["cold_start"]
    assert (main.warm_calls, main.warm_tokens) == (1, 18_000) and small.warm_calls == 0


@pytest.mark.parametrize("model", ["", SONNET])
def test_passes_apart_are_in_the_calls_and_in_the_sums(model: str) -> None:
    extra = ((model, (1_000, 0, 0, 0, 1_000)),)
    call = BilledCall(1, 1, OPUS, (0, 0, 0, 0, 0), start=1_772_000_000.0, session="s", extra=extra)
    account = account_for([SessionFile("s.jsonl", "claude-code", calls=[call])], PRICES)
    expected = Decimal("0.018") if model else Decimal("0.030")
    assert summarize(account).total.cost == session_timelines(account, ["s"])["s"][0].cost == expected
