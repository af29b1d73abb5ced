"""What the hosts' rules come to in the cache: cases that were measured live on Bedrock, and the same on Anthropic."""

from datetime import date
from typing import Any

import pytest

from bodies import Body, Engine, assistant, body, breakpoint_last, marked, text, tool, tool_result, tool_use, user
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.rules import ModelRules, RuleBook

DAY = date(2026, 10, 15)
TURN = text(6000, "turn")


def rules(host: str, model: str = "claude-sonnet-4-6", **assumptions: str) -> ModelRules:
    return RuleBook(assumptions_from(assumptions)).rules(host, model, DAY)


def parallel(calls: int, with_text: bool) -> Body:
    """The turn, then parallel calls and their results, the breakpoint on the last of them."""
    said = [text(60, "checking")] if with_text else []
    uses = [tool_use(80, f"u{number}") for number in range(calls)]
    return breakpoint_last(
        body(user(TURN), assistant(*said, *uses), user(*(tool_result(90, f"u{n}") for n in range(calls))))
    )


# blocks added after the last breakpoint -> (parallel calls, a text before them), and whether Bedrock found the entry
MEASURED = [(19, 9, True, 6000), (20, 10, False, 6000), (21, 10, True, 6000), (22, 11, False, 0), (24, 12, False, 0)]


@pytest.mark.parametrize(("added", "calls", "with_text", "read"), MEASURED)
def test_how_far_a_breakpoint_looks_back_on_bedrock(added: int, calls: int, with_text: bool, read: int) -> None:
    assert added == 2 * calls + with_text
    engine = Engine(rules("bedrock"))
    engine.call(breakpoint_last(body(user(TURN))))
    assert engine.call(parallel(calls, with_text)).read == read


LOOKBACKS = [("bedrock", 0, {}), ("google-cloud", 0, {}), ("anthropic", 6000, {}), ("foundry", 0, {}),
             ("openrouter", 0, {}), ("bedrock", 6000, {"lookback_runs": "collapsed"})]  # fmt: skip


@pytest.mark.parametrize(("host", "read", "assumptions"), LOOKBACKS)
def test_twelve_parallel_calls_on_each_host(host: str, read: int, assumptions: dict[str, str]) -> None:
    engine = Engine(rules(host, **assumptions))
    engine.call(breakpoint_last(body(user(TURN))))
    assert engine.call(parallel(12, False)).read == read


def behind_the_system_prompt(host: str, day: date, *messages: dict[str, Any]) -> int:
    """What a call reads whose only breakpoint ends its messages, after one that wrote the system prompt alone."""
    engine = Engine(RuleBook().rules(host, "claude-sonnet-4-6", day))
    asked = user(text(60, "ask"))
    engine.call(body(asked, system=[marked(text(1861, "system"))]))
    return engine.call(breakpoint_last(body(asked, *messages, system=[text(1861, "system")]))).read


# github.com/kentaojapi/research-anthropic-prompt-caching, measured on the Claude API: texts between, and what was read
@pytest.mark.parametrize(("texts", "read"), [(1, 1861), (17, 1861), (18, 0), (25, 0)])
def test_each_text_is_a_position(texts: int, read: int) -> None:
    """One text was measured to hit and 25 to miss; with the ask, the end and the system prompt, 17 are 20 positions."""
    said = assistant(*(text(80, str(number)) for number in range(texts)))
    assert behind_the_system_prompt("anthropic", DAY, said, user(text(60, "end"))) == read


@pytest.mark.parametrize(
    ("host", "day", "read"),
    [("anthropic", DAY, 1861), ("anthropic", date(2026, 8, 31), 0), ("bedrock", DAY, 0)],
)
def test_fifteen_parallel_calls_and_results_are_two_positions(host: str, day: date, read: int) -> None:
    """The same place measured a hit of the whole system prompt; Bedrock was measured to count each block."""
    uses = assistant(*(tool_use(80, f"u{number}") for number in range(15)))
    results = user(*(tool_result(90, f"u{number}") for number in range(15)))
    assert behind_the_system_prompt(host, day, uses, results) == read


def test_nineteen_single_blocks_reach_back_on_google_cloud_and_twenty_do_not() -> None:
    for added, read in ((19, 6000), (20, 0)):
        engine = Engine(rules("google-cloud"))
        engine.call(breakpoint_last(body(user(TURN))))
        grown = body(
            user(TURN), assistant(*(text(60, str(number)) for number in range(added - 1))), user(text(60, "z"))
        )
        assert engine.call(breakpoint_last(grown)).read == read


ENABLED = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
CHANGES = [
    ("bedrock", ENABLED, {}, False),
    ("bedrock", {"thinking": {"type": "disabled"}}, {}, True),
    ("bedrock", {"output_config": {"effort": "low"}}, {}, False),
    ("bedrock", {"output_config": {"effort": "high"}}, {}, True),
    ("bedrock", {"temperature": 1.0, "max_tokens": 40}, {}, True),
    ("bedrock", ENABLED, {"thinking_rendered_at": "messages"}, True),
    ("anthropic", ENABLED, {}, True),
    ("google-cloud", ENABLED, {}, True),
    ("anthropic", ENABLED, {"thinking_rendered_at": "tools"}, False),
]


@pytest.mark.parametrize(("host", "change", "assumptions", "hits"), CHANGES)
def test_settings_between_two_calls_with_a_marked_system_prompt(
    host: str, change: dict[str, Any], assumptions: dict[str, str], hits: bool
) -> None:
    system = {"system": [marked(text(2000, "be brief"))], "tools": [tool(300)]}
    engine = Engine(rules(host, **assumptions))
    engine.call(body(user(text(50, "ask")), **system))
    outcome = engine.call({**body(user(text(50, "ask")), **system), **change})
    assert (outcome.read, outcome.write_5m) == ((2300, 0) if hits else (0, 2300))


# (host, model, day): what is read of tools and system, 2,300 bytes, after another effort
EFFORTS = [
    ("anthropic", "claude-sonnet-5", {}, 2300),  # 51.3K of 77.8K were kept
    ("anthropic", "claude-opus-5", {}, 0),
    ("anthropic", "claude-opus-4-7", {}, 0),
    ("anthropic", "claude-sonnet-4-6", {}, 0),
    ("anthropic", "claude-fable-5", {}, 0),
    ("anthropic", "claude-opus-4-8", {}, 2300),
    ("anthropic", "claude-opus-4-8", {"thinking_rendered_at": "tools"}, 0),
    ("anthropic", "claude-sonnet-5", {"thinking_rendered_at": "tools"}, 2300),
    ("anthropic", "claude-opus-5", {"thinking_rendered_at": "messages"}, 0),
    ("bedrock", "claude-sonnet-5", {}, 0),
]


@pytest.mark.parametrize(("host", "model", "assumptions", "read"), EFFORTS)
def test_another_effort_by_model(host: str, model: str, assumptions: dict[str, str], read: int) -> None:
    engine = Engine(rules(host, model, **assumptions))
    sent = {**body(user(TURN)), "system": [text(2000, "be brief")], "tools": [tool(300)], "model": model}
    sent["system"] = [marked(sent["system"][0])]
    engine.call(breakpoint_last(sent))
    assert engine.call({**breakpoint_last(sent), "output_config": {"effort": "low"}}).read == read
    again = engine.call({**breakpoint_last(sent), "output_config": {"effort": "high"}})  # the default
    assert again.read == 8300, "what the first effort had written is still there"


def test_an_effort_in_a_message_keeps_what_is_cached() -> None:
    engine = Engine(rules("anthropic", "claude-opus-5"))
    first, more = user(TURN), user(text(50, "more"))
    engine.call(breakpoint_last(body(first)))
    switched = {"role": "system", "content": [], "output_config": {"effort": "low"}}
    assert engine.call(breakpoint_last(body(first, assistant(text(60, "hi")), switched, more))).read == 6000


MINIMUMS = [("anthropic", 2047, 0), ("anthropic", 2048, 2048), ("bedrock", 4095, 0), ("bedrock", 4096, 4096)]


@pytest.mark.parametrize(("host", "size", "written"), MINIMUMS)
def test_a_prefix_long_enough_for_one_host_only(host: str, size: int, written: int) -> None:
    outcome = Engine(rules(host, "claude-opus-4-7")).call(breakpoint_last(body(user(text(size, "ask")))))
    assert outcome.write_5m == written


def test_a_prefix_written_at_one_endpoint_is_not_read_at_another() -> None:
    engine = Engine(rules("bedrock", "us.anthropic.claude-sonnet-4-6"))
    request = breakpoint_last(body(user(TURN)))
    engine.call(request)
    other = rules("bedrock", "global.anthropic.claude-sonnet-4-6")
    assert engine.call(request, model=other.model).read == 0
    assert engine.call(request).read == 6000
