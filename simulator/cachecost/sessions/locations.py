"""Where agents keep their sessions (`locations.toml`), and what a person wrote before calls of one: that is read from
its files again, for the terminal only, and never stored."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePath
from typing import TypeVar

from cachecost.base.errors import InputError
from cachecost.conversations.input_files import SessionFile, input_path
from cachecost.conversations.readers.claude_code import messages


def first_words(file: SessionFile, lines: Collection[int]) -> Mapping[int, str]:
    """The beginning of the message that each of these lines answers, by line; nothing where it cannot be read."""
    return _read_messages(file, lambda path: messages.first_words(path, lines), {})


def first_message(file: SessionFile) -> str:
    """The beginning of the first message of a person in a file; "" where it cannot be read."""
    return _read_messages(file, messages.first_message, "")


T = TypeVar("T")


def _read_messages(file: SessionFile, read: Callable[[Path], T], nothing: T) -> T:
    try:  # only these files can be searched by line
        return read(input_path(file.path)) if file.client == "claude-code" else nothing
    except (InputError, OSError):
        return nothing


@dataclass(frozen=True, slots=True)
class SessionLocation:
    """A client and where it keeps its sessions; see the head of `locations.toml`."""

    client: str
    name: str
    home: tuple[str, ...]
    environment: tuple[str, ...]
    files: tuple[str, ...]
    source: str

    @property
    def names(self) -> tuple[str, ...]:
        """The clients whose sessions are there."""
        return tuple(self.name.split(", "))

    def folders(self, user_home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
        """The folders that exist. The first variable that is set replaces those of the table; it may list several, with
        commas."""
        found = [user_home / part for part in self.home]
        for entry in self.environment:
            variable, _, below = entry.partition("/")
            if named := environment.get(variable):
                found = [Path(part) / below for part in named.split(",") if part]
                break
        return (folder for folder in found if folder.is_dir())

    def roots(self, user_home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
        """The folders below which there are only sessions: those of `folders`, as far as the patterns name them."""
        for folder in self.folders(user_home, environment):
            for pattern in self.files:
                parts = list(PurePath(pattern).parent.parts)
                while parts and "*" in parts[-1]:
                    parts.pop()
                yield from folder.glob("/".join(parts)) if parts else [folder]

    def find(self, user_home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
        """The session files, sorted."""
        for folder in self.folders(user_home, environment):
            for pattern in self.files:
                yield from sorted(path for path in folder.glob(pattern) if path.is_file())


@cache
def locations() -> tuple[SessionLocation, ...]:
    """The clients whose sessions can be found."""
    text = files("cachecost.sessions").joinpath("locations.toml").read_text(encoding="utf-8")
    lists = ("home", "environment", "files")
    return tuple(
        SessionLocation(client, **{**row, **{name: tuple(row[name]) for name in lists}})
        for client, row in tomllib.loads(text).items()
    )
