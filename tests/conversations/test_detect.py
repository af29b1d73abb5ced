"""Formats are told by what a file begins with, and why is said."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.errors import InputError
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.readers.detect import (
    HEAD_BYTES,
    READERS,
    SHORT_HEAD_BYTES,
    detect,
    read_calls,
    read_conversation,
)

CALLS = '{"format":1,"kind":"calls","content":"keep","name":"n"}\n'
CONVERSATION = CALLS.replace("calls", "conversation")
ROW = {"timestamp": "2026-03-07T10:00:00Z", "request": {"model": "m", "messages": [{"role": "user", "content": "x"}]}}
LOG = json.dumps(ROW) + "\n"
JP = '[{"type": "turn_start", "timestamp": "2026-01-02"}]'


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        (CALLS, "calls", "its first line says format and kind calls"),
        (CONVERSATION, "recording", "its first line says format and kind"),
        (LOG, "request-log", 'its first line has a "request"'),
        ("\n  \n" + LOG, "request-log", 'its first line has a "request"'),
        (JP, "jp", "a JSON array of events that begins with turn_start"),
    ],
)
def test_each_format_is_known_by_its_beginning(tmp_path: Path, text: str, name: str, why: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    assert detect(path) == (name, why)
    assert detect(path, otherwise="jp") == (name, why)
    assert detect(path, "jp", otherwise="recording") == ("jp", "named with --format")


def test_what_nobody_knows_is_what_the_caller_says_or_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('{"a": {"request": 1}}\n')
    why = f"unrecognized format (nearest: request-log; name it with --format): expected one of {', '.join(READERS)}"
    assert detect(path, otherwise="request-log") == ("request-log", why)
    with pytest.raises(InputError) as error:
        detect(path)
    assert str(error.value) == f"{path} {why}"


@pytest.mark.parametrize(
    ("name", "text", "near"),
    [
        ("file", '{"type": "chat"}', "claude-code"),
        ("file", '{"custom_id": 1}', "anthropic-batch"),
        ("file.yaml", "hello", "vcr"),
        ("file.jsonl", "hello", "request-log"),
    ],
)
def test_what_nobody_knows_is_told_the_nearest_format(tmp_path: Path, name: str, text: str, near: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=f"nearest: {near}; name it with --format"):
        detect(path)


def test_what_nobody_knows_is_read_as_a_request_log_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('{"type": "chat"}\n')
    said: list[str] = []
    with pytest.raises(InputError, match=":1 request: expected a Messages API body; got nothing"):
        list(read_calls(path, warn=said.append))
    hint = "unrecognized format (nearest: claude-code; name it with --format), read as request-log"
    assert said == [f"{path}: {hint}"]


def test_a_pipe_is_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert detect(path, otherwise="request-log") == ("request-log", "it can be read only once")
    writer = Thread(target=lambda: path.write_text(LOG * 2))
    writer.start()
    assert [call.line for call in read_calls(path)] == [1, 2]
    writer.join()


@pytest.mark.parametrize(
    ("head", "keys"),
    [
        (b'{"a":1,"b":{"c":2},"d":["e",{"f":1}],"g":"h"}', ["a", "b", "d", "g"]),
        (b'\xef\xbb\xbf \n{"\xc3\xa9" : ":", "x\\"y": "}", "z": {"q": "cut off}, \\"w\\": 1', ["\u00e9", 'x\\"y', "z"]),
        (b'{"a":"' + b"long " * 10_000, ["a"]),
        (b'{"a":1}{"b":1}', ["a"]),
        (b'{"a":1}\n{"b":1}', ["a"]),
        (b'["a",{"b":1}]', []),
        (b'"a":1', []),
        (b"", []),
        (b"{", []),
        (b'{"a', []),
    ],
)
def test_keys_are_found_though_the_end_is_cut_off(head: bytes, keys: list[str]) -> None:
    assert list(top_keys(head)) == keys


def test_calls_are_no_conversation_and_the_other_way_round(tmp_path: Path) -> None:
    log, conversation = tmp_path / "log", tmp_path / "conversation"
    log.write_text(LOG)
    conversation.write_text(CONVERSATION)
    with pytest.raises(InputError) as error:
        read_conversation(log)
    why = 'request-log: its first line has a "request"'
    assert str(error.value) == f"{log} expected a conversation; got recorded calls ({why})"
    with pytest.raises(InputError) as error:
        read_calls(conversation)
    why = "recording: its first line says format and kind"
    told = f"expected recorded calls; got a conversation ({why}); choose a --strategy"
    assert str(error.value) == f"{conversation} {told}"
    assert read_conversation(conversation).name == "n"


def test_the_detected_format_is_said_where_it_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "file"
    said: list[str] = []
    path.write_text(LOG)
    list(read_calls(path, warn=said.append))
    path.write_text(CALLS)
    list(read_calls(path, "calls", said.append))
    assert said == []
    list(read_calls(path, warn=said.append))
    assert said == [f"{path}: detected format: calls (its first line says format and kind calls)"]


@given(
    st.lists(
        st.sampled_from([b'"', b"kind", b'"log"', b"request", b"interactions", b"[", b"-", b" ", b"\\"]), max_size=9
    )
)
def test_a_reader_is_possible_where_one_of_its_signs_stands_anywhere(pieces: list[bytes]) -> None:
    head = b"".join(pieces)
    start = head.lstrip()[:1].decode()
    expected = [
        name
        for name, (_, signs) in READERS.table.items()
        if any(sign == f"^{start}" if sign[0] == "^" else sign.encode() in head for sign in signs)
    ]
    assert list(READERS.possible(head)) == expected


@pytest.mark.parametrize("size", [10, HEAD_BYTES - 27, HEAD_BYTES, 2 * HEAD_BYTES + 1])
def test_a_first_line_of_any_length_does_not_hide_the_format(tmp_path: Path, size: int) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text(f'{{"type":"mood","data":"{"x" * size}"}}\n{{"type":"user","sessionId":"s"}}\n')
    assert detect(path) == ("claude-code", 'its line 2 has a "type" and a "sessionId"')


@pytest.mark.parametrize("lines", [1, SHORT_HEAD_BYTES // 20])
def test_first_objects_that_tell_nothing_do_not_hide_the_format(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "x.jsonl"
    mood, last = '{"type":"mood"}', '{"type":"x","uuid":"a","message":{}}'
    path.write_text("\n".join([*[mood] * lines, mood.ljust(SHORT_HEAD_BYTES), last]))
    assert detect(path) == ("claude-code", f'its line {lines + 2} has a "type" and a "uuid"')


def test_one_long_line_alone_is_still_unknown(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text(f'{{"type":"mood","data":"{"x" * 2 * HEAD_BYTES}"}}')
    with pytest.raises(InputError, match="nearest: claude-code"):
        detect(path)


@pytest.mark.parametrize("name", ["resourceSpans", "resourceLogs"])
def test_metrics_before_the_spans_do_not_hide_them(tmp_path: Path, name: str) -> None:
    path = tmp_path / "otel.jsonl"
    path.write_text(f'{{"resourceMetrics": []}}\n{{"{name}": []}}\n')
    assert detect(path) == ("otel", f'it has "resourceMetrics", then "{name}"')


def test_calls_know_their_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(LOG * 5)
    assert [(call.file, call.line) for call in read_calls(path)] == [(str(path), number) for number in range(1, 6)]
