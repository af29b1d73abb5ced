"""A recording answers as it was answered: the same call, else the same messages, else the same turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.live.server.answers import answerer_from, notes_of
from cachecost.live.server.answers.recording import RecordedAnswer
from cachecost.live.server.model import Answerer, ClientCall, ModelAnswer

USER = {"role": "user", "content": "Find it"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "grep", "input": {"pattern": "x"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}
LOOP = [USER, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [RESULT]}]


def line(messages: list[Any], *content: Any, **fields: Any) -> str:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages, **fields.pop("body", {})}
    response = {"content": list(content), "usage": {"input_tokens": 1, "output_tokens": 77}}
    return json.dumps({"request": body, "response": response, **fields}) + "\n"


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


@pytest.fixture
def recorded(tmp_path: Path) -> Answerer:
    thought = {"type": "thinking", "thinking": "Hm", "signature": "s"}
    (tmp_path / "log.jsonl").write_text(
        line([USER], words("refused"), status=529)
        + line([USER], thought, USE, first_token_s=0.75)
        + line([USER], words("in French"), body={"system": "Speak French"})
        + line(LOOP, words("There."))
    )
    return answerer_from(f"recording:{tmp_path}/log.jsonl")


def ask(answerer: Answerer, messages: list[Any], **fields: Any) -> ModelAnswer:
    turn = sum(message["role"] == "assistant" for message in messages)
    body = {"model": "another", "max_tokens": 9, "messages": messages, **fields}
    answer = answerer.answer(ClientCall("msg_1", body, "w", 0.0, turn))
    assert isinstance(answer, ModelAnswer)
    return answer


def test_it_is_what_was_said_with_its_thoughts_tokens_and_time(recorded: Answerer) -> None:
    answer = ask(recorded, [USER])
    assert isinstance(answer, RecordedAnswer)
    assert [block["type"] for block in answer.content] == ["thinking", "tool_use"]
    assert answer.content[1] == USE
    assert (answer.stop_reason, answer.first_token_s, answer.output_tokens) == ("tool_use", 0.75, 77)


def test_breakpoints_are_no_part_of_what_was_asked(recorded: Answerer) -> None:
    marked = {"role": "user", "content": [{**words("Find it"), "cache_control": {"type": "ephemeral"}}]}
    assert ask(recorded, [marked]) == ask(recorded, [USER])


def test_the_same_system_prompt_comes_before_the_same_messages(recorded: Answerer) -> None:
    assert ask(recorded, [USER], system="Speak French").content == [words("in French")]
    assert ask(recorded, [USER], system="Speak Dutch").content[-1] == USE


def test_another_result_is_answering_model_the_turn(recorded: Answerer) -> None:
    other = [*LOOP[:2], {"role": "user", "content": [{**RESULT, "content": "not found"}]}]
    assert ask(recorded, other).content == [words("There.")]
    assert notes_of(recorded) == ()


def test_what_was_never_asked_is_missed_and_counted(recorded: Answerer) -> None:
    later = [*LOOP, {"role": "assistant", "content": "There."}, {"role": "user", "content": "Thanks"}]
    for messages in ([{"role": "user", "content": "Hi"}], later):
        assert ask(recorded, messages).content == [words("nothing recorded for this call")]
    assert notes_of(recorded) == ("2 calls not found in the recording and answered with a placeholder",)


def test_a_body_that_is_no_message_is_not_counted(recorded: Answerer) -> None:
    recorded.answer(ClientCall("msg_1", {"messages": 3}, "w", 0.0))
    assert notes_of(recorded) == ()


def test_a_recording_without_words_cannot_answer(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"request": {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [USER]}}) + "\n")
    with pytest.raises(InputError) as caught:
        answerer_from(f"recording:{path}")
    assert str(caught.value) == f"{path} expected a recording with answers; got none whose words were kept"
