"""The beginning of what a person wrote before each call of a transcript: only to be shown, never to be stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from cachecost.conversations.input_files import open_input
from cachecost.conversations.readers.common.json_values import decode, objects_in

LETTERS = 60
TAGS = ("<system-reminder>", "<local-command-", "<task-notification>", "<ide_", "Caveat: ")
"""How texts begin that the client added."""
COMMAND = "<command-name>"
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class MessageLine(msgspec.Struct, gc=False):
    """The parts of a line that connect a person's message with the answer to it."""

    type: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None  # noqa: N815 - the transcript's name
    logicalParentUuid: str | None = None  # noqa: N815
    isMeta: bool | None = None  # noqa: N815
    isCompactSummary: bool | None = None  # noqa: N815
    message: msgspec.Raw = msgspec.Raw(b"{}")


class PersonMessage(msgspec.Struct, gc=False):
    content: Any = None


def first_message(path: Path) -> str:
    """The first letters of a person's first message; "" where there is none. Raises InputError as `first_words`."""
    with open_input(path) as stream:
        for raw in stream:
            try:
                line = decode(raw, MessageLine)
            except UNREADABLE:
                continue
            if line.type == "user" and (text := _first_words(line)):
                return text
    return ""


def first_words(path: Path, lines: Collection[int]) -> Mapping[int, str]:
    """The first letters of the person's message that each of these lines answers, by line; others are left out. A line
    that cannot be read is passed over. Raises InputError where the file cannot be opened."""
    wanted, found = frozenset(lines), dict[int, str]()
    before: dict[str, str] = {}
    """The message that a record with this uuid follows, or is; "" after an answer."""
    with open_input(path) as stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = decode(raw, MessageLine)
            except UNREADABLE:
                continue
            text = before.get(line.parentUuid or "") or before.get(line.logicalParentUuid or "") or ""
            if line.type == "assistant":
                if number in wanted and text:
                    found[number] = text
                text = ""
            elif line.type == "user":
                text = _first_words(line) or text
            if line.uuid:
                before[line.uuid] = text
    return found


def _first_words(line: MessageLine) -> str:
    """The beginning of a person's message in one line; "" of what the client wrote."""
    if line.isMeta or line.isCompactSummary:
        return ""
    try:
        content = decode(line.message, PersonMessage).content
    except UNREADABLE:
        return ""
    texts = (piece.get("text") for piece in objects_in(content) if piece.get("type") == "text")
    for text in [content] if isinstance(content, str) else texts:
        if isinstance(text, str) and text.strip() and not text.lstrip().startswith(TAGS):
            _, is_command, rest = text.partition(COMMAND)
            if is_command and text.lstrip().startswith("<command-"):
                return rest.partition("<")[0].strip()
            words = " ".join(text[: LETTERS * 4].split())
            return words if len(words) <= LETTERS else f"{words[:LETTERS].rstrip()}…"
    return ""
