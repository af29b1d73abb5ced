"""The readers that give the calls of a session file for its bill, by format."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from cachecost.conversations.billed_calls import SessionFile

FORMATS = {"claude-code": "readers.claude_code.bill"}
"""The module of each format that has a fast reader; every other format is read call by call."""


class BillReader(Protocol):
    """A module that reads session files of one format for their bill."""

    def read_sessions(self, path: Path, state: bytes, /) -> tuple[list[SessionFile], bytes]:
        """The sessions in a file, and what is needed to go on where the file ends now (b"": read it anew).

        `state` is that of an earlier reading, whose calls come first. Raises InputError.
        """
        ...


def bill_reader(format_: str) -> BillReader | None:
    """The fast reader of a format; None where there is none."""
    module = FORMATS.get(format_)
    return cast("BillReader", import_module(f"cachecost.conversations.{module}")) if module else None


def count_calls(sessions: Sequence[SessionFile]) -> int:
    return sum(len(session.calls) for session in sessions)
