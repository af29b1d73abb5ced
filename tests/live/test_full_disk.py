"""A disk that takes no more: traffic goes on, files stay whole, and the end says truly what they hold."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from driver_fake import FakeApi, FakeClock, driven, journal_of, small_plan
from recorder_upstream import body, recorder, send, until, upstream_thread
from server_fakes import BODY, HEAD, Letters, lines_of, post, served_by

from cachecost.conversations.readers.detect import read_calls
from cachecost.conversations.readers.request_log import calls
from cachecost.live import request_log
from cachecost.live.driver.sending import read_journal
from cachecost.live.recorder.writing import DigestFile
from cachecost.live.request_log import CallLog, lines_in
from slow_cases import mostly_slow

REQUEST = json.dumps(BODY).encode()
SIGNED = [(b"x-api-key", b"sk-ant-api03-planted-key-1")]
SERVE = """
import resource, sys
sys.dont_write_bytecode = True  # or compiled modules are cut off, too, and no later process can read them
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
from cachecost.cli import main
main()
"""


def quota(left: int) -> Callable[[int, bytes], int]:
    """`os.write` on a disk with so many bytes left: it writes what fits, then nothing."""
    write = os.write

    def written(file: int, data: bytes) -> int:
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = write(file, data[:left])
        left -= done
        return done

    return written


@pytest.mark.parametrize("left", [0, 100, 300, 700, 2_000, 5_000, 9_000])
def test_a_live_run_stops_where_the_disk_is_full_and_goes_on_later(
    left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, api = small_plan(), FakeApi(FakeClock())
    with journal_of(plan, tmp_path):
        pass
    monkeypatch.setattr(request_log.os, "write", quota(left))
    full = driven(plan, api, tmp_path)
    monkeypatch.undo()
    assert re.fullmatch(
        r"stopped at progressive/\d: \S+\.jsonl cannot be written: No space left on device", full.ended.why
    )
    assert full.ended.undone and full.billed <= api.billed <= full.billed + full.unknown
    assert len(lines_of(full.recording)) == len(read_journal(full.journal).done)
    rest = driven(plan, api, tmp_path)
    assert not rest.ended.undone and rest.billed <= api.billed <= rest.billed + rest.unknown


def test_what_did_not_fit_is_cut_off_before_anything_else_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CallLog(tmp_path / "log.jsonl") as log:
        log.append({"timestamp": "2026-03-07T10:00:00Z"}, REQUEST)
        whole = log.path.read_bytes()
        monkeypatch.setattr(request_log.os, "write", quota(70))
        with pytest.raises(OSError, match="No space left"):
            log.append({"timestamp": "2026-03-07T10:00:01Z"}, REQUEST)
        assert log.path.read_bytes() == whole
        monkeypatch.undo()
        log.append({"timestamp": "2026-03-07T10:00:02Z"}, REQUEST)
        assert log.count_recorded() == 2
    assert [line["timestamp"][17:19] for line in lines_of(log.path)] == ["00", "02"]


def test_a_cut_that_failed_is_made_before_the_next_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(file: int, size: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with CallLog(tmp_path / "log.jsonl") as log:
        with monkeypatch.context() as patched:
            patched.setattr(request_log.os, "write", quota(70))
            patched.setattr(request_log.os, "ftruncate", fails)
            with pytest.raises(OSError, match="No space left"):
                log.append({"timestamp": "2026-03-07T10:00:01Z"}, REQUEST)
            with pytest.raises(OSError, match="Input/output"):
                log.append({"timestamp": "2026-03-07T10:00:01Z"}, REQUEST)
        assert log.path.stat().st_size == 70
        log.append({"timestamp": "2026-03-07T10:00:02Z"}, REQUEST)
        assert len(lines_of(log.path)) == log.count_recorded() == 1


def test_only_what_is_still_there_is_recorded(tmp_path: Path) -> None:
    with CallLog(tmp_path / "log.jsonl") as log:
        log.append({}, REQUEST)
        assert log.count_recorded() == 1
        log.path.unlink()
        assert log.count_recorded() == 0


@pytest.mark.parametrize("content", mostly_slow(["keep", "digest"], 1))
def test_the_recorder_on_a_full_disk(tmp_path: Path, content: str) -> None:
    path = tmp_path / "r.jsonl"
    with upstream_thread() as api:
        most_bytes = {"keep": 20_000, "digest": 8_000}[content]
        running = recorder(f"http://127.0.0.1:{api.port}", path, "--content", content, most_bytes=most_bytes)

        async def go() -> list[int]:
            bodies = [body(f"{number} {'words ' * 200}") for number in range(55)]
            return [got.status for one in bodies if (got := await send(running.port, headers=SIGNED, pieces=[one]))]

        assert asyncio.run(go()) == [200] * 55
        until(lambda: running.said("^call 5 .*predicted"))
        code, said = running.stop()
    recorded = len(list(read_calls(path)))
    assert 0 < recorded < 55
    assert path.read_bytes().endswith(b"\n")
    assert f"{recorded} calls recorded in {path}; {55 - recorded} not recorded (see above)" in said
    assert code == 1
    assert not any("exited early" in line or "Traceback" in line for line in said)
    assert any("File too large" in line for line in said)


def test_calls_that_waited_for_the_disk_are_written_when_it_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without content: what could not be written is kept."""
    with CallLog(tmp_path / "log.jsonl") as log:
        for number in range(4):
            log.append({"timestamp": f"2026-03-07T10:00:0{number}Z"}, body(f"call {number}"))
    sent = list(calls(log.path, lambda words: None, keep_content=True))
    path = tmp_path / "r.jsonl"
    file = DigestFile(path, bytes(32))
    file.add(1, sent[0])
    assert file.write() == path.stat().st_size
    assert file.unwritten == []
    with monkeypatch.context() as patched:
        patched.setattr(request_log.os, "write", quota(90))
        for number in (2, 3):
            file.add(number, sent[number - 1])
            with pytest.raises(OSError, match="No space left"):
                file.write()
            assert lines_in(path, prefix=b'{"call":') == 1
    file.add(4, sent[3])
    assert file.unwritten == [2, 3, 4]
    assert file.write() == path.stat().st_size
    assert file.unwritten == []
    assert len(list(read_calls(path))) == 4


def test_serve_on_a_full_disk_answers_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    with CallLog(tmp_path / "log.jsonl") as log:
        served = served_by(log=log, say=said.append)
        assert post(served).status_code == 200
        monkeypatch.setattr(request_log.os, "write", quota(10))
        assert post(served).status_code == 200
        assert said == ["call 2 is not recorded: the file cannot be written: No space left on device"]
        monkeypatch.undo()
        assert post(served).status_code == 200
        assert len(lines_of(log.path)) == log.count_recorded() == 2


def test_what_cannot_be_recorded_is_answered_and_billed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never billed and answered with status 500."""
    said, meter = [], Letters()
    with CallLog(tmp_path / "log.jsonl") as log:
        served = served_by(meters=meter, log=log, say=said.append)
        monkeypatch.setattr(log, "append", lambda *_: 1 // 0)
        assert post(served).status_code == 200
    assert len(meter.taken) == 1
    assert said == ["call 1 is not recorded: internal error: ZeroDivisionError"]


@pytest.mark.slow
def test_the_end_of_serve_tells_what_the_recording_lacks(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    command = [sys.executable, "-c", SERVE.format(3_000), "serve", "--port", "0", "--no-bill", "--record", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        begin = "".join(iter(process.stderr.readline, "Ctrl-C stops the server and prints the bill.\n"))
        found = re.search(r"http://127\.0\.0\.1:\d+", begin)
        assert found
        for _ in range(9):
            answer = httpx2.post(f"{found[0]}/v1/messages", headers=HEAD, json=BODY, trust_env=False)
            assert answer.status_code == 200
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
    recorded = len(lines_of(path))
    assert 0 < recorded < 9
    assert f"{recorded} calls recorded in {path}; {9 - recorded} not recorded\n" in said
    assert process.returncode == 1
