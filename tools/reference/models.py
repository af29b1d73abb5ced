"""The page of models: limits and prices on the day of the shipped data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cachecost.base.errors import CannotEvaluate
from cachecost.commands.listings import MODEL_COLUMNS, model_cells, price_cells, price_of
from cachecost.providers.listing import ModelRow, model_rows
from cachecost.providers.prices import PriceBook, Prices
from cachecost.providers.rulefile import hosts
from cachecost.providers.rules import RuleBook, data_date
from tools.reference.markdown import code, table

HEAD = """# Models and prices

Each model's limits and its prices in USD per million tokens, on the day of the shipped data. `cachecost models`
prints them; `--as-of DATE` those of another day, `--host` those of another host. Prices are those of a prompt of
ordinary length; one that rises with the length of the prompt is applied call by call. The minimum and the window are in
tokens; *thinking* says whether the thinking of earlier turns is kept in the prompt, or only that of the last turn. 5m
and 1h stand for a host's short and long lifetime, as its `ttl_s` says.
"""
FIRST = "anthropic"
COLUMNS = (*MODEL_COLUMNS[:-1], "output")
ADVICE = """\
Give each model a [[price]] in providers/prices/overlay.toml. On a host that charges what another host does, name the
model in a [[same]] of providers/prices/hosts.toml. A host without the model says so in `lacks` of its rules.\
"""


def page() -> str:
    """The page, a table for each host. Raises CannotEvaluate with all models that have no price."""
    others = [name for name in hosts() if name != FIRST]
    tables = {host: list(model_rows(RuleBook(), host)) for host in (FIRST, *others)}
    prices = _prices_of([row for rows in tables.values() for row in rows])
    return "\n".join([HEAD, *(_host(host, rows, prices) for host, rows in tables.items())])


def _prices_of(rows: Iterable[ModelRow]) -> dict[tuple[str, str], Prices | None]:
    """Prices by (host, model)."""
    book = PriceBook.load(None, None)
    found: dict[tuple[str, str], Prices | None] = {}
    missing: list[str] = []
    for row in rows:
        try:
            found[row.host, row.id] = price_of(row, book)
        except CannotEvaluate as error:
            missing.append(str(error))
    if missing:
        raise CannotEvaluate("\n".join([*missing, ADVICE]))
    return found


def _host(host: str, rows: Iterable[ModelRow], prices: Mapping[tuple[str, str], Prices | None]) -> str:
    lines = (_cells(row, prices[host, row.id]) for row in rows)
    return f"## {host}\n\nOn {data_date(host)}.\n\n{table(COLUMNS, lines)}"


def _cells(row: ModelRow, price: Prices | None) -> tuple[str, ...]:
    name, *limits = model_cells(row)
    return (code(name), *limits, *price_cells(price))
