"""Parses lines of a transcript as far as calls need them: half of their bytes are for the client's display alone.

The result is that of `parse_json`, without the fields that nobody reads. Lines where msgspec, which passes over those
fields, might see something else than Python's own parser, and lines whose fields have other types than usual, are none.
"""

from __future__ import annotations

import re

import msgspec

from cachecost.base.limits import DEEPEST, OutOfLimits, check_depth
from cachecost.conversations.readers.claude_code.line import TranscriptLine
from cachecost.prompts.exact_json import Differs, refuse_number

LONGEST_NUMBER = 4300
"""Digits that Python's own parser takes."""
STEP = LONGEST_NUMBER // 2
TWO_DIGITS = re.compile(rb"\d\d")

decode_fields = msgspec.json.Decoder(TranscriptLine, float_hook=refuse_number).decode
decode_all = msgspec.json.Decoder().decode


def parse_fields(line: bytes) -> TranscriptLine | None:
    """The fields of a line, whose values msgspec writes as Python's own encoder does; None if it has to be parsed whole
    and looked at field by field.
    """
    try:
        if line.count(b"[") + line.count(b"{") > DEEPEST:
            check_depth(decode_all(line))
        fields = decode_fields(line)
        if not line.isascii():
            line.decode()
    except (Differs, msgspec.MsgspecError, UnicodeDecodeError, OutOfLimits, RecursionError):
        return None
    if len(line) > LONGEST_NUMBER and TWO_DIGITS.search(line[::STEP]) is not None:
        return None  # perhaps a number with more digits than Python takes: it would be at two places of this sample
    return fields if fields.is_whole else None
