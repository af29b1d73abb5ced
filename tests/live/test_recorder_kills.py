"""Killed at any moment, the recorder loses at most the calls in flight, and the file reads."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest
from recorder_upstream import Running, Upstream, body, recorder, send, upstream_thread

from cachecost.conversations.readers.detect import read_calls

SIGNED = [(b"x-api-key", b"sk-ant-api03-planted-key-1")]
WIDTH = 8
"""Workers that call at once."""


async def load(port: int, turn: int, done: list[str], width: int) -> None:
    """Calls without an end, so many at a time; `done` has the texts of those whose end the client saw."""

    async def one(worker: int) -> None:
        for number in range(10**6):
            text = f"{turn}:{worker}:{number}"
            try:
                got = await send(port, headers=SIGNED, pieces=[body(text, stream=number % 2 == 0)])
            except OSError:
                return
            if got is None or not got.is_whole:
                return
            done.append(text)

    await asyncio.gather(*(one(worker) for worker in range(width)))


async def until_killed(running: Running, turn: int, done: list[str], calls: int) -> None:
    under_load = asyncio.ensure_future(load(running.port, turn, done, WIDTH))
    while len(done) < calls:
        await asyncio.sleep(0.001)
    running.process.kill()
    await under_load


def killed(path: Path, times: int, seed: int) -> None:
    with upstream_thread() as api:
        killed_under_load(api, path, times, seed)


def killed_under_load(api: Upstream, path: Path, times: int, seed: int) -> None:
    """Kill a recorder at random moments under load: all but the calls in flight are in a file that reads.

    A call is in flight until its line is written, some milliseconds after its last byte. So of the calls that a worker
    saw to their end, the last ones may be missing, and no other.
    """
    dice = random.Random(seed)
    kept = 0
    for turn in range(times):
        running, done = recorder(f"http://127.0.0.1:{api.port}", path, "--quiet"), list[str]()
        asyncio.run(until_killed(running, turn, done, dice.randrange(60)))
        running.kill()
        lines = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        found = {str(json.loads(line)["request"]["messages"][0]["content"]) for line in lines}
        lost = [text for text in done if text not in found]
        assert len(lost) <= WIDTH
        assert lost == done[len(done) - len(lost) :] or len({text.split(":")[1] for text in lost}) == len(lost)
        kept += len(done) - len(lost)
        assert not lines or len(list(read_calls(path, "request-log"))) == len(lines) >= kept
    assert kept > 0


def test_killed_five_times_it_loses_no_more_than_what_was_in_flight(tmp_path: Path) -> None:
    killed(tmp_path / "r.jsonl", 5, seed=1)


@pytest.mark.slow
def test_killed_fifty_times_it_loses_no_more_than_what_was_in_flight(tmp_path: Path) -> None:
    killed(tmp_path / "r.jsonl", 50, seed=2)
