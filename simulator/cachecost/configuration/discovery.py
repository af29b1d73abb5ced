"""Which settings file holds for a folder. Every command imports this module, so it imports next to nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

OWN, SHARED = "cachecost.toml", "pyproject.toml"
VARIABLE = "CACHECOST_CONFIG"
OFF = "off"
NAME = b"cachecost"
"""What a pyproject.toml with our table contains; others are not parsed."""
MOST_BYTES = 1 << 20
"""Of a settings file; the largest pyproject.toml files have a tenth of that."""


class FoundFiles(NamedTuple):
    """The files that may hold settings, nearest folder first, one or two a folder; and where was looked."""

    folders: tuple[tuple[Path, ...], ...]
    looked: tuple[Path, ...]

    @property
    def may_have_settings(self) -> bool:
        """Whether one of the files has to be parsed."""
        return any(map(may_be_ours, (path for files in self.folders for path in files)))


def may_be_ours(path: Path) -> bool:
    """Whether a file has to be parsed. A pyproject.toml that cannot be read is not ours."""
    if path.name != SHARED:
        return True
    try:
        with path.open("rb") as stream:
            return NAME in stream.read(MOST_BYTES + 1)
    except OSError:
        return False


def found_files(start: Path = Path()) -> FoundFiles:
    """The settings files of `start`, as this process' environment and home say."""
    home = Path("/")
    with suppress(RuntimeError):  # there is no home
        home = Path.home()
    return find_files(os.environ, home, start)


def find_files(environment: Mapping[str, str], home: Path, start: Path) -> FoundFiles:
    """The settings files of the folder `start` and of those above it.

    Looks no higher than the first folder with .git, or the home folder. CACHECOST_CONFIG names a file instead, or
    turns the search off. Files of others than root, the user and the owner of `start` do not count. Paths begin with
    `start`, so that they are those of a command line there.
    """
    named = environment.get(VARIABLE, "")
    if named == OFF:
        return FoundFiles((), ())
    if named:
        return FoundFiles(((Path(named),),), (Path(named),))
    try:
        looked, at, last = [start], start.resolve(), home.resolve()
        while at not in (last, at.parent) and not (at / ".git").exists():
            looked.append(looked[-1] / "..")
            at = at.parent
        trusted = {0, _owner(start), os.getuid() if hasattr(os, "getuid") else _owner(start)}
    except OSError:  # the current folder is gone
        return FoundFiles((), ())
    files = []
    for folder in looked:  # in a shared folder as /tmp anybody can put a file
        paths = (folder / name for name in (OWN, SHARED))
        files.append(tuple(path for path in paths if path.is_file() and _owner(path) in trusted))
    return FoundFiles(tuple(filter(None, files)), tuple(looked))


def _owner(path: Path) -> int:
    return path.lstat().st_uid
