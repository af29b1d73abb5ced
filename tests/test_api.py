"""The library as a notebook uses it: one way to read, whatever was recorded, and every fault told at once."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import cachecost
from cachecost.conversations.model import Conversation

ROOT = Path(__file__).parents[1]
RECORDINGS = ROOT / "scenarios" / "recordings"
LOG = RECORDINGS / "sessions" / "claude-code-56-minutes.jsonl"
TALK = RECORDINGS / "jp-17727484633.jsonl"


@pytest.fixture(scope="module")
def log() -> cachecost.Recording:
    found = cachecost.read(LOG)
    assert isinstance(found, cachecost.Recording)
    return found


def test_a_conversation_is_shown_in_a_line() -> None:
    session = cachecost.read(RECORDINGS / "jp-17728322628.jsonl")
    assert repr(session) == "<Conversation jp-17728322628: 200 calls, 41 side questions>"
    assert repr(Conversation("a\nb", ())) == "<Conversation a\\u000ab: 0 calls>"


def test_a_log_of_calls_is_compared_as_one_and_sized_by_its_bills(log: cachecost.Recording) -> None:
    assert (len(log.conversations), len(log.calls)) == (1, 62)
    assert repr(log) == "<Recording claude-code-56-minutes: 62 calls in 1 conversation>"
    result = cachecost.compare(log, ["none", "claude-code@1h"])
    billed = sum(call.billed.total_input for call in log.calls if call.billed)
    assert [ledger.usage.total_input for ledger in result.comparison.ledgers] == [billed, billed]
    assert result["claude-code@1h"].cost.total < result["none"].cost.total / 5
    assert {ledger.token_source.split(",")[0] for ledger in result.comparison.ledgers} == {"the recording's bills"}


def test_every_function_takes_the_demo_as_it_takes_its_path() -> None:
    demo, path = cachecost.load_demo(), LOG
    assert (len(demo.calls), demo.path) == (62, path)
    functions: list[Callable[[Any], Any]] = [
        cachecost.replay, cachecost.explain, cachecost.optimize, cachecost.lint, cachecost.bill, cachecost.next_message,
        lambda source: cachecost.compare(source, ["as recorded", "none"]),
        lambda source: cachecost.validate(source, tokens="tiktoken"),
        lambda source: cachecost.whatif(source, assumptions=False),
    ]  # fmt: skip
    for function in functions:
        assert repr(function(demo)) == repr(function(path)), function
    assert demo.plot().axes[0].get_xlabel() == "calls"


@pytest.mark.parametrize("function", [cachecost.bill, cachecost.validate, cachecost.next_message])
def test_a_conversation_has_no_bill(function: Callable[[Any], object]) -> None:
    with pytest.raises(
        cachecost.InputError, match="recording: expected a path or a log with bills; got a Conversation"
    ):
        function(cachecost.read(TALK))


def test_counted_tokens_are_asked_for_by_name(log: cachecost.Recording) -> None:
    billed, counted = (cachecost.replay(log, "none", tokens=tokens) for tokens in ("calibrated", "tiktoken"))
    assert billed.usage.total_input != counted.usage.total_input
    assert billed.token_source.startswith("the recording's bills, then tiktoken")
    assert counted.token_source.startswith("tiktoken")


def test_as_recorded_is_a_strategy_of_a_log(log: cachecost.Recording) -> None:
    sent = cachecost.replay(log)
    assert (sent.strategy, len(sent.rows), sent.errors) == ("as recorded", 62, 0)
    result = cachecost.compare(log, ["as recorded", "none"])
    assert result["as recorded"].cost == sent.cost
    assert result.first.strategy == result.best.strategy == "as recorded"
    assert str(result.comparison.as_of) == "2025-06-08"
    assert (
        "anthropic, claude-sonnet-4-20250514, as of 2025-06-08; all assumptions at their default"
        in result._repr_html_()
    )
    assert repr(sent) == f"<Replay as recorded: 62 calls, ${sent.cost.total:.2f}>"


def test_on_another_model_the_bills_no_longer_size_it(log: cachecost.Recording) -> None:
    ledger = cachecost.replay(log, "none", model="claude-haiku-4-5", as_of="2026-03-07")
    assert {row.model for row in ledger.rows} == {"claude-haiku-4-5"}
    assert ledger.cost.total > Decimal(0)


def test_a_conversation_gets_the_head_that_it_lacks() -> None:
    conversation = cachecost.read(TALK, tools_tokens=500, system_tokens=300)
    assert isinstance(conversation, Conversation)
    assert [sum(block.tokens or 0 for block in part.blocks) for part in (conversation.tools, conversation.system)] == [
        500,
        300,
    ]
    assert len(cachecost.replay(conversation).rows) == 7


def test_a_path_is_read_and_a_conversation_is_sent_automatically() -> None:
    assert cachecost.replay(TALK).strategy == cachecost.replay(str(TALK), "automatic").strategy == "automatic"


def test_a_conversation_without_a_model_needs_one() -> None:
    conversation = cachecost.read(RECORDINGS / "jp-17758406187.jsonl")
    with pytest.raises(cachecost.CannotEvaluate, match=r"jp-17758406187 names no model; pass model='claude-…'"):
        cachecost.replay(conversation)
    assert cachecost.replay(conversation, model="claude-opus-4-6").errors == 0


def test_a_scenario_compares_itself_and_its_other_readings() -> None:
    path = ROOT / "scenarios" / "two-or-four-breakpoints.yaml"
    result = cachecost.compare(path)
    assert result.question.startswith("When do four breakpoints cost less than two, today and before")
    assert next(iter(result.variants)) == "14 calls a turn"
    assert result.best.strategy == "two, system and last message"
    assert result.verdict.startswith("Two breakpoints and four cost the same: $1.63. Four win only in long turns")
    assert result.frame()["lower_bound_usd"].notna().all()
    sets = {"variants": [], "as_of": "2026-08-22", "conversation.synthetic.tools": 1}
    one = cachecost.compare(path, sets=sets)
    assert one.variants == {}
    assert (
        one.frame()["cost_usd"].to_dict()
        == result.variants["every tool block a position, one tool a call"].frame()["cost_usd"].to_dict()
    )


NAMES = (
    "expected one of automatic, base, claude-code, none, progressive, system-only … (92: cachecost strategies), "
    "or one with @5m or @1h; got "
)
ANY: Any = cachecost
FAULTS: dict[str, tuple[Callable[[Any], object], str]] = {
    "strategies alone": (lambda _: ANY.compare(["nope"]), f"strategies[0]: {NAMES}'nope' (did you mean 'none'?)"),
    "a strategy": (
        lambda log: ANY.compare(log, ["none", "nope"]),
        f"strategies[1]: {NAMES}'nope' (did you mean 'none'?)",
    ),
    "one": (lambda log: ANY.replay(log, "automatik"), f"strategy: {NAMES}'automatik' (did you mean 'automatic'?)"),
    "of explain": (lambda log: ANY.explain(log, "nope"), f"strategy: {NAMES}'nope' (did you mean 'none'?)"),
    "no recording": (
        lambda _: ANY.compare(["none"]),
        "recording: expected before the strategies: compare(read(…), ['none'])",
    ),
    "no list": (
        lambda log: ANY.compare(log, "none"),
        "strategies: expected a list; got 'none' (did you mean ['none']?)",
    ),
    "none": (lambda log: ANY.compare(log, []), "strategies: expected at least one; got none"),
    "left out": (
        lambda log: ANY.compare(log),
        "strategies: expected a list of them; only a scenario's file names its own",
    ),
    "twice": (
        lambda log: ANY.compare(log, ["none", "none"]),
        "strategies[1]: expected a name of its own; got 'none', as strategies[0]",
    ),
    "a number": (lambda _: ANY.replay(3), "recording: expected a path, or what read() gives; got a int"),
    "day": (lambda log: ANY.replay(log, as_of="7 March"), "as_of: expected a date like 2026-03-07; got '7 March'"),
    "tokens": (
        lambda log: ANY.replay(log, tokens="tikoken"),
        "tokens: expected one of calibrated, auto, tiktoken, bytes, ctok, native; got 'tikoken' "
        "(did you mean 'tiktoken'?)",
    ),
    "counter": (
        lambda _: ANY.validate(LOG, tokens="bytes"),
        "tokens: expected one of ctok, tiktoken; got 'bytes'",
    ),
    "no file": (lambda _: ANY.read("nothing.jsonl"), "nothing.jsonl expected a file; there is none"),
    "no logs": (
        lambda _: ANY.validate("a.jsonl", "b.jsonl"),
        "a.jsonl expected a file; there is none\nb.jsonl expected a file; there is none",
    ),
    "picture": (
        lambda log: ANY.compare(log, ["none"]).plot("bars"),
        "picture: expected one of dollars, calls, question; got 'bars'",
    ),
    "model": (
        lambda log: ANY.replay(log, model="claude-opus-4-6"),
        "model: expected nothing: as recorded, each call ran on its own model",
    ),
    "pace": (
        lambda log: ANY.replay(log).monthly(-1),
        "sessions_per_day: expected a number from 0, and days from 1; got -1 and 30",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_told_in_the_callers_words(name: str, log: cachecost.Recording) -> None:
    asked, expected = FAULTS[name]
    with pytest.raises(cachecost.InputError) as caught:
        asked(log)
    assert str(caught.value) == expected


def test_every_fault_of_every_strategy_is_told_at_once(log: cachecost.Recording) -> None:
    with pytest.raises(cachecost.InputError) as caught:
        cachecost.compare(
            log, ["nope", {"preset": "automatik"}, {"name": "x", "breakpoints": ["last_tol"], "tll": "1h"}]
        )
    messages = str(caught.value).splitlines()
    assert [line.split(":")[0] for line in messages] == ["strategies[0]", "strategies[1]", *["strategies[2]"] * 2]
    assert messages[2].endswith("got 'last_tol' (did you mean 'last_tool'?)")
    assert messages[3] == "strategies[2]: tll: unknown key (did you mean 'ttl'?)"


def test_a_host_without_rules_and_a_switch_that_is_none(log: cachecost.Recording) -> None:
    with pytest.raises(
        cachecost.InputError, match=r"^host: expected one of anthropic, .*; got 'bedrok' \(did you mean"
    ):
        cachecost.replay(log, host="bedrok")
    with pytest.raises(cachecost.InputError, match=r"lookback_rns: unknown rule \(did you mean 'lookback_runs'\?\)"):
        cachecost.explain(log, rules={"lookback_rns": "counted"})


def test_a_scenario_says_its_terms_itself() -> None:
    path = ROOT / "scenarios" / "ttl.yaml"
    with pytest.raises(cachecost.InputError) as caught:
        cachecost.compare(path, ["none"], model="claude-opus-4-6")
    assert str(caught.value) == f"{path} sets strategies, model itself; override them with sets={{…}}"
    with pytest.raises(cachecost.InputError, match=r"strategies\[0\]\.ttl: expected one of 1h, 5m; got '2h'"):
        cachecost.compare(path, sets={"strategies.0.ttl": "2h"})


def test_what_was_never_sent_is_explained_under_a_strategy() -> None:
    with pytest.raises(cachecost.CannotEvaluate, match=r"jp-17727484633 contains no recorded call; pass a strategy"):
        cachecost.explain(TALK)
    explanation = cachecost.explain(TALK, "none")
    assert explanation.cost == cachecost.replay(TALK, "none").cost.total
    assert explanation.avoidable == sum(explanation.by_cause().values())
