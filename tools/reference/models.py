"""The page of models: limits and prices on the day of the shipped data."""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.commands.listings import MODEL_COLUMNS, model_cells, price_cells, price_of
from cachecost.providers.listing import model_rows
from cachecost.providers.prices import PriceBook
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


def page() -> str:
    """The page, a table a host."""
    others = [name for name in hosts() if name != FIRST]
    return "\n".join([HEAD, *(_host(name) for name in (FIRST, *others))])


def _host(host: str) -> str:
    return f"## {host}\n\nOn {data_date(host)}.\n\n{table(COLUMNS, _rows(host))}"


def _rows(host: str) -> Iterator[tuple[str, ...]]:
    prices = PriceBook.load(None, None)
    for row in model_rows(RuleBook(), host):
        name, *limits = model_cells(row)
        yield (code(name), *limits, *price_cells(price_of(row, prices)))
