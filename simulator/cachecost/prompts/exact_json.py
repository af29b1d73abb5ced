"""JSON read and written by msgspec, where that says what Python's own parser and encoder say: in a fifth of the time.

They differ in how they write a number with a fraction or an exponent, in whole numbers of more than 64 bits, in lone
surrogates and in NaN. Bytes that have any of these go to Python's own, and so do those that are no JSON at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from cachecost.base.limits import OutOfLimits, check_depth, json_value
from cachecost.prompts.blocks import compact
from cachecost.prompts.wire import NotAMessage, Word, Write

Value = TypeVar("Value")


class _Differs(Exception):
    """A number that the two write in different ways."""


def _differs(number: str) -> None:
    raise _Differs(number)


DECODE = msgspec.json.Decoder(float_hook=_differs).decode
ENCODE: Write = msgspec.json.Encoder().encode


def loaded(data: bytes, path: str) -> tuple[Any, Write]:
    """The value of `data`, and what writes the objects in it as `compact` does. Raises NotAMessage."""
    try:
        value = DECODE(data)
        check_depth(value, data)
    except (_Differs, msgspec.DecodeError, UnicodeDecodeError, RecursionError, OutOfLimits):
        return load(data, path), compact
    return value, ENCODE


ESCAPE = re.compile(
    rb"\\(?:(u[dD][89abAB][0-9a-fA-F]{2})(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|(u[dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""Any escape of JSON; of halves of a surrogate pair the first and what goes with it, or the second alone."""
REPLACEMENT = rb"\ufffd"


def decoded(decode: Callable[[bytes], Value], data: bytes) -> tuple[bytes, Value]:
    """`data`, and what msgspec's `decode` makes of it; lone halves of surrogate pairs are replaced first (`paired`)
    where it refuses them. Raises what `decode` raises."""
    try:
        return data, decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        whole = paired(data)
        if whole == data:
            raise
        return whole, decode(whole)


def paired(data: bytes) -> bytes:
    """JSON with the replacement character for each half of a surrogate pair that stands alone, which msgspec refuses.

    Both are three bytes of UTF-8, so blocks stay as long as they are (rule 19).
    """
    return ESCAPE.sub(_paired, data) if b"\\ud" in data or b"\\uD" in data else data


def _paired(escape: re.Match[bytes]) -> bytes:
    first, second, alone = escape.groups()
    return REPLACEMENT if alone or (first and not second) else escape[0]


def load(data: bytes, path: str) -> Any:
    """Parse JSON as Python's own parser does (it keeps big integers and lone surrogates). Raises NotAMessage."""
    try:
        return json_value(data)
    except OutOfLimits as error:
        raise out_of_limits(path, error) from None
    except ValueError:
        raise NotAMessage(path, "UTF-8 JSON", "bytes that are not") from None


def out_of_limits(path: str, error: OutOfLimits) -> NotAMessage:
    """The value at `path` is beyond a limit."""
    return NotAMessage(path, error.expected, Word(error.got))
