"""Limits on all input: size, depth and range. Every JSON, YAML and TOML reader uses them.

Five limits can be raised, as real data may exceed them: `LINE`, `FILE`, `UNPACKED`, `BLOCKS` and `CELLS`, each by the
environment variable it names. They are variables and not options because every command that reads a file has them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeGuard

from cachecost.base.atomic_files import check_readable, reporting_errors
from cachecost.base.errors import Fault, InputError

DEEPEST = 128
"""Levels of a JSON, YAML or TOML value. A tool's schema has up to about 30."""
MOST_TOKENS = 10**12
"""Of one count. The longest context windows are a millionth of that."""
MOST_NUMBER = 10**13
"""The limit of any other number in input: seconds, milliseconds, dollars."""
SMALLEST_EXPONENT = -100
"""Digits after the point of a price."""
MOST_FILE = 16 << 20
"""Bytes of a file that a person writes: a scenario, prices, rules, a request to lint."""
MOST_ERRORS = 1000
"""Of one file. Whoever has more learns nothing from the rest, and an endless file has endless ones."""
_DECODER = json.JSONDecoder()
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
AMOUNT = re.compile(r"([1-9][0-9_]*)([KMG]?)")


class OutOfLimits(ValueError):
    """A value beyond a limit: what was `expected`, and what was `got`."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}; got {got}")
        self.expected = expected
        self.got = got


class Limit(NamedTuple):
    """A limit that the environment variable `variable` raises; `expected` says of what it is one."""

    variable: str
    default: int
    expected: str

    def value(self) -> int:
        """The value in this process. Raises InputError if the variable is not a number."""
        text = os.environ.get(self.variable, "").strip()
        match = AMOUNT.fullmatch(text.upper())
        if text and match is None:
            raise InputError([Fault(self.variable, f"expected a whole number from 1, as in 64M; got {text[:40]!r}")])
        return int(match[1].replace("_", "")) * UNITS[match[2]] if match else self.default

    def error(self, got: str = "more") -> OutOfLimits:
        """The error for input beyond the limit; names the variable that raises it."""
        return OutOfLimits(self.expected.format(self.value()), f"{got}; set {self.variable} to raise the limit")


LINE = Limit("CACHECOST_MAX_LINE", 64 << 20, "at most {:,} bytes in a line or body")
"""Of a line of a log, and of an HTTP body in it. The API takes 32 MB."""
FILE = Limit("CACHECOST_MAX_FILE", 1 << 30, "a file of at most {:,} bytes")
"""Of a recording that is one JSON or YAML value, which is read as a whole."""
UNPACKED = Limit("CACHECOST_MAX_UNPACKED", 4 << 30, "at most {:,} bytes when unpacked or piped")
"""Of a gzip file when unpacked, and of a pipe or a device."""
BLOCKS = Limit("CACHECOST_MAX_BLOCKS", 1_000_000, "at most {:,} blocks")
"""Of a generated conversation."""
CELLS = Limit("CACHECOST_MAX_CELLS", 10_000_000, "at most {:,} cells")
"""Of a sweep: the values of all axes and the seeds, multiplied."""
MOST_SWEPT = 10_000
"""Values of one axis. Each is checked as a scenario of its own, by every command that reads the scenario."""


TOO_DEEP = (f"at most {DEEPEST} levels of nesting", "more")


def json_value(data: bytes | str) -> Any:
    """The JSON value of a text. Raises ValueError: damaged, not UTF-8, or beyond a limit (OutOfLimits)."""
    with within_limits():
        value = json.loads(data)
    check_depth(value, data)
    return value


def json_prefix(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins at `at`, and where it ends. Raises as `json_value` does."""
    with within_limits():
        value, end = _DECODER.raw_decode(text, at)
    check_depth(value, text if end - at == len(text) else None)
    return value, end


@contextmanager
def within_limits() -> Iterator[None]:
    """Turn what Python's parsers raise at their own limits into OutOfLimits; errors of damaged text pass through."""
    try:
        yield
    except RecursionError:
        raise OutOfLimits(*TOO_DEEP) from None
    except ArithmeticError:
        raise OutOfLimits("a number with an exponent of at most 18 digits", "a longer one") from None
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise OutOfLimits("numbers of at most 4,300 digits", "a longer one") from None


def check_depth(value: object, text: bytes | str | None = None) -> None:
    """Raises OutOfLimits where `value` is nested too deeply. Where its `text` has few brackets nothing is walked."""
    if isinstance(text, bytes):
        brackets = text.count(b"[") + text.count(b"{")
    else:
        brackets = DEEPEST + 1 if text is None else text.count("[") + text.count("{")
    if brackets <= DEEPEST:
        return
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEEPEST):
        level = [
            inner
            for one in level
            for inner in iter(one.values() if isinstance(one, Mapping) else one)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise OutOfLimits(*TOO_DEEP)


def is_tokens(value: object) -> TypeGuard[int]:
    """Whether it is a count: a whole number from 0, within the limits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS


MOST_DIGITS = 20
"""Python refuses to turn thousands of digits into a number; no count or status has more than these."""


def whole_number(text: str) -> int | None:
    """The number that decimal digits write; None for any other text."""
    return int(text) if len(text) <= MOST_DIGITS and text.isdecimal() else None


def is_id(value: object) -> bool:
    """Whether it is a whole number from 0 that 64 bits hold, as digests do."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number from 0, within the limits."""
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_one and 0 <= value <= MOST_NUMBER and isfinite(value)  # type: ignore[operator,arg-type]


def is_amount(value: object) -> bool:
    """Whether it is dollars or a multiplier: a number from 0, finite, neither huge nor written to endless digits."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return False
    if isinstance(value, int):
        return 0 <= value <= MOST_NUMBER
    amount = Decimal(str(value))
    exponent = amount.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= SMALLEST_EXPONENT and 0 <= amount <= MOST_NUMBER


def read_whole(path: str | Path, most: int = MOST_FILE) -> bytes:
    """The bytes of a hand-written file. Raises InputError if it cannot or may not be read or is too large."""
    check_readable(Path(path))
    with reporting_errors(path, "read"), Path(path).open("rb") as stream:
        return read_at_most(stream, str(path), most)


def read_at_most(stream: BinaryIO, file: str, most: int) -> bytes:
    """The bytes of a stream, which `file` names. Raises InputError where there are more."""
    data = stream.read(most + 1)
    if len(data) > most:
        raise InputError([Fault(file, f"expected a file of at most {most >> 20} MiB; got a larger one")])
    return data
