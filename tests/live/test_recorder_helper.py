"""The recorder's other process: it may die at any moment, and no open stream holds up what has ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from queue import Queue

import pytest
from recorder_upstream import STREAM, Seen, body, chunk, events, message, plain, recorder, send, until, upstream_thread

from cachecost.conversations.readers.detect import read_calls
from cachecost.live.recorder.digest import DigestFile, calls_in
from cachecost.live.recorder.helper import HelperOptions, RecorderHelper
from cachecost.live.recorder.helper_loop import HelperLoop
from cachecost.live.recorder.helper_main import Inbox
from cachecost.live.recorder.log_lines import LineReader
from cachecost.live.recorder.prediction import Predictor
from cachecost.live.recorder.sorting import put_recording_in_order
from cachecost.prompts.intake import Intake
from cachecost.tokens.ctok_ import has_ctok

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


def has_open(process: int, path: Path) -> bool:
    return any(one.readlink() == path for one in Path(f"/proc/{process}/fd").iterdir())


@pytest.mark.parametrize("has_taken_over", [False, True])
def test_the_recorder_goes_on_where_the_process_that_writes_dies(tmp_path: Path, has_taken_over: bool) -> None:
    """In the same file as long as that one had not taken it over, else in another one, with a key of its own."""
    path, second = tmp_path / "r.jsonl", tmp_path / "r-2.jsonl"
    with upstream_thread() as api:
        running = recorder(f"http://127.0.0.1:{api.port}", path, "--content", "digest", "--quiet")
        helper = running.helper
        if not has_taken_over:
            os.kill(helper, signal.SIGSTOP)
        call(running.port, *texts(0, 3))
        until(lambda: calls_in(path) == 3)
        until(lambda: has_open(helper, path) == has_taken_over)
        os.kill(helper, signal.SIGKILL)
        until(lambda: running.said("exited early"))
        call(running.port, *texts(3, 13))
        code, said = running.stop()
    last = second if has_taken_over else path
    ended = f"the process that predicts calls and writes {path} exited early (exit code -9)"
    assert f"{ended}; recording goes on in {last}, without predictions" in said
    assert f"13 calls recorded in {path}{f' and {second}' if has_taken_over else ''}" in said
    files = [path, second] if has_taken_over else [path]
    assert [len(list(read_calls(one))) for one in files] == ([3, 10] if has_taken_over else [13])
    assert last.stat().st_mode & 0o077 == 0
    assert code == 0


def test_what_it_had_not_written_is_written_by_the_recorder(tmp_path: Path) -> None:
    """It dies while calls wait for it, and leaves a torn line."""
    path = tmp_path / "r.jsonl"
    with upstream_thread() as api:
        running = recorder(f"http://127.0.0.1:{api.port}", path, "--content", "digest", "--quiet")
        call(running.port, "first")
        helper = running.helper
        until(lambda: has_open(helper, path))
        os.kill(helper, signal.SIGSTOP)
        call(running.port, *texts(0, 5))
        with path.open("ab") as stream:
            stream.write(b'{"block": 99, "si')
        os.kill(helper, signal.SIGKILL)
        code, said = running.stop()
    assert f"6 calls recorded in {path} and {tmp_path / 'r-2.jsonl'}" in said
    assert path.read_bytes().endswith(b"}\n")
    assert (len(list(read_calls(path))), len(list(read_calls(tmp_path / "r-2.jsonl")))) == (1, 5)
    assert code == 0


@pytest.mark.parametrize("cut", [0, 1, 40, -1, None])
def test_a_process_takes_over_at_any_byte(tmp_path: Path, cut: int | None) -> None:
    """It makes the lines that the recorder, killed within one, would have written."""
    key, reader = b"k" * 32, LineReader(tmp_path, Intake(keep_content=True))
    calls = [reader.call(line(number)) for number in range(4)]
    for name in "ab":
        (tmp_path / name).mkdir()
    whole, part = DigestFile(tmp_path / "a" / "r.jsonl", key), DigestFile(tmp_path / "b" / "r.jsonl", key, follows=True)
    for number, one in enumerate(calls):
        whole.add(number, one)
        part.add(number, one)
        assert part.write() == []
    assert whole.write() == [0, 1, 2, 3]
    written = (tmp_path / "a" / "r.jsonl").read_bytes()
    (tmp_path / "b" / "r.jsonl").write_bytes(written[:cut])
    part.take_over()
    assert part.write() == [0, 1, 2, 3]
    assert (tmp_path / "b" / "r.jsonl").read_bytes() == written


def test_without_predictions_the_recording_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with upstream_thread() as api:
        running = recorder(f"http://127.0.0.1:{api.port}", path)
        os.kill(running.helper, signal.SIGKILL)
        until(lambda: running.said("exited early"))
        call(running.port, *texts(0, 3))
        code, said = running.stop()
    words = "the prediction process exited early (exit code -9); calls are recorded without predictions"
    assert said.count(words) == 1
    assert f"3 calls recorded in {path}" in said
    assert (len(list(read_calls(path))), code) == (3, 0)


def test_an_error_in_a_prediction_ends_the_predictions_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(self: Predictor, number: int, call: object) -> list[str]:
        raise ArithmeticError("no number")

    monkeypatch.setattr(Predictor, "describe", fails)
    inbox: Inbox = Queue()
    for one in (b"key 00", b"begin 1", b"line 1 " + line(1), b"begin 2", b"line 2 " + line(2), None):
        inbox.put(one)
    HelperLoop(HelperOptions(str(tmp_path / "r.jsonl"), digest=True)).run(inbox)
    assert calls_in(tmp_path / "r.jsonl") == 2
    said = capsys.readouterr().err
    assert said == "call 1: internal error, nothing more is predicted: ArithmeticError: no number\n"


def test_its_own_failure_is_one_line_and_an_exit_code(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It ends at once, although a thread still waits for its input."""
    heard, codes = list[bytes](), list[int]()
    helper = RecorderHelper(HelperOptions(str(tmp_path), digest=True), heard.append, codes.append)
    helper.tell(b"key 00\nwrite\n")
    helper.close()
    assert codes == [1]
    assert capfd.readouterr().err == f"{tmp_path}: IsADirectoryError: [Errno 21] Is a directory: '{tmp_path}'\n"


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


@pytest.mark.parametrize("content", ["keep", "digest"])
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
