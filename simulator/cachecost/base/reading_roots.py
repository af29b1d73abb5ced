"""Which files this process may read: all, unless it answers somebody else's words, as the MCP server does.

Then files below the roots that it was given are read, and nothing at a URL. Links are followed before that is decided.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cachecost.base.errors import Fault, InputError


class _Allowed:
    roots: tuple[Path, ...] | None = None


def read_only_below(roots: Iterable[Path] | None) -> None:
    """From here on only files below these folders are read; None: all files, and URLs."""
    _Allowed.roots = None if roots is None else tuple(root.resolve() for root in roots)


def check_readable(path: Path) -> None:
    """Raises InputError for a file that may not be read, or whose name no file can have."""
    if "\0" in str(path):
        raise InputError([Fault(str(path).replace("\0", "\\0"), "expected the name of a file; got one with a NUL")])
    if _Allowed.roots is not None and not any(path.resolve().is_relative_to(root) for root in _Allowed.roots):
        where = ", ".join(map(str, _Allowed.roots))
        raise InputError([Fault(str(path), f"lies outside of what may be read here ({where}); allow it with --root")])


def check_url(name: str) -> None:
    """Raises InputError where nothing at a URL may be read; `name` is shown, so it has no secret in it."""
    if _Allowed.roots is not None:
        raise InputError([Fault(name, "expected a file on this machine; no URL is opened here")])
