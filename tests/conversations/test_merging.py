"""Folders of logs become one recording: in the order of time, each call once, what is no log left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cachecost.conversations.importing import ImportOptions, ImportReport, import_files
from cachecost.conversations.readers.call_recording import calls
from cachecost.conversations.readers.claude_code.reader import LACKS
from conversations.test_transcript_reader import CALL, RESULT, SAYS, Line, answer, user

FIRST = [user("a", None, 0), answer("b", "a", 3, (10, 0, 5000, 30), CALL, sessionId="one")]
GOES_ON = [user("c", "b", 7, RESULT), answer("d", "c", 9, (2, 5000, 400, 55), SAYS, "msg_2", sessionId="two")]
BESIDE = [user("x", None, 5), answer("y", "x", 6, (4, 0, 700, 8), SAYS, "msg_3", sessionId="three")]


def project(folder: Path, **files: list[Line]) -> Path:
    """A folder as Claude Code leaves it: sessions, one of them resumed, and what is none."""
    (folder / "memory").mkdir()
    (folder / "memory" / "MEMORY.md").write_text("- a note")
    (folder / ".hidden.jsonl").write_text("no JSON")
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def imported(folder: Path, *sources: Path) -> tuple[ImportReport, list[str]]:
    said: list[str] = []
    return import_files(sources, folder / "all.jsonl", ImportOptions(warn=said.append)), said


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return project(folder, one=FIRST, two=[*FIRST, *GOES_ON], three=BESIDE)


def test_a_folder_becomes_one_recording_in_the_order_of_time(tmp_path: Path, logs: Path) -> None:
    report, said = imported(tmp_path, logs)
    made = list(calls(tmp_path / "all.jsonl"))
    assert [(call.session, call.billed and call.billed.write) for call in made] == [
        ("one", 5000),
        ("three", 700),
        ("two", 400),
    ]
    assert (report.files, report.calls, len(report.imported)) == (3, 3, 1)
    assert report.imported[0].file == "3 files"
    assert report.billed_usage.total_input == 10 + 5000 + 4 + 700 + 2 + 5000 + 400
    assert said == [LACKS, "1 repeated call in several files: each call is counted once"]


def test_a_resumed_session_keeps_what_came_before(tmp_path: Path, logs: Path) -> None:
    imported(tmp_path, logs)
    resumed = list(calls(tmp_path / "all.jsonl"))[-1]
    assert [message.role for message in resumed.request.thread.messages()] == ["user", "assistant", "user"]


def test_the_order_of_the_files_does_not_matter(tmp_path: Path, logs: Path) -> None:
    imported(tmp_path, logs / "two.jsonl", logs / "one.jsonl", logs / "three.jsonl")
    other = [call.billed for call in calls(tmp_path / "all.jsonl")]
    imported(tmp_path, logs)
    assert [call.billed for call in calls(tmp_path / "all.jsonl")] == other


def test_into_a_folder_each_file_of_a_folder_goes_by_itself(tmp_path: Path, logs: Path) -> None:
    report = import_files([logs], tmp_path / "out")
    assert [one.name for one in report.imported] == ["one", "three", "two"]
    assert report.calls == 4


def test_what_is_no_log_is_left_out_and_said(tmp_path: Path, logs: Path) -> None:
    (logs / "settings.json").write_text('{"theme": "dark"}')
    report, said = imported(tmp_path, logs)
    assert (
        said[0]
        == f"{logs / 'settings.json'}: unrecognized format, skipped (nearest: request-log; name it with --format)"
    )
    assert (report.files, report.refused, [fault.file for fault in report.skipped]) == (
        3,
        [],
        [str(logs / "settings.json")],
    )


def test_a_copy_made_while_the_answer_came_does_not_count(tmp_path: Path, logs: Path) -> None:
    cut = [FIRST[0], answer("b", "a", 3, (10, 0, 5000, 3), CALL, sessionId="one")]
    (logs / "one.jsonl").write_text("".join(json.dumps(line) + "\n" for line in cut))
    report, _ = imported(tmp_path, logs)
    assert (report.calls, report.billed_usage.output_tokens) == (3, 30 + 8 + 55)


def test_what_clients_keep_beside_their_logs_is_not_skipped_but_none(tmp_path: Path, logs: Path) -> None:
    (logs / "sessions-index.json").write_text('{"version": 1, "entries": []}')
    (logs / "agent-1.meta.json").write_text('{"agentType": "Explore"}')
    (logs / "empty.jsonl").write_text("")
    report, said = imported(tmp_path, logs)
    assert (report.files, report.skipped, len(said)) == (3, [], 3)
    assert said[0] == f"{logs / 'empty.jsonl'}: empty, ignored"


def test_a_damaged_log_among_others_is_refused_and_the_others_are_whole(tmp_path: Path, logs: Path) -> None:
    with (logs / "three.jsonl").open("a") as stream:
        stream.write("{damaged}\n")
    report, _ = imported(tmp_path, logs)
    assert [(fault.file, fault.line) for fault in report.refused] == [(str(logs / "three.jsonl"), 3)]
    assert len(list(calls(tmp_path / "all.jsonl"))) == report.calls == 2


def test_without_words_the_key_comes_from_all_files(tmp_path: Path, logs: Path) -> None:
    def digests(*sources: Path) -> set[str]:
        import_files(sources, tmp_path / "free.jsonl", ImportOptions("digest"))
        lines = [json.loads(line) for line in (tmp_path / "free.jsonl").read_text().splitlines()]
        return {line["digest"] for line in lines if "digest" in line}

    whole = digests(logs)
    assert whole == digests(logs)
    assert not whole & digests(logs / "one.jsonl", logs / "two.jsonl")


def test_nothing_readable_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    report, _ = imported(tmp_path, folder)
    assert (report.files, report.calls, report.imported) == (0, 0, [])
    assert [str(fault) for fault in report.refused] == [f"{folder} has no file of a known format"]
    assert not (tmp_path / "all.jsonl").exists()


def test_unknown_blocks_are_kept_counted_and_named(tmp_path: Path) -> None:
    new = {"type": "hologram", "data": 1}
    messages = [{"role": "user", "content": [new, new, {"type": "text", "text": "x"}]}]
    rows = [{"request": {"model": "m", "messages": messages + messages * n}} for n in range(2)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, said = imported(tmp_path, tmp_path / "log.jsonl")
    assert said == ["4 blocks of unknown type 'hologram': kept unchanged, counted as JSON"]
    (call,) = list(calls(tmp_path / "all.jsonl"))[:1]
    assert call.request.thread.messages()[0].blocks[0].content == new
