"""jp conversations: what becomes a reply, when its call started, who asked what; and damaged files."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.base.times import seconds
from cachecost.conversations.model import Conversation, Human, Inquiry, Reply, Results
from cachecost.conversations.readers.jp import read, sniff
from cachecost.prompts.request import block_of, text_block

START = seconds("2026-01-02T10:00:00")


def coded(value: Any) -> Any:
    """Every string as jp stores it."""
    if isinstance(value, dict):
        return {key: coded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [coded(inner) for inner in value]
    return b64encode(value.encode()).decode() if isinstance(value, str) else value


def event(at: float, kind: str, **fields: Any) -> dict[str, Any]:
    minutes, rest = divmod(at, 60)
    return {"timestamp": f"2026-01-02 10:{minutes:02.0f}:{rest:06.3f}", "type": kind, **fields}


def ask(at: float, text: str = "please") -> dict[str, Any]:
    return event(at, "chat_request", content=text)


def say(at: float, text: str = "fine") -> dict[str, Any]:
    return event(at, "chat_response", message=text)


def think(at: float, text: str, **metadata: str) -> dict[str, Any]:
    return event(at, "chat_response", reasoning=text, **({"metadata": coded(metadata)} if metadata else {}))


def use(at: float, call: str, **arguments: Any) -> dict[str, Any]:
    return event(at, "tool_call_request", id=call, name="edit", arguments=coded(arguments))


def result(at: float, call: str, text: str = "done", is_error: bool = False) -> dict[str, Any]:
    return event(at, "tool_call_response", id=call, content=coded(text), is_error=is_error)


def question(at: float, id_: str, text: str = "sure?", **more: Any) -> dict[str, Any]:
    asked = {"text": text, "answer_type": {"type": "boolean"}, **more}
    return event(at, "inquiry_request", id=id_, source={"source": "tool", "name": "edit"}, question=asked)


def answer(at: float, id_: str, value: Any = True) -> dict[str, Any]:
    return event(at, "inquiry_response", id=id_, answer=value)


def config(at: float, **delta: Any) -> dict[str, Any]:
    return event(at, "config_delta", delta=delta)


def story(
    tmp_path: Path, *events: Any, name: str = "17700000001-a-title.events.json"
) -> tuple[Conversation, list[str]]:
    """The conversation of `events`, and what was said about it (without the file's name)."""
    path = tmp_path / name
    path.write_text(json.dumps(events))
    said: list[str] = []
    conversation = read(path, said.append)
    return conversation, [note.removeprefix(f"{path}: ") for note in said]


def kinds(conversation: Conversation) -> str:
    """H, R, T (tool results) and I, in order."""
    letters = {Human: "H", Reply: "R", Results: "T", Inquiry: "I"}
    return "".join(letters[type(one)] for one in conversation.events)


NO_MODEL = "no model is configured for the first reply"


def test_a_turn_with_parallel_calls_and_an_inquiry(tmp_path: Path) -> None:
    conversation, said = story(
        tmp_path,
        config(0, assistant={"model": {"id": {"provider": "anthropic", "name": "claude-opus-4-6"}}}),
        event(5, "turn_start"),
        ask(5, "fix it"),
        think(8, "hm", anthropic_thinking_signature="c2ln"),
        say(9, "I will"),
        use(10, "toolu_a", path="x", deep={"lines": ["é", 2]}),
        use(10.5, "toolu_b"),
        question(10.6, "toolu_b.apply", "apply é?"),
        answer(14, "toolu_b.apply"),
        result(15, "toolu_a", "näh", is_error=True),
        result(15.25, "toolu_b"),
        say(19),
    )
    first, reply, asked, results, last = conversation.events
    assert first == Human(START + 5, first.blocks)  # type: ignore[union-attr]
    assert isinstance(reply, Reply) and isinstance(results, Results) and isinstance(asked, Inquiry)
    assert (reply.at, reply.first_token_s) == (START + 5, 3.0)
    contents: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "I will"},
        {"type": "tool_use", "id": "toolu_a", "name": "edit", "input": {"path": "x", "deep": {"lines": ["é", 2]}}},
        {"type": "tool_use", "id": "toolu_b", "name": "edit", "input": {}},
    ]
    assert [block.content for block in reply.blocks] == contents
    assert [block.digest for block in reply.blocks] == [block_of("assistant", content).digest for content in contents]
    assert results.at == START + 15.25
    assert [block.content for block in results.blocks] == [
        {"type": "tool_result", "tool_use_id": "toolu_a", "content": "näh", "is_error": True},
        {"type": "tool_result", "tool_use_id": "toolu_b", "content": "done"},
    ]
    assert (asked.at, asked.tool_use, asked.answer_type, asked.batch) == (START + 10.6, "toolu_b", "boolean", 1)
    assert asked.question.digest == text_block("user", "apply é?").digest
    assert asked.answer.digest == text_block("assistant", "true").digest
    assert isinstance(last, Reply) and (last.at, last.first_token_s) == (START + 15.25, 3.75)
    assert (conversation.name, conversation.model, said) == ("jp-17700000001", "claude-opus-4-6", [])


@pytest.mark.parametrize(
    ("events", "shape"),
    [
        ([ask(0), say(1), ask(2), say(3)], "HRHR"),
        ([ask(0), think(1, "x"), say(2), say(3)], "HR"),
        ([ask(0), use(1, "a"), use(2, "b"), result(3, "a"), result(3, "b"), say(5)], "HRTR"),
        # a request that follows a result opens a new reply
        ([ask(0), use(1, "a"), result(2, "a"), use(4, "b"), result(5, "b"), say(7)], "HRTRTR"),
        # a result that comes while its batch is still asking does not split the results
        ([ask(0), use(1, "a"), use(1, "b"), result(2, "a"), question(3, "b.q"), result(5, "b"), say(6)], "HRITR"),
        # the person cuts in: after results, and while the assistant speaks
        ([ask(0), use(1, "a"), result(2, "a"), ask(9), say(10)], "HRTHR"),
        ([ask(0), say(1), ask(1), say(3)], "HRHR"),
        # a turn that starts twice, a change of configuration in the middle of a run: no input
        ([ask(0), say(1), event(2, "turn_start"), event(3, "turn_start"), ask(3), say(4)], "HRHR"),
        ([ask(0), think(1, "x"), config(2), say(3)], "HR"),
        ([ask(0), say(1, ""), say(2)], "HR"),
        ([ask(0), event(1, "chat_response", data={"a": 1})], "HR"),
        ([ask(0, ""), say(1)], "R"),
    ],
)  # fmt: skip
def test_what_makes_a_reply(tmp_path: Path, events: list[Any], shape: str) -> None:
    assert kinds(story(tmp_path, *events)[0]) == shape


def test_a_reply_starts_with_the_last_input_whatever_lies_between(tmp_path: Path) -> None:
    conversation, _ = story(
        tmp_path, ask(0), use(1, "a"), question(2, "a.q"), answer(30, "a.q"), result(31, "a"), config(40), say(41)
    )
    assert [(reply.at - START, reply.first_token_s) for reply in conversation.replies] == [(0.0, 1.0), (31.0, 10.0)]


def test_a_reply_without_input_starts_with_itself(tmp_path: Path) -> None:
    conversation, _ = story(tmp_path, say(7))
    assert [(reply.at - START, reply.first_token_s) for reply in conversation.replies] == [(7.0, None)]


def test_batches_number_what_could_have_been_asked_at_once(tmp_path: Path) -> None:
    asked = [("a.1", 2), ("b.1", 3), ("a.2", 4), ("b.2", 5)]
    pairs = [(question(at, id_), answer(at + 0.5, id_)) for id_, at in asked]
    conversation, _ = story(
        tmp_path,
        ask(0), use(1, "a"), use(1, "b"), *[one for pair in pairs for one in pair], result(8, "a"), result(8, "b"),
        use(10, "c"), question(11, "c.1"), answer(12, "c.1"), result(13, "c"), say(14),
    )  # fmt: skip
    assert [(one.tool_use, one.batch) for one in conversation.inquiries] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("b", 2),
        ("c", 3),
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (False, "false"), ("yes", "yes"), (3, "3"), ({"a": "é"}, '{"a": "é"}')]
)
def test_answers_are_text(tmp_path: Path, value: Any, text: str) -> None:
    conversation, _ = story(tmp_path, ask(0), use(1, "a"), question(2, "a.q"), answer(3, "a.q", value), result(4, "a"))
    assert conversation.inquiries[0].answer.content == {"type": "text", "text": text}


def test_an_unanswered_inquiry_takes_its_default_and_is_said(tmp_path: Path) -> None:
    conversation, said = story(
        tmp_path,
        ask(0), use(1, "a"), question(2, "a.q", default=True), result(4, "a"),
        use(5, "b"), question(6, "b.q"), result(7, "b"), say(9),
    )  # fmt: skip
    answers = [one.answer.content for one in conversation.inquiries]
    assert answers == [{"type": "text", "text": "true"}, {"type": "text", "text": ""}]
    assert said == ["2 inquiries without an answer: the default is used", NO_MODEL]


def test_what_is_left_out_and_what_lacks_is_said(tmp_path: Path) -> None:
    person = question(2, "a.q") | {"source": {"source": "user"}}
    conversation, said = story(
        tmp_path,
        config(0, conversation={"attachments": ["file://x"]}),
        ask(0), use(1, "a"), use(1, "b"), person, answer(3, "a.q"),
        result(4, "a"), result(4, "a"), result(4, "zz"), ask(5),
    )  # fmt: skip
    assert kinds(conversation) == "HRTH"
    assert said == [
        "skipped 1 question: not asked by a tool",
        "skipped 1 answer: no open question has its id",
        "skipped 2 tool results: no open tool call has its id",
        "1 tool call without a result",
        "the last turn has no reply",
        NO_MODEL,
        "attachments are listed, but their content is not in the file",
    ]


ADAPTIVE = {"thinking": {"type": "adaptive"}}
OPUS = {"provider": "anthropic", "name": "claude-opus-4-6"}


@pytest.mark.parametrize(
    ("model", "reasoning", "expected", "params"),
    [
        (OPUS, {"effort": "auto"}, "claude-opus-4-6", ADAPTIVE),
        (OPUS, {"effort": "xhigh"}, "claude-opus-4-6", ADAPTIVE | {"output_config": {"effort": "high"}}),
        (OPUS, "off", "claude-opus-4-6", {"thinking": {"type": "disabled"}}),
        (OPUS, None, "claude-opus-4-6", {}),
        ("opus", None, "claude-opus-4-6", {}),
        ("anthropic/claude-haiku-4-5", None, "claude-haiku-4-5", {}),
        ("gemini", {"effort": "high"}, "google/gemini-3", {}),
        ("unheard-of", None, "unheard-of", {}),
        (None, None, None, {}),
    ],
)  # fmt: skip
def test_the_model_in_force_at_the_first_reply(
    tmp_path: Path, model: Any, reasoning: Any, expected: str | None, params: dict[str, Any]
) -> None:
    aliases = {"opus": OPUS, "gemini": {"provider": "google", "name": "gemini-3"}}
    assistant = {"model": {"id": model, "parameters": {"reasoning": reasoning}}}
    settings = [config(0, providers={"llm": {"aliases": aliases}}), config(0, assistant=assistant)]
    conversation, _ = story(tmp_path, *settings, ask(1), say(2))
    assert (conversation.model, conversation.params) == (expected, params)


def test_beta_headers_go_with_an_anthropic_model_only(tmp_path: Path) -> None:
    sent = config(0, providers={"llm": {"anthropic": {"beta_headers": ["context-1m-2025-08-07"]}}})
    found = [
        story(tmp_path, sent, config(0, assistant={"model": {"id": id_}}), ask(1), say(2))[0].params
        for id_ in (OPUS, "google/gemini-3")
    ]
    assert found == [{"betas": ["context-1m-2025-08-07"]}, {}]


def test_a_model_switch_is_said(tmp_path: Path) -> None:
    haiku = {"provider": "anthropic", "name": "claude-haiku-4-5"}
    conversation, said = story(
        tmp_path,
        config(0, assistant={"model": {"id": OPUS}}), ask(1), say(2),
        config(3, assistant={"model": {"id": haiku}}), ask(4), think(5, "x"), say(6), ask(7), say(8),
    )  # fmt: skip
    assert conversation.model == "claude-opus-4-6"
    assert said == ["2 replies with another model or other parameters than the first, which are used for all"]


def test_both_alphabets_of_base64_and_plain_text_are_read(tmp_path: Path) -> None:
    odd = "ûÿ>>?"
    url_safe = urlsafe_b64encode(odd.encode()).decode()
    assert set(url_safe) & set("-_")
    events = [
        result(2, "a") | {"content": url_safe},
        result(2, "b", odd),
        result(2, "c") | {"content": "not base64!"},
    ]
    conversation, _ = story(tmp_path, ask(0), use(1, "a"), use(1, "b"), use(1, "c"), *events)
    results = conversation.events[-1]
    assert isinstance(results, Results)
    assert [block.content["content"] for block in results.blocks if block.content] == [odd, odd, "not base64!"]


@pytest.mark.parametrize(
    ("metadata", "content"),
    [
        ({}, {"type": "thinking", "thinking": "hm"}),
        ({"google_thought_signature": "abc"}, {"type": "thinking", "thinking": "hm"}),
        ({"anthropic_redacted_thinking": "abc"}, {"type": "redacted_thinking", "data": "abc"}),
    ],
)
def test_reasoning(tmp_path: Path, metadata: dict[str, str], content: dict[str, str]) -> None:
    conversation, _ = story(tmp_path, ask(0), think(1, "hm", **metadata))
    assert [block.content for block in conversation.replies[0].blocks] == [content]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("17728322628-bear.events.json", "jp-17728322628"),
        ("17728322628-bear/events.json", "jp-17728322628"),
        ("jp-c17728322628-bear/events.json", "jp-17728322628"),
        ("notes/events.json", "jp"),
    ],
)
def test_the_name_is_the_id_and_not_the_title(tmp_path: Path, name: str, expected: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    assert story(tmp_path, ask(0), name=name)[0].name == expected


def test_every_fault_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    events = [
        ask(0) | {"timestamp": "noon"},
        ask(1) | {"type": "chat_reqest"},
        {"type": "chat_response", "timestamp": "2026-01-02 10:00:00"},
        use(2, "a") | {"arguments": "x", "id": 3},
        result(3, "a") | {"content": None, "is_error": "no"},
        question(3, "a.q") | {"question": {"answer_type": {"type": "boolean"}}},
        7,
        config(3) | {"delta": []},
    ]
    path.write_text(json.dumps(events))
    with pytest.raises(InputError) as error:
        read(path, pytest.fail)
    assert [str(fault) for fault in error.value.faults] == [
        f"{path} events[0].timestamp: expected an ISO 8601 time; got 'noon'",
        f"{path} events[1].type: expected one of config_delta, turn_start, chat_request, chat_response, "
        "tool_call_request, tool_call_response, inquiry_request, inquiry_response; got 'chat_reqest' "
        "(did you mean 'chat_request'?)",
        f"{path} events[2].message: expected a text; got nothing",
        f"{path} events[3].id: expected a text; got 3",
        f"{path} events[3].arguments: expected an object; got 'x'",
        f"{path} events[4].is_error: expected true or false; got 'no'",
        f"{path} events[4].content: expected a text; got nothing",
        f"{path} events[5].question.text: expected a text; got nothing",
        f"{path} events[6].type: expected one of config_delta, turn_start, chat_request, chat_response, "
        "tool_call_request, tool_call_response, inquiry_request, inquiry_response; got nothing",
        f"{path} events[6].timestamp: expected an ISO 8601 time; got nothing",
        f"{path} events[7].delta: expected an object; got an array",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "damaged JSON: Expecting value at character 1"),
        ("[]", "expected an array of events; got none"),
        ('{"events": []}', "expected an array of events; got an object"),
        ('[{"type": "turn_start"', "damaged JSON: Expecting ',' delimiter at character 23"),
        ("[" * 200_000, "expected at most 128 levels of nesting; got more"),
    ],
)
def test_a_damaged_file_is_one_fault(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read(path)
    assert str(error.value) == f"{path} {fault}"


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ('[{"type": "config_delta", "delta": {', "a JSON array of events that begins with config_delta"),
        ('\n[\n {"timestamp":"2026","type":"turn_start"}', "a JSON array of events that begins with turn_start"),
        ('[{"timestamp":"2026","type":"chat_request"', "a JSON array of events that begins with chat_request"),
        ('[{"type": "message"}]', None),
        ('{"type": "turn_start"}', None),
        ("", None),
    ],
)
def test_it_is_known_by_its_first_event(head: str, reason: str | None) -> None:
    assert sniff(head.encode()) == reason
