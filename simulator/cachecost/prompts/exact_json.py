"""Reads and writes JSON by msgspec, in a fifth of the time, wherever the result equals that of Python's own json.

They differ in how they write a number with a fraction or an exponent, in whole numbers of more than 64 bits, in lone
surrogates and in NaN. Bytes with any of these, and invalid JSON, go to Python's own parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from cachecost.base.limits import OutOfLimits, check_depth, json_value
from cachecost.prompts.blocks import compact
from cachecost.prompts.wire import BareWord, NotAMessage, Write

Value = TypeVar("Value")


class Differs(Exception):
    """A number that the two write differently."""


def refuse_number(number: str) -> None:
    """A `float_hook` of msgspec. Raises Differs."""
    raise Differs(number)


DECODE = msgspec.json.Decoder(float_hook=refuse_number).decode
ENCODE: Write = msgspec.json.Encoder().encode


def load_with_writer(data: bytes, path: str) -> tuple[Any, Write]:
    """The value of `data`, and a function that writes its objects as `compact` does. Raises NotAMessage."""
    try:
        value = DECODE(data)
        check_depth(value, data)
    except (Differs, msgspec.DecodeError, UnicodeDecodeError, RecursionError, OutOfLimits):
        return load(data, path), compact
    return value, ENCODE


ESCAPE = re.compile(
    rb"\\(?:(u[dD][89abAB][0-9a-fA-F]{2})(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|(u[dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""Any escape of JSON; of halves of a surrogate pair the first and what goes with it, or the second alone."""
REPLACEMENT = rb"\ufffd"


def decode(decode: Callable[[bytes], Value], data: bytes) -> tuple[bytes, Value]:
    """`data` and the result of msgspec's `decode`; if it rejects lone surrogates, they are replaced first
    (`pair_surrogates`). Raises what `decode` raises.
    """
    try:
        return data, decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        whole = pair_surrogates(data)
        if whole == data:
            raise
        return whole, decode(whole)


def pair_surrogates(data: bytes) -> bytes:
    """JSON with the replacement character for each lone surrogate, which msgspec rejects.

    Both are three bytes of UTF-8, so blocks stay as long as they are (rule 19).
    """
    return ESCAPE.sub(_pair, data) if b"\\ud" in data or b"\\uD" in data else data


def _pair(escape: re.Match[bytes]) -> bytes:
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
    """The error for a value at `path` beyond a limit."""
    return NotAMessage(path, error.expected, BareWord(error.got))
