"""A script answers reply by reply; a retry gets the same; all its faults are told at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.live.server.answers import answerer_from
from cachecost.live.server.model import Answerer, ApiError, ClientCall, ModelAnswer

SCRIPT = """\
format: 1
replies:
  - thinking: Let me see.
    text: I read it.
    tool: Read
    input: {file_path: a.py, limit: 3}
    first_token_s: 0.5
    seconds: 2
  - tools: [{tool: A}, {tool: B, input: {x: [1, 2.5, yes]}}]
    repeat: 2
  - error: {status: 529, type: overloaded_error, message: Overloaded}
    repeat: 2
  - text: Done.
"""


def script(path: Path, text: str) -> Answerer:
    file = path / "script.yaml"
    file.write_text(text)
    return answerer_from(f"script:{file}")


def ask(answerer: Answerer, turn: int, retry: int = 0) -> ModelAnswer | ApiError:
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    return answerer.answer(ClientCall("msg_1", body, "w", 0.0, turn, retry))


def said(answerer: Answerer, turn: int, retry: int = 0) -> list[Any]:
    answer = ask(answerer, turn, retry)
    assert isinstance(answer, ModelAnswer)
    return [block.get("text") or block.get("name") or block.get("thinking") for block in answer.content]


def test_a_reply_is_all_it_says_in_the_order_of_the_api(tmp_path: Path) -> None:
    answer = ask(script(tmp_path, SCRIPT), 0)
    assert isinstance(answer, ModelAnswer)
    assert [block["type"] for block in answer.content] == ["thinking", "text", "tool_use"]
    assert answer.content[2]["input"] == {"file_path": "a.py", "limit": 3}
    assert (answer.stop_reason, answer.first_token_s, answer.seconds) == ("tool_use", 0.5, 2.0)


def test_several_tools_have_several_ids_and_a_repeated_reply_others(tmp_path: Path) -> None:
    answerer = script(tmp_path, SCRIPT)
    answers = [ask(answerer, turn) for turn in (1, 2)]
    blocks = [block for answer in answers if isinstance(answer, ModelAnswer) for block in answer.content]
    assert [block["name"] for block in blocks] == ["A", "B", "A", "B"]
    assert len({block["id"] for block in blocks}) == 4
    assert blocks[1]["input"] == {"x": [1, 2.5, "yes"]}


def test_errors_take_no_turn_and_are_what_the_first_tries_get(tmp_path: Path) -> None:
    answerer = script(tmp_path, SCRIPT)
    overloaded = ApiError(529, "overloaded_error", "Overloaded")
    assert [ask(answerer, 3, retry) for retry in (0, 1)] == [overloaded, overloaded]
    assert said(answerer, 3, 2) == ["Done."]
    assert ask(answerer, 3, 0) == overloaded


@pytest.mark.parametrize(
    ("then", "later"),
    [("end", ["end of script"] * 3), ("last", ["b", "b", "b"]), ("repeat", ["a", "b", "a"])],
)
def test_what_follows_the_last_reply(tmp_path: Path, then: str, later: list[str]) -> None:
    answerer = script(tmp_path, f"format: 1\nthen: {then}\nreplies: [{{text: a}}, {{text: b}}]\n")
    assert [said(answerer, turn) for turn in range(5)] == [["a"], ["b"], *([word] for word in later)]


def test_errors_alone_end_the_script(tmp_path: Path) -> None:
    answerer = script(tmp_path, "format: 1\nreplies: [{error: {status: 500}}]\nthen: last\n")
    assert ask(answerer, 0) == ApiError(500, "api_error", "as the script says")
    assert said(answerer, 0, 1) == said(answerer, 1) == ["end of script"]


FAULTY = """\
format: 2
then: stop
replies:
  - texts: Hello
  - text: Hi
    error: {status: 200}
  - tool: A
    seconds: -1
    repeat: 0
  - text: Hi
    input: {}
"""


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        script(tmp_path, FAULTY)
    told = [str(fault).removeprefix(f"{tmp_path}/script.yaml:") for fault in caught.value.faults]
    assert told == [
        "1:1 format: expected 1; got 2",
        "2:1 then: expected one of end, last, repeat; got 'stop'",
        "4:5 replies[0].texts: unknown key (did you mean 'text'?)",
        "6:13 replies[1].error.status: expected at least 400; got 200",
        "8:5 replies[2].seconds: expected at least 0.0; got -1",
        "9:5 replies[2].repeat: expected at least 1; got 0",
        "10:5 replies[3]: expected a tool with its input",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("format: 1\nreplies: []\n", "2:1 replies: expected a list of at least 1; got a list of 0"),
        ("format: 1\nreplies: [{}]\n", "2:11 replies[0]: expected a text, a tool, tools, or an error alone"),
        ("format: 1\nreplies: [{thinking: x}]\n", "2:11 replies[0]: expected a text, a tool, tools, or an error alone"),
        ("- 1\n", "1:1 expected a mapping; got a list of 1"),
        ("", "1:1 expected a mapping; got an empty file"),
    ],
)
def test_a_script_must_say_something(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        script(tmp_path, text)
    assert str(caught.value) == f"{tmp_path}/script.yaml:{told}"


def test_a_script_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        answerer_from(f"script:{tmp_path}/none.yaml")
    assert str(caught.value) == f"{tmp_path}/none.yaml cannot be read: No such file or directory"
