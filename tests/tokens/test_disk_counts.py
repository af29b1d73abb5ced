"""Counts on disk: a text is counted once, by whichever process; what is wrong with the disk never shows."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cachecost.base.atomic_files import CACHE_VARIABLE, kept_folder
from cachecost.prompts.blocks import Block, compact, digest_of
from cachecost.prompts.render import CannotCount
from cachecost.tokens import disk_counts as disk
from cachecost.tokens.calibration import calibration
from cachecost.tokens.disk_counts import FILES_KEPT, BlockCount, DiskCounts, disk_counts, pack, state_of
from cachecost.tokens.textcounter import TextCounter
from cachecost.tokens.tokenizers import has_ctok

DIGEST = bytes(range(16))
MEASURED = BlockCount("code", 17, {"parameter": 2})


class Counting:
    """A tokenizer of words that knows how often it was asked."""

    key = "cl100k"
    advice = "ask again"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return len(text.split())


def block_of(text: str, **other: object) -> Block:
    content = {"type": "text", "text": text, **other}
    payload = compact(content)
    return Block("text", "user", digest_of("user", "text", payload), len(payload), content)


def counter(tally: Counting) -> TextCounter:
    measured = calibration("claude-3")
    return TextCounter("tiktoken", "a test", measured, tally, measured.ratio)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path / "counts"


@pytest.fixture
def counts(tmp_path: Path) -> Iterator[DiskCounts]:
    kept = DiskCounts(tmp_path / "counts" / "some.sqlite")
    yield kept
    kept.close()


@pytest.mark.parametrize(
    ("value", "expected"), [("off", None), ("OFF", None), ("", None), ("/some/place", Path("/some/place"))]
)
def test_where_counts_are_kept(monkeypatch: pytest.MonkeyPatch, value: str, expected: Path | None) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, value)
    assert kept_folder() == expected
    assert (disk_counts("cl100k") is None) == (expected is None)


def test_without_the_variable_it_is_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept_folder() == tmp_path / "cachecost"


def test_a_text_is_counted_once_across_counters(place: Path) -> None:
    first, second = Counting(), Counting()
    block = block_of("five words are in here")
    one = counter(first)
    tokens = one.block(block)
    assert one._disk is not None
    one._disk.close()
    assert counter(second).block(block) == tokens
    assert (first.asked, second.asked) == (["five words are in here"], [])


def test_nothing_is_kept_when_it_is_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for _ in range(2):
        tally = Counting()
        counter(tally).block(block_of("a b c"))
        assert tally.asked == ["a b c"]
    assert list(tmp_path.iterdir()) == []


def test_a_block_without_content_is_not_looked_up(place: Path) -> None:
    """Else an error would come and go with what happens to be on disk."""
    block = block_of("a b c")
    known = counter(Counting())
    known.block(block)
    bare = Block("text", "user", block.digest, block.size)
    with pytest.raises(CannotCount, match="has no content and no cl100k count"):
        counter(Counting()).block(bare)


def test_what_is_a_guess_stays_one(place: Path) -> None:
    content = {"type": "new_kind", "text": "a b"}
    block = Block("new_kind", "user", digest_of("user", "new_kind", compact(content)), 30, content)
    first = counter(Counting())
    tokens = first.block(block)
    assert first._disk is not None
    first._disk.close()
    second = counter(Counting())
    assert (second.block(block), second.guessed_kinds) == (tokens, first.guessed_kinds) == (tokens, ("new_kind",))


def test_one_process_reads_what_another_wrote(counts: DiskCounts) -> None:
    counts.put(DIGEST, MEASURED)
    assert counts.get(DIGEST) == MEASURED
    counts.flush()
    other = DiskCounts(counts.path)
    assert other.get(DIGEST) == MEASURED
    assert other.get(bytes(16)) is None
    other.close()


WRITER = """
import sys
from pathlib import Path
from cachecost.tokens.disk_counts import DiskCounts
from cachecost.tokens.disk_counts import BlockCount
counts = DiskCounts(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    counts.put(number.to_bytes(16), BlockCount("text", number, {}))
    if number % 50 == 0:
        counts.flush()
"""


def test_several_processes_write_at_once_and_nothing_is_lost(counts: DiskCounts) -> None:
    """Their numbers overlap; the last ones are written as the process ends."""
    spans = [(0, 700), (300, 1_000), (500, 1_200)]
    command = [sys.executable, "-c", WRITER, str(counts.path)]
    writers = [subprocess.Popen([*command, str(first), str(last)]) for first, last in spans]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    found = [counts.get(number.to_bytes(16)) for number in range(1_201)]
    assert found == [*(BlockCount("text", number, {}) for number in range(1_200)), None]


def test_a_damaged_file_is_put_aside_and_begun_anew(counts: DiskCounts) -> None:
    counts.path.parent.mkdir(parents=True)
    counts.path.write_bytes(b"no database at all, but long enough to be read as the head of one" * 20)
    assert counts.get(DIGEST) is None
    counts.put(DIGEST, MEASURED)
    counts.flush()
    again = DiskCounts(counts.path)
    assert again.get(DIGEST) == MEASURED
    again.close()
    assert counts.path.with_suffix(".damaged").exists()


def test_a_file_that_is_damaged_later_stops_being_used(counts: DiskCounts) -> None:
    counts.put(DIGEST, MEASURED)
    counts.flush()
    with sqlite3.connect(counts.path) as connection:
        connection.execute("DROP TABLE counts")
    connection.close()
    assert counts.get(DIGEST) is None
    assert counts.is_broken
    counts.put(DIGEST, MEASURED)
    assert counts.get(DIGEST) is None


def test_a_locked_file_costs_nothing(counts: DiskCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be written is written with the next counts."""
    monkeypatch.setattr(disk, "WAIT_S", 0.01)
    counts.get(DIGEST)
    writer = sqlite3.connect(counts.path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    counts.put(DIGEST, MEASURED)
    counts.flush()
    writer.execute("ROLLBACK")
    writer.close()
    assert not counts.is_broken
    counts.flush()
    other = DiskCounts(counts.path)
    assert other.get(DIGEST) == MEASURED
    other.close()


@pytest.fixture
def holder(counts: DiskCounts) -> Iterator[sqlite3.Connection]:
    """Another connection, in the state of one that assumptions to WAL: SQLite lets nobody wait for it."""
    counts.path.parent.mkdir(parents=True)
    connection = sqlite3.connect(counts.path, isolation_level=None)
    connection.execute("CREATE TABLE other (number)")
    connection.execute("BEGIN EXCLUSIVE")
    yield connection
    connection.close()


def test_opening_is_repeated_while_another_process_switches_to_wal(
    counts: DiskCounts, holder: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            holder.execute("ROLLBACK")

    monkeypatch.setattr(disk.time, "sleep", sleep)
    counts.put(DIGEST, MEASURED)
    counts.flush()
    assert (pauses, counts.is_broken) == ([0.001, 0.002, 0.004], False)
    other = DiskCounts(counts.path)
    assert other.get(DIGEST) == MEASURED
    other.close()


def test_a_file_that_stays_locked_is_neither_broken_nor_put_aside(
    counts: DiskCounts, holder: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for once; after that each try is a single one, and the first that succeeds keeps everything."""
    pauses: list[float] = []
    monkeypatch.setattr(disk.time, "sleep", pauses.append)
    counts.put(DIGEST, MEASURED)
    counts.flush()
    waited = sum(pauses)
    assert waited == pytest.approx(disk.WAIT_S)
    assert counts.get(bytes(16)) is None
    assert sum(pauses) == waited
    assert not counts.is_broken
    assert not counts.path.with_suffix(".damaged").exists()
    holder.execute("ROLLBACK")
    counts.flush()
    assert counts.get(bytes(16)) is None
    other = DiskCounts(counts.path)
    assert other.get(DIGEST) == MEASURED
    other.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with 40 counts."""
    kept = DiskCounts(tmp_path_factory.mktemp("counts") / "some.sqlite")
    for number in range(40):
        kept.put(number.to_bytes(16), BlockCount("code", number, {"parameter": number}))
    kept.close()
    return kept.path.read_bytes()


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_bit_never_gives_a_wrong_count(tmp_path: Path, written: bytes, seed: int) -> None:
    dice = random.Random(seed)
    damaged = bytearray(written)
    damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
    path = tmp_path / "some.sqlite"
    path.write_bytes(damaged)
    for _ in range(2):  # the second time, the file was put aside or is fine
        kept = DiskCounts(path)
        for number in range(40):
            expected = BlockCount("code", number, {"parameter": number})
            assert kept.get(number.to_bytes(16)) in (None, expected)
            kept.put(number.to_bytes(16), expected)
        kept.close()


@pytest.mark.parametrize(
    "checked",
    [
        b"",
        "text",
        17,
        bytes(8) + b'["code", 17, {}]',
        pack(DIGEST, BlockCount("code", -17, {})),
        pack(DIGEST, BlockCount("code", 17, {"parameter": -2})),
        pack(bytes(16), MEASURED),
    ],
    ids=["empty", "text", "number", "checksum", "negative", "negative-fact", "of-another-digest"],
)
def test_a_row_that_does_not_check_is_not_used(counts: DiskCounts, checked: object) -> None:
    counts.get(DIGEST)
    with sqlite3.connect(counts.path) as connection:
        connection.execute("INSERT INTO counts VALUES (?, ?)", (DIGEST, checked))
    connection.close()
    assert counts.get(DIGEST) is None
    assert counts.path.with_suffix(".damaged").exists()
    again = DiskCounts(counts.path)
    again.put(DIGEST, MEASURED)
    again.flush()
    assert again.get(DIGEST) == MEASURED
    again.close()


def test_only_the_damaged_file_is_put_aside(counts: DiskCounts) -> None:
    """Another process has put it aside and begun a new one: that stays."""
    counts.put(DIGEST, MEASURED)
    counts.flush()
    with sqlite3.connect(counts.path) as connection:
        connection.execute("DROP TABLE counts")
    connection.close()
    counts.path.replace(counts.path.with_suffix(".elsewhere"))
    new = DiskCounts(counts.path)
    new.put(DIGEST, MEASURED)
    new.close()
    assert counts.get(bytes(16)) is None
    assert counts.is_broken
    assert new.get(DIGEST) == MEASURED
    new.close()


def test_a_folder_that_cannot_be_made_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    counts = DiskCounts(tmp_path / "file" / "counts.sqlite")
    counts.put(DIGEST, MEASURED)
    counts.flush()
    assert (counts.get(DIGEST), counts.is_broken) == (None, True)


def test_an_update_starts_another_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = disk_counts("cl100k")
    state_of.cache_clear()
    monkeypatch.setattr(disk, "version", lambda package: "another")
    after = disk_counts("cl100k")
    state_of.cache_clear()
    assert before is not None
    assert after is not None
    assert before.path.parent == after.path.parent == place
    assert before.path != after.path


def test_a_change_of_what_reads_a_block_starts_another_file(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here: one more file beside those that decide a count."""
    before = state_of("cl100k")
    if has_ctok():
        assert state_of("ctok-3") != before
    state_of.cache_clear()
    (tmp_path / "new.toml").write_text("ratio = 2")
    monkeypatch.setattr(disk, "files", lambda package: tmp_path)
    assert state_of("cl100k") != before
    state_of.cache_clear()


def test_old_files_go_but_for_those_used_last(tmp_path: Path) -> None:
    for number in range(FILES_KEPT + 3):
        path = tmp_path / f"cl100k-{number}.sqlite"
        path.touch()
        os.utime(path, (number, number))
    new = DiskCounts(tmp_path / "cl100k-new.sqlite")
    new.get(DIGEST)
    new.close()
    left = sorted(path.name for path in tmp_path.glob("*.sqlite"))
    assert left == [*(f"cl100k-{number}.sqlite" for number in range(3, FILES_KEPT + 3)), "cl100k-new.sqlite"]


def test_the_counts_of_a_real_tokenizer_are_the_same_with_and_without(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cachecost.tokens.factory import make_counter

    blocks = [block_of(text) for text in ("", "plain words", "def f(x):\n    return x\n" * 30, "naïve café 你好")]
    counted = [make_counter("tiktoken", "claude-4.8") for _ in range(2)]
    first = [counted[0].block(block) for block in blocks]
    monkeypatch.setenv(CACHE_VARIABLE, "off")
    without = [make_counter("tiktoken", "claude-4.8").block(block) for block in blocks]
    assert first == [counted[1].block(block) for block in blocks] == without
