"""Rows of JSON as pandas DataFrames: a table says of each field what kind of column it is, wherever it stands.

A frame has the columns of the CSV file and the fields of `--json` (docs/reference/output-formats.md): what is nested
has its names joined by a point.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, get_args

from cachecost.base.errors import Fault, InputError
from cachecost.base.times import seconds
from cachecost.base.yaml_text import one_of

if TYPE_CHECKING:
    import pandas as pd

MoneyColumn = Literal["float", "decimal"]
"""How a frame holds USD: as float64, to compute and draw with, or as exact Decimal objects."""
Kind = Literal["money", "ratio", "count", "time", "name"]
KINDS: dict[Kind, str] = {
    "money": "actual limit",
    "ratio": "above_lower_bound hit_rate idle_s share token_error token_error_margin vs_first",
    "count": "breaks_even_after call calls inquiries inquiry line offset rank_from rank_to session_call "
    "since_call tokens turn",
    "time": "first last time timestamp",
    "name": "agent assumption bill budget cache_miss_reason cause client code diagnostics explains_as file kind layer "
    "model name project purpose scenario session severity source strategy supported type verdict",
}
"""The fields of each kind; whatever has `usd` in its name is money too. Others are what their values are."""
KIND_OF: dict[str, Kind] = {name: kind for kind, names in KINDS.items() for name in names.split()}


def flat_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what is nested: its fields have its name and a point before their own, in CSV as in frames.

    What is nested in one row and None in another is None in none: its fields are missing there.
    """
    flat = [dict(_flat_fields(row)) for row in rows]
    nested = {name[:end] for row in flat for name in row for end, letter in enumerate(name) if letter == "."}
    return [{name: value for name, value in row.items() if name not in nested} for row in flat] if nested else flat


def _flat_fields(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _flat_fields(value, f"{before}{name}.")
        else:
            yield before + name, value


def frame_of(
    rows: Iterable[Mapping[str, Any]], money: MoneyColumn = "float", columns: Iterable[str] = (), index: str = ""
) -> pd.DataFrame:
    """A frame with a row for each of `rows`; the field `index` becomes its index.

    `columns` come first, also without any row. USD are float64 (a range is a list of
    two), or Decimal with `money="decimal"`; times datetime64 in
    UTC; counts int64, or Int64 where some are unknown; names category. Raises InputError for another `money`.
    """
    import pandas as pd

    if money not in get_args(MoneyColumn):
        raise InputError([Fault("money:", one_of(get_args(MoneyColumn), money))])
    flat = flat_rows(rows)
    names = dict.fromkeys([*columns, *(name for row in flat for name in row)])
    values = {name: [row.get(name) for row in flat] for name in names}
    numbers = pd.RangeIndex(len(flat))
    labels = pd.Index(values.pop(index), name=index) if index else numbers
    frame = pd.DataFrame({name: column_of(name, found, money) for name, found in values.items()}, numbers)
    return frame.set_axis(labels)


def column_of(name: str, values: list[Any], money: MoneyColumn = "float") -> pd.Series[Any]:
    """The values of a field as a column of its kind. Times are to the nanosecond; to the microsecond where a year is
    beyond those that have nanoseconds (2262)."""
    import numpy as np
    import pandas as pd

    kind = kind_of(name, values)
    if kind in ("money", "ratio"):
        number = Decimal if (kind, money) == ("money", "decimal") else float
        has_ranges = any(isinstance(value, list) for value in values)

        def amount(value: Any) -> Any:
            if value is None:
                return None
            return [*map(number, value)] if isinstance(value, list) else number(value)

        return pd.Series([*map(amount, values)], dtype=object if number is Decimal or has_ranges else "float64")
    if kind == "count":
        return pd.Series(values, dtype="Int64" if None in values else "int64")
    if kind == "time":
        moments = [np.datetime64(round(seconds(value) * 10**6) if value else "NaT", "us") for value in values]
        times = pd.Series(np.array(moments, dtype="datetime64[us]")).dt.tz_localize("UTC")
        with suppress(pd.errors.OutOfBoundsDatetime):
            return times.dt.as_unit("ns")
        return times
    return pd.Series(values, dtype="category" if kind == "name" else None)


def kind_of(name: str, values: Iterable[object]) -> Kind | None:
    """What kind of column a field is: as the table says, else by its values; None: neither (text, a truth, a list)."""
    *outer, own = name.split(".")
    if any("usd" in part.split("_") for part in (*outer, own)):
        return "money"
    whole = {type(value) for value in values} - {type(None)} == {int}
    return "count" if whole else KIND_OF.get(own)
