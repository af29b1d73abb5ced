"""The next message of a session, held to a plain cache, and the break-evens to sums of single messages."""

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cachecost.analysis.next_message.choices import LEAD_S, MOST_PINGS, advise_keep_alive, choose_next
from cachecost.analysis.next_message.history import session_state
from cachecost.analysis.next_message.state import (
    SUMMARY_TOKENS,
    BilledModel,
    SessionState,
    models_in,
    next_message,
    price_compaction,
)
from cachecost.api.setup import setup_of
from cachecost.base.structs import replace
from cachecost.conversations.input_files import BilledCall
from cachecost.providers.usage import Prices, Quote, Usage

PRICES = Prices(Decimal("0.5"), Decimal("6.25"), Decimal(10), Decimal(5), Decimal(25), "test")
QUOTE = Quote((), (PRICES,))
STATE = SessionState(
    "m",
    calls=9,
    prompt_tokens=100_000,
    cached_tokens=99_000,
    uncached_tokens=3,
    last_used=1000.0,
    static_tokens=20_000,
    typical_new_tokens=400,
    calls_per_message=3,
)


def find_test_model(call: BilledCall, model: str = "") -> BilledModel:
    return BilledModel(model or call.model, quote=QUOTE, ttl_s={"5m": 300.0, "1h": 3600.0}, minimum_tokens=1024)


def plain_calls(steps: list[tuple[int, int, float]], ttl: str) -> list[BilledCall]:
    """Calls as a plain cache bills them: of each, (new tokens, tokens of the answer, seconds since the one before)."""
    calls: list[BilledCall] = []
    length, cached, at = 5000, 0, 0.0
    for number, (new, answer, pause) in enumerate(steps, 1):
        before, at = at, at + pause
        length += new
        read = cached if at - before < {"5m": 300.0, "1h": 3600.0}[ttl] else 0
        written = length - read - 3
        tokens = (3, read, written, 0, answer) if ttl == "5m" else (3, read, 0, written, answer)
        calls.append(BilledCall(number, number, "m", tokens, at, before=number - 1, events=("human",)))
        cached, length = length - 3, length + answer
    return calls


STEPS = st.tuples(st.integers(1, 3000), st.integers(1, 900), st.floats(1, 9000))


@example([(1, 1, 496.65432398471467), (1, 1, 3600.0)], "1h")
@given(st.lists(STEPS, min_size=2, max_size=12), st.sampled_from(["5m", "1h"]))
def test_each_call_is_what_the_calls_before_it_say(steps: list[tuple[int, int, float]], ttl: str) -> None:
    calls = plain_calls(steps, ttl)
    for position in range(1, len(calls)):
        call, state = calls[position], session_state(calls[:position], find_test_model)
        assert state is not None and call.start is not None
        told = next_message(state, QUOTE, call.start, steps[position][0], call.tokens[4])
        assert told.usage == call.usage
        assert told.cost == PRICES.total_cost(call.usage)
        assert told.is_warm == (call.read > 0)
        assert told.cold.usage.read == 0 and told.cold.usage.total_input == call.total_input


@pytest.mark.parametrize(("idle", "is_warm"), [(299.9, True), (300.0, False)])
def test_the_cache_is_warm_until_its_ttl_has_passed(idle: float, is_warm: bool) -> None:
    told = next_message(STATE, QUOTE, 1000.0 + idle)
    assert (told.is_warm, STATE.warm_until) == (is_warm, 1300.0)
    assert told.usage == (Usage(3, 99_000, 1397) if is_warm else told.cold.usage)
    assert told.cold.usage == Usage(3, 0, 100_397)


def test_what_was_written_for_an_hour_outlasts_the_rest() -> None:
    state = replace(STATE, hour_tokens=30_000)
    assert next_message(state, QUOTE, 1400.0).usage.read == 30_000
    assert next_message(state, QUOTE, 4600.0).usage.read == 0


def test_other_sessions_keep_the_static_prefix_warm() -> None:
    state = replace(STATE, static_warm_until=5000.0)
    assert next_message(state, QUOTE, 4999.0).usage.read == 20_000
    assert next_message(state, QUOTE, 5000.0).usage.read == 0


def test_a_host_without_writes_charges_input() -> None:
    state = replace(STATE, is_automatic=True)
    assert next_message(state, QUOTE, 1001.0).usage == Usage(1400, 99_000)


def test_a_prompt_below_the_minimum_is_not_written() -> None:
    state = SessionState("m", prompt_tokens=900, cached_tokens=0, minimum_tokens=1024, last_used=0.0)
    assert next_message(state, QUOTE, 1.0, 100).usage == Usage(1000)


def test_without_a_price_there_are_tokens_only() -> None:
    told = next_message(STATE, None, 1001.0)
    assert told.cost is None and told.cold.cost is None and told.usage.read == 99_000
    assert choose_next(STATE, None, 1001.0).keep_alive is None


def test_a_state_has_the_sizes_and_pauses_of_the_session() -> None:
    calls = plain_calls([(4000, 10, 1), (100, 20, 5), (300, 30, 700), (200, 40, 9)], "5m")
    state = session_state(calls, find_test_model, "/p")
    assert state is not None
    assert (state.typical_new_tokens, state.typical_output_tokens, state.calls_per_message) == (200, 20, 1)
    assert state.pauses == (5.0, 700.0, 9.0)
    assert state.cost == sum((PRICES.total_cost(call.usage) for call in calls), Decimal(0))
    assert state.project == "/p" and state.calls == 4


def test_sub_agents_cost_but_have_another_cache() -> None:
    calls = plain_calls([(4000, 10, 1), (100, 20, 5)], "5m")
    agent = BilledCall(9, 9, "m", (1, 2, 3, 4, 5), 7.0, agent="a")
    alone, together = session_state(calls, find_test_model), session_state([*calls, agent], find_test_model)
    assert alone is not None and together is not None and alone.cost is not None
    assert together.cost == alone.cost + PRICES.total_cost(agent.usage)
    assert replace(together, cost=alone.cost) == alone
    assert session_state([agent], find_test_model) is None


def test_after_a_compaction_the_history_is_not_sent_again() -> None:
    calls = plain_calls([(40_000, 10, 1), (100, 20, 5)], "5m")
    state = session_state(calls, find_test_model, pending=("compaction",))
    assert state is not None
    assert state.prompt_tokens == state.static_tokens + SUMMARY_TOKENS
    assert state.cached_tokens == state.static_tokens


@given(st.integers(10_000, 300_000), st.integers(0, 4000), st.integers(1, 8), st.sampled_from([1100.0, 1400.0]))
def test_compaction_breaks_even_where_the_sums_cross(length: int, new: int, calls: int, now: float) -> None:
    state = replace(STATE, prompt_tokens=length, cached_tokens=length - 50, static_tokens=9000, calls_per_message=calls)
    found = price_compaction(state, QUOTE, now, new)
    assert found.saved is not None and found.summary.cost is not None and found.message.cost is not None
    without = next_message(state, QUOTE, now, new).cost
    assert without is not None
    if found.breaks_even_after is None:
        assert found.saved <= 0
        return

    def gain(messages: int) -> Decimal:
        """USD saved by so many messages: the first call of the first is priced apart."""
        assert found.saved is not None and found.summary.cost is not None and found.message.cost is not None
        later = found.saved * messages - found.saved / calls
        return without - found.message.cost - found.summary.cost + later

    assert gain(found.breaks_even_after) >= -Decimal("1e-20")
    assert found.breaks_even_after == 1 or gain(found.breaks_even_after - 1) < Decimal("1e-20")


def test_ways_to_go_on() -> None:
    sonnet = BilledModel("sonnet", quote=Quote((), (replace(PRICES, write_5m=Decimal("3.75")),)))
    found = {
        one.name: one for one in choose_next(STATE, QUOTE, 1001.0, models=[sonnet], tools_tokens=5000).alternatives
    }
    assert list(found) == [
        "now",
        "after the TTL",
        "with sonnet",
        "with another effort level",
        "after /compact",
        "5,000 tokens of tools added",
        "5,000 tokens of tools deferred",
    ]
    assert found["with another effort level"].usage.usage == Usage(3, 20_000, 80_397)
    everything = choose_next(replace(STATE, effort_layer="tools", accepts_message_effort=True), QUOTE, 1001.0)
    other = {one.name: one for one in everything.alternatives}
    assert other["with another effort level"].usage.usage == Usage(3, 0, 100_397)
    assert other["with another effort level"].note == "all of it is written again"
    assert other["with another effort level, in a message"].usage == everything.message.price
    without = choose_next(replace(STATE, effort_layer=""), QUOTE, 1001.0)
    assert "with another effort level" not in [one.name for one in without.alternatives]
    assert found["5,000 tokens of tools added"].usage.usage == Usage(3, 0, 105_397)
    assert found["5,000 tokens of tools deferred"].usage.usage == Usage(3, 99_000, 6397)
    assert found["after /compact"].first is not None
    assert found["after /compact"].first.usage == Usage(3, 99_000, 1497, 0, 2000)
    assert found["after /compact"].usage.usage == Usage(3, 20_000, 2397)
    assert found["with sonnet"].cost == Decimal("3.75") * 100_397 / 10**6 + Decimal("0.000015")


PAUSES = st.lists(st.floats(1, 20_000), min_size=3, max_size=20)


@example([2.0, 2.0, 1.4100924803167914], 1.4100924803167914)
@given(PAUSES, st.floats(0, 299))
def test_no_other_number_of_keep_alives_saves_more(pauses: list[float], idle: float) -> None:
    state = replace(STATE, pauses=tuple(pauses))
    now = 1000.0 + idle
    idle = now - 1000.0  # what a moment can say of it
    found = advise_keep_alive(state, QUOTE, now)
    assert found is not None and found.advised <= found.worth_up_to <= MOST_PINGS
    longer = [pause for pause in pauses if pause > idle]
    assert found.pauses == (len(longer) if len(longer) >= 3 else 0)
    if found.pauses:
        loss = found.cost / PRICES.read * (PRICES.write_5m - PRICES.read)
        for pings in range(found.worth_up_to + 1):
            expires = [300.0 + 240.0 * sent for sent in range(pings + 1)]
            saved = sum(loss for pause in longer if expires[0] <= pause < expires[-1])
            paid = sum(found.cost for pause in longer for sent in range(1, pings + 1) if 240.0 * sent <= pause)
            assert (saved - paid) / len(longer) <= found.saved


def test_keep_alives_stop_at_break_even() -> None:
    found = advise_keep_alive(STATE, QUOTE, 1100.0)
    assert found is not None
    assert (found.worth_up_to, found.advised, found.send_at) == (11, 1, 1300.0 - LEAD_S)  # (6.25 − 0.5) ÷ 0.5
    assert found.stop_at == 1300.0 + 240.0
    assert advise_keep_alive(STATE, QUOTE, 1300.0) is None


def test_a_keep_alive_reads_what_is_cached_and_one_more_than_breaks_even_costs_more() -> None:
    found = advise_keep_alive(replace(STATE, ttl="1h"), QUOTE, 1100.0)
    assert found is not None
    again = STATE.cached_tokens * (PRICES.write_1h - PRICES.read) / 10**6
    assert found.worth_up_to * found.cost <= again < (found.worth_up_to + 1) * found.cost


def test_shipped_rules_and_prices() -> None:
    from cachecost.analysis.bill.found_sessions import prices_under

    find = models_in(prices_under(setup_of()))
    call = BilledCall(1, 1, "claude-opus-4-5", (3, 0, 20_000, 0, 10), 1.79e9)
    state = session_state([call], find)
    assert state is not None and state.minimum_tokens == 4096
    told = next_message(state, find(call, "").quote, 1.79e9 + 1, 100)
    assert told.usage == Usage(3, 20_000, 110) and told.cost == Decimal("0.0107025")
    unknown = find(call, "no-such-model")
    assert unknown.quote is None and unknown.cost(call.usage) is None
