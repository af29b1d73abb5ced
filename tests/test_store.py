"""The store on disk: what is wrong with it never shows in a result, and files of others are left alone."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from cachecost.base import store as store_module
from cachecost.base.store import (
    APPLICATION,
    DAMAGED_CODES,
    FILE,
    FOREIGN,
    IN_MEMORY,
    LOCKED_CODES,
    VARIABLE,
    DiskStore,
    StoreTable,
    open_store,
    store_folder,
)
from cachecost.sessions.reading import FILES, STATES
from cachecost.tokens.disk_counts import disk_counts

WORDS, NUMBERS = StoreTable("words", 1), StoreTable("numbers", 1)
NEXT = StoreTable("words", 2)
PAGE = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / FILE


@pytest.fixture
def store(path: Path) -> Iterator[DiskStore]:
    with DiskStore(path, WORDS, NUMBERS) as opened:
        yield opened


def put(path: Path, **words: str) -> bool:
    with DiskStore(path, WORDS, NUMBERS) as store:
        return store.write((WORDS, key.encode(), value.encode()) for key, value in words.items())


def words(path: Path, table: StoreTable = WORDS) -> dict[bytes, bytes]:
    with DiskStore(path, table) as store:
        return store.items(table)


# ------------------------------------------------------------------------------------------ where it is


@pytest.mark.parametrize(
    ("value", "expected"), [("off", None), (" OFF ", None), ("", None), ("/some/place", Path("/some/place"))]
)
def test_one_variable_moves_all_of_it_or_turns_it_off(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: Path | None
) -> None:
    from cachecost.commands.statusline_run import remembered_folder

    monkeypatch.setenv(VARIABLE, value)
    sessions, counts = open_store(FILES, STATES), disk_counts("cl100k")
    found = (store_folder(), sessions and sessions.path, counts and counts.store.path, remembered_folder())
    assert found == ((expected, expected / FILE, expected / FILE, expected / "working") if expected else (None,) * 4)


def test_without_the_variable_it_is_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert store_folder() == tmp_path / ".cache" / "cachecost"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert store_folder() == tmp_path / "xdg" / "cachecost"


def test_files_of_former_stores_are_neither_read_nor_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    former = tmp_path / "sessions.sqlite", tmp_path / "counts" / "cl100k-1.sqlite"
    for place in former:
        put(place, a="1")
    before = [place.read_bytes() for place in former]
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    opened = open_store(WORDS)
    assert opened is not None
    assert (opened.items(WORDS), opened.error) == ({}, "")
    opened.close()
    assert [place.read_bytes() for place in former] == before


def test_a_status_line_loads_no_sqlite() -> None:
    code = "import sys, cachecost.commands.hook_run; sys.exit('sqlite3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ------------------------------------------------------------------------------------------ rows


def test_rows_are_there_for_the_next_and_none_removes_one(store: DiskStore, path: Path) -> None:
    assert store.write([(WORDS, b"a", b"1"), (WORDS, b"b", b"2"), (NUMBERS, b"a", b"")])
    assert words(path) == {b"a": b"1", b"b": b"2"}
    assert (store.get(WORDS, b"b"), store.get(NUMBERS, b"a"), store.get(NUMBERS, b"b")) == (b"2", b"", None)
    assert store.write([(WORDS, b"a", None), (WORDS, b"b", b"3")])
    assert (words(path), words(path, NUMBERS)) == ({b"b": b"3"}, {b"a": b""})


def test_rows_of_another_version_are_not_seen_and_go_when_it_is_written(path: Path) -> None:
    with DiskStore(path, WORDS, NUMBERS) as before:
        before.write([(WORDS, b"a", b"1"), (NUMBERS, b"a", b"1")])
        with DiskStore(path, NEXT) as after:
            assert (after.items(NEXT), before.get(WORDS, b"a")) == ({}, b"1")
            assert after.write([(NEXT, b"b", b"2")])
        assert (before.items(WORDS), before.items(NUMBERS)) == ({}, {b"a": b"1"})
    assert words(path, NEXT) == {b"b": b"2"}


def test_in_memory_nothing_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with DiskStore(IN_MEMORY, WORDS) as store:
        assert store.write([(WORDS, b"a", b"1")])
        assert store.items(WORDS) == {b"a": b"1"}
    assert list(tmp_path.iterdir()) == []


def test_it_is_its_owners_alone(path: Path) -> None:
    put(path, a="1")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    path.chmod(0o644)
    put(path, a="1")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_too_large_is_begun_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(path, a="x" * 10 * PAGE)
    monkeypatch.setattr(store_module, "MOST_BYTES", path.stat().st_size)
    assert words(path)
    monkeypatch.setattr(store_module, "MOST_BYTES", path.stat().st_size - 1)
    assert words(path) == {}
    assert path.stat().st_size < 10 * PAGE


# ------------------------------------------------------------------------------------------ damage


def flip(path: Path, data: bytes, dice: random.Random) -> None:
    """One bit of the file is another."""
    damaged = bytearray(data)
    damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
    path.write_bytes(damaged)
    for tail in ("-wal", "-shm"):
        path.with_name(path.name + tail).unlink(missing_ok=True)


def test_a_flipped_bit_never_gives_a_wrong_value_and_is_got_over(path: Path) -> None:
    """SQLite itself notices what is wrong in its own structure, and nothing of a value."""
    expected = {f"key{number}": f"value {number} " * number for number in range(60)}
    put(path, **expected)
    data, dice = path.read_bytes(), random.Random(11)
    for _ in range(150):
        flip(path, data, dice)
        with DiskStore(path, WORDS) as store:
            for key, value in store.items(WORDS).items():
                assert expected[key.decode()] == value.decode()
        assert put(path, a="1") or path.read_bytes()[68:72] != data[68:72]


def test_any_damaged_byte_of_the_first_page_is_got_over(path: Path) -> None:
    """The schema is there: SQLite decodes it while opening, and Python fails on what is no UTF-8."""
    put(path, a="1")
    data = path.read_bytes()
    for at in [*range(0, 100, 7), *range(data.index(b"CREATE TABLE"), PAGE, 41)]:
        for value in (0x00, 0xC3, 0xFF):
            rmtree(path.parent)
            path.parent.mkdir()
            path.write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
            with DiskStore(path, WORDS) as store:
                assert store.get(WORDS, b"a") in (b"1", None)
                assert store.write([(WORDS, b"b", b"2")]) or store.error == FOREIGN, (at, value)


@pytest.mark.parametrize("column", ["version", "key", "value", "checksum"])
@pytest.mark.parametrize("content", [b"", b"2", None, 5, "text"])
def test_a_row_with_another_column_is_none(store: DiskStore, path: Path, column: str, content: object) -> None:
    store.write([(WORDS, b"a", b"1"), (NUMBERS, b"a", b"1")])
    with sqlite3.connect(path) as other:
        try:
            other.execute(f"UPDATE words SET {column} = ?", (content,))
        except sqlite3.IntegrityError:  # NULL in a primary key
            other.execute("DELETE FROM words")
    other.close()
    assert (store.items(WORDS), store.get(WORDS, b"a"), store.error) == ({}, None, "")
    assert store.items(NUMBERS) == {b"a": b"1"}


def drop_table(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE words")
    other.close()


def test_a_file_with_damaged_pages_is_begun_anew(path: Path) -> None:
    put(path, a="1")
    data = path.read_bytes()
    path.write_bytes(data[:PAGE] + b"\x55" * (len(data) - PAGE))
    assert words(path) == {}
    assert put(path, b="2")
    assert words(path) == {b"b": b"2"}
    assert [one.name for one in path.parent.iterdir()] == [FILE]


def test_a_file_that_is_damaged_while_it_is_used_is_begun_anew_once(store: DiskStore, path: Path) -> None:
    store.write([(WORDS, b"a", b"1")])
    drop_table(path)
    assert store.items(WORDS) == {}
    assert store.write([(WORDS, b"b", b"2")])
    assert (words(path), store.error, store.is_closed) == ({b"b": b"2"}, "", False)
    drop_table(path)
    assert (store.items(WORDS), store.is_closed) == ({}, True)
    assert not store.write([(WORDS, b"c", b"3")])
    assert store.error == "no such table: words"


def test_codes_are_those_of_sqlite() -> None:
    names = "ERROR CORRUPT TOOBIG MISMATCH FORMAT NOTADB", "BUSY LOCKED PROTOCOL"
    codes = [{getattr(sqlite3, f"SQLITE_{name}") for name in group.split()} for group in names]
    assert codes == [DAMAGED_CODES, LOCKED_CODES]


def test_a_new_file_of_another_process_stays(path: Path) -> None:
    """Both find the damage; the second does not remove what the first began."""
    with DiskStore(path, WORDS) as first, DiskStore(path, WORDS) as second:
        first.write([(WORDS, b"a", b"1")])
        second.get(WORDS, b"a")
        drop_table(path)
        first.items(WORDS)
        assert first.write([(WORDS, b"b", b"2")])
        assert second.items(WORDS) == {b"b": b"2"}


# ------------------------------------------------------------------------------------------ places that take no store


def foreign_tables(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE words (path TEXT)")
    other.commit()
    other.close()


def foreign_application(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("PRAGMA application_id=77")
    other.commit()
    other.close()


@pytest.mark.parametrize(
    "make",
    [
        foreign_tables,
        foreign_application,
        lambda path: path.write_bytes(b"a letter to nobody, longer than the header of a database" * 9),
        lambda path: path.write_bytes(b"short"),
    ],
)
def test_files_of_others_are_not_touched(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / FILE
    make(path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    with DiskStore(path, WORDS) as store:
        assert (store.items(WORDS), store.write([(WORDS, b"a", b"1")]), store.error) == ({}, False, FOREIGN)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.touch()
    assert put(path, a="1")
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION


@pytest.mark.parametrize(("place", "error"), [("file/" + FILE, "Not a directory"), ("folder", "Is a directory")])
def test_a_place_that_takes_no_store(tmp_path: Path, place: str, error: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    with DiskStore(tmp_path / place, WORDS) as store:
        assert (store.write([(WORDS, b"a", b"1")]), store.error, store.is_closed) == (False, error, True)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("mode", [0o500, 0o400])
def test_a_folder_that_may_only_be_read(path: Path, mode: int) -> None:
    put(path, a="1")
    path.parent.chmod(mode)
    try:
        for place in (path, path.with_name("new"), path.parent / "deeper" / FILE):
            with DiskStore(place, WORDS) as store:
                assert not store.write([(WORDS, b"a", b"2")])
                assert store.error
    finally:
        path.parent.chmod(0o700)
    assert words(path) == {b"a": b"1"}


def test_a_full_disk_keeps_nothing_of_a_write(store: DiskStore, path: Path) -> None:
    store.write([(WORDS, b"a", b"1")])
    store._database().execute("PRAGMA max_page_count = 4")
    assert not store.write([(WORDS, bytes([number]), bytes(PAGE)) for number in range(9)])
    assert (store.error, store.is_closed, words(path)) == ("database or disk is full", True, {b"a": b"1"})


# ------------------------------------------------------------------------------------------ processes at once


@pytest.fixture
def holder(path: Path) -> Iterator[sqlite3.Connection]:
    """Another connection, in the state of one that switches to WAL: SQLite lets nobody wait for it."""
    path.parent.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute("BEGIN EXCLUSIVE")
    yield connection
    connection.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(store_module.time, "sleep", found.append)
    return found


def test_a_lock_is_waited_for_once_and_passes(
    holder: sqlite3.Connection, store: DiskStore, path: Path, pauses: list[float]
) -> None:
    assert not store.write([(WORDS, b"a", b"1")])
    waited = sum(pauses)
    assert (pauses[:4], waited) == ([0.001, 0.002, 0.004, 0.008], pytest.approx(store_module.WAIT_S))
    assert store.get(WORDS, b"a") is None
    assert (sum(pauses), store.is_closed, store.error) == (waited, False, "database is locked")
    holder.execute("ROLLBACK")
    assert store.write([(WORDS, b"a", b"1")])
    assert (store.error, words(path)) == ("", {b"a": b"1"})


def test_it_is_tried_again_until_the_other_has_done(
    holder: sqlite3.Connection, store: DiskStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = iter((lambda: None, lambda: None, lambda: holder.execute("ROLLBACK")))
    monkeypatch.setattr(store_module.time, "sleep", lambda seconds: next(tries)())
    assert store.write([(WORDS, b"a", b"1")])
    assert words(path) == {b"a": b"1"}


WRITER = """
import sys
from pathlib import Path
from cachecost.base.store import DiskStore, StoreTable
table = StoreTable("words", 1)
for first in range(int(sys.argv[2]), int(sys.argv[3]), 20):
    with DiskStore(Path(sys.argv[1], str(first // 400)), table) as store:
        assert store.write((table, b"%d" % key, b"%d" % key) for key in range(first, first + 20)), store.error
"""


@pytest.mark.parametrize(
    "spans", [[(0, 800), (200, 1200)], pytest.param([(0, 1200)] * 6, marks=pytest.mark.slow)], ids=["2", "6"]
)
def test_processes_open_and_write_it_at_once_and_nothing_is_lost(tmp_path: Path, spans: list[tuple[int, int]]) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, str(first), str(last)]) for first, last in spans]
    assert [writer.wait(timeout=60) for writer in writers] == [0] * len(spans)
    found = [words(tmp_path / name) for name in "012"]
    expected = [{b"%d" % key: b"%d" % key for key in range(first, first + 400)} for first in (0, 400, 800)]
    assert found == expected


FORK = """
import os, sys
from pathlib import Path
from cachecost.base.store import DiskStore, StoreTable
table = StoreTable("words", 1)
store = DiskStore(Path(sys.argv[1]), table)
store.write([(table, b"a", b"1")])
child = os.fork()
if not child:
    os._exit(store.get(table, b"a") != b"1" or not store.write([(table, b"b", b"2")]))
assert os.waitpid(child, 0)[1] == 0
assert store.write([(table, b"c", b"3")])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_fork_has_a_connection_of_its_own(path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", FORK, str(path)], check=False).returncode == 0
    assert words(path) == {b"a": b"1", b"b": b"2", b"c": b"3"}
