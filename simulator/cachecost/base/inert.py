"""Makes foreign text safe to print: model ids, tool names, paths, sessions, titles of a recording.

Characters that move the cursor, change colours or the text direction or end a line, and code points that are no
character, are escaped as in JSON (`\\u001b`): visible and harmless, and printed JSON keeps its meaning.
"""

from __future__ import annotations

import codecs
import os
import re

LINES = r"\n\t"
ACTIVE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls: escape sequences, a bell, a carriage return, C1
    r"\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # unseen, or turning
    r"\ud800-\udfff\U000e0000-\U000e007f"  # halves of a character, and tags
)
IN_TEXT = re.compile(f"[{ACTIVE}]")
IN_LINE = re.compile(f"[{ACTIVE}{LINES}]")
FORMULA = re.compile(r"\s*[=+\-@\t\r|%]")
COMMAND = re.compile(r"^(\s*)(?::(?=:))|#(?=#(?:vso)?\[)", re.MULTILINE)
"""What a CI runner takes for a command: `::` where a line begins, `##[` and `##vso[` anywhere."""
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?%?")


def inert(text: str) -> str:
    """`text` as one line without control characters."""
    return text if text.isascii() and text.isprintable() else IN_LINE.sub(_escape, text)


def inert_text(text: str) -> str:
    """`text` of several lines: line ends and tabs stay."""
    return IN_TEXT.sub(_escape, text)


def inert_output(text: str) -> str:
    """`text` for stdout and stderr: as `inert_text`, and no line of it is a command to a CI runner."""
    return without_commands(inert_text(text))


def inert_json(line: bytes) -> bytes:
    """A line of JSON as `inert_output`; it means the same."""
    acts = not line.isascii() or b"\x7f" in line or b"##" in line
    return inert_output(line.decode("utf-8", "surrogatepass")).encode() if acts else line


def without_commands(text: str) -> str:
    """`text` without what a CI runner takes for a command."""
    return COMMAND.sub(_command, text) if "::" in text or "##" in text else text


def file_name(name: str) -> str:
    """A file's name as text: of a name that is not UTF-8, other bytes are shown as `\\xff`."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


def inert_cell(text: str) -> str:
    """A cell of a table that a spreadsheet may open: inert, and no formula (OWASP, CSV injection)."""
    shown = inert_text(text)
    return f"'{shown}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else shown


def _command(match: re.Match[str]) -> str:
    return f"{match[1] or ''}\\u{ord(match[0][-1]):04x}"


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


# ------------------------------------------------------------------------------------- streams that lack a sign

SIGNS_AS_ASCII = {"–": "-", "−": "-", "±": "+-", "→": "->", "·": "|", "…": "~", "✗": "x", "×": "x", "†": "*", "▮": "|"}
QUOTES_AS_ASCII = {"“": '"', "”": '"', "‘": "'", "’": "'"}
BARS_AS_ASCII = {**dict.fromkeys("▏▎▍", ""), **dict.fromkeys("▌▋▊▉█", "#")}
AS_ASCII = {**SIGNS_AS_ASCII, **QUOTES_AS_ASCII, **BARS_AS_ASCII}
TO_ASCII = str.maketrans(AS_ASCII)
SIGNS = "cachecost.signs"
"""The error handler of an encoder: a sign that the encoding lacks becomes ASCII, other characters `?`."""

PLAIN_ASCII = "cachecost_ascii"
"""ASCII by another name: click writes UTF-8 past a stream whose encoding is called ASCII."""


def encodable(text: str, encoding: str) -> str:
    """`text`, or where `encoding` lacks one of its signs, ASCII in the place of all of them."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(TO_ASCII).encode(encoding, SIGNS).decode(encoding)
    return text


def _sign(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(AS_ASCII.get(letter, "?") for letter in lacking), error.end


def _plain_ascii(name: str) -> codecs.CodecInfo | None:
    if name != PLAIN_ASCII:
        return None
    ascii_ = codecs.lookup("ascii")
    pair = ascii_.incrementalencoder, ascii_.incrementaldecoder
    return codecs.CodecInfo(ascii_.encode, ascii_.decode, ascii_.streamreader, ascii_.streamwriter, *pair, PLAIN_ASCII)


codecs.register_error(SIGNS, _sign)
codecs.register(_plain_ascii)
