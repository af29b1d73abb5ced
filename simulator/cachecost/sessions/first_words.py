"""What a person wrote before calls of a session, read from its files again: for the terminal only, never stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module

from cachecost.base.errors import InputError
from cachecost.conversations.billed_calls import SessionFile
from cachecost.conversations.input_files import input_path

READERS = {"claude-code": "readers.claude_code.messages"}
"""The module of each client whose files can be searched by line."""


def first_words(file: SessionFile, lines: Collection[int]) -> Mapping[int, str]:
    """The beginning of the message that each of these lines answers, by line; nothing where it cannot be read."""
    if file.client not in READERS:
        return {}
    reader = import_module(f"cachecost.conversations.{READERS[file.client]}")
    try:
        found: Mapping[int, str] = reader.first_words(input_path(file.path), lines)
    except (InputError, OSError):
        return {}
    return found
