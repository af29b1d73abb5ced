"""Inputs that are no plain files: gzip and zstd files, pipes and devices, and logs in object storage and on web
servers, which are read through fsspec. Few inputs are one of these, so this module is imported only for them.

A `RemotePath` is a path like any other: what reads logs needs not know where they are. Its name is the URL without
secrets: a password, or a query, which may hold a signature, is used to read and never shown.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from errno import EACCES, EIO, ENOENT, ETIMEDOUT
from hashlib import blake2b
from importlib import import_module
from io import SEEK_SET, BufferedReader, FileIO, RawIOBase
from pathlib import Path, PosixPath
from stat import S_IFDIR, S_IFREG
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from cachecost.base.errors import Fault, InputError, nearest
from cachecost.base.extras import require
from cachecost.base.limits import UNPACKED

ZSTD_MODULES = ("compression.zstd", "zstandard")
"""Python's own from 3.14; before, a package that nothing here depends on."""


class PackedInput(RawIOBase):
    """A file that `module` unpacks. Damage anywhere, and more data than `UNPACKED`, raise InputError."""

    def __init__(self, path: Path, module: Any, name: str, errors: tuple[type[Exception], ...]) -> None:
        self._path, self._name = path, name
        self._errors: tuple[type[Exception], ...] = (EOFError, *errors)
        self._open: list[Any] = [path.open("rb")]
        self._open.append(module.open(self._open[0], "rb"))
        self._left = UNPACKED.value()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        """A transcript that was read before is continued where it ended."""
        return True

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        return int(self._open[-1].seek(offset, whence))

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._open[-1].read(len(buffer))
        except self._errors as error:
            raise InputError([Fault(str(self._path), f"damaged {self._name}: {error}")]) from None
        self._left = _count_down(self._left, len(data), self._path)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        while self._open:
            self._open.pop().close()
        super().close()


def open_packed(path: Path, name: str) -> BufferedReader:
    """A gzip or zstd file, open for reading. Raises InputError where nothing can unpack it."""
    if name == "gzip":
        return BufferedReader(PackedInput(path, gzip, name, (gzip.BadGzipFile, zlib.error)), BUFFER)
    for module_name in ZSTD_MODULES:
        with suppress(ImportError):
            module = import_module(module_name)
            return BufferedReader(PackedInput(path, module, name, (module.ZstdError,)), BUFFER)
    raise InputError([Fault(str(path), "is packed with zstd: unpack it (zstd -d), or install zstandard")])


class EndlessInput(FileIO):
    """A pipe or a device. More data than `UNPACKED` raises InputError."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._path, self._left = path, UNPACKED.value()

    def readinto(self, buffer: Any) -> int | None:
        read = super().readinto(buffer)
        self._left = _count_down(self._left, read or 0, self._path)
        return read


def _count_down(left: int, size: int, path: Path) -> int:
    """The bytes that may still be read. Raises InputError beyond the limit."""
    if size > left:
        raise InputError([Fault(str(path), str(UNPACKED.error()))])
    return left - size


MODULES = {
    **dict.fromkeys(("s3", "s3a"), ("s3fs",)),
    **dict.fromkeys(("gs", "gcs"), ("gcsfs",)),
    **dict.fromkeys(("az", "abfs", "abfss"), ("adlfs",)),
    **dict.fromkeys(("http", "https"), ("fsspec", "aiohttp")),
}
"""The modules that read the URLs of each scheme."""
WEB = ("http", "https")
BUFFER = 1 << 16
"""Bytes that are unpacked at once."""
PIECE = 4 << 20
"""Bytes of a request: large enough for few requests, small enough to look at the beginning of many files."""
SQLITE = b"SQLite format 3\0"
ON_DISK = "can only be read from a disk"
SECRETS = ((re.compile(r"(\w://)[^/\s@'\"]*@"), r"\1"), (re.compile(r"(\w://[^\s?'\"<>]*)\?[^\s'\"<>)]*"), r"\1"))


def remote_path(url: str) -> RemotePath:
    """The file or folder at `url`, which exists. Raises NotInstalled where the package for its scheme is missing,
    InputError where nothing can be read there."""
    scheme, shown = url.partition("://")[0].lower(), without_secrets(url)
    if scheme not in MODULES:
        known = ", ".join(f"{name}://" for name in MODULES)
        raise InputError([Fault(shown, f"cannot be read: expected one of {known}{nearest(scheme, MODULES)}")])
    require(f"{scheme}://", *MODULES[scheme])
    path = RemotePath(shown.replace("://", ":/", 1))
    path.url = url
    if scheme in WEB and urlsplit(url).path.endswith("/"):
        raise InputError([Fault(shown, "is a folder, which a web server does not list: name its files")])
    try:
        path.stat()
    except OSError as error:
        raise InputError([Fault(shown, f"cannot be read: {error.strerror}")]) from None
    return path


def matching_paths(pattern: str) -> list[RemotePath]:
    """What a URL with `*`, `?` or `[` in it matches, sorted. Raises NotInstalled, and InputError: unreadable."""
    folder, _, _ = re.split(r"[*?\[]", pattern, maxsplit=1)[0].rpartition("/")
    return sorted(remote_path(folder).glob(pattern.removeprefix(f"{folder}/")))


def without_secrets(url: str) -> str:
    """A URL without password and query. What comes before the @ of `abfs://container@account…` is no secret."""
    scheme, place, path, _, _ = urlsplit(url)
    user, at, host = place.rpartition("@")
    return urlunsplit((scheme, host if ":" in user or scheme in WEB else user + at + host, path, "", ""))


class RemotePath(PosixPath):
    """A file or folder at a URL. What is known of it is asked for once; then it is taken not to change. Only what
    reading needs is there: the OSErrors of its methods have a `strerror` without secrets."""

    url = ""
    """Where it is read; empty: at its name."""
    _details: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)

    def __fspath__(self) -> str:
        raise InputError([Fault(str(self), f"{ON_DISK}: download it")])

    def as_uri(self) -> str:
        return os.fspath(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (super().__str__(),), {"url": self.url, "_details": self._details}

    def absolute(self) -> RemotePath:
        return self

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Kind and size (−1: the server does not say), and an inode of its own. Raises OSError."""
        details = self._known()
        kind = S_IFDIR if details["type"] == "directory" else S_IFREG
        size = -1 if details.get("size") is None else details["size"]
        inode = int.from_bytes(blake2b((self.url or str(self)).encode(), digest_size=8).digest())
        return os.stat_result((kind | 0o444, inode, 0, 1, 0, 0, size, 0, 0, 0))

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        return self._kind() is not None

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._kind() == "file"

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._kind() == "directory"

    def open(self, mode: str = "rb", *_: Any, **__: Any) -> BufferedReader[Any]:  # type: ignore[override]
        """The bytes of the file, in requests of 4 MiB. Raises OSError, and InputError for a database."""
        stream: BufferedReader[Any] = BufferedReader(RemoteStream(self), PIECE)
        if stream.peek(len(SQLITE)).startswith(SQLITE):
            stream.close()
            raise InputError([Fault(str(self), f"is an SQLite database, which {ON_DISK}: download it")])
        return stream

    def iterdir(self) -> Generator[RemotePath, None, None]:
        system, key = self.place()
        yield from self._children({one["name"]: one for one in self._ask(system.ls, key, detail=True)})

    def glob(self, pattern: str, **_: Any) -> Iterator[RemotePath]:  # type: ignore[override]
        system, key = self.place()
        return iter(self._children(self._ask(system.glob, f"{key.rstrip('/')}/{pattern}", detail=True)))

    def rglob(self, pattern: str, **_: Any) -> Iterator[RemotePath]:  # type: ignore[override]
        return self.glob(f"**/{pattern}")

    def place(self) -> tuple[Any, str]:
        """The file system of fsspec, and the name in it. Raises OSError."""
        url = self.url or str(self)
        options = {"encoded": True} if url.startswith(WEB) and ("%" in url or "?" in url) else {}
        found = self._ask(import_module("fsspec.core").url_to_fs, url, **options)
        return found[0], found[1]

    def _children(self, found: Mapping[str, Mapping[str, Any]]) -> list[RemotePath]:
        """The paths of a listing, which says already what they are."""
        _, key = self.place()
        start, children = len(key.rstrip("/")) + 1, []
        for name, details in found.items():
            if relative := name[start:].strip("/"):
                child = RemotePath(super().__str__(), relative)
                child.url = f"{str(self).rstrip('/')}/{name[start:]}"
                child._details = details
                children.append(child)
        return children

    def _known(self) -> Mapping[str, Any]:
        if self._details is None:
            system, key = self.place()
            self._details = self._ask(system.info, key)
        return self._details

    def _kind(self) -> str | None:
        """None where nothing is, or nobody may know."""
        try:
            return str(self._known()["type"])
        except OSError:
            return None

    def _ask(self, ask: Any, *words: Any, **options: Any) -> Any:
        """What a function of fsspec returns. The library of each store raises classes of its own. Raises OSError."""
        try:
            return ask(*words, **options)
        except Exception as error:
            raise os_error(error) from None


class RemoteStream(RawIOBase):
    """The bytes of a remote file. A connection that ends too early, and any other failure, raise InputError."""

    def __init__(self, path: RemotePath) -> None:
        system, key = path.place()
        self._path = path
        self._left = path.stat().st_size
        self._file = path._ask(system.open, key, "rb", block_size=PIECE, cache_type="none")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except Exception as error:
            raise self._broken(str(os_error(error).strerror)) from None
        if not data and self._left > 0:
            raise self._broken(f"it ended {self._left:,} bytes too early")
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)

    def _broken(self, why: str) -> InputError:
        return InputError([Fault(str(self._path), f"cannot be read further: {why}")])

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def os_error(error: Exception) -> OSError:
    """What went wrong in a store, in one line without secrets."""
    cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
    status = getattr(cause, "status", None)
    if isinstance(error, PermissionError) or status in (401, 403):
        return PermissionError(EACCES, "access denied, check the credentials")
    if isinstance(error, FileNotFoundError) and (cause is error or status == 404):
        return FileNotFoundError(ENOENT, "no such file or folder")
    if isinstance(error, TimeoutError):
        return TimeoutError(ETIMEDOUT, "timed out")
    if isinstance(error, FileNotFoundError) and hasattr(cause, "response"):
        return FileNotFoundError(ENOENT, _one_line(error))
    return OSError(EIO, _one_line(cause))


def _one_line(error: Exception) -> str:
    text = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    for secret, instead in SECRETS:
        text = secret.sub(instead, text)
    return text
