"""Parses lines of a transcript as far as calls need them: half of their bytes are for the client's display alone.

The result, and every error, is that of `parse_json`, without the fields that nobody reads. Lines where msgspec, which
passes over those fields, might see something else than Python's own parser go to that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypedDict

import msgspec

from cachecost.base.limits import DEEPEST, OutOfLimits, check_depth
from cachecost.conversations.json_object import parse_json
from cachecost.conversations.transcript_steps import KIND

LONGEST_NUMBER = 4300
"""Digits that Python's own parser takes."""
STEP = LONGEST_NUMBER // 2
TWO_DIGITS = re.compile(rb"\d\d")


class LineFields(TypedDict, total=False):
    """The fields of a line that calls are made of."""

    type: Any
    uuid: Any
    parentUuid: Any
    logicalParentUuid: Any
    timestamp: Any
    isSidechain: Any
    sessionId: Any
    agentId: Any
    cwd: Any
    version: Any
    subtype: Any
    message: Any
    requestId: Any
    requestRef: Any
    isApiErrorMessage: Any
    isCompactSummary: Any
    id: Any
    cacheControl: Any


decode_fields = msgspec.json.Decoder(LineFields).decode
decode_all = msgspec.json.Decoder().decode


class LineParser:
    """Parses the lines of one file. The first object, and all lines of a content-free form, are parsed whole."""

    def __init__(self) -> None:
        self.parse: Callable[[bytes], Any] = self._parse_first

    def _parse_first(self, line: bytes) -> Any:
        value = parse_json(line)
        if isinstance(value, dict):
            self.parse = parse_json if value.get("kind") == KIND else parse_line
        return value

    def __call__(self, line: bytes) -> Any:
        return self.parse(line)


def parse_line(line: bytes) -> Any:
    """The fields of a line, or what `parse_json` makes of a line that has none or is damaged."""
    try:
        if line.count(b"[") + line.count(b"{") > DEEPEST:
            check_depth(decode_all(line))
        fields = decode_fields(line)
        if not line.isascii():
            line.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, OutOfLimits, RecursionError):
        return parse_json(line)
    return parse_json(line) if _may_have_long_number(line) else fields


def _may_have_long_number(line: bytes) -> bool:
    """Whether there may be a number with more digits than Python takes: it would be at two places of a sample."""
    return len(line) > LONGEST_NUMBER and TWO_DIGITS.search(line[::STEP]) is not None
