"""HAR archives: their calls in the order they started, when their first byte came, what is wrong with damaged ones."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.readers.http.recorders import HAR
from cachecost.providers.usage import Usage

URL = "https://api.anthropic.com/v1/messages"
BODY = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": "Which way?"}]}
ANSWER = {
    "id": "msg_1",
    "content": [{"type": "text", "text": "North."}],
    "usage": {"input_tokens": 3, "cache_creation_input_tokens": 500, "cache_read_input_tokens": 40, "output_tokens": 7},
}
USAGE = Usage(3, 40, 500, 0, 7)
START = 1772877600.0
"""2026-03-07T10:00:00Z"""
Entry = dict[str, Any]


def entry(at: str = "2026-03-07T10:00:00.000Z", url: str = URL, **more: Any) -> Entry:
    whole = {
        "startedDateTime": at,
        "time": 5000,
        "request": {
            "method": "POST",
            "url": url,
            "headers": [{"name": "Authorization", "value": "Bearer x"}],
            "postData": {"mimeType": "application/json", "text": json.dumps(BODY)},
        },
        "response": {
            "status": 200,
            "headers": [{"name": "Content-Encoding", "value": "gzip"}],
            "content": {"mimeType": "application/json", "text": json.dumps(ANSWER)},
        },
        "timings": {"blocked": 100, "dns": -1, "connect": 50, "ssl": 30, "send": 1, "wait": 2000.5, "receive": 2900},
    }
    return {**whole, **more}


def archive(folder: Path, *entries: Any) -> Path:
    path = folder / "archive.har"
    log = {"version": "1.2", "creator": {"name": "x", "version": "1"}, "entries": list(entries)}
    path.write_text(json.dumps({"log": log}))
    return path


def fail_on_note(note: str) -> None:
    pytest.fail(f"said without need: {note}")


def read(path: Path, warn: Callable[[str], None] = fail_on_note) -> list[Call]:
    return list(HAR.calls(path, warn))


def faults(path: Path) -> list[str]:
    with pytest.raises(InputError) as error:
        read(path)
    return [str(one).removeprefix(f"{path} ") for one in error.value.faults]


def test_calls_come_in_the_order_they_started(tmp_path: Path) -> None:
    path = archive(tmp_path, entry("2026-03-07T11:00:09+01:00"), entry())
    assert HAR.sniff(path.read_bytes())
    first, second = read(path)
    assert (first.start, second.start) == (START, START + 9)
    assert first.first_token_s == 2.1515
    assert (first.billed, first.host, first.status) == (USAGE, "anthropic", 200)
    assert [block.content for block in first.response] == ANSWER["content"]


def test_bodies_may_be_base64(tmp_path: Path) -> None:
    one = entry()
    for body in (one["request"]["postData"], one["response"]["content"]):
        body |= {"text": base64.b64encode(body["text"].encode()).decode(), "encoding": "base64"}
    assert read(archive(tmp_path, one))[0].billed == USAGE


def test_streams_and_packed_archives(tmp_path: Path) -> None:
    one = entry()
    start = {"type": "message_start", "message": ANSWER}
    one["response"]["content"] = {"mimeType": "text/event-stream", "text": f"event: x\ndata: {json.dumps(start)}\n\n"}
    path = tmp_path / "archive.har.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + archive(tmp_path, one).read_bytes()))
    assert read(path)[0].billed == USAGE


def test_what_is_left_out_and_what_is_not_told_is_said(tmp_path: Path) -> None:
    dropped, failed, preflight, aborted = entry(), entry(), entry(), entry()
    del dropped["response"]["content"]["text"]
    failed["response"]["status"] = 529
    preflight["request"] = {"method": "OPTIONS", "url": URL, "headers": []}
    aborted["response"] = {"status": 0, "headers": [], "content": {}}
    said: list[str] = []
    path = archive(
        tmp_path, dropped, failed, preflight, aborted, entry(url="https://example.com/v1/messages/count_tokens")
    )
    assert [(call.status, call.billed) for call in read(path, said.append)] == [(200, None), (529, None)]
    assert said == [
        f"{path}: skipped 1 entry: not a model call",
        f"{path}: skipped 1 entry: no answer",
        f"{path}: skipped 1 entry: token counting",
        f"{path}: 1 call whose answer has no usage",
    ]


def test_timings_may_be_missing(tmp_path: Path) -> None:
    one = entry()
    del one["timings"]
    assert read(archive(tmp_path, one))[0].first_token_s == 0.0


def test_every_fault_names_its_entry(tmp_path: Path) -> None:
    scrubbed, unknown, binary = entry(), entry("yesterday"), entry()
    scrubbed["request"]["postData"]["text"] = "REDACTED"
    unknown["response"]["status"] = "ok"
    binary["response"]["content"] = {"text": "?", "encoding": "base64"}
    half = entry()
    half["response"]["content"]["text"] = '{"usage": {}}'
    assert faults(archive(tmp_path, entry(), scrubbed, unknown, binary, half, {"request": {}})) == [
        "log.entries[1].request.postData.text: expected JSON; got 'REDACTED'",
        "log.entries[2].response.status: expected an HTTP status; got 'ok'",
        "log.entries[2].startedDateTime: expected an ISO 8601 time; got 'yesterday'",
        "log.entries[3].response.content.text: expected base64; got '?'",
        "log.entries[4].response.content.text.content: expected an array; got nothing",
        "log.entries[5].response: expected an object; got nothing",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"log": {"entries": [', "damaged JSON: Expecting value at character 22"),
        ("[]", "expected an object; got an array"),
        ('{"log": {"version": "1.2"}}', "log.entries: expected an array; got nothing"),
        ('{"log": {"entries": [1]}}', "log.entries: expected an array of objects; got an array"),
    ],
)
def test_damaged_files(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "archive.har"
    path.write_text(text)
    assert faults(path) == [message]


@pytest.mark.parametrize(
    "text",
    [
        '{"timestamp": null, "request": {}, "log": {"version": 1}}',
        '{"log": "text"}',
        '{"log": {"request": {}}}',
        '{"interactions": [{"request": {}}]}',
        '{"format": 1, "kind": "calls"}',
        '[{"log": {"version": "1.2"}}]',
        "log:\n  version: 1\n",
        "",
    ],
)
def test_other_formats_are_not_taken_for_archives(text: str) -> None:
    assert HAR.sniff(text.encode()) is None


def test_a_head_that_is_cut_off_is_still_known(tmp_path: Path) -> None:
    assert HAR.sniff(
        b"\xef\xbb\xbf" + json.dumps(json.loads(archive(tmp_path, entry()).read_text()), indent=2).encode()[:60]
    )
