"""Reads a session file of Gemini CLI: a log of records, or one JSON value (until spring 2026)."""

from __future__ import annotations

from pathlib import Path

from cachecost.base.errors import Fault
from cachecost.conversations.input_files import Warn, first_line, quiet, read_input
from cachecost.conversations.readers.common.session_calls import Session, take_all, take_lines
from cachecost.conversations.readers.gemini_cli.session import GeminiSession


def read_session(path: Path, faults: list[Fault], warn: Warn = quiet, *, keeps_content: bool = False) -> Session:
    """The session. Each damaged record is a fault. Raises InputError if the file cannot be opened."""
    parsed = GeminiSession(path, keeps_content)
    if _is_one_value(path):
        faults += take_all(path, read_input(path), parsed.take)
    else:
        faults += take_lines(path, parsed.take, warn)
    return parsed.finish()


def _is_one_value(path: Path) -> bool:
    """Whether the first line does not end the first object."""
    return first_line(path) == b"{"
