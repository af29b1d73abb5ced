"""Many streams at once, signals while calls run, and what the way through the recorder costs in time."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from recorder_upstream import (
    STREAM,
    Got,
    Running,
    Seen,
    body,
    chunk,
    events,
    recorder,
    send,
    until,
    upstream_thread,
    usage,
)

from cachecost.conversations.readers.detect import read_calls
from slow_cases import mostly_slow

MANY = 200


@pytest.mark.slow
def test_two_hundred_streams_at_once_without_an_error_or_a_lost_record(tmp_path: Path) -> None:
    """None ends before all have begun, the first ends last, and the file has the order of starts."""
    begun: list[str] = []
    ended: list[Got | None] = []
    dice = random.Random(200)

    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        text = json.loads(seen.body)["messages"][0]["content"]
        begun.append(text)
        first, *rest = events(f"answer to {text}", usage(0, 0, int(text) + 1))
        writer.write(STREAM + chunk(first))
        while len(begun) < MANY:
            await asyncio.sleep(0.005)
        for event in rest:
            writer.write(chunk(event))
            await asyncio.sleep(dice.uniform(0.0, 0.03))
        while text == begun[0] and len(ended) < MANY - 1:
            await asyncio.sleep(0.005)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def all_at_once(port: int) -> list[Got | None]:
        async def one_of(number: int) -> Got | None:
            ended.append(await send(port, pieces=[body(str(number), stream=True)]))
            return ended[-1]

        return await asyncio.gather(*map(one_of, range(MANY)))

    with upstream_thread(answering) as made:
        running = recorder(f"http://127.0.0.1:{made.port}", tmp_path / "r.jsonl")
        got = asyncio.run(all_at_once(running.port))
        until(lambda: running.said(f"^call {MANY} "))
        code, said = running.stop()
    for number, one in enumerate(got):
        assert one
        assert one.is_whole
        assert one.body == b"".join(events(f"answer to {number}", usage(0, 0, number + 1)))
    recorded = list(read_calls(tmp_path / "r.jsonl"))
    assert code == 0
    assert sorted(call.billed.input_tokens for call in recorded if call.billed) == list(range(1, MANY + 1))
    assert [call.start for call in recorded] == sorted(call.start for call in recorded)
    assert [line.split()[1] for line in said if line.startswith("call ")] == [str(n + 1) for n in range(MANY)]
    assert f"{tmp_path / 'r.jsonl'}: calls sorted by start time" in said


async def gets_in(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


def running_call(running: Running, signs: int, go_on: asyncio.Event, is_begun: asyncio.Event) -> Got | None:
    """A stream that has begun when so many signals come."""

    async def go() -> Got | None:
        call = asyncio.ensure_future(send(running.port, pieces=[body(stream=True)]))
        await asyncio.to_thread(until, is_begun.is_set)
        for _ in range(signs):
            running.process.send_signal(signal.SIGINT)
            await asyncio.sleep(0.05)
        if signs == 1:
            while await gets_in(running.port):
                await asyncio.sleep(0.01)
            go_on.set()
        return await call

    return asyncio.run(go())


@pytest.mark.parametrize("signs", mostly_slow([2, 1], 1))
def test_the_first_signal_lets_running_calls_end_and_the_second_cuts_them(tmp_path: Path, signs: int) -> None:
    go_on, is_begun = asyncio.Event(), asyncio.Event()

    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        first, *rest = events()
        writer.write(STREAM + chunk(first))
        is_begun.set()
        while not go_on.is_set():
            await asyncio.sleep(0.005)
        writer.write(b"".join(map(chunk, rest)) + b"0\r\n\r\n")
        await writer.drain()

    with upstream_thread(answering) as made:
        running = recorder(f"http://127.0.0.1:{made.port}", tmp_path / "r.jsonl")
        got = running_call(running, signs, go_on, is_begun)
        code, said = running.ended()
        go_on.set()
    assert code == 0
    assert got
    assert got.is_whole == (signs == 1)
    line = json.loads((tmp_path / "r.jsonl").read_bytes())
    assert line.get("cut", False) == (signs == 2)
    assert line["usage"]["input_tokens"] == 3
    assert f"1 call recorded in {tmp_path / 'r.jsonl'}" in said


LARGE = 100 << 20


async def answers_much(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """More than all buffers on the way hold."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % LARGE)
    for _ in range(LARGE >> 16):
        writer.write(bytes(1 << 16))
        await writer.drain()


def test_a_second_signal_ends_a_recorder_whose_client_does_not_read(tmp_path: Path) -> None:
    asked = body()
    with upstream_thread(answers_much) as made:
        running = recorder(f"http://127.0.0.1:{made.port}", tmp_path / "r.jsonl")
        with socket.create_connection(("127.0.0.1", running.port)) as client:
            client.sendall(
                b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(asked), asked)
            )
            assert client.recv(1)
            running.process.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                running.process.wait(0.5)
            code, said = running.stop(signal.SIGTERM)
    assert f"1 call recorded in {tmp_path / 'r.jsonl'}" in said
    assert code == 0


@pytest.mark.parametrize("content", mostly_slow(["digest", "keep"], 1))
def test_a_second_signal_does_not_wait_for_the_predictions(tmp_path: Path, content: str) -> None:
    """The other process hangs; the recorder has written all calls by itself."""
    path = tmp_path / "r.jsonl"
    with upstream_thread() as made:
        running = recorder(f"http://127.0.0.1:{made.port}", path, "--content", content)
        os.kill(running.helper, signal.SIGSTOP)
        for number in range(3):
            asyncio.run(send(running.port, pieces=[body(str(number))]))
        running.process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            running.process.wait(0.7)
        code, said = running.stop(signal.SIGTERM)
    assert len(list(read_calls(path))) == 3
    assert f"3 calls recorded in {path}" in said
    assert code == 0
