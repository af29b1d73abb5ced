"""How long a status line and a hook take, beside a Python that does nothing.

    python benchmarks/statusline_speed.py [--runs 200] [--megabytes 5 50]

A transcript of each size is made of sessions of sessions.py, as one session. Whole processes in turns: the same
transcript again, one that has grown by a call since (the line that Claude Code waits for after each call), and one that
was never seen. Shown are p50 and p99 of the wall time in milliseconds, and the least processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sessions import write_sessions

MIB = 1 << 20
UUIDS = re.compile(rb'"(uuid|parentUuid|id|requestId)":"([^"]+)"')
SESSION = re.compile(rb'"sessionId":"[^"]+"')


@dataclass(frozen=True, slots=True)
class Timing:
    """Wall and processor seconds of one process."""

    wall: float
    processor: float


def make_transcript(folder: Path, megabytes: int) -> Path:
    """One transcript of so many megabytes: sessions behind each other, as one session whose records are all new."""
    source = folder / "sessions"
    if not source.exists():
        write_sessions(source, sessions=20, megabytes=22)
    path = folder / f"{megabytes}.jsonl"
    parts = sorted(source.rglob("*.jsonl"))
    with path.open("wb") as stream:
        number = 0
        while stream.tell() < megabytes * MIB:
            text = SESSION.sub(b'"sessionId":"one"', parts[number % len(parts)].read_bytes())
            mark = b'"\\1":"%d-\\2"' % number
            stream.write(UUIDS.sub(mark, text))
            number += 1
    return path


def run(words: Sequence[str], text: str, cache: Path) -> Timing:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    environment.pop("CACHECOST_STORE", None)
    subprocess.run([sys.executable, *words], input=text.encode(), check=True, capture_output=True, env=environment)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Timing(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure(runs: int, words: Sequence[str], text: str, cache: Path, prepare: Callable[[], None]) -> list[Timing]:
    found = []
    for _ in range(runs):
        prepare()
        found.append(run(words, text, cache))
    return found


def show(name: str, timings: Sequence[Timing]) -> None:
    walls = sorted(one.wall * 1000 for one in timings)
    middle, late = walls[len(walls) // 2], walls[min(len(walls) - 1, int(len(walls) * 0.99))]
    least = min(one.processor for one in timings) * 1000
    print(f"{name:34}  {middle:7.1f}  {late:7.1f}  {walls[0]:7.1f}  {least:9.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="The speed of the status line.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[5, 50])
    asked = parser.parse_args()
    print(
        f"{'milliseconds of ' + str(asked.runs) + ' runs':34}  {'p50':>7}  {'p99':>7}  {'least':>7}  {'processor':>9}"
    )
    with tempfile.TemporaryDirectory() as named:
        folder = Path(named)
        cache = folder / "cache"
        show("python -c pass", measure(asked.runs, ["-c", "pass"], "", cache, lambda: None))
        for megabytes in asked.megabytes:
            measure_transcript(make_transcript(folder, megabytes), asked.runs, cache, f"{megabytes} MB")


def measure_transcript(path: Path, runs: int, cache: Path, name: str) -> None:
    """The lines of one transcript: as it was, grown by a call, and never seen."""
    line, hook = ["-m", "cachecost", "statusline"], ["-m", "cachecost", "hook"]
    text = json.dumps({"transcript_path": str(path), "session_id": "one", "model": {"id": ""}})
    ask = json.dumps({"transcript_path": str(path), "hook_event_name": "UserPromptSubmit", "prompt": "Go on."})
    whole = path.read_bytes()
    last = next(one for one in reversed(whole.splitlines(keepends=True)) if b'"usage"' in one)
    calls = iter(range(10**9))

    def grow() -> None:
        number = next(calls)
        with path.open("ab") as stream:
            stream.write(UUIDS.sub(b'"\\1":"more%d-\\2"' % number, last))

    def forget() -> None:
        for file in cache.rglob("*.session"):
            file.unlink()

    run(line, text, cache)
    show(f"{name}: as it was", measure(runs, line, text, cache, lambda: None))
    show(f"{name}: grown by a call", measure(runs, line, text, cache, grow))
    show(f"{name}: hook", measure(runs, hook, ask, cache, lambda: None))
    show(f"{name}: never seen", measure(max(3, runs // 20), line, text, cache, forget))


if __name__ == "__main__":
    main()
