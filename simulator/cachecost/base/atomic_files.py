"""Files as they are written and read: whole or not at all, one writer at a time, and only where reading is allowed.

A file is written to a temporary name in the same folder, then renamed. Long work is ended from outside: whoever starts
it sets a check, and its loops ask it, a replay before each call. All files may be read, unless this process answers
somebody else's words, as the MCP server does.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from filecmp import cmp
from glob import escape
from hashlib import blake2b
from pathlib import Path
from stat import S_IMODE, S_IWUSR
from typing import BinaryIO

from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import inert_text


class InUse(Exception):
    """Another process writes the file."""


def lock_file(file: int) -> None:
    """Lock the file of a descriptor until this process closes it or ends. Raises InUse."""
    if sys.platform != "win32":  # where there is no such lock
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InUse from None


WorkCheck = Callable[[], None]
"""Raises WorkStopped where the work is to end."""
_CHECK: ContextVar[WorkCheck | None] = ContextVar("work_check", default=None)


class WorkStopped(Exception):
    """The work is no longer wanted, or has taken too long. No CannotEvaluate: nothing in between may catch it."""


def current_work_check() -> WorkCheck | None:
    """What the work of this thread is to ask; loops get it once. None: it runs to its end."""
    return _CHECK.get()


@contextmanager
def checked_by(check: WorkCheck) -> Iterator[None]:
    """The work in this context asks `check`."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


_unfinished: set[Path] = set()
"""The temporary files and folders of this process."""


class CannotWrite(InputError):
    """A file cannot be written at its place."""


@contextmanager
def reporting_errors(path: str | Path, verb: str, kind: type[InputError] = InputError) -> Iterator[None]:
    """Raise an OSError in the block as `kind`: the file "cannot be written", where that is the verb."""
    try:
        yield
    except OSError as error:
        raise kind([Fault(str(path), f"cannot be {verb}: {error.strerror or error}")]) from None


@contextmanager
def replace_when_done(path: Path) -> Iterator[Path]:
    """A path in the same folder, for a file or a folder that becomes `path` when all went well. Raises OSError."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    for abandoned in path.parent.glob(f".{escape(path.name)}.*.part"):  # by processes that were killed
        process = abandoned.name.rsplit(".", 2)[1]
        try:
            if process.isdecimal():
                os.kill(int(process), 0)
        except ProcessLookupError:
            _remove(abandoned)
        except OSError:
            pass
    _unfinished.add(part)
    try:
        yield part
        part.replace(path)
    finally:
        _remove(part)
        _unfinished.discard(part)


def remove_unfinished() -> None:
    """Remove what this process has not finished writing, before it ends without unwinding every block."""
    while _unfinished:
        _remove(_unfinished.pop())


def _remove(part: Path) -> None:
    """Remove a temporary file or folder. If its folder is out of reach, that error is on its way."""
    with suppress(OSError):
        if part.is_dir():
            shutil.rmtree(part)
        else:
            part.unlink(missing_ok=True)


@contextmanager
def open_whole(path: Path, overwrite: bool = True, mode: int | None = None) -> Iterator[BinaryIO]:
    """A stream that becomes `path` when all is written, and nothing before. Raises CannotWrite.

    Without `overwrite`, InputError if there is a file with other content. A file that is there keeps its permissions;
    `mode` are those of a new one (None: as the umask has it).
    """
    real = path.resolve()  # what a link leads to is written, and the link stays
    try:
        with replace_when_done(real) as part:
            with part.open("wb") as stream:
                if real.is_file():
                    os.fchmod(stream.fileno(), S_IMODE(real.stat().st_mode))
                elif mode is not None:
                    os.fchmod(stream.fileno(), mode)
                yield stream
            if not overwrite and real.is_file() and not cmp(part, real, shallow=False):
                raise InputError([Fault(str(path), "exists with other content: --force overwrites it")])
    except OSError as error:
        raise CannotWrite([Fault(str(path), f"cannot be written: {error.strerror}")]) from error


def write_lines(
    lines: Iterable[bytes], target: str | Path | BinaryIO, overwrite: bool = True, mode: int | None = None
) -> None:
    """Write to a path (whole or not at all) or to an open binary stream.

    Raises as `open_whole`, and what iterating over `lines` raises.
    """
    if isinstance(target, (str, Path)):
        with open_whole(Path(target), overwrite, mode) as stream:
            stream.writelines(lines)
    else:
        target.writelines(lines)


def private_mode(sources: Iterable[Path]) -> int | None:
    """The permissions of a file made of these: 0600 where one of them is closed to others, else None."""
    modes = [path.stat().st_mode for path in sources if path.exists()]
    return 0o600 if any(not mode & 0o077 for mode in modes) else None


class OthersFile:
    """A file of another program, to be changed with care. `content` are its bytes as read; empty where there is none.

    A link is followed; mode and owner stay; what was there is kept once, beside it, as `….cachecost-backup`; nothing
    is written over a change that somebody made after it was read.
    """

    def __init__(self, path: Path) -> None:
        """Raises InputError where the file cannot be read."""
        self.path = path.resolve()
        self.content = self._read()

    def _read(self) -> bytes:
        with reporting_errors(self.path, "read"):
            return self.path.read_bytes() if self.path.exists() else b""

    def replace(self, content: bytes) -> None:
        """Write the new content. Raises CannotWrite: read-only, changed since it was read, or not to be written."""
        path = self.path
        with reporting_errors(path, "written", CannotWrite):
            status = path.stat() if path.exists() else None
            if status and not status.st_mode & S_IWUSR:
                raise CannotWrite([Fault(str(path), "is read-only; not written")])
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = S_IMODE(status.st_mode) if status else 0o600
            backup = path.with_name(f"{path.name}.cachecost-backup")
            if status and not backup.exists():
                with replace_when_done(backup) as part:
                    self._write(part, self.content, mode, status)
            with replace_when_done(path) as part:
                self._write(part, content, mode, status)
                if self._read() != self.content:
                    message = "changed by another program meanwhile; not written, try again"
                    raise CannotWrite([Fault(str(path), message)])

    @staticmethod
    def _write(part: Path, content: bytes, mode: int, status: os.stat_result | None) -> None:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(content)
            stream.flush()
            if status and hasattr(os, "fchown") and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(stream.fileno(), status.st_uid, status.st_gid)
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())


@contextmanager
def open_replacement(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A stream that becomes `path` when the block ends; if the block raises, `path` is unchanged. Raises OSError.

    `mode` are the permissions of the new file, before the umask.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with replace_when_done(path) as part, os.fdopen(os.open(part, flags, mode), "wb") as stream:
        yield stream


def write_whole(path: Path, content: bytes) -> None:
    """Write the file, with its folders, or leave what was there. Raises OSError."""
    with open_replacement(path) as stream:
        stream.write(content)


def write_text(path: Path, text: str) -> None:
    """Like `write_whole`; foreign text in it is inert. Raises InputError with the reason."""
    with reporting_errors(path, "written"):
        write_whole(path, inert_text(text).encode("utf-8"))


def remove_file(path: Path) -> None:
    """Remove a file that may not be there. Raises InputError with the reason."""
    with reporting_errors(path, "removed"):
        path.unlink(missing_ok=True)


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write the files, with their folders: none of them before all are complete. Raises InputError with the reason."""
    place = None
    try:
        with ExitStack() as renames:
            for place, content in files.items():
                place.parent.mkdir(parents=True, exist_ok=True)
                renames.enter_context(replace_when_done(place)).write_bytes(content)
    except OSError as error:
        fault = Fault(str(error.filename2 or place), f"cannot be written: {error.strerror or error}")
        raise InputError([fault]) from None


def safe_name(value: str) -> str:
    """A value as a file's name: letters, digits, `-`, `_` and `.`; any other value also gets its digest."""
    cut = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in value)[:80]
    safe = cut if cut.strip(".") else "-"
    return safe if safe == value else f"{safe}-{blake2b(value.encode(), digest_size=4).hexdigest()}"


def is_yaml(path: Path) -> bool:
    """Whether a path is that of a YAML file. Of inputs that may be a log or a scenario, that is the scenario."""
    return path.suffix in (".yaml", ".yml")


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
