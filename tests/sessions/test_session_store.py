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

from cachecost.conversations.readers.claude_code import steps
from cachecost.sessions import reading
from cachecost.sessions import reading as store
from cachecost.sessions.file_tails import TAIL_BYTES
from cachecost.sessions.reading import APPLICATION, FOREIGN, SessionFiles, SessionReading, SessionStore, open_store

CALLS = [answer(at, (3, 100 * at, 100, 0, 9)) for at in range(1, 40)]
LONG = line("user", 0, message={"content": "x" * 2 * TAIL_BYTES})
PAGE = 4096
Facts = tuple[Any, ...]


def read_with(path: Path | None, *files: Path, format_: str = "auto") -> SessionFiles:
    if path is None:
        return SessionReading(None, format_).read_all(files)
    with SessionStore(path) as opened:
        return SessionReading(opened, format_).read_all(files)


def facts(found: SessionFiles) -> Facts:
    return found.sessions, found.skipped, found.notes, found.files


def calls_of(found: SessionFiles) -> int:
    return sum(len(session.calls) for session in found.sessions)


def rows(path: Path) -> list[str]:
    with SessionStore(path) as opened:
        return sorted(opened.files())


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
    monkeypatch.setattr(store, "BUSY_S", 0.0)
    path = write(tmp_path / "a.jsonl", *CALLS[:5])
    read_with(known, path)
    other = sqlite3.connect(known, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with path.open("ab") as stream:
        stream.write(CALLS[5])
    found = read_with(known, path)
    other.close()
    assert (calls_of(found), found.store_error) == (6, "database is locked")
    assert read_with(known, path).store_error == ""


def test_a_full_disk_changes_nothing(tmp_path: Path, known: Path) -> None:
    paths = [write(tmp_path / f"{number}.jsonl", LONG, *CALLS) for number in range(8)]
    with SessionStore(known) as opened:
        opened._database.execute("PRAGMA max_page_count=4")
        found = SessionReading(opened).read_all(paths)
    assert (calls_of(found), found.store_error) == (8 * 39, "database or disk is full")
    assert rows(known) == []


def test_a_damaged_store_changes_nothing(tmp_path: Path, known: Path) -> None:
    path = write(tmp_path / "a.jsonl", *CALLS[:5])
    expected = facts(read_with(known, path))
    data = known.read_bytes()
    assert len(data) > PAGE
    known.write_bytes(data[:PAGE] + b"\x55" * (len(data) - PAGE))
    found = read_with(known, path)
    assert (facts(found), found.store_error) == (expected, "database disk image is malformed")
    assert known.with_suffix(".damaged").exists()
    assert [read_with(known, path).remembered for _ in range(2)] == [0, 1]


def test_any_damaged_byte_of_the_first_page_is_got_over(tmp_path: Path, known: Path) -> None:
    """The schema is there: SQLite decodes it while opening, and Python fails on what is no UTF-8."""
    path = write(tmp_path / "a.jsonl", *CALLS[:5])
    expected = facts(read_with(known, path))
    data = known.read_bytes()
    places = [*range(0, 100, 7), *range(data.index(b"CREATE TABLE"), PAGE, 41)]
    for at in places:
        for value in (0x00, 0xC3, 0xFF):
            rmtree(known.parent)
            known.parent.mkdir()
            known.write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
            try:
                opened = open_store(known)
            except sqlite3.DatabaseError as error:
                assert str(error) == FOREIGN, (at, value)
                continue
            with opened:
                assert facts(SessionReading(opened).read_all([path])) == expected, (at, value)
            with open_store(known) as opened:
                assert SessionReading(opened).read_all([path]).store_error == "", (at, value)


def test_a_store_is_its_owners_alone(tmp_path: Path, known: Path) -> None:
    path = write(tmp_path / "a.jsonl", *CALLS[:5])
    read_with(known, path)
    assert (known.stat().st_mode & 0o777, known.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    known.chmod(0o644)
    read_with(known, path)
    assert known.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("column", ["sessions", "state", "tail", "size"])
@pytest.mark.parametrize("content", [b"", b"\xc1damaged", None, 5, "text", msgspec.msgpack.encode([["x"]])])
def test_damaged_rows_are_read_anew(tmp_path: Path, known: Path, column: str, content: object) -> None:
    path = write(tmp_path / "a.jsonl", *CALLS[:5])
    read_with(known, path)
    if column == "state":
        path.write_bytes(path.read_bytes() + CALLS[5])
    with sqlite3.connect(known) as other:
        table = "states" if column == "state" else "files"
        other.execute(f"UPDATE {table} SET {column} = ?", (content,))
    other.close()
    assert facts(read_with(known, path)) == facts(read_with(None, path))


FLIPS = 60


def test_a_flipped_bit_is_noticed_and_never_changes_a_bill(tmp_path: Path, known: Path) -> None:
    """SQLite itself notices what is wrong in its own structure, and nothing of a value."""
    path = write(tmp_path / "a.jsonl", *CALLS)
    expected = facts(read_with(known, path))
    with sqlite3.connect(known) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    data, random = known.read_bytes(), Random(11)
    for _ in range(FLIPS):
        damaged = bytearray(data)
        damaged[random.randrange(PAGE, len(data))] ^= 1 << random.randrange(8)
        known.write_bytes(damaged)
        for tail in ("-wal", "-shm"):
            known.with_name(known.name + tail).unlink(missing_ok=True)
        assert facts(read_with(known, path)) == expected


@pytest.mark.parametrize("column", ["inode", "size", "mtime_ns", "tail", "sessions"])
def test_a_changed_column_makes_a_row_as_good_as_none(tmp_path: Path, known: Path, column: str) -> None:
    paths = [write(tmp_path / f"{name}.jsonl", *CALLS[:5]) for name in "ab"]
    read_with(known, *paths)
    with sqlite3.connect(known) as other:
        (value,) = other.execute(f"SELECT {column} FROM files WHERE path = ?", (str(paths[0]),)).fetchone()
        changed = value + 1 if isinstance(value, int) else value[:-1] + bytes([value[-1] ^ 1])
        other.execute(f"UPDATE files SET {column} = ? WHERE path = ?", (changed, str(paths[0])))
    other.close()
    assert rows(known) == [str(paths[1])]
    found = read_with(known, *paths)
    assert (found.remembered, read_with(known, *paths).remembered) == (1, 2)


def test_a_changed_state_is_not_gone_on_with(tmp_path: Path, known: Path, offsets: list[int]) -> None:
    path = write(tmp_path / "a.jsonl", *CALLS[:5])
    read_with(known, path)
    with sqlite3.connect(known) as other:
        (state,) = other.execute("SELECT state FROM states").fetchone()
        other.execute("UPDATE states SET state = ?", (state.replace(b"\x09", b"\x08"),))
    other.close()
    path.write_bytes(path.read_bytes() + CALLS[5])
    assert facts(read_with(known, path)) == facts(read_with(None, path))
    assert offsets == [0, 0, 0]


@pytest.mark.slow
def test_six_processes_open_and_write_a_store_forty_times_each(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from cachecost.sessions.reading import FileIdentity, RememberedFile, SessionStore\n"
        "for number in range(40):\n"
        "    with SessionStore(Path(sys.argv[1], str(number // 10), 's.sqlite')) as store:\n"
        "        with store.writing():\n"
        "            store.put(f'{sys.argv[2]} {number}', RememberedFile(FileIdentity(1, 2, 3), b't', b's'), b'')\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    running = [subprocess.Popen([*command, name]) for name in "abcdef"]
    assert [process.wait(60) for process in running] == [0] * 6
    assert [len(rows(tmp_path / name / "s.sqlite")) for name in "0123"] == [60] * 4


def test_another_version_is_emptied(tmp_path: Path, known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.jsonl", *CALLS[:5])
    read_with(known, path)
    monkeypatch.setattr(store, "VERSION", store.VERSION + 1)
    assert rows(known) == []
    assert (read_with(known, path).remembered, read_with(known, path).remembered) == (0, 1)


def _foreign_tables(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE files (path TEXT)")
    other.commit()
    other.close()


def _foreign_application(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("PRAGMA application_id=77")
    other.commit()
    other.close()


@pytest.mark.parametrize(
    "make",
    [
        _foreign_tables,
        _foreign_application,
        lambda path: path.write_bytes(b"a letter to nobody, longer than the header of a database" * 9),
        lambda path: path.write_bytes(b"short"),
    ],
)
def test_files_of_others_are_not_touched(tmp_path: Path, make: Any) -> None:
    path = tmp_path / "other.sqlite"
    make(path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    with pytest.raises(sqlite3.DatabaseError, match=FOREIGN):
        SessionStore(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = write(tmp_path / "s.sqlite", b"")
    assert rows(path) == []
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION


@pytest.mark.parametrize("place", ["file/sessions.sqlite", "folder"])
def test_a_place_that_takes_no_store(tmp_path: Path, place: str) -> None:
    write(tmp_path / "file", b"x")
    (tmp_path / "folder").mkdir()
    with pytest.raises((OSError, sqlite3.Error)):
        SessionStore(tmp_path / place)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_only_be_read(tmp_path: Path, known: Path) -> None:
    path = write(tmp_path / "a.jsonl", *CALLS[:5])
    read_with(known, path)
    known.parent.chmod(0o500)
    try:
        with pytest.raises((OSError, sqlite3.Error)):
            SessionStore(known.with_name("new.sqlite"))
    finally:
        known.parent.chmod(0o700)


def test_two_processes_at_once(tmp_path: Path, known: Path) -> None:
    paths = [write(tmp_path / f"{number}.jsonl", *CALLS) for number in range(4)]
    code = (
        "import sys\nfrom pathlib import Path\nfrom cachecost.sessions.reading import SessionReading\n"
        "from cachecost.sessions.reading import SessionStore\n"
        "reading = SessionReading(SessionStore(Path(sys.argv[1])))\n"
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
        with SessionStore(known) as opened:
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
    with SessionStore(known) as opened:
        one = SessionReading(opened)
        one.read_all(paths[:3])
        assert one._pending == []
        assert one.read_all(paths[3:]).files == 5
    assert len(rows(known)) == 5
