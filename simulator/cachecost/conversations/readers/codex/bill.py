"""The bill of a Codex session: its calls without their content."""

from __future__ import annotations

from pathlib import Path

from cachecost.conversations.input_files import SessionFile
from cachecost.conversations.readers.codex.rollout import Rollout
from cachecost.conversations.readers.common.session_calls import session_file as file_of
from cachecost.conversations.readers.common.session_calls import take_lines

CLIENT = "codex"


def session_file(path: Path) -> SessionFile:
    """The calls of a file. A damaged line is listed, and the others count."""
    rollout = Rollout(path)
    faults = take_lines(path, rollout.take)
    return file_of(path, CLIENT, rollout.finish(), faults)
