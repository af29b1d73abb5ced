"""What is remembered of session files: it spares reading, and never changes a bill."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sessions.small_sessions import answer, line, write

from cachecost.base import store
from cachecost.base.store import TAIL_BYTES, DiskStore, StoreTable
from cachecost.conversations.readers.claude_code import steps
from cachecost.sessions import reading
from cachecost.sessions.reading import FILES, STATES, SessionFiles, SessionReading

CALLS = [answer(at, (3, 100 * at, 100, 0, 9)) for at in range(1, 40)]
LONG = line("user", 0, message={"content": "x" * 2 * TAIL_BYTES})
PAGE = 4096
Facts = tuple[Any, ...]


def read_with(path: Path | None, *files: Path, format_: str = "auto") -> SessionFiles:
    if path is None:
        return SessionReading(None, format_).read_all(files)
    with DiskStore(path, FILES, STATES) as opened:
        return SessionReading(opened, format_).read_all(files)


def facts(found: SessionFiles) -> Facts:
    return found.sessions, found.skipped, found.notes, found.files


def calls_of(found: SessionFiles) -> int:
    return sum(len(session.calls) for session in found.sessions)


def rows(path: Path) -> list[str]:
    with DiskStore(path, FILES, STATES) as opened:
        return sorted(map(os.fsdecode, opened.items(FILES)))


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """A store."""
    return tmp_path / "cache" / "sessions.sqlite"


@pytest.fixture
def offsets(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Where each reading of a transcript began."""
    found: list[int] = []

    class Watched(steps.Transcript):
        def read(self) -> Any:
            found.append(self.state.offset)
            return super().read()

    monkeypatch.setattr(steps, "Transcript", Watched)
    yield found


def test_unchanged_files_are_not_opened(tmp_path: Path, known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [write(tmp_path / f"{name}.jsonl", LONG, *CALLS[:5], b"{damaged\n", b"{cut") for name in "ab"]
    first = read_with(known, *paths)
    assert (first.remembered, first.files, len(first.skipped), len(first.notes)) == (0, 2, 2, 2)
    opened: list[str] = []
    plain = Path.open
    monkeypatch.setattr(Path, "open", lambda path, *rest: opened.append(str(path)) or plain(path, *rest))
    again = read_with(known, *paths)
    assert (again.remembered, again.read_bytes) == (2, 0)
    assert facts(again) == facts(first)
    assert [name for name in opened if name.endswith(".jsonl")] == []


def test_a_file_that_grew_is_read_from_its_old_end(tmp_path: Path, known: Path, offsets: list[int]) -> None:
    path = write(tmp_path / "a.jsonl", LONG, *CALLS[:5])
    size = path.stat().st_size
    read_with(known, path)
    with path.open("ab") as stream:
        stream.write(b"".join(CALLS[5:8])[:-20])
    found = read_with(known, path)
    assert (offsets, calls_of(found)) == ([0, size], 7)
    whole = size + sum(map(len, CALLS[5:7]))
    with path.open("ab") as stream:
        stream.write(b"".join(CALLS[5:8])[-20:])
    assert calls_of(read_with(known, path)) == 8
    assert offsets == [0, size, whole]


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - len(CALLS[4]))


def _replace(path: Path) -> None:
    """Another file of the same beginning, size and time takes the place of the first."""
    status = path.stat()
    write(path.with_suffix(".new"), LONG, *CALLS[:4], CALLS[4].replace(b"100", b"200"), CALLS[5])
    path.with_suffix(".new").replace(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _change(path: Path, at: int, more: bytes = b"") -> None:
    """Change a digit of call `at` in place; a second later, for file systems with coarse times."""
    time = path.stat().st_mtime_ns + 10**9
    data = path.read_bytes().replace(CALLS[at], CALLS[at].replace(b'"output_tokens": 9', b'"output_tokens": 7'))
    path.write_bytes(data + more)
    os.utime(path, ns=(time, time))


@pytest.mark.parametrize(
    "change",
    [
        _truncate,
        _replace,
        lambda path: _change(path, 0),
        lambda path: _change(path, 4),
        lambda path: _change(path, 4, CALLS[5]),
        lambda path: path.write_bytes(b"".join(CALLS[:2])),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b'{"other": 1}\n'),
    ],
    ids=["truncated", "replaced", "middle", "tail", "tail and grown", "shorter", "empty", "foreign"],
)
def test_a_file_that_changed_is_read_anew(tmp_path: Path, known: Path, offsets: list[int], change: Any) -> None:
    path = write(tmp_path / "a.jsonl", LONG, *CALLS[:5])
    before = facts(read_with(known, path))
    change(path)
    after = facts(read_with(known, path))
    assert after == facts(read_with(None, path)) != before
    assert set(offsets) == {0}


def test_a_touched_file_is_read_anew_and_remembered(tmp_path: Path, known: Path) -> None:
    path = write(tmp_path / "a.jsonl", *CALLS[:5])
    first = read_with(known, path)
    os.utime(path, ns=(1, 1))
    second, third = read_with(known, path), read_with(known, path)
    assert [found.remembered for found in (first, second, third)] == [0, 0, 1]
    assert facts(first) == facts(second) == facts(third)


def test_what_cannot_be_seen(tmp_path: Path, known: Path) -> None:
    """A change that keeps size and time; and one far before the end of a file that also grew."""
    path = write(tmp_path / "a.jsonl", CALLS[0], LONG, *CALLS[1:5])
    read_with(known, path)
    time, data = path.stat().st_mtime_ns, path.read_bytes()
    _change(path, 4)
    os.utime(path, ns=(time, time))
    assert read_with(known, path).sessions[0].calls[4].tokens[4] == 9
    path.write_bytes(data)
    _change(path, 0, CALLS[5])
    assert [call.tokens[4] for call in read_with(known, path).sessions[0].calls] == [9] * 6


def test_files_that_are_gone_are_forgotten(tmp_path: Path, known: Path) -> None:
    paths = [write(tmp_path / f"{name}.jsonl", *CALLS[:2]) for name in "abc"]
    read_with(known, *paths)
    paths[0].unlink()
    read_with(known, paths[1])
    assert rows(known) == [str(path) for path in paths[1:]]


def test_a_named_format_is_not_remembered(tmp_path: Path, known: Path) -> None:
    """A file that is unrecognized otherwise, and one that no such reader takes."""
    foreign = write(tmp_path / "a.jsonl", b'{"type": "mood"}\n')
    session = write(tmp_path / "b.jsonl", *CALLS[:2])
    assert read_with(known, foreign, format_="claude-code").skipped == []
    assert len(read_with(known, foreign).skipped) == 1
    read_with(known, session)
    assert read_with(known, session, format_="mooncake").logs == [session]


def test_a_file_counts_once_under_all_its_names(tmp_path: Path) -> None:
    nameless = answer(1, (3, 0, 100, 0, 9)).replace(b'"id": "msg_1"', b'"id": null')
    path = write(tmp_path / "a.jsonl", nameless)
    (tmp_path / "link.jsonl").symlink_to(path)
    os.link(path, tmp_path / "hard.jsonl")
    found = read_with(None, path, tmp_path / "link.jsonl", tmp_path / "hard.jsonl", tmp_path / "." / "a.jsonl")
    assert (found.files, calls_of(found)) == (1, 1)


def test_paths_that_are_no_text_are_read_and_not_remembered(tmp_path: Path, known: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl"))
    try:
        write(path, *CALLS[:2])
    except OSError:
        pytest.skip("this file system has no such names")
    assert calls_of(read_with(known, path)) == 2
    assert rows(known) == []


# ------------------------------------------------------------------------------------- stores that fail


def test_a_locked_store_is_not_waited_for_long(tmp_path: Path, known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "WAIT_S", 0.0)
    path = write(tmp_path / "a.jsonl", *CALLS[:5])
    read_with(known, path)
    other = sqlite3.connect(known, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with path.open("ab") as stream:
        stream.write(CALLS[5])
    found = read_with(known, path)
    other.close()
    assert (calls_of(found), found.store_error) == (6, f"{known}: sessions are not remembered: database is locked")
    assert read_with(known, path).store_error == ""


def test_a_damaged_store_changes_nothing(tmp_path: Path, known: Path) -> None:
    path = write(tmp_path / "a.jsonl", *CALLS[:5])
    expected = facts(read_with(known, path))
    data = known.read_bytes()
    known.write_bytes(data[:PAGE] + b"\x55" * (len(data) - PAGE))
    found = read_with(known, path)
    assert (facts(found), found.remembered, found.store_error) == (expected, 0, "")
    assert read_with(known, path).remembered == 1


JUNK = [b"\xc1damaged", msgspec.msgpack.encode([["x"]]), msgspec.msgpack.encode([[1, 2, 3], b"", b"\xc1"])]


@pytest.mark.parametrize("content", [b"", *JUNK])
def test_what_another_reader_left_is_read_anew(tmp_path: Path, known: Path, content: bytes) -> None:
    """Rows that are sound, and mean nothing here."""
    path = write(tmp_path / "a.jsonl", *CALLS[:5])
    for table in (FILES, STATES):
        read_with(known, path)
        with DiskStore(known, FILES, STATES) as opened:
            assert opened.write([(table, bytes(path), content)])
        path.write_bytes(path.read_bytes() + CALLS[5])
        assert facts(read_with(known, path)) == facts(read_with(None, path))


def test_rows_of_another_version_are_read_anew(tmp_path: Path, known: Path) -> None:
    path = write(tmp_path / "a.jsonl", *CALLS[:5])
    other = StoreTable("files", FILES.version + 1)
    read_with(known, path)
    with DiskStore(known, other) as opened:
        assert opened.write([(other, b"x", b"")])
    assert [read_with(known, path).remembered for _ in range(2)] == [0, 1]


def test_two_processes_at_once(tmp_path: Path, known: Path) -> None:
    paths = [write(tmp_path / f"{number}.jsonl", *CALLS) for number in range(4)]
    code = (
        "import sys\nfrom pathlib import Path\nfrom cachecost.base.store import DiskStore\n"
        "from cachecost.sessions.reading import FILES, STATES, SessionReading\n"
        "reading = SessionReading(DiskStore(Path(sys.argv[1]), FILES, STATES))\n"
        "print(sum(len(one.calls) for one in reading.read_all(map(Path, sys.argv[2:])).sessions))"
    )
    command = [sys.executable, "-c", code, str(known), *map(str, paths)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert {process.communicate(timeout=60)[0] for process in both} == {f"{4 * 39}\n"}
    assert facts(read_with(known, *paths)) == facts(read_with(None, *paths))


# -------------------------------------------------------------------------------- whatever may happen


@settings(max_examples=int(os.environ.get("CACHECOST_LOGS", "12")))
@given(st.randoms(use_true_random=False))
def test_a_bill_never_depends_on_the_store(tmp_path_factory: pytest.TempPathFactory, random: Random) -> None:
    folder = tmp_path_factory.mktemp("any")
    known, paths = folder / "known.sqlite", [folder / f"{name}.jsonl" for name in "ab"]
    for step in range(random.randint(1, 8)):
        _change_anything(random, random.choice(paths), known, step)
        there = [path for path in paths if path.exists()]
        with DiskStore(known, FILES, STATES) as opened:
            assert facts(SessionReading(opened).read_all(there)) == facts(SessionReading(None).read_all(there))
    rmtree(folder)


def _change_anything(random: Random, path: Path, known: Path, step: int) -> None:
    """Append, cut, replace, rewrite or delete a file or the store; times move as those of real changes do."""
    data = path.read_bytes() if path.exists() else b""
    piece = random.choice((CALLS[random.randint(0, 38)], b"\n", b"{damaged\n", b'{"type": "other", "uuid": "x"}\n'))
    do = random.choice(("append", "append", "append", "part", "cut", "replace", "delete", "forget"))
    if do == "forget":
        known.unlink(missing_ok=True)
        for end in ("-wal", "-shm"):
            known.with_name(known.name + end).unlink(missing_ok=True)
    elif do == "delete":
        path.unlink(missing_ok=True)
    elif do == "replace":
        write(path.with_suffix(".new"), piece, *CALLS[: random.randint(0, 3)])
        path.with_suffix(".new").replace(path)
    elif do == "cut":
        path.write_bytes(data[: random.randint(0, len(data))])
    else:
        with path.open("ab") as stream:
            stream.write(piece if do == "append" else piece[: random.randint(0, len(piece))])
    if path.exists():
        os.utime(path, ns=(step, 10**18 + step))


def test_batches_are_written_as_they_fill(tmp_path: Path, known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH_BYTES", 100)
    paths = [write(tmp_path / f"{number}.jsonl", *CALLS[:3]) for number in range(5)]
    with DiskStore(known, FILES, STATES) as opened:
        one = SessionReading(opened)
        one.read_all(paths[:3])
        assert one._pending == []
        assert one.read_all(paths[3:]).files == 5
    assert len(rows(known)) == 5
