"""Importing: formats are found by content, each file becomes a recording or is refused, words stay out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shapes import blocks_of, event_shapes, pattern, whole

from cachecost.base.errors import InputError
from cachecost.conversations.importing import ImportOptions, import_files
from cachecost.conversations.input_files import WATCH
from cachecost.conversations.model import read
from cachecost.conversations.readers.detect import READERS, detect
from cachecost.prompts.blocks import Block

AT = "2026-01-02 10:00:0"
EVENTS: list[dict[str, Any]] = [
    {"type": "chat_request", "timestamp": f"{AT}0", "content": "secret wish"},
    {"type": "tool_call_request", "timestamp": f"{AT}1", "id": "toolu_1", "name": "hidden_tool", "arguments": {}},
    {
        "type": "inquiry_request",
        "timestamp": f"{AT}2",
        "id": "toolu_1.secret",
        "source": {"source": "tool", "name": "hidden_tool"},
        "question": {"text": "secret question?", "answer_type": {"type": "boolean"}},
    },
    {"type": "inquiry_response", "timestamp": f"{AT}3", "id": "toolu_1.secret", "answer": True},
    {"type": "tool_call_response", "timestamp": f"{AT}4", "id": "toolu_1", "content": "c2VjcmV0", "is_error": False},
    {"type": "chat_response", "timestamp": f"{AT}5", "message": "secret answer"},
]


def jp_file(folder: Path, name: str = "17700000001-secret-title.events.json", events: Any = None) -> Path:
    path = folder / name
    path.write_text(json.dumps(EVENTS if events is None else events))
    return path


def count(block: Block) -> tuple[dict[str, int], str]:
    return {"cl100k": block.size // 4}, "code"


def test_a_file_becomes_a_recording(tmp_path: Path) -> None:
    path, out = jp_file(tmp_path), tmp_path / "out.jsonl"
    said: list[str] = []
    report = import_files([path], out, ImportOptions(source="here", licence="MIT", warn=said.append))
    made = read(out)
    assert (made.name, made.source, made.licence) == ("jp-17700000001", "here", "MIT")
    assert [type(event).__name__ for event in made.events] == ["Human", "Reply", "Inquiry", "Results", "Reply"]
    (one,) = report.imported
    assert (one.format, one.reason) == ("jp", "a JSON array of events that begins with chat_request")
    assert (one.file, one.recording, one.calls, one.inquiries) == (str(path), str(out), 2, 1)
    assert said == [f"{path}: no model is configured for the first reply"]
    assert report.json() == {
        "format": 1,
        "files": 1,
        "conversations": 1,
        "calls": 2,
        "billed": {
            "input_tokens": 0,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 0,
        },
        "refused": [],
        "skipped": [],
    }


def test_content_free_holds_no_word_of_the_file_nor_of_its_name(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    import_files([jp_file(tmp_path)], out, ImportOptions("digest", count=count))
    data = out.read_text()
    for word in ("secret", "hidden", "toolu", "title", str(tmp_path)):
        assert word not in data
    made = read(out)
    assert all(dict(block.counts) == {"cl100k": block.size // 4} and block.prose == "code" for block in blocks_of(made))


def test_content_free_twice_is_the_same_and_from_another_source_nothing_matches(tmp_path: Path) -> None:
    path = jp_file(tmp_path)
    other = jp_file(tmp_path, "other.json", [*EVENTS, {"type": "turn_start", "timestamp": f"{AT}9"}])
    outs = [tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl")]
    for source, out in zip((path, path, other), outs, strict=True):
        import_files([source], out, ImportOptions("digest"))
    assert outs[0].read_bytes() == outs[1].read_bytes()
    one, two = (read(out) for out in (outs[0], outs[2]))
    assert event_shapes(one) == event_shapes(two)
    digests = [[block.digest for block in blocks_of(made)] for made in (one, two)]
    assert pattern(digests[0]) == pattern(digests[1])
    assert not set(digests[0]) & set(digests[1])


def test_a_recording_of_ours_can_lose_its_words_later(tmp_path: Path) -> None:
    kept, bare = tmp_path / "kept.jsonl", tmp_path / "bare.jsonl"
    import_files([jp_file(tmp_path)], kept, ImportOptions("keep", source="here"))
    report = import_files([kept], bare, ImportOptions("digest", count=count))
    assert (report.imported[0].format, report.imported[0].reason) == (
        "recording",
        "its first line says format and kind",
    )
    assert "secret" in kept.read_text()
    assert "secret" not in bare.read_text()
    assert read(bare).source == "here"
    again = tmp_path / "again.jsonl"
    import_files([kept], again)
    assert whole(read(again)) == whole(read(kept))


def test_many_files_go_into_a_folder_each_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "17700000001-x").mkdir()
    files = [
        jp_file(tmp_path),
        jp_file(tmp_path, "17700000001-x/events.json"),
        jp_file(tmp_path, "17700000002.json"),
        jp_file(tmp_path, "no-number.json"),
    ]
    for _ in range(2):  # a second import replaces the files of the first
        report = import_files(files, tmp_path / "made" / "here")
        assert [Path(one.recording).name for one in report.imported] == [
            "jp-17700000001.jsonl",
            "jp-17700000001-2.jsonl",
            "jp-17700000002.jsonl",
            "jp.jsonl",
        ]
        assert len(list((tmp_path / "made" / "here").iterdir())) == 4


def test_a_bad_file_is_refused_and_the_others_are_imported(tmp_path: Path) -> None:
    bad = jp_file(tmp_path, "bad.json", [{"type": "turn_start"}, {"type": "chat_request", "timestamp": "noon"}])
    deep = tmp_path / "deep.json"
    nested = "[" * 3000 + "]" * 3000
    call = '{"type":"tool_call_request","timestamp":"2026-01-02","id":"a","name":"b","arguments":{"x":' + nested + "}}"
    deep.write_text('[{"type":"turn_start","timestamp":"2026-01-02"},' + call + "]")
    report = import_files([bad, deep, jp_file(tmp_path)], tmp_path / "out")
    assert [Path(one.recording).name for one in report.imported] == ["jp-17700000001.jsonl"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["jp-17700000001.jsonl"]
    assert report.json()["refused"] == [
        {"file": str(bad), "line": None, "reason": "events[0].timestamp: expected an ISO 8601 time; got nothing"},
        {"file": str(bad), "line": None, "reason": "events[1].timestamp: expected an ISO 8601 time; got 'noon'"},
        {"file": str(bad), "line": None, "reason": "events[1].content: expected a text; got nothing"},
        {"file": str(deep), "line": None, "reason": report.refused[-1].message},
    ]
    assert report.refused[-1].message.endswith("at most 128 levels of nesting; got more")
    assert (report.files, report.json()["conversations"], report.calls) == (3, 1, 2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        (
            "hello",
            f"unrecognized format (nearest: request-log; name it with --format): expected one of {', '.join(READERS)}",
        ),
    ],
)
def test_an_unknown_format_is_told(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "what"
    path.write_text(text)
    report = import_files([path], tmp_path / "out.jsonl")
    assert [str(fault) for fault in report.refused] == [f"{path} {why}"]
    assert not (tmp_path / "out.jsonl").exists()


def test_a_format_can_be_named(tmp_path: Path) -> None:
    path = jp_file(tmp_path)
    assert detect(path, "jp") == ("jp", "named with --format")
    with pytest.raises(InputError) as error:
        detect(path, "recordin")
    known = ", ".join(["auto", *READERS])
    assert str(error.value) == f"{path} format: expected one of {known}; got 'recordin' (did you mean 'recording'?)"


def test_where_it_cannot_go_is_told(tmp_path: Path) -> None:
    path = jp_file(tmp_path)
    out = tmp_path / "out.jsonl"
    other = tmp_path / "other.json"
    other.write_bytes(path.read_bytes())
    report = import_files([path, other, path], out)
    told = f"is a conversation (jp: {detect(path)[1]}): choose a folder for the output, not one file"
    assert [str(fault) for fault in report.refused] == [f"{path} {told}", f"{other} {told}"]
    assert not out.exists()
    with pytest.raises(InputError) as error:
        import_files([path], path / "folder")
    assert str(error.value) == f"{path / 'folder'} cannot be made: Not a directory"


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    report = import_files([tmp_path / "none"], tmp_path / "out.jsonl")
    assert [str(fault) for fault in report.refused] == [
        f"{tmp_path / 'none'} cannot be read: No such file or directory"
    ]


def test_files_that_become_one_recording_are_read_once(tmp_path: Path) -> None:
    answer = {"id": "m", "model": "claude-opus-4-5", "usage": {"input_tokens": 1}, "content": [{"type": "text"}]}
    for name in ("a", "b"):
        lines = [{"type": "user", "uuid": f"1{name}", "message": {"content": "go"}}, {"type": f"mood {name}"}]
        lines.append({"type": "assistant", "uuid": f"2{name}", "message": {**answer, "id": name}})
        times = [{**line, "timestamp": f"2026-01-02T10:00:0{at}Z"} for at, line in enumerate(lines)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, times)))
    sizes: list[int] = []
    said: list[str] = []
    token = WATCH.set(sizes.append)
    report = import_files([tmp_path], tmp_path / "out.jsonl", ImportOptions(warn=said.append))
    WATCH.reset(token)
    assert sum(one.calls for one in report.imported) == 2
    assert sum(sizes) == sum((tmp_path / f"{name}.jsonl").stat().st_size for name in ("a", "b"))
    skipped = [f"{tmp_path / name}.jsonl: skipped 1 line: unknown type 'mood {name}'" for name in ("a", "b")]
    assert said[-2:] == skipped
