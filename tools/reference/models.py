"""The page of models: limits and prices on the day of the shipped data."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from cachecost.base.errors import CannotEvaluate
from cachecost.commands.listings import MODEL_COLUMNS, model_cells, price_cells, price_of
from cachecost.providers.hosts import hosts
from cachecost.providers.listing import ModelRow, model_rows
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook, data_date
from tools.reference.markdown import code, table

HEAD = """# Models and prices

Each model's limits and its prices in USD per million tokens, on the day of the shipped data. `cachecost models`
prints them; `--as-of DATE` those of another day, `--host` those of another host. Prices are those of a prompt of
ordinary length; one that rises with the length of the prompt is applied call by call. The minimum and the window are in
tokens; *thinking* says whether the thinking of earlier turns is kept in the prompt, or only that of the last turn. 5m
and 1h stand for a host's short and long TTL, as its `ttl_s` says.
"""
FIRST = "anthropic"
COLUMNS = (*MODEL_COLUMNS[:-1], "output")
ADVICE = """\
Give each model a [[price]] in providers/prices/overlay.toml. On a host that charges what another host does, name the
model in a [[same]] of providers/prices/hosts.toml. A host without the model says so in `lacks` of its rules.\
"""


def page() -> str:
    """The page, a table for each host. The prices of a model without any are blank."""
    return "\n".join([HEAD, *(_host_table(host, rows) for host, rows in _rows_by_host().items())])


def missing_prices() -> list[str]:
    """A line for each model without a price, then what to do; nothing where all have one."""
    missing = []
    for row in (row for rows in _rows_by_host().values() for row in rows):
        try:
            price_of(row, _price_book())
        except CannotEvaluate as error:
            missing.append(str(error))
    return [*missing, ADVICE] if missing else []


def _rows_by_host() -> dict[str, list[ModelRow]]:
    others = [name for name in hosts() if name != FIRST]
    return {host: list(model_rows(RuleBook(), host)) for host in (FIRST, *others)}


@cache
def _price_book() -> PriceBook:
    return PriceBook.load(None, None)


def _host_table(host: str, rows: Iterable[ModelRow]) -> str:
    return f"## {host}\n\nOn {data_date(host)}.\n\n{table(COLUMNS, map(_cells, rows))}"


def _cells(row: ModelRow) -> tuple[str, ...]:
    name, *limits = model_cells(row)
    try:
        price = price_of(row, _price_book())
    except CannotEvaluate:
        price = None
    return (code(name), *limits, *price_cells(price))
