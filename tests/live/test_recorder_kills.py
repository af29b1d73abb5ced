"""Killed at any moment, recorder and server lose no call that ended 100 ms before, and what they print is true.

In every mode, on a disk with room and on one that fills up meanwhile; the recorder's other process is killed, too.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from recorder_upstream import (
    STREAM,
    Running,
    Seen,
    body,
    chunk,
    events,
    message,
    plain,
    recorder,
    send,
    send_again,
    server,
    upstream_thread,
    usage,
)

from cachecost.conversations.readers.detect import read_calls
from slow_cases import mostly_slow

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds processes in /proc")
HEADERS = [(b"x-api-key", b"sk-ant-api03-planted-key-1"), (b"anthropic-version", b"2023-06-01")]
WIDTH = 4
"""Workers that call at once."""
LATE_S = 0.1
"""What ended so long before a kill is in the file, on a machine that wakes its processes in time."""
DISK = "40k"
MODES = {
    "keep": ["--content", "keep"],
    "keep, quiet": ["--content", "keep", "--quiet"],
    "digest": ["--content", "digest"],
    "digest, quiet": ["--content", "digest", "--quiet"],
    "serve": [],
}
NOT_RECORDED = "is not recorded: "
COUNTED = re.compile(r"(\d+) calls? (?:is|are) not recorded: .* cannot be written$")
REPLACED = "exited early"
WAITS = "cannot be written: No space left on device; ended calls are kept in memory until it can be"


@dataclass
class Traffic:
    """Calls by number, with the time when the client saw the end of each.

    `delay_s` is the longest time by which this process was woken too late: how busy the machine is.
    """

    ended: dict[int, float] = field(default_factory=dict)
    number: int = 0
    delay_s: float = 0.0

    async def load(self, port: int, keep_alive: bool = False) -> None:
        """So many calls at once, until nobody answers."""

        async def worker() -> None:
            with suppress(OSError):
                if keep_alive:
                    async for got in send_again(port, HEADERS, self._bodies()):
                        self.ended[got] = time.monotonic()
                while not keep_alive and await self._call(port):
                    pass

        await asyncio.gather(*(worker() for _ in range(WIDTH)))

    def _bodies(self) -> Iterator[tuple[int, bytes]]:
        while True:
            self.number += 1
            yield self.number, body(f"call {self.number}", stream=self.number % 2 == 0)

    async def _call(self, port: int) -> bool:
        number, sent = next(self._bodies())
        got = await send(port, headers=HEADERS, pieces=[sent])
        if got is None or not got.is_whole:
            return False
        self.ended[number] = time.monotonic()
        return True

    async def until(self, calls: int, seconds: float = math.inf) -> None:
        """Wait until so many more have ended, or for so many seconds."""
        enough, latest = len(self.ended) + calls, time.monotonic() + seconds
        while len(self.ended) < enough and time.monotonic() < latest:
            before = time.monotonic()
            await asyncio.sleep(0.001)
            self.delay_s = max(self.delay_s, time.monotonic() - before - 0.001)


async def answers_with_its_number(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """The bill of a call is its number, by which it is recognized in a recording without content."""
    told = json.loads(seen.body)
    bill = usage(plain=int(told["messages"][0]["content"].split()[1]))
    if told["stream"]:
        writer.write(STREAM + b"".join(map(chunk, events(bill=bill))) + b"0\r\n\r\n")
    else:
        writer.write(plain(message(usage=bill)))
    await writer.drain()


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A disk that is soon full; skipped where none can be mounted."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("cannot mount a small disk here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@dataclass
class Trial:
    """One process under traffic, with its kills. `kills` counts all processes that were killed."""

    mode: str
    folder: Path
    dice: random.Random
    kills: int = 0
    traffic: Traffic = field(default_factory=Traffic)

    def round(self, url: str) -> None:
        """Start, kill the other process a few times, then kill this one, or end it and compare what it prints."""
        before, self.traffic.delay_s = self.recorded(), 0.0
        running = self._start(url)
        killed_at, is_killed = asyncio.run(self._under_load(running))
        code, said = running.ended()
        found = self.recorded()
        in_time = killed_at - LATE_S - 2 * self.traffic.delay_s
        lost = {n for n, at in self.traffic.ended.items() if at < in_time} - set(found)
        assert len(found) == len(set(found))
        assert not lost or self._are_said(said, lost), (
            len(lost),
            min(lost, default=0),
            len(self.traffic.ended),
            found[-3:],
            said[-4:],
        )
        if not is_killed:
            printed = re.search(r"^(\d+) calls? recorded", "\n".join(said), re.MULTILINE)
            assert printed, said
            assert int(printed[1]) == len(found) - len(before), (said, len(found), len(before))
            missing = [n for n in self.traffic.ended if n not in found]
            assert code == (1 if missing else 0), (missing, said)
        self._forget(found)

    def _start(self, url: str) -> Running:
        path = self.folder / "r.jsonl"
        if self.mode == "serve":
            return server(path)
        return recorder(url, path, *MODES[self.mode])

    async def _under_load(self, running: Running) -> tuple[float, bool]:
        load = asyncio.ensure_future(self.traffic.load(running.port))
        helpers = 0 if self.mode in ("serve", "keep, quiet") else 1
        for _ in range(self.dice.randint(0, helpers)):
            await self.traffic.until(self.dice.randrange(1, 20))
            await self._kill_helper(running)
        await self.traffic.until(self.dice.randrange(40))
        is_killed = self.dice.random() < 0.7
        killed_at = time.monotonic()
        running.process.send_signal(signal.SIGKILL if is_killed else signal.SIGINT)
        self.kills += is_killed
        await load
        return (killed_at if is_killed else time.monotonic() + 1), is_killed

    async def _kill_helper(self, running: Running) -> None:
        """Kill the other process, and wait until this one knows."""
        known = running.count(REPLACED)
        os.kill(running.helper, signal.SIGKILL)
        self.kills += 1
        while running.count(REPLACED) == known:
            await asyncio.sleep(0.001)
        await asyncio.sleep(LATE_S)

    def _are_said(self, said: list[str], lost: set[int]) -> bool:
        """Each call; without content, that calls wait for the disk, or how many did when all was killed."""
        if "digest" in self.mode and any(WAITS in line for line in said):
            return True
        counts = [int(found[1]) for line in said if (found := COUNTED.match(line))]
        return sum(NOT_RECORDED in line for line in said) + sum(counts) >= len(lost)

    def recorded(self) -> list[int]:
        """The calls in the files, by number. Every file can be read."""
        files = sorted(self.folder.glob("*.jsonl"))
        if self.mode == "serve":
            lines = (line for path in files for line in path.read_bytes().splitlines(keepends=True))
            read = sum(len(list(read_calls(path))) for path in files if path.stat().st_size)
            whole = [json.loads(line) for line in lines if line.endswith(b"\n")]
            assert read == len(whole)
            return [int(one["request"]["messages"][0]["content"].split()[1]) for one in whole]
        calls = (call for path in files if path.stat().st_size for call in read_calls(path))
        return [call.billed.input_tokens for call in calls if call.billed]

    def _forget(self, found: list[int]) -> None:
        """Half of the time the next round goes on in the same folder."""
        for number in set(self.traffic.ended) - set(found):
            del self.traffic.ended[number]
        if self.dice.random() < 0.5:
            self.traffic.ended.clear()
            for path in self.folder.iterdir():
                path.unlink()


def kill_all(mode: str, keep_alive: bool, path: Path, url: str, seconds: float) -> tuple[int, int]:
    """The recorder and its other process are killed so long after they started: calls that had ended by then, and how
    many of them are lost.
    """
    running, traffic = recorder(url, path, *MODES[mode]), Traffic()
    children = [] if mode == "keep, quiet" else [running.helper]

    async def under_load() -> float:
        load = asyncio.ensure_future(traffic.load(running.port, keep_alive))
        await traffic.until(sys.maxsize, seconds)
        killed_at = time.monotonic()
        for process in (running.process.pid, *children):
            os.kill(process, signal.SIGKILL)
        await load
        return killed_at

    in_time = asyncio.run(under_load()) - LATE_S - 2 * traffic.delay_s
    running.ended()
    found = {call.billed.input_tokens for call in read_calls(path) if call.billed} if path.stat().st_size else set()
    ended = {number for number, at in traffic.ended.items() if at < in_time}
    path.unlink()
    return len(ended), len(ended - found)


@pytest.mark.slow
@pytest.mark.parametrize("keep_alive", [False, True])
@pytest.mark.parametrize("mode", ["keep", "digest"])
def test_both_killed_soon_after_the_start_nothing_is_lost(mode: str, keep_alive: bool, tmp_path: Path) -> None:
    with upstream_thread(answers_with_its_number) as api:
        url = f"http://127.0.0.1:{api.port}"
        found = [kill_all(mode, keep_alive, tmp_path / "r.jsonl", url, seconds) for seconds in (0.4, 1.5)]
    assert any(ended for ended, _ in found) and not any(lost for _, lost in found), found


@pytest.mark.long
@pytest.mark.parametrize("keep_alive", [False, True])
@pytest.mark.parametrize("mode", ["keep", "keep, quiet", "digest", "digest, quiet"])
def test_both_killed_at_any_moment_nothing_is_lost(mode: str, keep_alive: bool, tmp_path: Path) -> None:
    """300 times in all, within three seconds of the start."""
    dice, sums = random.Random(f"{mode} {keep_alive}"), [0, 0]
    with upstream_thread(answers_with_its_number) as api:
        for _ in range(int(os.environ.get("KILLS", "300")) // 8):
            url = f"http://127.0.0.1:{api.port}"
            found = kill_all(mode, keep_alive, tmp_path / "r.jsonl", url, dice.uniform(0, 3))
            sums = [one + more for one, more in zip(sums, found, strict=True)]
    assert sums[0] and not sums[1], sums


def trial(mode: str, is_small: bool, folder: Path, seed: int, kills: int) -> None:
    """Rounds until so many processes were killed."""
    made = Trial(mode, folder, random.Random(f"{seed} {mode} {is_small}"))
    with upstream_thread(answers_with_its_number) as api:
        while made.kills < kills:
            made.round(f"http://127.0.0.1:{api.port}")


@pytest.mark.parametrize(("mode", "kills"), mostly_slow([("digest", 3), ("keep", 3), ("serve", 1)], 1))
def test_killed_a_few_times_nothing_is_lost(mode: str, kills: int, tmp_path: Path) -> None:
    trial(mode, False, tmp_path, 1, kills)


@pytest.mark.parametrize(("mode", "kills"), mostly_slow([("keep, quiet", 1), ("digest, quiet", 2)], 1))
def test_killed_on_a_disk_that_fills_up_nothing_is_lost_unsaid(mode: str, kills: int, tmp_path: Path) -> None:
    with small_disk(tmp_path):
        trial(mode, True, tmp_path, 1, kills)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_small", [False, True])
def test_killed_a_thousand_times_nothing_is_lost_unsaid(mode: str, is_small: bool, tmp_path: Path) -> None:
    """A hundred kills for each mode and disk."""
    kills = int(os.environ.get("KILLS", "100"))
    with small_disk(tmp_path) if is_small else nullcontext():
        trial(mode, is_small, tmp_path, 2, kills)
