"""Log records as JavaScript's console exporter prints them: objects in the notation of Node's `util.inspect`.

`OTEL_LOGS_EXPORTER=console` mixes them with the program's own output, which is skipped, and with metrics. A record
begins with the line "{" and ends with the line "}". On a terminal the exporter adds colours. Node and Bun differ in
quotes and trailing commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.conversations.input_files import read_input
from cachecost.conversations.json_object import JsonObject

MARKS = (b"\n  instrumentationScope: {", b"\n  body: 'claude_code.", b'\n  body: "claude_code.')
COLOURS = re.compile(rb"\x1b\[[0-9;]*m")
BLOCK = re.compile(r"^(?:\[\w+\] )?(?=\{$)", re.MULTILINE)
END = re.compile(r"^\}", re.MULTILINE)
TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`\\]|\\.)*`)|(?P<left_out>\[[A-Z]\w*\]|\.\.\. [^\n]*)"
    r"|(?P<number>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?n?)|(?P<word>[A-Za-z_$][\w$]*)|(?P<mark>[{}\[\]:,+]))",
    re.DOTALL,
)
WORDS = {"true": True, "false": False, "null": None, "undefined": None}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
DEEPEST = 16
LONGEST_NUMBER = 30
Token = tuple[str, str]


class Damaged(Exception):
    """A text that is no printed object."""


def is_printed(head: bytes) -> bool:
    """Whether the first bytes of a file hold printed log records."""
    plain = COLOURS.sub(b"", head).replace(b"\r\n", b"\n")
    return any(mark in plain for mark in MARKS)


def printed_records(path: Path, faults: list[Fault]) -> Iterator[JsonObject]:
    """The printed log records of a file, in order. A damaged one becomes a fault."""
    data = COLOURS.sub(b"", read_input(path))
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    at, line = 0, 1
    while block := BLOCK.search(text, at):
        end = END.search(text, block.end())
        line += text.count("\n", at, block.start())
        stop = end.end() if end else len(text)
        yield from _record(text[block.end() : stop], faults, path, line)
        line, at = line + text.count("\n", block.start(), stop), stop


def _record(text: str, faults: list[Fault], path: Path, line: int) -> Iterator[JsonObject]:
    if "\n  attributes: {" not in text or "\n  body: " not in text:
        return
    try:
        value = _Parser(text).value()
    except Damaged as error:
        faults.append(Fault(str(path), f"damaged log record: {error}", line))
        return
    if isinstance(value, dict):
        yield JsonObject(value, faults, str(path), line)


class _Parser:
    """Reads one value of the notation. Raises Damaged."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def value(self) -> Any:
        kind, token = self._next()
        if kind == "mark" and token in "{[":
            return self._nested(self._object if token == "{" else self._array)
        if kind == "text":
            return self._long_text(_unescape(token))
        if kind == "number" and len(token) <= LONGEST_NUMBER:
            return float(token) if re.search(r"[.e]", token) else int(token.rstrip("n"))
        if kind == "left_out":
            return None
        if kind == "word" and token in WORDS:
            return WORDS[token]
        raise Damaged(f"expected a value; got {token[:20]!r}")

    def _nested(self, read: Any) -> Any:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Damaged(f"objects more than {DEEPEST} levels deep")
        value = read()
        self._depth -= 1
        return value

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._takes("}"):
            kind, name = self._next()
            if kind not in ("text", "word", "number") or not self._takes(":"):
                raise Damaged(f"expected a name and a colon; got {name[:20]!r}")
            found[_unescape(name) if kind == "text" else name] = self.value()
            self._takes(",")
        return found

    def _array(self) -> list[Any]:
        found = []
        while not self._takes("]"):
            found.append(self.value())
            self._takes(",")
        return found

    def _long_text(self, text: str) -> str:
        """A text that is printed in pieces."""
        pieces = [text]
        while self._takes("+"):
            kind, token = self._next()
            if kind != "text":
                raise Damaged("expected a text after +")
            pieces.append(_unescape(token))
        return "".join(pieces)

    def _next(self) -> Token:
        found = TOKEN.match(self._text, self._at)
        if found is None:
            rest = self._text[self._at :].strip()
            raise Damaged(f"got {rest[:20]!r}" if rest else "cut off")
        self._at = found.end()
        kind = str(found.lastgroup)
        return kind, found[kind]

    def _takes(self, mark: str) -> bool:
        found = TOKEN.match(self._text, self._at)
        if found is None:
            raise Damaged("cut off")
        if found["mark"] != mark:
            return False
        self._at = found.end()
        return True


def _unescape(token: str) -> str:
    return re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[1]), token[1:-1], flags=re.DOTALL)
