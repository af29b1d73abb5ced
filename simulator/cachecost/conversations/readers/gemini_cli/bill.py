"""The bill of a session of Gemini CLI: its calls without their content."""

from __future__ import annotations

from pathlib import Path

from cachecost.base.errors import Fault
from cachecost.conversations.input_files import SessionFile
from cachecost.conversations.readers.common.session_calls import session_file as file_of
from cachecost.conversations.readers.gemini_cli.files import read_session

CLIENT = "gemini-cli"


def session_file(path: Path) -> SessionFile:
    """The calls of a file. A damaged record is listed, and the others count."""
    faults: list[Fault] = []
    return file_of(path, CLIENT, read_session(path, faults), faults)
