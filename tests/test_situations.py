"""The 21 situations that tell simulators of this cache apart, each as the documentation ends it."""

from __future__ import annotations

import pytest

from bodies import (
    BREAKPOINT,
    COUNTS_EVERY_BLOCK,
    HOUR,
    STRIPS,
    Body,
    Engine,
    assistant,
    body,
    breakpoint_last,
    marked,
    text,
    thinking,
    tool,
    tool_result,
    tool_use,
    user,
)

TOOLS = [tool(500, "f"), marked(tool(600, "g"))]
SYSTEM = [marked(text(1000, "be brief"))]
HEAD = 2100
ASK = text(400, "ask")
ANSWER = text(300, "answer")
MORE = text(200, "more")


def conversation(*messages: Body, **fields: object) -> Body:
    return body(*messages, **{"tools": TOOLS, "system": SYSTEM, **fields})


FIRST = breakpoint_last(conversation(user(ASK)))
SECOND = breakpoint_last(conversation(user(ASK), assistant(ANSWER), user(MORE)))


def after(change: Body, first: Body = FIRST) -> tuple[int, int]:
    """(read, written) of the grown conversation when `change` came between the two calls."""
    engine = Engine()
    engine.call(first)
    outcome = engine.call({**SECOND, **change})
    return outcome.read, outcome.write_5m


def test_01_a_growing_conversation_hits_what_the_moved_breakpoint_left() -> None:
    assert after({}) == (HEAD + 400, 300 + 200)


def test_02_a_string_is_one_text_block() -> None:
    engine = Engine()
    engine.call(FIRST)
    shape = conversation({"role": "user", "content": ASK["text"]}, assistant(ANSWER), user(MORE))
    assert engine.call(breakpoint_last(shape)).read == HEAD + 400


def test_03_another_conversation_hits_the_shared_head() -> None:
    engine = Engine()
    engine.call(FIRST)
    other = engine.call(breakpoint_last(conversation(user(text(700, "other")))))
    assert (other.read, other.write_5m) == (HEAD, 700)


def test_04_a_timestamp_in_the_system_prompt_leaves_the_tools() -> None:
    assert after({"system": [marked(text(1000, "12:01"))]}) == (1100, 1000 + 400 + 300 + 200)


def test_05_reordered_tools_miss_everything() -> None:
    turned = [tool(600, "g"), marked(tool(500, "f"))]
    assert after({"tools": turned}) == (0, HEAD + 900)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"tool_choice": {"type": "any"}}, id="06 tool_choice auto to any"),
        pytest.param({"thinking": {"type": "enabled", "budget_tokens": 1024}}, id="07 thinking toggled"),
        pytest.param({"output_config": {"effort": "low"}}, id="09 effort changed"),
        pytest.param({"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, id="parallel tools off"),
    ],
)
def test_06_07_09_parameters_of_the_messages_layer_rewrite_messages_only(change: Body) -> None:
    assert after(change) == (HEAD, 900)


@pytest.mark.parametrize(
    "change",
    [
        {"tool_choice": {"type": "auto"}},
        {"tool_choice": {"type": "none"}},
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": False}},
        {"thinking": {"type": "disabled"}},
        {"output_config": {"effort": "high"}},
        {"speed": "standard"},
        {"max_tokens": 0, "temperature": 0.5, "stop_sequences": ["x"], "metadata": {"user_id": "u"}, "stream": True},
    ],
    ids=str,
)
def test_an_explicit_default_and_what_shapes_no_prompt_change_nothing(change: Body) -> None:
    assert after(change) == (HEAD + 400, 500)


def test_08_a_changed_schema_keeps_the_tools_only() -> None:
    schema = {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}
    assert after(schema) == (1100, 1000 + 900)


def test_08_a_change_of_speed_shares_nothing() -> None:
    assert after({"speed": "fast"}) == (0, HEAD + 900)


def test_10_thirty_text_blocks_are_out_of_lookback() -> None:
    engine = Engine()
    engine.call(FIRST)
    many = [text(50, str(number)) for number in range(30)]
    outcome = engine.call(breakpoint_last(conversation(user(ASK), assistant(ANSWER), user(*many))))
    assert (outcome.read, outcome.write_5m) == (HEAD, 400 + 300 + 1500)


@pytest.mark.parametrize(("rules", "read"), [(Engine().rules, HEAD + 400), (COUNTS_EVERY_BLOCK, HEAD)])
def test_11_parallel_tool_runs_are_one_position_where_runs_collapse(rules, read) -> None:  # type: ignore[no-untyped-def]
    engine = Engine(rules)
    engine.call(FIRST)
    names = [f"t{number}" for number in range(15)]
    uses, results = [tool_use(90, name) for name in names], [tool_result(90, name) for name in names]
    assert engine.call(breakpoint_last(conversation(user(ASK), assistant(*uses), user(*results)))).read == read


def test_12_five_breakpoints_are_refused() -> None:
    five = [marked(text(300, str(number))) for number in range(3)]
    answer = Engine().try_call(conversation(user(*five)))
    assert answer == "A maximum of 4 blocks with cache_control may be provided. Found 5."


def test_13_one_hour_after_five_minutes_is_refused() -> None:
    answer = Engine().try_call(conversation(user(marked(ASK, "1h"))))
    assert answer == (
        "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
        "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
    )


@pytest.mark.parametrize(("size", "written"), [(1023, 0), (1024, 1024)])
def test_14_below_the_minimum_nothing_is_cached(size: int, written: int) -> None:
    outcome = Engine().call(body(user(marked(text(size)))))
    assert (outcome.write_5m, outcome.uncached) == (written, size - written)


def test_15_without_breakpoints_nothing_is_cached() -> None:
    engine = Engine()
    for _ in range(2):
        outcome = engine.call(body(user(text(5000))))
        assert (outcome.read, outcome.write_5m, outcome.uncached) == (0, 0, 5000)


def test_16_automatic_caching_breakpoints_the_last_block() -> None:
    engine = Engine()
    first = engine.call(body(user(text(2000, "a")), cache_control=BREAKPOINT))
    second = engine.call(body(user(text(2000, "a")), assistant(ANSWER), user(MORE), cache_control=BREAKPOINT))
    assert (first.write_5m, second.read, second.write_5m) == (2000, 2000, 500)


@pytest.mark.parametrize(("pause", "read"), [(299.999, HEAD + 400), (300, 0), (310, 0)])
def test_17_an_entry_lives_five_minutes_from_the_start_of_its_call(pause: float, read: int) -> None:
    engine = Engine()
    engine.call(FIRST, at=0, first_token=20)
    assert engine.call(SECOND, at=pause).read == read


def test_18_a_read_refreshes() -> None:
    engine = Engine()
    for at in (0, 250, 500):
        outcome = engine.call(FIRST, at=at)
    assert outcome.read == HEAD + 400


def test_19_another_model_shares_nothing() -> None:
    engine = Engine()
    engine.call(FIRST)
    assert engine.call(SECOND, model="claude-opus-4-6").read == 0


def test_20_an_image_in_an_old_turn_rewrites_the_messages() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/i.png"}}
    engine = Engine()
    engine.call(FIRST)
    outcome = engine.call(breakpoint_last(conversation(user(ASK, image), assistant(ANSWER), user(MORE))))
    assert (outcome.read, outcome.hit.layer) == (HEAD, "system")  # type: ignore[union-attr]


def test_21_earlier_thinking_is_stripped_and_not_billed() -> None:
    engine = Engine(STRIPS)
    engine.call(FIRST)
    later = breakpoint_last(conversation(user(ASK), assistant(thinking(800), ANSWER), user(MORE)))
    outcome = engine.call(later)
    assert (outcome.read, outcome.write_5m, outcome.uncached) == (HEAD + 400, 300 + 200, 0)


def test_21_in_its_own_turn_thinking_stays_and_is_billed() -> None:
    engine = Engine(STRIPS)
    loop = conversation(user(ASK), assistant(thinking(800), tool_use(90, "t")), user(tool_result(90, "t")))
    assert engine.call(breakpoint_last(loop)).write_5m == HEAD + 400 + 800 + 90 + 90


def test_an_hour_entry_lives_an_hour_and_is_billed_apart() -> None:
    engine = Engine()
    mixed = body(user(marked(text(1500, "a"), "1h"), marked(text(600, "b"))))
    first = engine.call(mixed, at=0)
    later = engine.call(mixed, at=3599)
    assert (first.write_1h, first.write_5m, later.read, later.write_5m) == (1500, 600, 1500, 600)
    assert engine.call(body(user(text(1500, "a"), text(600, "b")), cache_control=HOUR), at=3599 + 3600).read == 0
