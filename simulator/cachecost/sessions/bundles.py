"""Session files read in bundles, by several processes or machines: the result is that of one process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cachecost.base.errors import CannotEvaluate
from cachecost.conversations.input_files import is_url
from cachecost.sessions.reading import SessionFiles, SessionReading, decode_sessions, encode

MOST_FILES = 64
"""Of a bundle: few, as they are read again if their worker dies; many, as each bundle costs its scheduler 1.6 ms."""


@dataclass(frozen=True, slots=True)
class FileBundle:
    """Some neighbours of the files to read; `number` counts the bundles. Of `folders`, see `SessionReading`."""

    number: int
    paths: Sequence[Path]
    format_: str
    folders: Sequence[Path]


@dataclass(frozen=True, slots=True)
class BundleResult:
    """What reading a bundle gave; the sessions are packed apart, as pickling their calls takes long."""

    number: int
    found: SessionFiles
    sessions: bytes
    unseen: Path | None = None
    """A file of the bundle that the machine which read it does not have."""


def without_twins(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, each once, whatever its names are; one that cannot be looked at is an error of its bundle."""
    seen: set[tuple[int, int]] = set()
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            yield path
            continue
        if (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            yield path


def split_files(paths: Sequence[Path], format_: str, folders: Sequence[Path], workers: int) -> Iterator[FileBundle]:
    """The files in bundles, at least four for each worker where there are enough."""
    size = max(1, min(MOST_FILES, len(paths) // (4 * max(1, workers))))
    for number, first in enumerate(range(0, len(paths), size)):
        yield FileBundle(number, paths[first : first + size], format_, folders)


def read_bundle(bundle: FileBundle) -> BundleResult:
    """Read the files of a bundle; nothing is remembered."""
    found = SessionReading(None, bundle.format_, folders=bundle.folders).read_all(bundle.paths)
    sessions, found.sessions = found.sessions, []
    unseen = next((path for path in bundle.paths if not is_url(path) and not path.exists()), None)
    return BundleResult(bundle.number, found, encode(sessions), unseen)


def join_bundles(results: Iterable[BundleResult]) -> SessionFiles:
    """What all bundles gave, in the order of the files. Raises CannotEvaluate where a worker did not see a file that is
    here: a bill without it would be wrong."""
    whole = SessionFiles()
    every = list(results)
    for unseen in (one.unseen for one in every if one.unseen and one.unseen.exists()):
        raise CannotEvaluate(f"{unseen}: a worker does not see this file; all need the same folders at the same paths")
    for one in sorted(every, key=lambda result: result.number):
        whole.sessions += decode_sessions(one.sessions)
        for name in ("logs", "skipped", "notes"):
            getattr(whole, name).extend(getattr(one.found, name))
        whole.files += one.found.files
        whole.read_bytes += one.found.read_bytes
    return whole
