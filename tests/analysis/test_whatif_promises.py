"""Each promise of `whatif` against dollars counted by hand. Prices of Sonnet 4.5: 3, read 0.3, writes 3.75 and 6."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from whatif_logs import Row, promise, told, traffic, two_calls, usd

from bodies import BREAKPOINT, HOUR, Body, assistant, body, marked, text, thinking, tool, tool_result, tool_use, user
from cachecost.analysis.explain.explaining import explain
from cachecost.analysis.whatif.report import what_if
from cachecost.analysis.whatif.results import YES
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.providers import prices
from cachecost.providers.prices import is_offered, list_models, must_be_served

COLD = usd(2_000, 3.75, 2_300, 3.75)
WARM = usd(2_000, 3.75, 2_000, 0.3, 300, 3.75)


@pytest.mark.parametrize(("pause", "now"), [(299, WARM), (300, COLD), (301, COLD)])
def test_an_hour_for_everything(tmp_path: Path, pause: float, now: Decimal) -> None:
    found = promise(tmp_path, two_calls(pause), "ttl=1h")
    hour = usd(2_000, 6, 2_000, 0.3, 300, 6)
    assert found.cost == hour
    assert found.saving == now - hour
    assert found.calls_changed == 2


@pytest.mark.parametrize(("pause", "supported"), [(299, False), (300, True), (301, True)])
def test_without_a_pause_nothing_is_known_of_lifetimes(tmp_path: Path, pause: float, supported: bool) -> None:
    told_of = told(tmp_path, two_calls(pause))
    for name in ("ttl=1h", "keep-alive=240s", "keep-alive=295s:1"):
        found = told_of.find(name)
        assert (found.supported == YES) is supported, name
        if not supported:
            assert found.supported == ("not supported by the data: no pause reaches 300 s (the longest is 299 s)")


def test_calls_without_times_tell_nothing_of_pauses(tmp_path: Path) -> None:
    rows: list[Row] = [(None, sent) for _, sent in two_calls(0)]
    found = promise(tmp_path, rows, "ttl=1h")
    assert found.supported == "not supported by the data: the recording has no timestamps, so its pauses are unknown"


def test_five_minutes_for_what_lived_an_hour(tmp_path: Path) -> None:
    rows: list[Row] = [
        (0, body(user({**text(2_000, "a"), "cache_control": HOUR}))),
        (400, body(user(text(2_000, "a")), assistant(text(100, "b")), user({**text(200, "c"), "cache_control": HOUR}))),
    ]
    found = told(tmp_path, rows)
    assert found.find("ttl=5m").cost == COLD
    assert found.find("ttl=1h").supported == "no change: already so"


def test_an_hour_for_the_first_layers_alone(tmp_path: Path) -> None:
    head: dict[str, Any] = {"tools": [marked(tool(1_500))], "system": [marked(text(2_500, "s"))]}
    found = told(tmp_path, two_calls(400, **head))
    assert found.cost == usd(6_000, 3.75, 6_300, 3.75)
    assert found.find("ttl=1h:tools").cost == usd(1_500, 6, 4_500, 3.75, 1_500, 0.3, 4_800, 3.75)
    assert found.find("ttl=1h:tools+system").cost == usd(4_000, 6, 2_000, 3.75, 4_000, 0.3, 2_300, 3.75)


def test_no_breakpoint_on_the_layer_is_no_change(tmp_path: Path) -> None:
    assert promise(tmp_path, two_calls(400), "ttl=1h:tools").supported == "no change: no call has a breakpoint on tools"


# Pings: the entry lives until 300 s after the last of them. One comes after the last call as well.
@pytest.mark.parametrize(("pause", "is_alive"), [(539, True), (540, False), (541, False)])
def test_a_ping_bridges_a_pause(tmp_path: Path, pause: float, is_alive: bool) -> None:
    found = told(tmp_path, two_calls(pause), "keep-alive=240s:1").asked
    pings = usd(2_000, 0.3, 2_300, 0.3)
    assert found is not None
    assert found.cost == pings + (WARM if is_alive else COLD)


def test_pings_go_on_as_long_as_the_prices_are_worth(tmp_path: Path) -> None:
    """n * 0.3 <= 3.75 - 0.3: eleven."""
    found = promise(tmp_path, two_calls(400), "keep-alive=295s")
    assert found.extra_calls == 1 + 11
    assert found.cost == WARM + usd(2_000, 0.3, 11 * 2_300, 0.3)
    assert "at most 11: bridges up to 59 min" in found.does


def test_breakpoints_on_the_last_block_and_none_at_all(tmp_path: Path) -> None:
    head: dict[str, Any] = {"system": [marked(text(2_500, "s"))]}
    rows: list[Row] = [
        (0, body(user(text(2_000, "a")), **head)),
        (10, body(user(text(2_000, "a")), assistant(text(100, "b")), user(text(200, "c")), **head)),
    ]
    found = told(tmp_path, rows)
    assert found.cost == usd(2_500, 3.75, 2_000, 3, 2_500, 0.3, 2_300, 3)
    assert found.find("breakpoints=automatic").cost == usd(4_500, 3.75, 4_500, 0.3, 300, 3.75)
    assert found.find("breakpoints=none").cost == usd(4_500, 3, 4_800, 3)
    assert found.find("breakpoints=none").supported == YES


# ------------------------------------------------------------------------------- elsewhere


def test_another_model_with_a_minimum_of_its_own(tmp_path: Path) -> None:
    """Haiku 4.5 caches from 4,096 tokens on: 1, read 0.1, write 1.25."""
    small = promise(tmp_path, two_calls(10), "model=claude-haiku-4-5")
    assert small.cost == usd(2_000, 1, 2_300, 1)
    large = promise(tmp_path, two_calls(10, first=4_096), "model=claude-haiku-4-5")
    assert large.cost == usd(4_096, 1.25, 4_096, 0.1, 300, 1.25)
    assert not large.keeps_answers


def test_a_model_that_was_not_out_yet_is_not_offered(tmp_path: Path) -> None:
    names = {one.name for one in told(tmp_path, two_calls(10)).alternatives}
    assert "model=claude-haiku-5-5" not in names  # 7 October 2026, two days later
    assert "model=claude-opus-5-5" in names


@pytest.mark.parametrize(
    ("host", "day", "name", "offered"),
    [
        ("anthropic", date(2026, 4, 19), "claude-3-haiku", True),
        ("anthropic", date(2026, 4, 20), "claude-3-haiku", False),
        ("google-cloud", date(2026, 4, 20), "claude-3-haiku", False),  # as nobody knows it to stay longer there
        ("bedrock", date(2026, 6, 18), "claude-3-5-haiku", True),  # longer there than on the Claude API
        ("bedrock", date(2026, 6, 19), "claude-3-5-haiku", False),
        ("bedrock", date(2026, 4, 18), "claude-3-5-sonnet", False),
        ("openai", date(2026, 10, 22), "o4-mini", True),
        ("openai", date(2026, 10, 23), "o4-mini", False),
        ("openai", date(2026, 12, 10), "gpt-5", True),
        ("openai", date(2026, 12, 11), "gpt-5", False),
        ("gemini", date(2026, 11, 30), "gemini-2.5-pro", True),
        ("gemini", date(2026, 12, 1), "gemini-2.5-pro", False),
        ("gemini", date(2026, 12, 1), "gemini-2.5-flash-lite", True),  # no end is known
    ],
)
def test_a_model_that_was_withdrawn_is_not_offered(host: str, day: date, name: str, offered: bool) -> None:
    assert (name in {model.name for model in list_models(host, day)}) is offered
    assert is_offered(prices.catalogue(host).model(name), host, day) is offered
    if offered:
        must_be_served(host, name, day)
    else:
        with pytest.raises(CannotEvaluate, match=f"{name} was retired on .*; add --as-of [0-9-]* or an earlier day"):
            must_be_served(host, name, day)


@pytest.mark.parametrize(
    ("today", "offered"),
    [
        (None, True),
        (date(2026, 12, 18), True),
        (date(2026, 12, 19), False),
    ],
)
def test_a_model_that_is_retired_today_is_no_alternative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, today: date | None, offered: bool
) -> None:
    """The log is of 2026-10-05; Opus 4.5 is taken to end on 2026-12-19."""
    book = prices.catalogue("anthropic")
    ended = replace(book.models["claude-opus-4-5"], retired=date(2026, 12, 19))
    monkeypatch.setattr(prices, "catalogue", lambda host: replace(book, models={**book.models, ended.id: ended}))
    found = told(tmp_path, two_calls(10), today=today)
    assert ("model=claude-opus-4-5" in {one.name for one in found.alternatives}) is offered
    assert found.retired_models == ({} if offered else {"claude-opus-4-5": date(2026, 12, 18)})


def test_a_host_that_withdrew_the_model_is_no_alternative(tmp_path: Path) -> None:
    rows = [(at, {**sent, "model": "claude-opus-4-1"}) for at, sent in two_calls(10)]
    found = promise(tmp_path, rows, "host=google-cloud")
    assert found.supported == (
        "not supported by the data: claude-opus-4-1 was retired on 2026-08-05 from the Claude API, "
        "and no later day is known for google-cloud"
    )
    assert promise(tmp_path, rows, "host=bedrock").cost is not None  # until 2027 there


def test_a_host_without_automatic_caching_gets_breakpoints(tmp_path: Path) -> None:
    rows: list[Row] = [
        (0, body(user(text(2_000, "a")), cache_control=BREAKPOINT)),
        (10, body(user(text(2_000, "a")), assistant(text(100, "b")), user(text(200, "c")), cache_control=BREAKPOINT)),
    ]
    found = promise(tmp_path, rows, "host=bedrock")
    assert found.cost == WARM * Decimal("1.1")  # a regional endpoint
    assert found.supported == YES


@pytest.mark.parametrize(("calls", "saves"), [(2, True), (3, False)])
def test_a_batch_is_a_band(tmp_path: Path, calls: int, saves: bool) -> None:
    """Half of 7.5 + 0.6 for each read at best, half of 7.5 for each call at worst: from the third on that is more."""
    rows: list[Row] = [(at * 10.0, body(user(marked(text(2_000, "a"))))) for at in range(calls)]
    found = promise(tmp_path, rows, "batch")
    assert found.cost == usd(2_000, 3.75, (calls - 1) * 2_000, 0.3) / 2
    assert found.most == usd(calls * 2_000, 3.75) / 2
    doubt = "not supported by the data: whether it saves depends on how many hits a batch has"
    assert found.supported == (YES if saves else doubt)


def test_a_batch_cannot_wait_for_an_answer(tmp_path: Path) -> None:
    found = promise(tmp_path, two_calls(10), "batch")
    assert found.supported.endswith("1 of 2 calls depend on an earlier answer, which a batch returns within a day")


def test_us_residency(tmp_path: Path) -> None:
    rows = [(at, {**sent, "model": "claude-sonnet-4-6"}) for at, sent in two_calls(10)]
    assert promise(tmp_path, rows, "us").cost == WARM * Decimal("1.1")
    inside = [(at, {**sent, "inference_geo": "us"}) for at, sent in rows]
    assert promise(tmp_path, inside, "us=no").saving == WARM * Decimal("0.1")
    old = promise(tmp_path, two_calls(10), "us")
    assert (old.cost, old.supported) == (
        None,
        "not evaluated: the API refuses 2 calls: 'claude-sonnet-4-5' does not support the `inference_geo` parameter.",
    )


# ------------------------------------------------------------------------------- other bytes


def same_as_sent(tmp_path: Path, rows: list[Row], name: str, by_hand: list[Row], **options: Any) -> None:
    """A promise costs what the log costs that somebody would have sent so."""
    found = told(tmp_path, rows, **options).find(name)
    hand = what_if(traffic(tmp_path, by_hand, "by-hand", options.get("output")))
    assert found.supported == YES
    assert found.saving is not None and found.saving != 0
    assert found.cost == hand.cost


def test_tools_in_one_order(tmp_path: Path) -> None:
    a, b = tool(1_200, "a"), tool(1_300, "b")
    rows = two_calls(10, tools=[a, b])
    rows[1] = (10, {**rows[1][1], "tools": [b, a]})
    same_as_sent(tmp_path, rows, "tools=sorted", two_calls(10, tools=[a, b]))


def test_tools_that_never_came_in_another_order(tmp_path: Path) -> None:
    found = promise(tmp_path, two_calls(10, tools=[tool(1_300, "b"), tool(1_200, "a")]), "tools=sorted")
    assert found.supported == "no change: the order of tools and of their keys never changes"


def test_keys_of_schemas_in_one_order(tmp_path: Path) -> None:
    one = {"name": "f", "description": "x" * 1_200, "input_schema": {"type": "object", "properties": {}}}
    other = {"name": "f", "input_schema": {"properties": {}, "type": "object"}, "description": "x" * 1_200}
    in_order = {"description": "x" * 1_200, "input_schema": {"properties": {}, "type": "object"}, "name": "f"}
    rows = two_calls(10, tools=[one])
    rows[1] = (10, {**rows[1][1], "tools": [other]})
    same_as_sent(tmp_path, rows, "tools=sorted", two_calls(10, tools=[in_order]))


def at_the_end(sent: Body, words: str) -> Body:
    *before, last = sent["messages"]
    return {**sent, "messages": [*before, {**last, "content": [*last["content"], {"type": "text", "text": words}]}]}


def test_a_clock_in_the_system_prompt_moves_to_the_end(tmp_path: Path) -> None:
    def system(clock: str) -> list[Body]:
        words = f"Be brief.\n{clock}{'Be right. ' * 200}"
        return [{"type": "text", "text": words, "cache_control": BREAKPOINT}]

    clocks = ("Current time: 10:41:07\n", "Current time: 10:43:19\n")
    rows = [(at, {**sent, "system": system(clock)}) for (at, sent), clock in zip(two_calls(10), clocks, strict=True)]
    by_hand = [
        (at, at_the_end({**sent, "system": system("")}, clock))
        for (at, sent), clock in zip(two_calls(10), clocks, strict=True)
    ]
    found = told(tmp_path, rows)
    assert found.find("volatile=last").supported == YES
    assert found.find("volatile=last").saving == explain(traffic(tmp_path, rows)).avoidable  # new words alone are added
    hand = what_if(traffic(tmp_path, by_hand, "by-hand")).cost
    assert (found.find("volatile=last").cost or 0) < hand < found.cost


def test_a_block_that_changes_as_a_whole_moves_as_a_whole(tmp_path: Path) -> None:
    def sent(at: float, words: str, moved: bool) -> Row:
        request = two_calls(10)[at > 0][1]
        stays = marked(text(1_500, "s"))
        if moved:
            return at, at_the_end({**request, "system": [stays]}, words)
        return at, {**request, "system": [{"type": "text", "text": words}, stays]}

    words = ((0, "first of all"), (10, "and now for that"))
    rows = [sent(at, one, False) for at, one in words]
    same_as_sent(tmp_path, rows, "volatile=last", [sent(at, one, True) for at, one in words])


def test_thinking_off(tmp_path: Path) -> None:
    on = {"type": "enabled", "budget_tokens": 1_024}

    def rows(with_it: bool) -> list[Row]:
        thought = [thinking(400)] if with_it else []
        fields: dict[str, Any] = {"model": "claude-opus-4-5", **({"thinking": on} if with_it else {})}
        first = user(text(4_200, "a"))
        answer, result = assistant(*thought, tool_use(90, "t")), tool_result(200, "t")
        return [
            (0, body(user(marked(text(4_200, "a"))), **fields)),
            (10, body(first, answer, user(marked(result)), **fields)),
        ]

    found = promise(tmp_path, rows(True), "thinking=off")
    hand = told(tmp_path, rows(False))
    assert found.supported == YES
    assert found.cost == hand.cost
    assert not found.keeps_answers


def test_compaction_only_where_the_recording_is_long_enough(tmp_path: Path) -> None:
    """Opus 4.5: 5, read 0.5, write 6.25, output 25. The summary has 2,000 tokens, what asks for it 500."""
    long = [
        (at, {**sent, "model": "claude-opus-4-5"}) for at, sent in two_calls(20, first=50_000, answer=100, second=200)
    ]
    found = promise(tmp_path, long, "compaction=50k")
    first = usd(50_000, 6.25)
    asks = usd(50_000, 0.5, 600, 6.25, 2_000, 25)
    shorter = usd(2_200, 5)  # below Opus 4.5's minimum of 4,096
    assert found.extra_calls == 1
    assert found.cost == first + asks + shorter
    names = {one.name for one in told(tmp_path, two_calls(20, first=49_700)).alternatives}
    assert not any(name.startswith("compaction") for name in names)


def test_effort_is_not_offered(tmp_path: Path) -> None:
    assert not any("effort" in one.name for one in told(tmp_path, two_calls(10)).alternatives)
