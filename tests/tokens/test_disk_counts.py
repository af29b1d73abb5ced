"""Counts on disk: a text is counted once, by whichever process; what is wrong with the disk never shows."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cachecost.base import store as store_module
from cachecost.base.store import VARIABLE, DiskStore, StoreTable
from cachecost.prompts.blocks import Block, compact, digest_of
from cachecost.prompts.render import CannotCount
from cachecost.tokens import disk_counts as disk
from cachecost.tokens.calibration import calibration
from cachecost.tokens.disk_counts import BlockCount, DiskCounts, counts_version
from cachecost.tokens.textcounter import TextCounter

TABLE = StoreTable("counts", 1)
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
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DiskStore]:
    with DiskStore(tmp_path / "store.sqlite", TABLE) as opened:
        yield opened


def test_a_text_is_counted_once_across_counters(place: None) -> None:
    first, second = Counting(), Counting()
    block = block_of("five words are in here")
    one = counter(first)
    tokens = one.block(block)
    assert one._disk is not None
    one._disk.close()
    assert counter(second).block(block) == tokens
    assert (first.asked, second.asked) == (["five words are in here"], [])


def test_nothing_is_kept_when_it_is_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for _ in range(2):
        tally = Counting()
        counter(tally).block(block_of("a b c"))
        assert tally.asked == ["a b c"]
    assert list(tmp_path.iterdir()) == []


def test_a_block_without_content_is_not_looked_up(place: None) -> None:
    """Else an error would come and go with what happens to be on disk."""
    block = block_of("a b c")
    known = counter(Counting())
    known.block(block)
    bare = Block("text", "user", block.digest, block.size)
    with pytest.raises(CannotCount, match="has no content and no cl100k count"):
        counter(Counting()).block(bare)


def test_what_is_a_guess_stays_one(place: None) -> None:
    content = {"type": "new_kind", "text": "a b"}
    block = Block("new_kind", "user", digest_of("user", "new_kind", compact(content)), 30, content)
    first = counter(Counting())
    tokens = first.block(block)
    assert first._disk is not None
    first._disk.close()
    second = counter(Counting())
    assert (second.block(block), second.guessed_kinds) == (tokens, first.guessed_kinds) == (tokens, ("new_kind",))


def test_counts_are_seen_at_once_here_and_elsewhere_once_written(store: DiskStore) -> None:
    counts, other = DiskCounts(store), DiskCounts(DiskStore(store.path, TABLE))
    counts.put(DIGEST, MEASURED)
    assert (counts.get(DIGEST), other.get(DIGEST)) == (MEASURED, None)
    counts.flush()
    assert (other.get(DIGEST), other.get(bytes(16))) == (MEASURED, None)
    other.close()


def test_the_last_counts_are_written_as_the_process_ends(store: DiskStore) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom cachecost.base.store import DiskStore, StoreTable\n"
        "from cachecost.tokens.disk_counts import BlockCount, DiskCounts\n"
        "counts = DiskCounts(DiskStore(Path(sys.argv[1]), StoreTable('counts', 1)))\n"
        "for number in range(700):\n    counts.put(number.to_bytes(16), BlockCount('text', number, {}))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(store.path)], check=True)
    counts = DiskCounts(store)
    found = [counts.get(number.to_bytes(16)) for number in range(701)]
    assert found == [*(BlockCount("text", number, {}) for number in range(700)), None]


def test_what_a_lock_kept_out_is_written_next_time(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "WAIT_S", 0.0)
    counts = DiskCounts(store)
    assert counts.get(DIGEST) is None
    writer = sqlite3.connect(store.path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    counts.put(DIGEST, MEASURED)
    counts.flush()
    assert store.get(TABLE, DIGEST) is None
    writer.execute("ROLLBACK")
    writer.close()
    counts.flush()
    assert store.get(TABLE, DIGEST) is not None


def test_a_folder_that_cannot_be_made_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    counts = DiskCounts(DiskStore(tmp_path / "file" / "store.sqlite", TABLE))
    counts.put(DIGEST, MEASURED)
    counts.flush()
    counts.put(bytes(16), MEASURED)
    assert (counts.get(bytes(16)), counts.store.is_closed) == (None, True)


def test_counts_hold_for_a_version_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    before = counts_version("cl100k")
    counts_version.cache_clear()
    monkeypatch.setattr(disk, "version", lambda package: "another")
    assert counts_version("cl100k") != before
    counts_version.cache_clear()


def test_counts_hold_while_what_reads_a_block_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here: one more file beside those that decide a count."""
    before = counts_version("cl100k")
    counts_version.cache_clear()
    (tmp_path / "new.toml").write_text("ratio = 2")
    monkeypatch.setattr(disk, "files", lambda package: tmp_path)
    assert counts_version("cl100k") != before
    counts_version.cache_clear()


def test_the_counts_of_a_real_tokenizer_are_the_same_with_and_without(
    place: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cachecost.tokens.factory import make_counter

    blocks = [block_of(text) for text in ("", "plain words", "def f(x):\n    return x\n" * 30, "naïve café 你好")]
    counted = [make_counter("tiktoken", "claude-4.8") for _ in range(2)]
    first = [counted[0].block(block) for block in blocks]
    monkeypatch.setenv(VARIABLE, "off")
    without = [make_counter("tiktoken", "claude-4.8").block(block) for block in blocks]
    assert first == [counted[1].block(block) for block in blocks] == without
