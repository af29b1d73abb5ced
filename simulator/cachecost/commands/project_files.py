"""The text files of the project that a scenario belongs to, and the commit it is at."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

LARGEST = 512 * 1024
"""Bytes of a file that prompts are looked for in."""
MOST = 5_000
"""Files that are read."""
NOT_SOURCE = frozenset({".jsonl", ".lock", ".svg", ".csv"})
NOT_SEARCHED = frozenset({"node_modules", "dist", "build", "__pycache__"})
"""Folders without a source, where git does not say which files belong to the project."""


def read_project_files(folder: Path, without: Path) -> dict[str, str]:
    """The text of each file that git knows and does not ignore in the project of `folder`, by its path as a command in
    the working folder writes it; where there is no git, of the files in `folder`. Those in `without` are left out.
    """
    root = _git_root(folder)
    found = _listed_by_git(root) if root else _walk(folder)
    left_out = without.resolve()
    texts: dict[str, str] = {}
    for path in found:
        if len(texts) == MOST:
            break
        if path.suffix in NOT_SOURCE or left_out in path.resolve().parents:
            continue
        if (text := _text(path)) is not None:
            texts[_shown(path)] = text
    return texts


def head_commit(folder: Path) -> str | None:
    """The commit that is checked out; None without git, or before the first commit."""
    output = _git(folder, "rev-parse", "--verify", "HEAD")
    return output.decode("ascii", "replace").strip() if output else None


def _git_root(folder: Path) -> Path | None:
    output = _git(folder, "rev-parse", "--show-toplevel")
    return Path(os.fsdecode(output).rstrip("\r\n")) if output else None


def _listed_by_git(root: Path) -> list[Path]:
    output = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard") or b""
    return [root / os.fsdecode(name) for name in sorted(output.split(b"\0")) if name]


def _git(folder: Path, *words: str) -> bytes | None:
    """What git says; None where it cannot be asked or fails."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in NOT_SEARCHED)
        yield from (Path(place) / name for name in sorted(names))


def _text(path: Path) -> str | None:
    """None where it is too large, no text, or cannot be read."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    return None if b"\0" in content else content.decode("utf-8", "replace")


def _shown(path: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), Path.cwd().resolve())).as_posix()
    except ValueError:  # another drive of Windows
        return path.as_posix()


def project_folder(paths: Sequence[Path]) -> Path:
    """The folder that the scenarios share, or the one above where it is called `scenarios`."""
    shared = Path(os.path.commonpath([path.resolve().parent for path in paths]))
    return shared.parent if shared.name == "scenarios" else shared
