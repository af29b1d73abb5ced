"""The recorder's other process: it may die at any moment, and no open stream holds up what has ended."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import time
from pathlib import Path
from queue import Queue

import pytest
from recorder_upstream import STREAM, Seen, body, chunk, events, message, plain, recorder, send, until, upstream_thread

from cachecost.conversations.readers.detect import read_calls
from cachecost.live.recorder.helper import HelperOptions, RecorderHelper
from cachecost.live.recorder.helper_loop import HelperLoop, Predictor
from cachecost.live.recorder.helper_main import Inbox
from cachecost.live.recorder.writing import DigestFile, LineReader, put_recording_in_order
from cachecost.live.request_log import lines_in
from cachecost.prompts.intake import Intake
from cachecost.tokens.tokenizers import has_ctok
from slow_cases import mostly_slow

LATE_S = 0.3
SIGNED = [(b"x-api-key", b"sk-ant-api03-planted-key-1")]
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the process in /proc")


def call(port: int, *texts: str) -> None:
    async def go() -> None:
        for text in texts:
            got = await send(port, headers=SIGNED, pieces=[body(text)])
            assert got
            assert got.status == 200

    asyncio.run(go())


def texts(begin: int, end: int) -> list[str]:
    return [f"text {number}" for number in range(begin, end)]


@pytest.mark.parametrize("chosen", ["tiktoken", "bytes", "auto"])
def test_predictions_count_as_somebody_chose(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHECOST_TOKENS", chosen)
    best = "ctok" if has_ctok() else "tiktoken"
    assert HelperOptions("r.jsonl").setup().counter("claude-4.8").name == (best if chosen == "auto" else chosen)


def test_predictions_count_what_ctok_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CACHECOST_TOKENS")
    assert HelperOptions("r.jsonl").setup().counter("o200k").name == "native"


@pytest.mark.parametrize("content", mostly_slow(["keep", "digest"], 1))
def test_the_recording_is_whole_without_the_process_that_predicts(tmp_path: Path, content: str) -> None:
    path = tmp_path / "r.jsonl"
    with upstream_thread() as api:
        running = recorder(f"http://127.0.0.1:{api.port}", path, "--content", content)
        call(running.port, *texts(0, 3))
        os.kill(running.helper, signal.SIGKILL)
        until(lambda: running.said("exited early"))
        call(running.port, *texts(3, 13))
        code, said = running.stop()
    words = "the prediction process exited early (exit code -9); calls are recorded without predictions"
    assert said.count(words) == 1
    assert f"13 calls recorded in {path}" in said
    assert (len(list(read_calls(path))), code) == (13, 0)


@pytest.mark.slow
def test_what_a_killed_recorder_has_not_written_is_written_by_the_other_process(tmp_path: Path) -> None:
    """Its file may not grow any more; that of the other process may."""
    path = tmp_path / "r.jsonl"
    with upstream_thread() as api:
        running = recorder(f"http://127.0.0.1:{api.port}", path, "--content", "digest", "--quiet")
        helper = running.helper
        call(running.port, *texts(0, 2))
        until(lambda: lines_in(path, prefix=b'{"call":') == 2)
        resource.prlimit(
            running.process.pid, resource.RLIMIT_FSIZE, (path.stat().st_size + 100, resource.RLIM_INFINITY)
        )
        call(running.port, *texts(2, 5))
        until(lambda: running.said("cannot be written"))
        time.sleep(LATE_S)
        running.kill()
        until(lambda: not Path(f"/proc/{helper}/cmdline").exists() or not Path(f"/proc/{helper}/cmdline").read_bytes())
    assert len(list(read_calls(path))) == 5


@pytest.mark.parametrize(("cut", "said"), [(0, None), (1, None), (40, None), (-1, 2), (-2, 0), (None, 1), (None, 3)])
def test_a_process_takes_over_at_any_byte(tmp_path: Path, cut: int | None, said: int | None) -> None:
    """It makes the lines that the recorder, killed within one, would have written."""
    key, reader = b"k" * 32, LineReader(tmp_path, Intake(keep_content=True))
    calls = [reader.call(line(number)) for number in range(4)]
    for name in "ab":
        (tmp_path / name).mkdir()
    whole, part = DigestFile(tmp_path / "a" / "r.jsonl", key), DigestFile(tmp_path / "b" / "r.jsonl", key, follows=True)
    for number, one in enumerate(calls):
        whole.add(number, one)
        part.add(number, one)
        if number == said:
            part.forget(whole.write())
    least = whole.write()
    written = (tmp_path / "a" / "r.jsonl").read_bytes()
    (tmp_path / "b" / "r.jsonl").write_bytes(written[:cut])
    part.take_over()
    assert (tmp_path / "b" / "r.jsonl").read_bytes() == written
    assert least == len(written)


def test_an_error_in_a_prediction_ends_the_predictions_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(self: Predictor, number: int, call: object) -> list[str]:
        raise ArithmeticError("no number")

    monkeypatch.setattr(Predictor, "describe", fails)
    inbox: Inbox = Queue()
    (tmp_path / "r.jsonl").touch()
    for one in (b"key 00", b"begin 1", b"line 1 " + line(1), b"begin 2", b"line 2 " + line(2), None):
        inbox.put(one)
    HelperLoop(HelperOptions(str(tmp_path / "r.jsonl"), digest=True)).run(inbox)
    assert lines_in(tmp_path / "r.jsonl", prefix=b'{"call":') == 2
    said = capsys.readouterr().err
    assert said == "call 1: internal error, nothing more is predicted: ArithmeticError: no number\n"


def test_its_own_failure_is_one_line_and_an_exit_code(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It ends at once, although a thread still waits for its input."""
    codes = list[int]()
    helper = RecorderHelper(HelperOptions(str(tmp_path), digest=True), codes.append)
    helper.tell(b"key no\n")
    helper.close()
    assert codes == [1]
    assert capfd.readouterr().err.startswith(f"{tmp_path}: ValueError: non-hexadecimal number found")


def test_a_process_that_is_killed_at_the_end_has_not_exited_early(tmp_path: Path) -> None:
    codes = list[int]()
    helper = RecorderHelper(HelperOptions(str(tmp_path / "r.jsonl"), digest=True), codes.append)
    join, interrupts = helper._writing.join, iter([KeyboardInterrupt])

    def interrupted() -> None:
        for interrupt in interrupts:
            raise interrupt
        join()

    helper._writing.join = interrupted  # type: ignore[method-assign]
    assert helper.close() == -signal.SIGKILL
    assert codes == []


def line(number: int) -> bytes:
    return b'{"timestamp":"2026-03-07T10:00:0%dZ","request":%b}' % (number, body(f"text {number}"))


def test_a_line_that_does_not_read_ends_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What else writes the log, or cuts it, does not take the predictions with it."""
    log = tmp_path / "r.jsonl"
    log.write_bytes(line(1)[:-20])
    inbox: Inbox = Queue()
    for one in (b"begin 1", b"end 1 0", b"begin 2", b"end 2 5000", b"begin 3", b"gone 3", None):
        inbox.put(one)
    HelperLoop(HelperOptions(str(log))).run(inbox)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("content", mostly_slow(["keep", "digest"], 1))
def test_an_open_stream_holds_up_no_call_that_has_ended(tmp_path: Path, content: str) -> None:
    """20 calls end while one that began before them goes on; then everything is killed."""
    path = tmp_path / "r.jsonl"
    is_open, go_on = asyncio.Event(), asyncio.Event()

    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        if b'"stream":true' not in seen.body:
            writer.write(plain(message()))
            return
        writer.write(STREAM + chunk(events()[0]))
        is_open.set()
        while not go_on.is_set():
            await asyncio.sleep(0.01)

    async def load(port: int) -> None:
        stream = asyncio.ensure_future(send(port, headers=SIGNED, pieces=[body(stream=True)]))
        while not is_open.is_set():
            await asyncio.sleep(0.01)
        for text in texts(0, 20):
            await send(port, headers=SIGNED, pieces=[body(text)])
        await asyncio.to_thread(until, lambda: path.read_bytes().count(b'"timestamp"') == 20)
        os.kill(running.helper, signal.SIGKILL)
        running.process.kill()
        go_on.set()
        await stream

    with upstream_thread(answering) as api:
        running = recorder(f"http://127.0.0.1:{api.port}", path, "--content", content)
        asyncio.run(load(running.port))
        running.ended()
    assert len(list(read_calls(path))) == 20


def test_a_recording_without_content_is_put_in_order(tmp_path: Path) -> None:
    """Calls that ended in another order read as if they had been written in order."""
    path, begun = tmp_path / "r.jsonl", []

    async def answering(seen: Seen, writer: asyncio.StreamWriter) -> None:
        begun.append(seen)
        while len(begun) < 4:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05 * (5 - len(seen.body.split(b"long"))))
        writer.write(plain(message()))

    async def load(port: int) -> None:
        going = []
        for number in range(4):
            text = "long " * number + "words"
            going.append(asyncio.ensure_future(send(port, headers=SIGNED, pieces=[body(text)])))
            await asyncio.sleep(0.02)
        await asyncio.gather(*going)

    with upstream_thread(answering) as api:
        running = recorder(f"http://127.0.0.1:{api.port}", path, "--content", "digest", "--quiet")
        asyncio.run(load(running.port))
        _, said = running.stop()
    assert f"{path}: calls sorted by start time" in said
    starts = [call.start for call in read_calls(path)]
    assert starts == sorted(starts)
    sizes = [call.request.thread.message.blocks[0].size for call in read_calls(path)]
    assert sizes == sorted(sizes)
    assert path.stat().st_mode & 0o077 == 0
    assert not put_recording_in_order(path)
