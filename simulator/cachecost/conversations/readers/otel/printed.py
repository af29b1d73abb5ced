"""Log records as JavaScript's console exporter prints them: objects in the notation of Node's `util.inspect`."""

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


class Damaged(Exception):
    """A text that is no printed object."""


def is_printed(head: bytes) -> bool:
    """Whether the first bytes of a file hold printed log records."""
    plain = COLOURS.sub(b"", head).replace(b"\r\n", b"\n")
    return any(mark in plain for mark in MARKS)


def printed_records(path: Path, faults: list[Fault]) -> Iterator[JsonObject]:
    """The printed log records of a file, in order. A damaged one becomes a fault."""
    text = COLOURS.sub(b"", read_input(path)).decode("utf-8-sig", "replace").replace("\r\n", "\n")
    at, line = 0, 1
    while block := BLOCK.search(text, at):
        end = END.search(text, block.end())
        line += text.count("\n", at, block.start())
        stop = end.end() if end else len(text)
        record = text[block.end() : stop]
        if "\n  attributes: {" in record and "\n  body: " in record:
            try:
                value = _Parser(record).value()
            except Damaged as error:
                faults.append(Fault(str(path), f"damaged log record: {error}", line))
            else:
                yield JsonObject(value, faults, str(path), line)
        line, at = line + text.count("\n", block.start(), stop), stop


class _Parser:
    """Reads one value of the notation. Raises Damaged."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def value(self, depth: int = 0) -> Any:
        kind, token = self._next()
        if kind == "mark" and token in "{[":
            if depth >= DEEPEST:
                raise Damaged(f"objects more than {DEEPEST} levels deep")
            return self._object(depth + 1) if token == "{" else self._array(depth + 1)
        if kind == "text":
            pieces = [_unescape(token)]
            while self._skips("+"):
                kind, token = self._next()
                if kind != "text":
                    raise Damaged("expected a text after +")
                pieces.append(_unescape(token))
            return "".join(pieces)
        if kind == "number" and len(token) <= LONGEST_NUMBER:
            return float(token) if re.search(r"[.e]", token) else int(token.rstrip("n"))
        if kind == "left_out":
            return None
        if kind == "word" and token in WORDS:
            return WORDS[token]
        raise Damaged(f"expected a value; got {token[:20]!r}")

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._skips("}"):
            kind, name = self._next()
            if kind not in ("text", "word", "number") or not self._skips(":"):
                raise Damaged(f"expected a name and a colon; got {name[:20]!r}")
            found[_unescape(name) if kind == "text" else name] = self.value(depth)
            self._skips(",")
        return found

    def _array(self, depth: int) -> list[Any]:
        found = []
        while not self._skips("]"):
            found.append(self.value(depth))
            self._skips(",")
        return found

    def _next(self) -> tuple[str, str]:
        found = TOKEN.match(self._text, self._at)
        if found is None:
            rest = self._text[self._at :].strip()
            raise Damaged(f"got {rest[:20]!r}" if rest else "cut off")
        self._at = found.end()
        kind = str(found.lastgroup)
        return kind, found[kind]

    def _skips(self, mark: str) -> bool:
        found = TOKEN.match(self._text, self._at)
        if found is None:
            raise Damaged("cut off")
        if found["mark"] != mark:
            return False
        self._at = found.end()
        return True


def _unescape(token: str) -> str:
    return re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[1]), token[1:-1], flags=re.DOTALL)
