"""The page of `cachecost record`, of a recorder in a process of its own."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from recorder_upstream import NotStarted, Running, Upstream, recorder, send, until, upstream_thread
from test_recorder_command import KEY, at, marked

from cachecost.conversations.readers.call_recording import RecordingLines
from cachecost.conversations.readers.detect import read_calls
from cachecost.live.recorder.writing import DigestFile

ADDRESS = re.compile(r"the calls so far: http://127\.0\.0\.1:(\d+)(/[\w-]{22}/)")


@pytest.fixture
def api() -> Any:
    with upstream_thread() as made:
        yield made


def call(running: Running, *bodies: bytes) -> None:
    async def go() -> None:
        for one in bodies:
            await send(running.port, target=b"/v1/messages", headers=[(b"x-api-key", KEY.encode())], pieces=[one])

    asyncio.run(go())


def page_of(running: Running) -> tuple[int, str]:
    """Its port and where it begins."""

    def lines() -> str:
        return "\n".join([*running.first, *(line.decode() for line in list(running._lines))])

    until(lambda: ADDRESS.search(lines()) is not None)
    found = ADDRESS.search(lines())
    assert found
    return int(found[1]), found[2]


def get(page: tuple[int, str], path: str) -> Any:
    connection = HTTPConnection("127.0.0.1", page[0], timeout=20)
    try:
        connection.request("GET", f"{page[1]}api/{path}")
        answer = connection.getresponse()
        return json.loads(answer.read()) if answer.status == 200 else answer.status
    finally:
        connection.close()


def shown(page: tuple[int, str]) -> int:
    return int(get(page, "sessions")["total"]["calls"])


def test_the_page_shows_billed_calls_as_they_come(api: Upstream, tmp_path: Path) -> None:
    running = recorder(at(api), tmp_path / "r.jsonl", "--page", "0", "--quiet")
    page = page_of(running)
    assert get(page, "start")["kind"] == "live"
    assert shown(page) == 0
    call(running, marked(), marked("Yes", "And then?"))
    until(lambda: shown(page) == 2)
    (row,) = get(page, "sessions")["sessions"]
    answer, recorded = get(page, f"session/{row['id']}"), list(read_calls(tmp_path / "r.jsonl"))
    assert row["title"].startswith("The first words of a long text.")
    assert answer["has_bill"] and answer["has_text"]
    billed = [one.billed for one in recorded if one.billed]
    assert answer["calls"]["read"] == [usage.read for usage in billed]
    assert answer["calls"]["output"] == [usage.output_tokens for usage in billed]
    blocks = get(page, f"session/{row['id']}/call/2")["blocks"]
    assert any(block["text"] == "And then?" for block in blocks)
    code, said = running.stop()
    assert code == 0
    assert not any(line.startswith("call ") for line in said)


def test_a_recording_without_content_shows_sizes_and_digests(api: Upstream, tmp_path: Path) -> None:
    running = recorder(at(api), tmp_path / "r.jsonl", "--page", "0", "--content", "digest")
    page = page_of(running)
    call(running, marked(), marked("Yes", "And then?"))
    until(lambda: shown(page) == 2)
    (row,) = get(page, "sessions")["sessions"]
    answer = get(page, f"session/{row['id']}/call/2")
    assert (row["title"], answer["has_text"]) == ("", False)
    real = [block for block in answer["blocks"] if block["kind"] != "hidden"]
    assert len(real) == 3 and all(block["size"] and block["digest"] and not block["text"] for block in real)
    assert [block["change"] for block in real] == ["same", "new", "new"]
    (path,) = tmp_path.glob("r*.jsonl")
    assert real[0]["digest"] in path.read_text()
    assert running.stop()[0] == 0


def test_earlier_calls_of_the_file_are_there_too(api: Upstream, tmp_path: Path) -> None:
    running = recorder(at(api), tmp_path / "r.jsonl")
    call(running, marked())
    until(lambda: running.said("^call 1 "))
    running.stop()
    running = recorder(at(api), tmp_path / "r.jsonl", "--page", "0")
    page = page_of(running)
    assert shown(page) == 1
    call(running, marked("Yes", "And then?"))
    until(lambda: shown(page) == 2)
    assert running.stop()[0] == 0


def test_events_reach_the_page_and_end_with_the_recorder(api: Upstream, tmp_path: Path) -> None:
    running = recorder(at(api), tmp_path / "r.jsonl", "--page", "0")
    port, path = page_of(running)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as stream:
        stream.sendall(f"GET {path}api/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        got = b""

        def read_until(wanted: bytes) -> None:
            nonlocal got
            while wanted not in got:
                more = stream.recv(1 << 16)
                assert more, f"the stream ended after {got!r}"
                got += more

        read_until(b": cachecost")
        call(running, marked())
        read_until(b"event: calls")
        assert b"event: sessions" in got
        assert running.stop()[0] == 0
        while stream.recv(1 << 16):
            pass


def test_a_port_that_is_taken_is_an_error(api: Upstream, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(NotStarted) as found:
        recorder(at(api), tmp_path / "r.jsonl", "--page", str(taken.getsockname()[1]))
    assert found.value.code == 2
    assert "--page " in "".join(found.value.said) and "is not available" in "".join(found.value.said)


def test_lines_are_read_as_they_are_written(api: Upstream, tmp_path: Path) -> None:
    running = recorder(at(api), tmp_path / "r.jsonl")
    call(running, marked(), marked("Yes", "And then?"))
    until(lambda: running.said("^call 2 "))
    running.stop()
    written = list(read_calls(tmp_path / "r.jsonl"))
    file, lines = DigestFile(tmp_path / "bare.jsonl", bytes(32)), RecordingLines(tmp_path / "bare.jsonl")
    read = [one for number, call_ in enumerate(written) for one in lines.read(file.add(number, call_))]
    file.write()
    whole = list(read_calls(tmp_path / "bare.jsonl"))
    assert [one.line for one in read] == [one.line for one in whole]
    assert [one.billed for one in read] == [one.billed for one in whole] == [one.billed for one in written]
    assert [one.request.thread.length for one in read] == [one.request.thread.length for one in whole]
