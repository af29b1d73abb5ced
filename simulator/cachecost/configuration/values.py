"""Values of a settings file as the words that a command line would have."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from cachecost.base.limits import MOST_NUMBER

MOST_COUNT = 999_999_999
"""Sessions a day of one scenario, as `check --volume` takes them."""
MOST_WORD = 4096
"""Characters of a value; a longer path is none."""


class WrongValue(ValueError):
    """What was expected of a value, and what it is."""


def flag_of(value: Any) -> bool:
    """The value of an option that is on or off. Raises WrongValue."""
    if not isinstance(value, bool):
        raise WrongValue(f"expected true or false; got {show_value(value)}")
    return value


def words_of(value: Any, is_list: bool) -> list[str]:
    """The words of an option: one, or any number if it `is_list`. Raises WrongValue."""
    if isinstance(value, list):
        if not is_list:
            raise WrongValue(f"expected one value; got {show_value(value)}")
        return [word_of(one) for one in value]
    return [word_of(value)]


def assignments_of(value: Any) -> list[str]:
    """NAME=VALUE words of a table, a list or one text. Raises WrongValue."""
    if not isinstance(value, dict):
        return words_of(value, is_list=True)
    return [f"{name}={str(one).lower() if isinstance(one, bool) else word_of(one)}" for name, one in value.items()]


def word_of(value: Any) -> str:
    """A text, number or day as it is written on a command line. Raises WrongValue."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise WrongValue(f"expected a text or a number; got {show_value(value)}")
    if (isinstance(value, Decimal) and not value.is_finite()) or not -MOST_NUMBER <= value <= MOST_NUMBER:
        raise WrongValue(f"expected a number from {-MOST_NUMBER:,} to {MOST_NUMBER:,}; got another")
    return str(value)


def count_of(value: Any) -> int:
    """Sessions a day: a whole number from 1. Raises WrongValue."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_COUNT:
        raise WrongValue(f"expected a whole number from 1 to {MOST_COUNT:,}; got {show_value(value)}")
    return value


def show_value(value: Any) -> str:
    """A value in an error: short, and in TOML's words."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return _list(value)
    if isinstance(value, int) and abs(value) > MOST_NUMBER:
        return "a larger number"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _list(value: Sequence[Any]) -> str:
    return f"a list of {len(value):,}"


def _text(value: str) -> str:
    if "\0" in value or len(value) > MOST_WORD:
        raise WrongValue(f"expected a text of at most {MOST_WORD:,} characters, without a null character")
    return value
