"""Flows of mitmproxy: calls in the order they started; cut off, damaged and hostile files."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.readers.http.mitmproxy import DamagedNetstring, calls, sniff, values
from cachecost.providers.usage import Usage

BODY = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": "Which way?"}]}
ANSWER = {
    "id": "msg_1",
    "content": [{"type": "text", "text": "North."}],
    "usage": {"input_tokens": 3, "cache_creation_input_tokens": 500, "cache_read_input_tokens": 40, "output_tokens": 7},
}
USAGE = Usage(3, 40, 500, 0, 7)
START = 1772877600.0
"""2026-03-07T10:00:00Z"""
Flow = dict[str, Any]


def packed(value: Any) -> bytes:
    """A value as a typed netstring."""
    data, kind = _packed(value)
    return b"%d:%s%s" % (len(data), data, kind)


def _packed(value: Any) -> tuple[bytes, bytes]:
    if isinstance(value, dict):
        return b"".join(packed(part) for pair in reversed(value.items()) for part in pair), b"}"
    if isinstance(value, (list, tuple)):
        return b"".join(map(packed, value)), b"]"
    if isinstance(value, bool):
        return str(value).lower().encode(), b"!"
    kinds = {bytes: b",", str: b";", int: b"#", float: b"^", type(None): b"~"}
    data = value if isinstance(value, bytes) else b"" if value is None else str(value).encode()
    return data, kinds[type(value)]


def flow(at: float = START, answer: Any = ANSWER, **request: Any) -> Flow:
    """A flow as mitmproxy 12 writes it, as far as it is read."""
    headers = [[b"Host", b"api.anthropic.com"], [b"x-api-key", b"x"], [b"X-Claude-Code-Session-Id", b"s1"]]
    asked = {
        "http_version": b"HTTP/1.1",
        "headers": headers,
        "content": json.dumps(BODY).encode(),
        "timestamp_start": at,
        "host": "160.79.104.10",
        "port": 443,
        "method": b"POST",
        "scheme": b"https",
        "authority": b"",
        "path": b"/v1/messages?beta=true",
    }
    answered = {
        "headers": [[b"Content-Encoding", b"gzip"]],
        "content": gzip.compress(json.dumps(answer).encode()),
        "timestamp_start": at + 1.5,
        "status_code": 200,
    }
    meta = {"version": 21, "type": "http", "id": "f", "error": None, "intercepted": False}
    return {**meta, "request": {**asked, **request}, "response": answered, "websocket": None, "backup": None}


def dump(folder: Path, *flows: Any, end: bytes = b"") -> Path:
    path = folder / "flows"
    path.write_bytes(b"".join(map(packed, flows)) + end)
    return path


def fail_on_note(note: str) -> None:
    pytest.fail(f"said without need: {note}")


def read(path: Path, warn: Callable[[str], None] = fail_on_note) -> list[Call]:
    return list(calls(path, warn))


def faults(path: Path) -> list[str]:
    with pytest.raises(InputError) as error:
        read(path)
    return [str(one).removeprefix(f"{path} ") for one in error.value.faults]


def test_calls_come_in_the_order_they_started(tmp_path: Path) -> None:
    path = dump(tmp_path, flow(START + 9), flow())
    assert sniff(path.read_bytes()) and sniff(path.read_bytes()[:60])
    first, second = read(path)
    assert (first.start, second.start) == (START, START + 9)
    assert (first.billed, first.first_token_s, first.host, first.session) == (USAGE, 1.5, "anthropic", "s1")
    assert [block.content for block in first.response] == ANSWER["content"]


def test_old_flows_have_bytes_where_new_ones_have_texts(tmp_path: Path) -> None:
    def old(value: Any) -> Any:
        if isinstance(value, dict):
            return {key.encode(): old(inner) for key, inner in value.items()}
        return value.encode() if isinstance(value, str) else value

    path = dump(tmp_path, old(flow()))
    assert sniff(path.read_bytes())
    assert read(path)[0].billed == USAGE


def test_without_a_host_header_the_address_tells(tmp_path: Path) -> None:
    path = dump(tmp_path, flow(headers=[], authority=b"api.anthropic.com:443"), flow(headers=[], host="openrouter.ai"))
    assert [call.host for call in read(path)] == ["anthropic", "openrouter"]


def test_a_packed_dump(tmp_path: Path) -> None:
    path = tmp_path / "flows.gz"
    path.write_bytes(gzip.compress(packed(flow())))
    assert read(path)[0].billed == USAGE


def test_what_is_left_out_and_what_is_not_told_is_said(tmp_path: Path) -> None:
    hung_up, streamed, failed = {**flow(), "response": None}, flow(), flow()
    streamed["response"]["content"] = None
    failed["response"]["status_code"] = 529
    said: list[str] = []
    path = dump(tmp_path, {**flow(), "type": "tcp"}, flow(method=b"GET"), hung_up, streamed, failed)
    assert [(call.status, call.billed) for call in read(path, said.append)] == [(200, None), (529, None)]
    assert said == [
        f"{path}: skipped 2 entries: not a model call",
        f"{path}: skipped 1 entry: no answer",
        f"{path}: 1 call whose answer has no usage",
    ]


@pytest.mark.parametrize("cut", [1, 100, -1])
def test_a_last_flow_that_is_cut_off_is_left_out_and_said(cut: int, tmp_path: Path) -> None:
    said: list[str] = []
    path = dump(tmp_path, flow(), end=packed(flow())[:cut])
    assert len(read(path, said.append)) == 1
    assert said == [f"{path}: skipped the last flow: incomplete (still being written?)"]


def test_every_fault_names_its_flow(tmp_path: Path) -> None:
    untimed, unnumbered = flow(timestamp_start="now"), flow()
    unnumbered["response"]["status_code"] = "ok"
    path = dump(
        tmp_path,
        flow(content=b"REDACTED"),
        untimed,
        unnumbered,
        flow(content="text"),
        flow(headers=[1]),
        7,
        flow(answer=[]),
    )
    assert faults(path) == [
        "flows[0].request.content: expected JSON; got 'REDACTED'",
        "flows[1].request.timestamp_start: expected a number from 0; got 'now'",
        "flows[2].response.status_code: expected a whole number from 0; got 'ok'",
        "flows[3].request.content: expected bytes; got 'text'",
        "flows[4].request.headers: expected an array of names and values; got an array",
        "flows[5]: expected an object; got 7",
        "flows[6].response.content: expected a JSON object; got an array",
    ]


def test_after_damage_nothing_can_be_read(tmp_path: Path) -> None:
    path = dump(tmp_path, flow(content=b"REDACTED"), end=b"x" + packed(flow()))
    at = len(packed(flow(content=b"REDACTED")))
    assert faults(path) == [
        "flows[0].request.content: expected JSON; got 'REDACTED'",
        f"damaged flows: expected a length at byte {at}; the rest of the file cannot be read",
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"3:abc?", "a value that does not match its type at byte 2"),
        (b"3:abc#", "a value that does not match its type at byte 2"),
        (b"1:\xff;", "a value that does not match its type at byte 2"),
        (b"2:no!", "a value that does not match its type at byte 2"),
        (b"1:x~", "a value that does not match its type at byte 2"),
        (b"5:9:ab,]", "a length beyond the end of its value at byte 2"),
        (b"4:1:ab]", "a value that does not match its type at byte 4"),
        (b"9:1:a,]", "an incomplete value at byte 0"),
        (b"3:1:a]", "a length beyond the end of its value at byte 2"),
        (b"4:-1:a]", "expected a length at byte 2"),
        (b"4:aaaa]", "expected a length at byte 2"),
        (b"4:1:a;}", "expected pairs of keys and values at byte 2"),
        (b"8:1:1#1:1#}", "expected pairs of keys and values at byte 2"),
        (b"-1:,", "expected a length at byte 0"),
        (b"1234567890123:a,", "expected a length at byte 0"),
        (b"12", "an incomplete length at byte 0"),
    ],
)
def test_damaged_values(data: bytes, message: str) -> None:
    with pytest.raises(DamagedNetstring) as error:
        list(values(BytesIO(data)))
    assert str(error.value) == message


def test_values_of_each_type() -> None:
    value = {"a": [1, -2.5, None, True, False, b"\xff", "é", {}], "b": {"c": []}}
    assert list(values(BytesIO(packed(value) + packed(7)))) == [value, 7]


def test_depth_and_length_are_bounded() -> None:
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(DamagedNetstring, match="nested too deeply"):
        list(values(BytesIO(packed(deep))))
    tracemalloc.start()
    with pytest.raises(DamagedNetstring, match="incomplete value"):
        list(values(BytesIO(b"999999999999:abc,")))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize(
    "data",
    [
        b'{"request": {}}\n',
        b"12:hello world!,",
        b"7:version;2:21#",
        b'["7:version;"]',
        b"interactions:\n- request:\n",
        b"",
    ],
)
def test_other_formats_are_not_taken_for_flows(data: bytes) -> None:
    assert sniff(data) is None
