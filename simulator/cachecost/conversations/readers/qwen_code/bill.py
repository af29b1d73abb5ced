"""The bill of a session of Qwen Code: its calls without their content."""

from __future__ import annotations

from pathlib import Path

from cachecost.conversations.input_files import SessionFile
from cachecost.conversations.readers.common.session_calls import session_file as file_of
from cachecost.conversations.readers.common.session_calls import take_lines
from cachecost.conversations.readers.qwen_code.session import QwenSession

CLIENT = "qwen-code"


def session_file(path: Path) -> SessionFile:
    """The calls of a file. A damaged line is listed, and the others count."""
    parsed = QwenSession(path)
    faults = take_lines(path, parsed.take)
    return file_of(path, CLIENT, parsed.finish(), faults)
