"""Several logs as one stream: each call once, in time order, from one root, with the place where it was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.logs import Logs, read_logs, read_sessions
from conversations.test_transcript_reader import CALL, RESULT, SAYS, answer, user

MODEL = "claude-opus-4-6"


def row(second: int | None, text: str, *said: str, **fields: Any) -> dict[str, Any]:
    """A line of a request log: what was said so far in turns, then `text`."""
    roles = ("user", "assistant")
    turns = [{"role": roles[place % 2], "content": words} for place, words in enumerate((*said, text))]
    at = {} if second is None else {"timestamp": f"2026-03-07T10:00:{second:02}.5Z"}
    return {**at, "request": {"model": MODEL, "max_tokens": 9, "messages": turns}, **fields}


def saved(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def reading(*paths: Path) -> tuple[Logs, list[str]]:
    said: list[str] = []
    return Logs(paths, warn=said.append), said


def texts(logs: Logs) -> list[object]:
    contents = [call.request.thread.messages()[-1].blocks[0].content for call in read_logs(logs)]
    return [content["text"] for content in contents if isinstance(content, dict)]


def test_files_and_folders_are_one_stream_in_time_order(tmp_path: Path) -> None:
    one = saved(tmp_path / "a" / "one.jsonl", row(1, "first"), row(5, "third"))
    saved(tmp_path / "b" / "two.jsonl", row(3, "second"))
    logs, said = reading(one, tmp_path / "b")
    calls = list(read_logs(logs))
    assert [(call.start % 60, call.file, call.line) for call in calls] == [
        (1.5, str(one), 1),
        (3.5, str(tmp_path / "b" / "two.jsonl"), 1),
        (5.5, str(one), 2),
    ]
    assert (said, logs.skipped) == ([], [])


def test_a_conversation_goes_on_in_another_file(tmp_path: Path) -> None:
    """The files of a rotated log: what they have in common is one thread, and the second call continues the first."""
    one = saved(tmp_path / "log.1", row(1, "a"))
    two = saved(tmp_path / "log.2", row(2, "c", "a", "b"))
    conversations, calls = read_sessions(reading(one, two)[0])
    assert calls[1].request.thread.up_to(1) is calls[0].request.thread
    assert len(conversations) == 1


def test_the_same_file_twice_is_read_once(tmp_path: Path) -> None:
    path = saved(tmp_path / "logs" / "one.jsonl", row(1, "a"))
    assert len(list(read_logs(reading(path, path.parent, path)[0]))) == 1


def test_a_copied_log_counts_once(tmp_path: Path) -> None:
    """Request logs have no ids: two calls at once in one file are two calls, and their copies none."""
    usage = {"input_tokens": 3, "output_tokens": 4}
    rows = [row(1, "a", usage=usage), row(1, "a", usage=usage), row(2, "b", usage=usage)]
    one, two = saved(tmp_path / "log.jsonl", *rows), saved(tmp_path / "log.bak.jsonl", *rows)
    logs, said = reading(one, two)
    assert texts(logs) == ["a", "a", "b"]
    assert said == ["3 repeated calls in several files: each call is counted once"]


@pytest.mark.parametrize(
    "other",
    [
        row(1, "other"),
        row(2, "a"),
        row(1, "a", usage={"input_tokens": 3, "output_tokens": 4}),
        row(1, "a", response={"content": [{"type": "text", "text": "yes"}]}),
        row(1, "a", session="b"),
        row(1, "a", workspace="b"),
    ],
    ids=["request", "time", "bill", "answer", "session", "workspace"],
)
def test_a_call_that_differs_is_no_copy(tmp_path: Path, other: dict[str, Any]) -> None:
    logs, said = reading(saved(tmp_path / "one.jsonl", row(1, "a")), saved(tmp_path / "two.jsonl", other))
    assert (len(texts(logs)), said) == (2, [])


def test_logs_without_times_follow_the_others_in_the_order_given(tmp_path: Path) -> None:
    late = saved(tmp_path / "late.jsonl", row(None, "d"), row(None, "e"))
    early = saved(tmp_path / "early.jsonl", row(None, "b"), row(None, "c"))
    timed = saved(tmp_path / "timed.jsonl", row(7, "a"))
    logs, said = reading(early, timed, late)
    calls = list(read_logs(logs))
    assert [call.start - calls[0].start for call in calls] == [0, 2, 4, 6, 8]
    assert texts(logs) == ["a", "b", "c", "d", "e"]
    assert said[0] == "2 files without timestamps: taken after all others, in the order given"


def test_calls_of_files_in_another_order_are_numbered_by_time(tmp_path: Path) -> None:
    one = saved(tmp_path / "one.jsonl", row(5, "c"), row(1, "a"))
    two = saved(tmp_path / "two.jsonl", row(3, "b"))
    calls = list(read_logs(reading(one, two)[0]))
    assert [(call.number, call.line) for call in calls] == [(0, 2), (0, 1), (0, 1)]
    assert [(call.number, call.line) for call in read_logs(reading(one)[0])] == [(2, 2), (1, 1)]


def test_a_damaged_file_among_others_is_skipped_with_its_errors(tmp_path: Path) -> None:
    saved(tmp_path / "logs" / "good.jsonl", row(1, "a"))
    bad = saved(tmp_path / "logs" / "bad.jsonl", row(1, "b"), {"request": {"model": MODEL}})
    logs, said = reading(tmp_path / "logs")
    assert texts(logs) == ["a"]
    assert said == [f"{bad}:2 messages: expected an array of messages; got nothing"]
    assert [(fault.file, fault.line) for fault in logs.skipped] == [(str(bad), 2)]
    with pytest.raises(InputError):
        list(read_logs(reading(bad)[0]))


def test_what_no_reader_knows_is_skipped_and_the_empty_is_ignored(tmp_path: Path) -> None:
    good = saved(tmp_path / "logs" / "good.jsonl", row(1, "a"))
    odd = saved(tmp_path / "logs" / "odd.jsonl", {"type": "chat"})
    empty = saved(tmp_path / "logs" / "empty.jsonl")
    (tmp_path / "logs" / "README.md").write_text("A note.")
    told = [
        f"{empty}: empty, ignored",
        f"{odd}: unrecognized format, skipped (nearest: claude-code; name it with --format)",
    ]
    for paths in ([tmp_path / "logs"], [empty, good, odd]):
        logs, said = reading(*paths)
        assert texts(logs) == ["a"]
        assert (said, [fault.file for fault in logs.skipped]) == (told, [str(odd)])


def test_nothing_that_can_be_read_is_an_error(tmp_path: Path) -> None:
    saved(tmp_path / "logs" / "odd.jsonl", {"type": "chat"})
    with pytest.raises(InputError, match="logs has no file of a known format"):
        read_logs(reading(tmp_path / "logs")[0])


def test_a_conversation_among_logs_is_planned_and_never_replayed(tmp_path: Path) -> None:
    log = saved(tmp_path / "log.jsonl", row(1, "a"))
    talk = tmp_path / "events.json"
    talk.write_text('[{"type": "turn_start", "timestamp": "2026-01-02T10:00:00Z"}]')
    logs, said = reading(log, talk)
    assert texts(logs) == ["a"]
    assert f"{talk} is a conversation without calls; cachecost replay --strategy NAME plans them" in said
    conversations, calls = read_sessions(reading(log, talk)[0])
    assert (len(conversations), len(calls)) == (2, 1)


def test_the_calls_of_a_session_and_its_sub_agent_are_named_and_kept_apart(tmp_path: Path) -> None:
    """As Claude Code writes them: the sub-agent has a file of its own, with the session of the main thread."""
    session = {"sessionId": "s-1", "cwd": "/home/me/app"}
    main = [
        user("a", None, 0, **session),
        answer("b", "a", 3, (10, 0, 5000, 30), CALL, **session),
        user("c", "b", 20, RESULT, **session),
        answer("d", "c", 23, (2, 5000, 400, 5), SAYS, "msg_4", **session),
    ]
    side = {**session, "isSidechain": True, "agentId": "a7"}
    agent = [
        user("x", None, 4, **side),
        answer("y", "x", 6, (4, 0, 700, 8), CALL, "msg_2", **side),
        user("z", "y", 8, RESULT, **side),
        answer("w", "z", 9, (2, 704, 70, 8), SAYS, "msg_3", **side),
    ]
    saved(tmp_path / "p" / "s-1.jsonl", *main)
    (tmp_path / "p" / "s-1").mkdir()
    saved(tmp_path / "p" / "s-1" / "subagents" / "agent-a7.jsonl", *agent)
    conversations, calls = read_sessions(reading(tmp_path / "p")[0])
    assert [(call.session, call.project, call.agent, Path(call.file).name, call.line) for call in calls] == [
        ("s-1", "/home/me/app", "", "s-1.jsonl", 2),
        ("s-1", "/home/me/app", "a7", "agent-a7.jsonl", 2),
        ("s-1", "/home/me/app", "a7", "agent-a7.jsonl", 4),
        ("s-1", "/home/me/app", "", "s-1.jsonl", 4),
    ]
    assert [(one.name, one.session, one.project, one.agent, len(one.replies)) for one in conversations] == [
        ("s-1", "s-1", "/home/me/app", "", 2),
        ("s-1 a7", "s-1", "/home/me/app", "a7", 2),
    ]


def test_a_side_chain_without_an_id_is_named_by_its_number(tmp_path: Path) -> None:
    lines = [
        user("x", None, 4, isSidechain=True, sessionId="s"),
        answer("y", "x", 6, (4, 0, 700, 8), SAYS, isSidechain=True, sessionId="s"),
    ]
    (call,) = read_logs(reading(saved(tmp_path / "s.jsonl", *lines))[0])
    assert (call.session, call.agent, call.project) == ("s", "side 1", "")
