"""Lint of billed logs: where a call has its bill, the bill decides what a finding says, and not a count of tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lint_bodies import ANSWER, NEXT, QUESTION, SYSTEM, TOOLS, first, second

from bodies import BREAKPOINT, HOUR, Body, assistant, body, breakpoint_last, marked, text, tool, user
from cachecost.analysis.lint import LintFinding, RequestLoader, lint, lint_log
from cachecost.conversations.readers.detect import read_calls
from cachecost.providers.rules import RuleBook

Lint = Callable[..., list[LintFinding]]
LATER = [ANSWER, NEXT, assistant(text(300, "second answer")), user(text(300, "third"))]
OF_FIRST = 2400 + 1100 + 300
"""Bytes of the first request up to its last breakpoint."""


def usage(plain: int, read: int = 0, write: int = 0, hour: int = 0) -> Body:
    return {
        "input_tokens": plain,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write + hour,
        "cache_creation": {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": hour},
        "output_tokens": 5,
    }


def call(request: Body, bill: Body | None = None, *answer: Body) -> Body:
    row = {"request": request, **({"usage": bill} if bill else {})}
    return {**row, "response": {"content": list(answer)}} if answer else row


def findings(path: Path, calls: Sequence[Body], tokens: str = "bytes") -> list[LintFinding]:
    path.write_text("".join(json.dumps(one) + "\n" for one in calls))
    return lint_log(read_calls(path), "log", RequestLoader(RuleBook(), "anthropic", tokens)).findings


@pytest.fixture
def billed(tmp_path: Path) -> Lint:
    """The findings of calls that were recorded one after another."""
    return lambda *calls, **options: findings(tmp_path / "log.jsonl", calls, **options)


def codes_of(found: Sequence[LintFinding]) -> list[tuple[str, str]]:
    return [(one.code, one.bill) for one in found]


# ------------------------------------------------------------------------------------- is anything cached?

BILLS = {
    "nothing": (usage(900), [("CC510", "confirmed")]),
    "written": (usage(3, write=1200), []),
    "written for 1h": (usage(3, hour=1200), []),
    "read": (usage(3, read=1200), []),
    "no input: the answer broke off": (usage(0), None),
    "no bill": (None, None),
}


@pytest.mark.parametrize("name", BILLS)
@pytest.mark.parametrize(("size", "without"), [(900, ["CC510"]), (1100, [])])
def test_the_bill_decides_whether_anything_is_cached(billed: Lint, name: str, size: int, without: list[str]) -> None:
    """For a prefix that is counted to be too short, and for one that is counted to be long enough."""
    bill, expected = BILLS[name]
    found = codes_of(billed(call(body(user(marked(text(size)))), bill)))
    assert found == ([(code, "") for code in without] if expected is None else expected)


def test_what_was_billed_is_said(billed: Lint) -> None:
    (short,) = billed(call(body(user(marked(text(900)))), usage(165)))
    assert short.tokens == 165 and short.message == (
        "billed: 165 input tokens at full price, none read or written; "
        "165 up to the last breakpoint, where claude-sonnet-4-5 needs 1,024"
    )
    (enough,) = billed(call(body(user(marked(text(1100)))), usage(1650)))
    assert enough.message == (
        "billed: 1,650 input tokens at full price, none read or written, although the prefix seems long enough: "
        "1,650 up to the last breakpoint, where claude-sonnet-4-5 needs 1,024"
    )


def test_server_tools_cache_in_a_later_pass(billed: Lint) -> None:
    """The request is too short; what the search brought is not, and the server puts a breakpoint there."""
    web = {"type": "web_search_20250305", "name": "web_search"}
    sent = body(user(marked(text(500))), tools=[web])
    results = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
    answer = (search, results, {"type": "text", "text": "found"})
    assert codes_of(billed(call(sent, usage(900, write=5000), *answer))) == []
    assert codes_of(billed(call(sent, usage(6100), *answer))) == [("CC510", "confirmed")]
    assert [one.code for one in lint(sent, tokens="bytes")] == ["CC510"]


def test_a_conversation_that_was_only_short_yet_is_healthy_with_its_bills(billed: Lint) -> None:
    short = breakpoint_last(body(user(text(700, "q"))))
    longer = breakpoint_last(body(user(text(700, "q")), ANSWER, NEXT))
    assert billed(call(short, usage(705)), call(longer, usage(3, write=1302))) == []
    found = billed(call(short, usage(705)), call(longer, usage(1000)))
    assert codes_of(found) == [("CC510", "confirmed")] and found[0].calls == 2


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(1, 3000), st.integers(100, 3000), st.booleans())
def test_nothing_is_cached_exactly_where_the_bill_says_so(
    tmp_path_factory: pytest.TempPathFactory, read: int, write: int, plain: int, size: int, has_breakpoint: bool
) -> None:
    part = marked(text(size)) if has_breakpoint else text(size)
    path = tmp_path_factory.getbasetemp() / "bill.jsonl"
    found = findings(path, [call(body(user(part)), usage(plain, read, write))])
    assert [one.code for one in found] == (["CC510"] if has_breakpoint and not read + write else [])


# --------------------------------------------------------------------------- without a bill: near the minimum


def test_near_the_minimum_is_a_warning_with_its_margin() -> None:
    (one,) = lint(body(user(marked({"type": "text", "text": "word " * 930}))), tokens="tiktoken")
    assert (one.code, one.severity, one.tokens) == ("CC511", "warning", 5)
    assert one.message == (
        "1,029 (±69, 6.7%) up to the last breakpoint, where claude-sonnet-4-5 needs 1,024: "
        "whether anything is cached is too close to tell"
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [("a" * 6000, "CC511"), ("a" * 1100, "CC511"), ("a" * 800, "CC510"), ("ab " * 400, "CC510")],
)
def test_long_runs_of_one_letter_are_too_close_to_tell(words: str, code: str) -> None:
    """Counters differ by a factor there: one token for each letter is the most it can be."""
    (one,) = lint(body(user(marked({"type": "text", "text": words}))), tokens="tiktoken")
    assert one.code == code
    assert one.message.endswith("counters disagree on long runs of one letter") == (code == "CC511")


def test_a_breakpoint_near_the_minimum_before_one_that_counts_is_a_note() -> None:
    """As before one that is too short (CC512)."""
    part = {"type": "text", "text": "word " * 930}
    (one,) = lint(body(user(marked(part), marked(dict(part)))), tokens="tiktoken")
    assert (one.code, one.severity, one.path) == ("CC513", "note", "messages.0.content.0")
    assert one.message.endswith(
        "too close to tell; the first breakpoint that counts is messages.0.content.1 (2,054 tokens)"
    )


def test_the_bill_of_another_call_sizes_what_this_one_repeats(billed: Lint) -> None:
    """Counted, both breakpoints are near the minimum; the second call's bill has the length of the first's."""
    part = {"type": "text", "text": "word " * 930}
    alone, more = body(user(marked(part))), body(user(part, marked({"type": "text", "text": "word " * 50})))
    (near,) = billed(call(alone), call(more), tokens="tiktoken")
    assert (near.code, near.calls) == ("CC511", 2)
    assert [one.code for one in billed(call(alone), call(more, usage(3, write=1300)), tokens="tiktoken")] == []


# -------------------------------------------------------------------------------------- TTLs and breakpoints


@pytest.mark.parametrize(("hour", "expected"), [(0, ["CC513"]), (1040, [])])
def test_what_was_written_for_an_hour_shows_that_its_breakpoint_counts(
    billed: Lint, hour: int, expected: list[str]
) -> None:
    part = {"type": "text", "text": "word " * 930}
    sent = body(user({**part, "cache_control": HOUR}, marked(dict(part))))
    bill = usage(3, write=2080 - hour, hour=hour)
    assert [one.code for one in billed(call(sent, bill), tokens="tiktoken")] == expected


@pytest.mark.parametrize(
    ("bill", "expected"),
    [
        (usage(2000), [("CC520", "confirmed")] * 1),
        (usage(1024), [("CC520", "confirmed")]),
        (usage(1023), []),
        (usage(500, read=1500), []),
    ],
)
def test_no_breakpoint_and_a_bill(billed: Lint, bill: Body, expected: list[tuple[str, str]]) -> None:
    """The bill says how long the prompt is, and whether something on the way cached it all the same."""
    one, other = body(user(text(1500))), body(user(text(1500)), ANSWER, NEXT)
    found = billed(call(one, bill), call(other, bill))
    assert codes_of(found) == expected
    if expected:
        assert found[0].calls == 2 and found[0].tokens == bill["input_tokens"]
        assert found[0].message.endswith(
            f"billed: {bill['input_tokens']:,} input tokens at full price, none read or written"
        )


STUCK = [body(QUESTION, *more, tools=TOOLS, system=SYSTEM) for more in ((), LATER[:2], LATER)]
SPENT = [
    body(QUESTION, *more, tools=[marked(tool(1200, "a")), TOOLS[1]], system=[*SYSTEM, marked(text(90))])
    for more in ((), LATER[:2], LATER)
]


@pytest.mark.parametrize(("sent", "code", "head"), [(STUCK, "CC521", 3500), (SPENT, "CC522", 3590)])
def test_the_bill_says_how_much_comes_after_the_last_breakpoint(
    billed: Lint, sent: list[Body], code: str, head: int
) -> None:
    bills = [usage(310, write=head), usage(930, read=head), usage(1540, read=head)]
    (one,) = billed(*map(call, sent, bills))
    assert (one.code, one.bill, one.calls, one.tokens) == (code, "confirmed", 2, 1540)
    assert one.message.endswith("; billed: 930 input tokens at full price")
    beyond = [usage(2, write=head + 300), usage(2, head + 300, 600), usage(2, head + 900, 600)]
    assert billed(*map(call, sent, beyond)) == [], "the API got a breakpoint that the log does not have"


# --------------------------------------------------------------------------------------- what the API refuses


def test_an_answered_request_with_breakpoints_that_are_refused_was_not_what_the_api_got(billed: Lint) -> None:
    sent = first(tools=[marked(tool(1200, "a")), TOOLS[1]], system=[marked(text(1100), "1h"), marked(text(90))])
    assert {one.code for one in billed(call(sent))} == {"CC501", "CC502"}
    answered = billed(call(sent, usage(3, write=3900)))
    assert {one.code for one in answered} == {"CC501", "CC502"}, "as replay says"
    assert all("The log has an answer to it" in one.message for one in answered)


def test_an_answered_parameter_was_not_refused(billed: Lint) -> None:
    sent = first(output_config={"effort": "low"}, thinking={"type": "adaptive"})
    assert {one.code for one in billed(call(sent))} == {"CC509"}
    assert billed(call(sent, usage(3, write=3900))) == []


# ------------------------------------------------------------------------------------------ what is read again

CHANGES: dict[str, tuple[str, Body, int]] = {
    "another system prompt": ("CC533", {"system": [text(600, "You hinder."), marked(text(500, "b"))]}, 2400),
    "another tool": ("CC536", {"tools": [*TOOLS, tool(200, "c")]}, 2400),
    "tool order": ("CC535", {"tools": TOOLS[::-1]}, 0),
    "tool choice": ("CC548", {"tool_choice": {"type": "any"}}, 3500),
    "output format": ("CC545", {"output_config": {"format": {"type": "json_schema", "schema": {}}}}, 2400),
}
"""What differs in the second request, and how many tokens before it can still be read."""
BEFORE: Body = {"system": [text(600, "You help."), marked(text(500, "b"))]}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_a_finding_as_far_as_the_bill_shows_a_loss(billed: Lint, name: str) -> None:
    code, changed, before = CHANGES[name]
    now = {**BEFORE, **changed}
    one, other, after = (
        first(**BEFORE),
        second(**now),
        breakpoint_last(body(QUESTION, *LATER, **{"tools": TOOLS, **now})),
    )

    def found(read: int) -> list[tuple[str, str, int | None]]:
        calls = [
            call(one, usage(3, write=OF_FIRST)),
            call(other, usage(3, read, OF_FIRST + 600 - read)),
            call(after, usage(3, OF_FIRST + 600, 600)),
        ]
        return [(one.code, one.bill, one.tokens) for one in billed(*calls)]

    lost = [(code, "confirmed", OF_FIRST - before)]
    assert found(0) == lost, "more is lost than the change explains"
    assert found(before) == lost
    assert found(OF_FIRST) == [], "all that was there was read"
    assert found(OF_FIRST - 2) == [], "two bills may count a prefix differently"
    if before:
        assert found(before + 100) == [], "what stands after the change was read, so it is not why the rest was not"


@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 5000), st.sampled_from(sorted(CHANGES)))
def test_no_finding_claims_more_than_the_bill_shows_to_be_lost(
    tmp_path_factory: pytest.TempPathFactory, left: int, read: int, write: int, name: str
) -> None:
    """Whatever the bills are: a change is a finding only where less was read than was left, by so many tokens."""
    code, changed, _ = CHANGES[name]
    now = {**BEFORE, **changed}
    bodies = [first(**BEFORE), second(**now), breakpoint_last(body(QUESTION, *LATER, **{"tools": TOOLS, **now}))]
    bills = [usage(3, write=left), usage(3, read, write), usage(3, read + write, 600)]
    calls = [call(*one) for one in zip(bodies, bills, strict=True)]
    found = findings(tmp_path_factory.getbasetemp() / "bills.jsonl", calls)
    for one in (one for one in found if one.code == code):
        assert one.bill == "confirmed" and one.tokens is not None and 0 < one.tokens <= left - read
    if read == 0 and left > 100:
        assert code in {one.code for one in found}


def test_what_was_lost_is_said(billed: Lint) -> None:
    calls = call(first(), usage(3, write=OF_FIRST)), call(second(tools=TOOLS[::-1]), usage(3, 0, OF_FIRST + 600))
    (one,) = billed(*calls)
    assert one.message == (
        "the same tools in another order: b is now where a was; billed: 0 of 3,800 cached tokens read"
    )
    (unbilled,) = billed(calls[0], call(second(tools=TOOLS[::-1])))
    assert (unbilled.bill, unbilled.message) == ("", one.message.partition(";")[0])


def test_a_model_that_alternates_reads_its_own_entry_and_still_loses_the_rest(billed: Lint) -> None:
    """A, B, A, A: the third call reads what the first left, not what the second did."""
    models = ("claude-sonnet-4-5", "claude-sonnet-4", "claude-sonnet-4-5", "claude-sonnet-4-5")
    turns = (LATER[:0], LATER[:2], LATER, [*LATER, ANSWER, NEXT])
    sent = [
        breakpoint_last(body(QUESTION, *more, tools=TOOLS, system=SYSTEM, model=model))
        for more, model in zip(turns, models, strict=True)
    ]
    bills = usage(3, 0, 3800), usage(3, 0, 4400), usage(3, 3800, 1200), usage(3, 5000, 600)
    calls = [call(*one) for one in zip(sent, bills, strict=True)]
    (one,) = billed(*calls)
    assert (one.code, one.bill, one.calls, one.tokens) == ("CC541", "confirmed", 2, 3800)
    assert billed(*calls[1:]) == [], "without the first call, the model is not why the third reads what it does"
    more = usage(3, 4398, 600)
    assert [one.calls for one in billed(*calls[:2], call(sent[2], more), calls[3])] == [1], "nothing is lost"


def test_a_lookback_that_reached_is_no_finding(billed: Lint) -> None:
    parts = user(*(text(60, f"part {number} ") for number in range(25)))
    one, other = first(), breakpoint_last(body(QUESTION, ANSWER, parts, tools=TOOLS, system=SYSTEM))
    missed = [call(one, usage(3, write=OF_FIRST)), call(other, usage(3, 3500, 2200))]
    (found,) = billed(*missed)
    assert (found.code, found.bill, found.tokens) == ("CC524", "confirmed", 300)
    assert billed(missed[0], call(other, usage(3, OF_FIRST, 1900))) == []


def test_server_tools_bound_what_was_written_again(billed: Lint) -> None:
    """The sums of several passes are no prefix; but what was neither written nor plain was not written again."""
    web = [*TOOLS, {"type": "web_search_20250305", "name": "web_search"}]
    one, other = first(tools=web), second(tools=[*web[1::-1], web[2]])
    before = call(one, usage(3, write=OF_FIRST), {"type": "text", "text": "a"})
    assert codes_of(billed(before, call(other, usage(50, 9000, 700)))) == []
    assert codes_of(billed(before, call(other, usage(50, 9000, 5000)))) == [("CC535", "")]


@pytest.mark.parametrize("tool_type", ["web_fetch_20250910", "code_execution_20260120"])
def test_an_answer_that_was_not_recorded_may_have_had_several_passes(billed: Lint, tool_type: str) -> None:
    """Then what was read and written is no length of a prefix, and no call is measured by it."""
    server = [*TOOLS, {"type": tool_type, "name": "run"}]
    after = second(tools=[TOOLS[1], TOOLS[0], server[2]])
    (one,) = billed(call(first(tools=server), usage(3, write=90_000)), call(after, usage(3, 80_000, 20_000)))
    assert (one.code, one.bill) == ("CC535", "") and (one.tokens or 0) < 5000


def test_models_that_count_otherwise_are_compared_where_nothing_was_read(billed: Lint) -> None:
    big: Body = {"tools": [tool(6000, "a"), marked(tool(6000, "b"))]}
    other: Body = {**big, "model": "claude-opus-4-8"}
    sent = [first(**big), second(**other), breakpoint_last(body(QUESTION, *LATER, system=SYSTEM, **other))]
    bills = usage(3, write=13_400), usage(3, 0, 19_000), usage(3, 19_000)
    (one,) = billed(*(call(*one) for one in zip(sent, bills, strict=True)))
    assert (one.code, one.bill, one.tokens) == ("CC541", "confirmed", 13_400)
    half = call(sent[1], usage(3, 10_000, 9_000))
    (one,) = billed(call(sent[0], bills[0]), half, call(sent[2], bills[2]))
    assert (one.code, one.bill) == ("CC541", ""), "10,000 of other tokens"


def test_a_clock_that_was_read_from_the_cache_was_sent_before(billed: Lint) -> None:
    """By a call that is not in the log: a guess that it may change is settled."""
    words = "Current time: 2026-03-06T21:24:07Z. " + "x" * 1100
    sent = first(system=[marked({"type": "text", "text": words})])
    assert [one.code for one in billed(call(sent))] == ["CC531"]
    assert [one.code for one in billed(call(sent, usage(3, write=3870)))] == ["CC531"]
    assert [one.code for one in billed(call(sent, usage(3, read=3870)))] == []
    assert [one.code for one in billed(call(sent, usage(3, read=2400, write=1470)))] == ["CC531"]


def test_an_automatic_breakpoint_is_decided_as_any_other(billed: Lint) -> None:
    sent = {**body(user(text(900))), "cache_control": BREAKPOINT}
    assert codes_of(billed(call(sent, usage(3, write=1100)))) == []
    assert codes_of(billed(call(sent, usage(900)))) == [("CC510", "confirmed")]
