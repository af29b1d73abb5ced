"""Which recordings are never used for fitting: a third of the files of each source, chosen by a hash of their names."""

from __future__ import annotations

import hashlib
from pathlib import PurePath

ONE_IN = 3
SUFFIXES = frozenset({".gz", ".jsonl", ".json", ".yaml", ".yml"})


def is_held_out(name: str) -> bool:
    """Whether the recording in a file of this name is held out: the SHA-256 of `recording_name`, modulo 3, is 0."""
    digest = hashlib.sha256(recording_name(name).encode()).digest()
    return int.from_bytes(digest, "big") % ONE_IN == 0


def recording_name(name: str) -> str:
    """The name of a file without folders, suffixes and "@commit".

    A recording that was made again at another commit is nearly the same: both are in the same part.
    """
    path = PurePath(name)
    while path.suffix in SUFFIXES:
        path = path.with_suffix("")
    return path.name.partition("@")[0]


def name_in_source(source: str, file: str) -> str:
    """The name under which a file of a repository is kept: "owner+repository__path_of_the_file"."""
    return f"{source.replace('/', '+')}__{file.replace('/', '_')}"
