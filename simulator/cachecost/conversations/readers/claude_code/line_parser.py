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
from cachecost.prompts.exact_json import Differs, refuse_number

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


decode_fields = msgspec.json.Decoder(LineFields, float_hook=refuse_number).decode
decode_all = msgspec.json.Decoder().decode


class LineParser:
    """Parses the lines of one file. The first object, and all lines of a content-free form, are parsed whole.

    `is_exact` is whether msgspec writes all values of the last line as Python's own encoder does.
    """

    def __init__(self) -> None:
        self.is_exact = False
        self._parse: Callable[[bytes], Any] = self._parse_first

    def _parse_first(self, line: bytes) -> Any:
        value = parse_json(line)
        if isinstance(value, dict):
            self._parse = parse_json if value.get("kind") == KIND else self._parse_fields
        return value

    def __call__(self, line: bytes) -> Any:
        return self._parse(line)

    def _parse_fields(self, line: bytes) -> Any:
        value, self.is_exact = parse_line(line)
        return value


def parse_line(line: bytes) -> tuple[Any, bool]:
    """The fields of a line, and `is_exact`; of a line that has none, is damaged or has numbers that msgspec might read
    or write otherwise, what `parse_json` makes of it.
    """
    try:
        if line.count(b"[") + line.count(b"{") > DEEPEST:
            check_depth(decode_all(line))
        fields = decode_fields(line)
        if not line.isascii():
            line.decode()
    except (Differs, msgspec.MsgspecError, UnicodeDecodeError, OutOfLimits, RecursionError):
        return parse_json(line), False
    return (parse_json(line), False) if _may_have_long_number(line) else (fields, True)


def _may_have_long_number(line: bytes) -> bool:
    """Whether there may be a number with more digits than Python takes: it would be at two places of a sample."""
    return len(line) > LONGEST_NUMBER and TWO_DIGITS.search(line[::STEP]) is not None
