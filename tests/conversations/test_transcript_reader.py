"""Claude Code transcripts: one step an API call, counted once, on the right chain; every damaged line told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.base.structs import replace
from cachecost.conversations.readers.claude_code.steps import sniff
from cachecost.providers.usage import Usage
from step_records import TranscriptStep, read_steps

MODEL = "claude-opus-4-5"
START = 1767348000.0
"""2026-01-02T10:00:00Z"""
RESULT = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]
CALL = [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}]
SAYS = [{"type": "text", "text": "done"}]
Line = dict[str, Any]


def record(kind: str, uuid: str, parent: str | None, at: float | None, **more: Any) -> Line:
    """A line of a transcript, `at` seconds after ten o'clock."""
    moment = {} if at is None else {"timestamp": f"2026-01-02T10:{int(at) // 60:02}:{at % 60:06.3f}Z"}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": False, **moment, **more}


def user(uuid: str, parent: str | None, at: float | None, content: Any = "please", **more: Any) -> Line:
    return record("user", uuid, parent, at, message={"role": "user", "content": content}, **more)


def answer(
    uuid: str,
    parent: str | None,
    at: float | None,
    bill: Any = (1, 0, 0, 0),
    content: Any = (),
    name: str = "msg_1",
    request: str | None = "req_1",
    model: str = MODEL,
    **more: Any,
) -> Line:
    """A line of an answer; `bill` is (input, read, write, output), or the usage itself."""
    if isinstance(bill, tuple):
        uncached, read, write, output = bill
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
        bill = dict(zip(names, (uncached, read, write, output), strict=True))
    message = {"id": name, "role": "assistant", "model": model, "usage": bill, "content": list(content)}
    return record("assistant", uuid, parent, at, message=message, requestId=request, **more)


def system(uuid: str, parent: str | None, at: float, subtype: str, **more: Any) -> Line:
    return record("system", uuid, parent, at, subtype=subtype, **more)


def parse_steps(folder: Path, lines: Sequence[Line], said: list[str] | None = None) -> list[TranscriptStep]:
    path = folder / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_steps(path, said.append if said is not None else fail_on_note)


def fail_on_note(note: str) -> None:
    pytest.fail(f"said without need: {note}")


def two_steps(between: Sequence[Line], **second: Any) -> list[Line]:
    """A step, what lies between (its last line called "z"), and a step that follows it."""
    head = [user("a", None, 0), answer("b", "a", 3, (10, 0, 5000, 30), CALL)]
    return [*head, *between, answer("last", "z", 90, (2, 5000, 200, 40), SAYS, **{"name": "msg_2", **second})]


def between(folder: Path, lines: Sequence[Line], **second: Any) -> tuple[str, ...]:
    return parse_steps(folder, two_steps(lines, **second), [])[-1].between


# -------------------------------------------------------------------------------------------- one step


def test_an_answer_on_several_lines_is_one_step(tmp_path: Path) -> None:
    lines = [
        user("a", None, 0),
        answer("b", "a", 3.25, (10, 20, 5000, 4), [{"type": "thinking", "thinking": "hm"}]),
        answer("c", "b", 4, (10, 20, 5000, 4), SAYS),
        answer("d", "c", 5.5, (10, 20, 5000, 321), CALL),
        user("e", "d", 7.125, RESULT),
        answer("f", "e", 9, (2, 5020, 400, 55), SAYS, "msg_2", "req_2"),
    ]
    first, second = parse_steps(tmp_path, lines)
    assert first == TranscriptStep(
        1, 2, "main", None, MODEL, Usage(10, 20, 5000, 0, 321), START, START + 3.25, START + 5.5, 1, True, ("human",)
    )
    assert second == TranscriptStep(
        2, 6, "main", 1, MODEL, Usage(2, 5020, 400, 0, 55), START + 7.125, START + 9, START + 9, 4, False, ()
    )


def test_results_may_stand_between_the_lines_of_an_answer(tmp_path: Path) -> None:
    lines = [
        user("a", None, 0),
        answer("b", "a", 3, (1, 0, 900, 25), CALL),
        user("c", "b", 3.5, RESULT),
        answer("d", "c", 4, (1, 0, 900, 90), CALL),
        user("e", "d", 6, RESULT),
        answer("f", "e", 8, (1, 900, 80, 5), SAYS, "msg_2"),
    ]
    first, second = parse_steps(tmp_path, lines)
    assert (first.usage, first.answered, first.ended) == (Usage(1, 0, 900, 0, 90), START + 3, START + 4)
    assert (second.before, second.after, second.blocks, second.between) == (1, START + 6, 4, ())


def test_a_later_line_with_less_output_does_not_lower_the_bill(tmp_path: Path) -> None:
    lines = [
        answer(name, None, at, (1, 0, 900, out), SAYS) for name, at, out in (("b", 3, 7), ("c", 5, 90), ("d", 4, 8))
    ]
    (step,) = parse_steps(tmp_path, lines)
    assert (step.usage.output_tokens, step.answered, step.ended) == (90, START + 3, START + 5)


def test_copies_count_nothing(tmp_path: Path) -> None:
    lines = [user("a", None, 0), answer("b", "a", 3, (10, 0, 5000, 30), CALL), user("c", "b", 4, RESULT)]
    last = answer("d", "c", 6, (2, 5000, 200, 40), SAYS, "msg_2")
    said: list[str] = []
    first, second = parse_steps(tmp_path, [*lines, last])
    assert parse_steps(tmp_path, [*lines, *lines, last], said) == [first, replace(second, line=7)]
    assert said == [f"{tmp_path / 'session.jsonl'}: skipped 3 lines: same uuid as an earlier line"]


def test_a_message_counts_once_by_its_id_and_its_request(tmp_path: Path) -> None:
    bill = (10, 0, 5000, 30)
    resumed = [user("a", None, 0), answer("b", "a", 3, bill), user("c", "b", 9), answer("d", "c", 9, bill)]
    assert [step.usage.write for step in parse_steps(tmp_path, resumed)] == [5000]
    retried = [user("a", None, 0), answer("b", "a", 3, bill), answer("d", "a", 9, bill, request="req_2")]
    assert [step.number for step in parse_steps(tmp_path, retried)] == [1, 2]
    nameless = [answer(name, None, 3, bill, name="", request=None) for name in "ab"]
    assert len(parse_steps(tmp_path, nameless)) == 2


@pytest.mark.parametrize("error", [{"model": "<synthetic>"}, {"isApiErrorMessage": True}])
def test_the_clients_own_words_cost_nothing(tmp_path: Path, error: Line) -> None:
    said: list[str] = []
    own = answer("z", "b", 50, (7, 7, 7, 7), SAYS, "msg_x", None, **error)
    first, second = parse_steps(tmp_path, two_steps([own]), said)
    assert (first.usage, second.usage) == (Usage(10, 0, 5000, 0, 30), Usage(2, 5000, 200, 0, 40))
    assert (second.before, second.between, second.after) == (1, ("error",), START + 50)
    assert said == [f"{tmp_path / 'session.jsonl'}: 1 client-generated message ignored"]


def test_an_answer_without_usage_is_left_out_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    lines = [answer("a", None, 0, {"input_tokens": 5}), answer("b", "a", 1, None, name="msg_2")]
    assert [step.usage for step in parse_steps(tmp_path, lines, said)] == [Usage(5)]
    assert said == [f"{tmp_path / 'session.jsonl'}: skipped 1 answer: no usage"]


@pytest.mark.parametrize(
    ("usage", "write_5m", "write_1h"),
    [
        ({"cache_creation_input_tokens": 700}, 700, 0),
        ({"cache_creation_input_tokens": 700, "cache_creation": None}, 700, 0),
        ({"cache_creation_input_tokens": 700, "cache_creation": {"ephemeral_1h_input_tokens": 700}}, 0, 700),
        ({"cache_creation_input_tokens": 9, "cache_creation": {"ephemeral_5m_input_tokens": 4}}, 9, 0),
        (
            {
                "cache_creation_input_tokens": 9,
                "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 5},
            },
            4,
            5,
        ),
        ({"cache_creation_input_tokens": None}, 0, 0),
    ],
)
def test_what_is_written_is_divided_by_lifetime(tmp_path: Path, usage: Line, write_5m: int, write_1h: int) -> None:
    (step,) = parse_steps(tmp_path, [answer("a", None, 0, {"input_tokens": 1, **usage})])
    assert step.usage == Usage(1, 0, write_5m, write_1h)


@pytest.mark.parametrize(
    ("usage", "modes", "summed"),
    [
        ({}, (), False),
        ({"service_tier": "standard", "speed": "standard", "inference_geo": "not_available"}, (), False),
        ({"speed": "fast", "service_tier": "batch", "inference_geo": "us"}, ("batch", "fast", "us"), False),
        ({"server_tool_use": {"web_search_requests": 0}, "iterations": [{}]}, (), False),
        ({"server_tool_use": {"web_search_requests": 1}}, (), True),
        ({"iterations": [{}, {}]}, (), True),
    ],
)
def test_what_else_a_usage_says(tmp_path: Path, usage: Line, modes: tuple[str, ...], summed: bool) -> None:
    (step,) = parse_steps(tmp_path, [answer("a", None, 0, usage)])
    assert (step.modes, step.summed) == (modes, summed)


def test_times_that_are_not_told(tmp_path: Path) -> None:
    lines = [
        answer("a", None, 4, name="msg_1"),
        user("b", "a", None, RESULT),
        answer("c", "b", 9, name="msg_2"),
        answer("d", "c", None, name="msg_3"),
        user("e", "d", 20, RESULT),
        answer("f", "e", 18, name="msg_4"),
    ]
    times = [(step.after, step.answered, step.ended) for step in parse_steps(tmp_path, lines)]
    at = START.__add__
    assert times == [
        (None, at(4), at(4)),
        (at(4), at(9), at(9)),
        (None, None, None),
        (at(18), at(18), at(18)),
    ]


# ---------------------------------------------------------------------------------------- what lies between


@pytest.mark.parametrize(
    ("content", "is_human"),
    [
        (RESULT, False),
        ([], False),
        ("go on", True),
        (SAYS, True),
        ([*RESULT, *SAYS], True),
        ([{"type": "image", "source": {}}], True),
        (["a bare word"], True),
    ],
)
def test_a_human_message_holds_anything_besides_results(tmp_path: Path, content: Any, is_human: bool) -> None:
    assert between(tmp_path, [user("z", "b", 50, content)]) == (("human",) if is_human else ())


def test_what_lies_between_is_named(tmp_path: Path) -> None:
    summary = user("z", "y", 50, "what was said so far", isCompactSummary=True)
    assert between(tmp_path, [user("z", "b", 50, RESULT)], model="claude-haiku-4-5") == ("model",)
    assert between(tmp_path, [user("z", "b", 50, "reminder", isMeta=True)]) == ("human",)
    assert between(tmp_path, [system("y", None, 50, "compact_boundary"), summary]) == ("compaction",)
    assert between(tmp_path, [user("y", "b", 50, RESULT), summary]) == ("compaction",)
    assert between(tmp_path, [system("z", "b", 50, "microcompact_boundary")]) == ("edit",)
    assert between(tmp_path, [system("z", "b", 50, "api_error")]) == ("error",)
    assert between(tmp_path, [system("z", "b", 50, "turn_duration")]) == ()
    assert between(tmp_path, [user("y", "b", 50, "stop"), system("z", "y", 51, "api_error")]) == ("human", "error")


def test_another_version_of_the_client_is_told_only_where_both_are_known(tmp_path: Path) -> None:
    lines = [answer(name, before, 0, name=f"msg_{name}") for name, before in (("a", None), ("b", "a"), ("c", "b"))]
    for line, version in zip(lines, ("2.1.5", "2.1.9", None), strict=True):
        line["version"] = version
    assert [step.between for step in parse_steps(tmp_path, lines)] == [(), ("client",), ()]


def test_titles_and_unknown_lines_say_nothing_of_calls(tmp_path: Path) -> None:
    said: list[str] = []
    title = {"type": "summary", "summary": "A title", "leafUuid": "b"}
    odd = {"type": "mood", "uuid": "y", "parentUuid": "b", "timestamp": "2026-01-02T10:00:40Z"}
    queue = {"type": "queue-operation", "operation": "enqueue", "timestamp": "never"}
    lines = two_steps([title, odd, queue, record("progress", "z", "y", 60)])
    assert [(step.between, step.after) for step in parse_steps(tmp_path, lines, said)] == [
        (("human",), START),
        ((), START + 60),
    ]
    assert said == [f"{tmp_path / 'session.jsonl'}: skipped 1 line: unknown type 'mood'"]


# ---------------------------------------------------------------------------------------------- chains


def test_a_fork_goes_on_from_where_it_was_made(tmp_path: Path) -> None:
    lines = [
        user("a", None, 0),
        answer("b", "a", 3, (1, 0, 900, 9), SAYS, "msg_1"),
        user("c", "b", 10),
        answer("d", "c", 12, (1, 900, 80, 9), SAYS, "msg_2"),
        user("e", "b", 20, "no, like this"),
        answer("f", "e", 22, (1, 900, 60, 9), SAYS, "msg_3"),
        user("g", "f", 30),
        answer("h", "g", 33, (1, 960, 50, 9), SAYS, "msg_4"),
    ]
    told = [(step.number, step.before, step.between, step.after) for step in parse_steps(tmp_path, lines)]
    assert told == [
        (1, None, ("human",), START),
        (2, 1, ("human",), START + 10),
        (3, 1, ("human", "fork"), START + 20),
        (4, 3, ("human",), START + 30),
    ]


def side(line: Line, agent: str | None = None) -> Line:
    return {**line, "isSidechain": True, **({"agentId": agent} if agent else {})}


@pytest.mark.parametrize("agents", [(None, None), ("x", "y")])
def test_sub_agents_are_chains_of_their_own(tmp_path: Path, agents: tuple[str | None, str | None]) -> None:
    one, two = agents
    lines = [
        user("a", None, 0),
        answer("b", "a", 1, (1, 0, 900, 9), CALL, "m1"),
        side(user("s", None, 2), one),
        side(user("t", None, 2), two),
        side(answer("s1", "s", 4, (3, 0, 400, 9), CALL, "m2"), one),
        side(answer("t1", "t", 5, (3, 350, 60, 9), CALL, "m3"), two),
        side(user("s2", "s1", 6, RESULT), one),
        side(answer("s3", "s2", 8, (5, 400, 70, 9), SAYS, "m4"), one),
        user("c", "b", 10, RESULT),
        answer("d", "c", 12, (1, 900, 80, 9), SAYS, "m5"),
    ]
    steps = parse_steps(tmp_path, lines)
    assert [(step.chain, step.before, step.between) for step in steps] == [
        ("main", None, ("human",)),
        ("side 1", None, ("human",)),
        ("side 2", None, ("human",)),
        ("side 1", 2, ()),
        ("main", 1, ()),
    ]
    assert sum((step.usage for step in steps), Usage()) == Usage(13, 1650, 1510, 0, 45)


def test_an_agent_goes_on_though_the_tree_is_cut(tmp_path: Path) -> None:
    lines = [
        side(answer("s", None, 1, name="m1"), "x"),
        side(answer("t", "lost", 2, name="m2"), "y"),
        side(answer("u", "lost too", 3, name="m3"), "x"),
    ]
    told = [(step.chain, step.before, step.after) for step in parse_steps(tmp_path, lines)]
    assert told == [("side 1", None, None), ("side 2", None, None), ("side 1", 1, START + 1)]


def test_a_side_chain_that_hangs_on_the_main_thread_is_its_own(tmp_path: Path) -> None:
    lines = [answer("a", None, 1, name="m1"), side(user("s", "a", 2)), side(answer("t", "s", 3, name="m2"))]
    assert [(step.chain, step.before) for step in parse_steps(tmp_path, lines)] == [("main", None), ("side 1", None)]


def test_sessions_in_one_file(tmp_path: Path) -> None:
    cut = [answer("a", None, 1, name="m1"), answer("b", "lost", 2, name="m2")]
    assert [step.before for step in parse_steps(tmp_path, cut)] == [None, 1]
    apart = [{**cut[0], "sessionId": "one"}, {**cut[1], "sessionId": "two"}]
    assert [(step.chain, step.before) for step in parse_steps(tmp_path, apart)] == [("main", None), ("main 2", None)]
    resumed = [
        apart[0],
        {**apart[1], "logicalParentUuid": "a"},
        {**answer("c", None, 3, name="m3"), "sessionId": "two"},
    ]
    assert [(step.chain, step.before) for step in parse_steps(tmp_path, resumed)] == [
        ("main", None),
        ("main", 1),
        ("main", 2),
    ]


# ---------------------------------------------------------------------------------------------- damage


def test_every_fault_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    rows: list[Any] = [
        user("a", None, 0),
        "a bare text",
        {"silly": "this"},
        answer("b", "a", 1, {"input_tokens": -1}),
        answer("c", "a", 1, {"input_tokens": 1}, name="m2", model=None),  # type: ignore[arg-type]
        answer("d", "a", 1, 7, name="m3"),
        {**user("e", "a", 2), "message": "error"},
        user("f", "a", 2, 42),
        {**user("g", "a", 2), "timestamp": "yesterday", "isSidechain": "no"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"type": nobody}\n')
    with pytest.raises(InputError) as caught:
        read_steps(path)
    assert [str(fault).removeprefix(str(path)) for fault in caught.value.faults] == [
        ":2 expected an object; got 'a bare text'",
        ":3 type: expected a text; got nothing",
        ":4 message.usage.input_tokens: expected a whole number of tokens; got -1",
        ":5 message.model: expected a text; got nothing",
        ":6 message.usage: expected an object; got 7",
        ":7 message: expected an object; got 'error'",
        ":8 message.content: expected a text or an array of blocks; got 42",
        ":9 timestamp: expected an ISO 8601 time; got 'yesterday'",
        ":9 isSidechain: expected true or false; got 'no'",
        ":10 damaged JSON: Expecting value at character 10",
    ]


def test_a_last_line_that_is_cut_off_is_said_and_left_out(tmp_path: Path) -> None:
    path, said = tmp_path / "open.jsonl", []  # type: tuple[Path, list[str]]
    whole = json.dumps(answer("a", None, 0, (5, 0, 0, 1)))
    path.write_text(f"{whole}\n\n{json.dumps(answer('b', 'a', 1, name='m2'))[:90]}")
    assert [step.usage for step in read_steps(path, said.append)] == [Usage(5, output_tokens=1)]
    assert said == [f"{path}:3 the last line is cut off (still being written?): skipped"]


def test_an_empty_file_and_one_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    with pytest.raises(InputError, match=r"none\.jsonl cannot be read: No such file or directory"):
        read_steps(path)
    path.write_text("\n")
    with pytest.raises(InputError, match=r"none\.jsonl is empty; expected a transcript, one JSON object per line"):
        read_steps(path)


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (user("a", None, 0), 'its first line has a "type" and a "parentUuid"'),
        ({"type": "summary", "summary": "x", "leafUuid": "b"}, 'its first line has a "type" and a "leafUuid"'),
        ({"type": "summary", "uuid": "b", "message": {}}, 'its first line has a "type" and a "uuid"'),
        ({"type": "queue-operation", "sessionId": "s"}, 'its first line has a "type" and a "sessionId"'),
        ({"format": 1, "kind": "steps", "name": "x"}, "its first line says format and kind steps"),
        ({"format": 1, "kind": "calls"}, None),
        ({"request": {"type": "user", "parentUuid": None}}, None),
        ({"type": "chat_request", "content": "hello"}, None),
        ({"uuid": "a", "message": {}}, None),
        ([1], None),
    ],
)
def test_a_transcript_is_known_by_its_first_line(first: object, reason: str | None) -> None:
    assert sniff(json.dumps(first).encode() + b"\n{}") == reason


def test_a_first_line_longer_than_what_is_looked_at_is_known_too() -> None:
    line = json.dumps({**record("user", "a", None, 0), "message": {"content": "x" * 1000}}).encode()
    assert sniff(line[:400]) == 'its first line has a "type" and a "parentUuid"'
