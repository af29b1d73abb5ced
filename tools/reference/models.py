"""The page of models: limits and prices on the day of the shipped data."""

from __future__ import annotations

from functools import cache

from cachecost.base.errors import CannotEvaluate
from cachecost.commands.listings import MODEL_COLUMNS, model_cells, price_cells, price_of
from cachecost.providers.hosts import catalogue, hosts
from cachecost.providers.listing import ModelRow, model_rows
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from tools.reference.markdown import code, table

HEAD = """# Models and prices

One row for each model and the hosts where all its figures are the same, on the day of the shipped data: the minimum
that can be cached and the context window in tokens, prices in USD per million tokens. `cachecost models --host X`
prints a host with each model's tokenizer, `--as-of DATE` another day. *5m* and *1h* stand for a host's short and long
TTL (its [ttl_s](rules.md#ttl_s)). A price that rises with the length of the prompt is that of a short one here. What
has no price needs one with `--prices FILE`.

"""
FIRST = "anthropic"
LEFT_OUT = ("thinking", "tokenizer")
COLUMNS = ("model", "hosts", *(name for name in MODEL_COLUMNS[1:-1] if name not in LEFT_OUT), "output")
ADVICE = """\
Give each model a [[price]] in providers/prices/overlay.toml. On a host that charges what another host does, name the
model in a [[same]] of providers/prices/hosts.toml. A host without the model says so in `lacks` of its rules.\
"""


def page() -> str:
    """The page. The prices of a model without any are blank."""
    hosts_of: dict[tuple[str, ...], dict[str, None]] = {}
    ids: dict[tuple[str, ...], dict[str, None]] = {}
    for host, rows in _rows_by_host().items():
        model = ""
        for row in rows:
            name, *figures = _cells(row)
            model = row.id if row.id in catalogue(host).models else model  # an endpoint's rows follow their model
            ids.setdefault((model, *figures), {})[name] = None
            hosts_of.setdefault((model, *figures), {})[host] = None
    cells = ((", ".join(ids[key]), ", ".join(on), *key[1:]) for key, on in hosts_of.items())
    return HEAD + table(COLUMNS, cells)


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


def _cells(row: ModelRow) -> tuple[str, ...]:
    name, *limits = (
        cell for column, cell in zip(MODEL_COLUMNS, model_cells(row), strict=False) if column not in LEFT_OUT
    )
    try:
        price = price_of(row, _price_book())
    except CannotEvaluate:
        price = None
    return (code(name), *limits, *price_cells(price))
