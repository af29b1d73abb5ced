"""Sessions of Codex CLI: each response is billed once, whatever repeats its counters."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import SessionFile
from cachecost.conversations.readers.codex.reader import calls, session_files, sniff
from cachecost.conversations.readers.detect import detect
from cachecost.providers.usage import Usage
from conversations.session_stores import (
    FIRST,
    SECOND,
    START,
    Row,
    agree,
    codex_bill,
    codex_calls,
    codex_context,
    codex_count,
    codex_line,
    codex_meta,
    codex_returns,
    codex_says,
    codex_session,
    codex_sum,
    codex_thinks,
    codex_usage,
    shape,
    write_lines,
)
from served_hosts import served_by

NAME = "rollout-2026-11-20T10-00-00-t-1.jsonl"


def read(folder: Path, *rows: Row, name: str = NAME) -> tuple[list[Call], SessionFile]:
    return agree(write_lines(folder / name, rows), calls, session_files)


@pytest.mark.parametrize(("thought", "first_token"), [(1.0, 0.0), (2.0, 0.0), (2.5, 0.5)])
def test_an_answer_does_not_begin_before_its_request(tmp_path: Path, thought: float, first_token: float) -> None:
    """Clocks are set back, and lines are stamped out of order."""
    rows = codex_session()[:8]
    rows[5] = codex_thinks(thought)
    (call,), _ = read(tmp_path, *rows)
    assert call.first_token_s == first_token


def test_a_session_of_two_calls(tmp_path: Path) -> None:
    (first, second), billed = read(tmp_path, *codex_session())
    assert (first.billed, second.billed) == (Usage(900, 0, 0, 0, 30), Usage(40, 896, 64, 0, 20))
    assert (first.host, first.request.model, first.session, first.id) == ("openai", "gpt-5.6", "t-1", "r1")
    assert (first.project, first.file, first.line) == ("/home/me/proj", str(tmp_path / NAME), 8)
    assert [(call.start - START, call.end and call.end - START) for call in billed.calls] == [(2, 5.5), (7, 9.5)]
    assert [call.first_token_s for call in (first, second)] == [2.0, 2.0]
    assert [(call.before, call.events, call.has_thinking) for call in billed.calls] == [
        (0, ("human",), True),
        (1, (), False),
    ]
    assert shape(second) == [
        ("system", ["text"]),
        ("user", ["text"]),
        ("assistant", ["thinking", "tool_use"]),
        ("user", ["tool_result"]),
    ]
    assert (billed.client, billed.damaged, billed.calls[0].version) == ("codex", (), "0.169.0")


def test_the_static_prefix_is_the_prompt_that_is_known_and_the_rest_of_the_bill(tmp_path: Path) -> None:
    (first, second), _ = read(tmp_path, *codex_session())
    known, unknown = first.request.system.blocks
    assert (known.content, first.request.system) == ({"type": "text", "text": "Be kind."}, second.request.system)
    assert unknown.tokens is not None and 800 < unknown.tokens < 900


OLD = [codex_meta(), codex_context(1), codex_says(2, "user", "please")]


def test_an_older_file_is_billed_by_its_counters_and_none_counts_twice(tmp_path: Path) -> None:
    total = codex_sum(FIRST, SECOND)
    rows = [
        *OLD,
        codex_calls(5),
        codex_returns(6),
        codex_count(6.5, FIRST, FIRST),
        codex_count(6.6, FIRST, FIRST),  # rate limits
        codex_line(6.7, "event_msg", type="token_count", info=None),
        codex_says(9, "assistant", "done"),
        codex_count(9.5, SECOND, total),
        codex_count(9.6, {**SECOND, "input_tokens": 0, "total_tokens": 700}, total),  # a compacted window
    ]
    (first, second), billed = read(tmp_path, *rows)
    assert (first.billed, second.billed) == (Usage(900, 0, 0, 0, 30), Usage(40, 896, 64, 0, 20))
    assert [call.start - START for call in billed.calls] == [2, 6]
    assert shape(second)[1:] == [("assistant", ["tool_use"]), ("user", ["tool_result"])]
    assert first.id == "t-1 900/0/0/30/1"


@pytest.mark.parametrize(
    ("totals", "expected"),
    [
        ([FIRST, codex_sum(FIRST, SECOND)], [FIRST, SECOND]),
        ([codex_sum(FIRST, SECOND), FIRST], [codex_sum(FIRST, SECOND), FIRST]),
    ],
    ids=["growing", "begun anew"],
)
def test_a_total_alone_is_taken_apart(tmp_path: Path, totals: list[Row], expected: list[Row]) -> None:
    rows = [codex_count(number, None, total) for number, total in enumerate(totals, 3)]
    recorded, _ = read(tmp_path, *OLD, *rows)
    assert [call.billed.output_tokens for call in recorded if call.billed] == [one["output_tokens"] for one in expected]
    assert [call.billed.total_input for call in recorded if call.billed] == [one["input_tokens"] for one in expected]


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 5000), st.integers(1, 900), st.integers(1, 4)), max_size=9)
)
def test_the_bill_is_the_last_total_however_often_it_is_repeated(
    tmp_path_factory: pytest.TempPathFactory, told: list[tuple[int, int, int, int]]
) -> None:
    usages = [codex_usage(min(read, total), total, output) for total, read, output, _ in told]
    totals = [codex_sum(*usages[: number + 1]) for number in range(len(usages))]
    rows = [
        codex_count(number + 2, usage, total)
        for number, (usage, total, (*_, times)) in enumerate(zip(usages, totals, told, strict=True))
        for _ in range(times)
    ]
    recorded, billed = read(tmp_path_factory.mktemp("codex"), *OLD, *rows)
    whole = sum((call.usage for call in billed.calls), Usage())
    assert len(recorded) == len(usages)
    assert (whole.total_input, whole.output_tokens) == (
        (totals[-1]["input_tokens"], totals[-1]["output_tokens"]) if totals else (0, 0)
    )


def test_a_response_is_billed_once(tmp_path: Path) -> None:
    rows = [*codex_session(), codex_bill(11, "r2", SECOND, codex_sum(FIRST, SECOND))]
    assert len(read(tmp_path, *rows)[0]) == 2


def test_a_fork_s_copy_of_its_parent_has_the_parent_s_ids(tmp_path: Path) -> None:
    parent = [*OLD, codex_says(3, "assistant", "done"), codex_count(4, FIRST, FIRST)]
    more = codex_count(99, SECOND, codex_sum(FIRST, SECOND))
    fork = [codex_meta("t-2", forked_from_id="t-1"), *parent, codex_says(98, "assistant", "more"), more]
    (one,), _ = read(tmp_path, *parent)
    (copy, own), billed = read(tmp_path, *fork, name="rollout-2026-11-20T10-00-00-t-2.jsonl")
    assert (copy.id, own.id) == (one.id, "t-1 1900/896/64/50/2")
    assert [call.session for call in billed.calls] == ["t-2", "t-2"]
    assert billed.calls[0].events == ("fork",)


@pytest.mark.parametrize(("late", "start"), [(5, 2), (5.001, None), (90_000, None)])
def test_a_copied_turn_with_the_time_of_the_copy_was_when_it_says(
    tmp_path: Path, late: float, start: float | None
) -> None:
    """Its lines are those of a fork that was made `late` seconds after."""
    began = codex_line(1, "event_msg", type="task_started", started_at=START + 1 - late)
    own = codex_line(5, "event_msg", type="task_started", started_at=START + 5)
    rows = [codex_meta("t-2", forked_from_id="t-1"), codex_context(1), began, codex_says(2, "user", "please")]
    more = [
        own,
        codex_says(6, "user", "more"),
        codex_says(7, "assistant", "done"),
        codex_count(8, SECOND, codex_sum(FIRST, SECOND)),
    ]
    _, billed = read(tmp_path, *rows, codex_says(3, "assistant", "done"), codex_count(4, FIRST, FIRST), *more)
    first, second = billed.calls
    assert first.start == pytest.approx(START + (1 - late if start is None else start))
    assert (second.start, second.end) == (START + 6, START + 8)


def test_a_sub_agent_is_named_and_belongs_to_the_session_that_started_it(tmp_path: Path) -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "t-1", "depth": 1, "agent_role": "explorer"}}}
    told = [("review", {"subagent": "review"}), ("explorer", spawned), ("memory", {"subagent": {"memory": {}}})]
    for number, (agent, source) in enumerate(told):
        rows = [codex_meta(f"s-{number}", session_id="t-1", source=source), *codex_session()[1:]]
        recorded, billed = read(tmp_path, *rows, name=f"rollout-s-{number}.jsonl")
        assert {(call.agent, call.session) for call in billed.calls} == {(agent, "t-1")}
        assert {call.session for call in recorded} == {f"t-1 s-{number}"}


def test_a_compaction_begins_another_history(tmp_path: Path) -> None:
    left = [codex_says(0, "user", "please")["payload"], codex_says(0, "user", "so far")["payload"]]
    rows = [
        *codex_session(),
        codex_line(10, "compacted", message="so far", replacement_history=left),
        codex_says(12, "assistant", "more"),
        codex_bill(13, "r3", codex_usage(0, 300, 9)),
    ]
    recorded, billed = read(tmp_path, *rows)
    assert shape(recorded[2]) == [("user", ["text", "text"])]
    assert (billed.calls[2].before, billed.calls[2].events, billed.calls[2].start) == (2, ("compaction",), START + 10)


def test_an_older_compaction_leaves_its_summary(tmp_path: Path) -> None:
    rows = [
        *codex_session(),
        codex_line(10, "compacted", message="so far"),
        codex_bill(13, "r3", codex_usage(0, 300, 9)),
    ]
    recorded, _ = read(tmp_path, *rows)
    assert [block.content for block in recorded[2].request.thread.messages()[0].blocks] == [
        {"type": "text", "text": "so far"}
    ]


def test_a_summary_that_is_none_is_not_read(tmp_path: Path) -> None:
    thought = codex_line(3, "response_item", type="reasoning", summary=True, content=5)
    (only,), _ = read(tmp_path, *OLD, thought, codex_bill(4, "r1", FIRST))
    assert [block.content for block in only.response] == [{"type": "thinking", "thinking": ""}]


def test_events_between_two_calls(tmp_path: Path) -> None:
    picture = codex_line(
        11,
        "response_item",
        type="message",
        role="user",
        content=[{"type": "input_image", "image_url": "data:image/png;base64,AA"}],
    )
    rows = [
        *codex_session()[:1],
        codex_context(1, effort="low"),
        *codex_session()[2:],
        codex_line(10, "event_msg", type="error", message="overloaded"),
        codex_context(10, "gpt-5.6-mini", effort="high"),
        picture,
        codex_bill(13, "r3", codex_usage(0, 300, 9)),
    ]
    _, billed = read(tmp_path, *rows)
    assert (billed.calls[2].events, billed.calls[2].model) == (("model", "error", "effort", "images"), "gpt-5.6-mini")


def test_an_interrupted_answer_is_history_of_the_next_request(tmp_path: Path) -> None:
    rows = [
        *OLD,
        codex_thinks(3),
        codex_says(4, "assistant", "I wi"),
        codex_line(5, "event_msg", type="turn_aborted", reason="interrupted"),
        codex_says(20, "user", "go on"),
        codex_says(22, "assistant", "done"),
        codex_bill(23, "r1", FIRST),
    ]
    (only,), billed = read(tmp_path, *rows)
    assert shape(only) == [("user", ["text"]), ("assistant", ["thinking", "text"]), ("user", ["text"])]
    assert billed.calls[0].start == START + 20


@pytest.mark.parametrize(
    ("provider", "model", "host"),
    [
        ("openai", "gpt-5.6", "openai"),
        ("azure", "gpt-5.6", "azure"),
        ("amazon-bedrock", "openai.gpt-5.6", "bedrock"),
        ("mine", "gpt-5.6-codex", "openai"),
        ("mine", "o4-mini", "openai"),
        ("mine", "claude-opus-5-5", "anthropic"),
        ("mine", "qwen3-coder-plus", "qwen"),
        ("mine", "llama", "anthropic"),
    ],
)
def test_the_host_is_the_provider_or_the_model_s_maker(tmp_path: Path, provider: str, model: str, host: str) -> None:
    rows = [codex_meta(model_provider=provider), codex_context(1, model), *codex_session()[2:]]
    assert {served_by(call) for call in read(tmp_path, *rows)[1].calls} == {host}


def test_a_service_tier_that_changes_the_price(tmp_path: Path) -> None:
    for tier, modes in (
        ("flex", ("flex",)),
        ("priority", ("priority",)),
        ("ultrafast", ("ultrafast",)),
        ("default", ()),
    ):
        recorded, billed = read(tmp_path, codex_meta(), codex_context(1, service_tier=tier), *codex_session()[2:])
        assert {call.modes for call in billed.calls} == {modes}
        assert recorded[0].request.params.get("service_tier") == (tier if modes else None)


def test_a_damaged_line_is_listed_and_the_others_count(tmp_path: Path) -> None:
    path = write_lines(tmp_path / NAME, codex_session())
    lines = path.read_text().splitlines()
    wrong = codex_bill(8, "r0", {**FIRST, "input_tokens": -1})
    path.write_text(
        "\n".join([*lines[:7], "{nonsense", *lines[7:], str(wrong).replace("'", '"'), '{"type": 5}', '{"cut'])
    )
    billed = session_files(path)[0]
    expected = (
        (8, "damaged JSON: Expecting property name enclosed in double quotes at character 2"),
        (15, "usage.input_tokens: expected a whole number of tokens; got -1"),
        (16, "expected `str`, got `int` - at `$.type`"),
    )
    assert (billed.damaged, [call.id for call in billed.calls]) == (expected, ["r1", "r2"])
    with pytest.raises(InputError) as error:
        list(calls(path))
    assert [(fault.line, fault.message) for fault in error.value.faults] == list(expected)


def test_a_last_line_that_is_still_being_written_is_skipped(tmp_path: Path) -> None:
    path, said = write_lines(tmp_path / NAME, codex_session(), end='\n{"timestamp": "2026'), list[str]()
    assert (len(list(calls(path, said.append))), session_files(path)[0].damaged) == (2, ())
    assert said == [f"{path}:14 the last line is cut off (still being written?): skipped"]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([codex_meta(timestamp="x")], 'its first line is a "session_meta"'),
        ([codex_context(1), codex_meta()], None),
        ([{"type": "session_meta"}], None),
    ],
)
def test_a_session_is_known_by_its_first_line(tmp_path: Path, rows: list[Row], reason: str | None) -> None:
    assert sniff(write_lines(tmp_path / NAME, rows).read_bytes()) == reason


def test_detect_knows_it(tmp_path: Path) -> None:
    assert detect(write_lines(tmp_path / NAME, codex_session()))[0] == "codex"
