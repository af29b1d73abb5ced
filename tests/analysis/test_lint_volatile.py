"""What looks as if it changed with every request: words that are meant, and ordinary text that is not."""

from __future__ import annotations

import pytest
from lint_bodies import found, linted

from bodies import Body, assistant, body, breakpoint_last, marked, text, tool, tool_result, user
from cachecost.analysis.lint.volatile import find_volatile_words, only_words_changed

STRONG = {
    "Current time: 2026-03-06T21:24:07Z": "2026-03-06T21:24:07Z",
    "<current_time>2026-03-06T21:24:07+01:00</current_time>": "2026-03-06T21:24:07+01:00",
    "The timestamp is 2026-03-06 21:24:07.123": "2026-03-06 21:24:07.123",
    "Current date and time: Friday, March 6, 2026 at 9:24 PM": "March 6, 2026 at 9:24 PM",
    "Now: Fri Mar  6 21:24:07 2026": "Mar  6 21:24:07 2026",
    "It is now 21:24.": "21:24",
    "Time: 21:24:07": "21:24:07",
    "current_time=1772832247": "1772832247",
    "timestamp: 1772832247123": "1772832247123",
    "session_id: 3f2b8c1a-1234-4abc-8def-1234567890ab": "3f2b8c1a-1234-4abc-8def-1234567890ab",
    '{"session_id": "abc123def456"}': "abc123def456",
    "Trace ID: 4bf92f3577b34da6a3ce929d0e0e4736": "4bf92f3577b34da6a3ce929d0e0e4736",
    "Your conversation id is 8f14e45f": "8f14e45f",
    "request req_011CSHoEeqs5C35K2UUqR7Fy failed": "req_011CSHoEeqs5C35K2UUqR7Fy",
}
WEAK = {
    "Today's date: 2026-03-06": "2026-03-06",
    "The current date is March 6, 2026": "March 6, 2026",
    "Deadline: 2026-03-06 21:24": "2026-03-06 21:24",
    "File 3f2b8c1a-1234-4abc-8def-1234567890ab": "3f2b8c1a-1234-4abc-8def-1234567890ab",
    "Request #17": "17",
    "turn 3 of 20": "3",
}
NONE = (
    "Give times as ISO 8601, e.g. 2026-03-06T21:24:07Z.",
    "The default is 2024-01-01T00:00:00Z.",
    "from 2024-01-01T00:00:00Z",
    "Released on 2025-02-24, revised on March 3, 2025.",
    "Your knowledge cutoff is January 2025.",
    "We meet at 9:30 every Monday.",
    "user_id: 3f2b8c1a-1234-4abc-8def-1234567890ab",
    "See commit 9fceb02d0ae598e95dc970b74767f19372d61af8.",
    "sha256: 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "Step 3: run the tests. Call 911.",
    "def send(self, request: httpx2.Request) -> None:",
    "It took 1772832247 steps.",
    "port 8080, ratio 16:9, verse 3:16",
)


@pytest.mark.parametrize(("words", "candidate"), STRONG.items())
def test_a_clock_or_a_fresh_id(words: str, candidate: str) -> None:
    assert [(words[one.start : one.end], one.strong) for one in find_volatile_words(words)] == [(candidate, True)]


@pytest.mark.parametrize(("words", "candidate"), WEAK.items())
def test_what_may_change_and_may_not(words: str, candidate: str) -> None:
    assert [(words[one.start : one.end], one.strong) for one in find_volatile_words(words)] == [(candidate, False)]


@pytest.mark.parametrize("words", NONE)
def test_ordinary_text_is_no_candidate(words: str) -> None:
    assert find_volatile_words(words) == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("at 9:24 PM, Fri", "at 10:02 AM, Sat", True),
        ("17 files", "18 files", True),
        ("17 files", "18 dirs", False),
        ("a b c", "a b", False),
        ("Current time: 9:24 PM, go", "Current time: 21:24, go", True),
        ("Now: 21:24 ok", "Now: 21:25 fine", False),
        ("item x1" + "y" * 100, "item x2" + "y" * 100, False),
    ],
)
def test_whether_nothing_but_words_with_digits_differs(one: str, other: str, same: bool) -> None:
    assert only_words_changed(one, other) is same and only_words_changed(other, one) is same


CLOCK = {"type": "text", "text": "Current time: 2026-03-06T21:24:07Z"}


def sent(*blocks: Body, **fields: object) -> Body:
    return breakpoint_last(body(user(text(1200)), assistant(text(90)), user(*blocks), **fields))


def test_a_clock_in_tools_or_system_is_a_warning_and_in_messages_a_note() -> None:
    described = {"name": "t", "description": "Said at time: 2026-03-06T21:24:07Z", "input_schema": {}}
    assert found(sent(text(90), tools=[described])) == [("CC531", "tools.0.description")]
    assert found(sent(text(90), system=[CLOCK])) == [("CC531", "system.0")]
    assert found(breakpoint_last(body(user(CLOCK, text(1200))))) == [("CC532", "messages.0.content.0")]
    assert found(sent(text(90), system="Today's date: 2026-03-06")) == [("CC532", "system.0")]


def test_no_alarm_on_tool_results_later_messages_and_what_no_breakpoint_covers() -> None:
    result = {**tool_result(90, "t"), "content": CLOCK["text"]}
    assert found(sent(result)) == []
    assert found(breakpoint_last(body(user({**result}), user(text(1200))))) == []
    assert found(sent(CLOCK)) == [], "after the first answer"
    assert found(body(user(marked(text(1200)), CLOCK))) == []
    assert found(body(user(marked(text(1200))), tools=[tool(90)], system=[text(90)])) == []


def test_where_it_is_and_what_is_behind_it() -> None:
    (one,) = linted(
        breakpoint_last(body(user(text(1200)), system=[text(80), {**CLOCK, "text": "x" * 60 + "\n" + CLOCK["text"]}]))
    )
    assert (one.path, one.offset, one.tokens) == ("system.1", 75, 1200 + 121)
    assert one.message == 'a time at character 75: "…Current time: 2026-03-06T21:24:07Z▮"'


def test_a_key_is_never_shown() -> None:
    key = "sk-ant-api03-" + "AbCdEfGhIjKlMnOp1234" * 3
    words = f"key {key} time: 2026-03-06T21:24:07Z"
    (one,) = linted(sent(text(90), system=words))
    assert "AbCd" not in one.excerpt + one.message and "2026-03-06" in one.excerpt
    (one,) = linted(sent(text(90), system=f"Key: {key}"), sent(text(90), system=f"Key: {key[:-1]}X"))
    assert "IjKl" not in one.excerpt + one.message and one.code == "CC530"
