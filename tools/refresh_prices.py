"""`make prices`: writes prices/genai-prices.json of the package from the installed genai-prices.

A plain replay reads that file instead of importing genai-prices, which takes 0.3 s and its memory. A
new release of genai-prices is then a diff that somebody reads; a test says when the two differ.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from importlib.metadata import version
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from cachecost.providers.hosts import Model, catalogue, hosts
from cachecost.providers.pricerows import SHIPPED_TABLE

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider

PROVIDERS = {
    "anthropic": "anthropic",
    "bedrock": "aws",
    "cerebras": "cerebras",
    "deepseek": "deepseek",
    "fireworks": "fireworks",
    "gemini": "google",
    "google-cloud": "google",
    "groq": "groq",
    "minimax": "minimax",
    "mistral": "mistral",
    "moonshot": "moonshotai",
    "openai": "openai",
    "openrouter": "openrouter",
    "together": "together",
    "vertex": "google",
    "xai": "x-ai",
    "zai": "zai",
}
"""Host -> provider of genai-prices whose models are shipped. It has no list for Foundry, and none of Qwen's own.

For Azure it falls back to the maker's prices without saying so, so that host states whose it has (`prices/hosts.toml`).
"""
LEFT_OUT = frozenset({("deepseek", "deepseek-chat"), ("deepseek", "deepseek-reasoner")})
"""(host, model) whose prices there are wrong: without days, and with the discount of the night as what holds by day."""
SPELLINGS = {
    "bedrock": ("global.anthropic.{}", "anthropic.{}", "global.amazon.{}-v1:0", "amazon.{}-v1:0", "openai.{}-1:0"),
    "fireworks": ("accounts/fireworks/models/{}",),
    "openrouter": ("anthropic/{}", "{}"),
}
"""How genai-prices writes an id of the host at its list price: the first that it knows (default: the id itself)."""
CLASSES = {
    "input": "input_mtok",
    "read": "cache_read_mtok",
    "write_5m": "cache_write_mtok",
    "write_1h": "cache_write_1h_mtok",
    "output": "output_mtok",
}


def table(providers: Mapping[str, str] = PROVIDERS) -> dict[str, Any]:
    """The shipped price table of `providers`, as the installed genai-prices says it."""
    return {
        "_": "Written by `make prices`; do not edit. USD per 10**6 tokens.",
        "genai_prices": version("genai-prices"),
        "hosts": {host: _models(host, _provider(provider)) for host, provider in providers.items()},
    }


def render(shipped: Mapping[str, Any]) -> str:
    """The bytes of the file: one dated row a line, sorted, the same every time."""
    head = {key: value for key, value in shipped.items() if key != "hosts"}
    lines = ["{", *(f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()), ' "hosts": {']
    lines.append(",\n".join(_host_lines(host, models) for host, models in sorted(shipped["hosts"].items())))
    return "\n".join([*lines, " }", "}", ""])


def main() -> None:
    text = render(table())
    SHIPPED_TABLE.write_text(text, encoding="utf-8", newline="\n")
    sys.stderr.write(f"{SHIPPED_TABLE}: {len(text)} bytes from genai-prices {version('genai-prices')}\n")


def _host_lines(host: str, models: Mapping[str, Any]) -> str:
    rows = (f"   {json.dumps(name)}: [\n{_row_lines(rows)}\n   ]" for name, rows in sorted(models.items()))
    return f"  {json.dumps(host)}: {{\n" + ",\n".join(rows) + "\n  }"


def _row_lines(rows: list[dict[str, Any]]) -> str:
    return ",\n".join(f"    {json.dumps(row)}" for row in rows)


def _provider(name: str) -> Provider:
    from genai_prices.data_snapshot import get_snapshot

    return next(provider for provider in get_snapshot().providers if provider.id == name)


def _models(host: str, provider: Provider) -> dict[str, list[dict[str, Any]]]:
    """Rows by our id where our rules know the model; all of them, by their id, on a host that has no rules."""
    book = catalogue(host) if host in hosts() else None
    ours = (model for model in book.models.values() if (host, model.name) not in LEFT_OUT) if book else ()
    found = {model.name: _find(host, provider, model) for model in ours}
    known = {name: model for name, model in found.items() if model}
    theirs = {} if book else {model.id: model for model in provider.models}
    return {name: rows for name, model in {**theirs, **known}.items() if (rows := list(_rows(model)))}


def _find(host: str, provider: Provider, model: Model) -> ModelInfo | None:
    """Their model of ours, at the host's list price."""
    if host not in SPELLINGS:
        return provider.find_model(model.name)
    written = (spelling.format(name) for spelling in SPELLINGS[host] for name in (model.name, *model.aliases))
    return next((found for name in written if (found := provider.find_model(name))), None)


def _rows(model: ModelInfo) -> Iterator[dict[str, Any]]:
    """One row a date and tier. Of prices that change with the hour those outside its hours: the overlay has these."""
    dated = _dated(model)
    ends = [start for start, _ in dated[1:]]
    for (start, prices), end in zip_longest(dated, ends):
        for above in _tiers(prices):
            classes = {
                name: str(price) for name, key in CLASSES.items() if (price := _at(prices, key, above)) is not None
            }
            if classes:
                yield {"from": start, "to": end, "above": above, **classes}


def _dated(model: ModelInfo) -> list[tuple[str | None, ModelPrice]]:
    from genai_prices.types import StartDateConstraint

    if not isinstance(model.prices, list):
        return [(None, model.prices)]
    dated: list[tuple[str | None, ModelPrice]] = []
    for entry in model.prices:
        if entry.constraint is None:
            dated.append((None, entry.prices))
        elif isinstance(entry.constraint, StartDateConstraint):
            dated.append((entry.constraint.start_date.isoformat(), entry.prices))
    return dated


def _tiers(prices: ModelPrice) -> list[int]:
    from genai_prices.types import TieredPrices

    tiered = [price for key in CLASSES.values() if isinstance(price := getattr(prices, key), TieredPrices)]
    return sorted({0, *(tier.start for price in tiered for tier in price.tiers)})


def _at(prices: ModelPrice, key: str, above: int) -> Decimal | None:
    """The price of a class that starts at this tier; None where it does not change there."""
    price = getattr(prices, key)
    if price is None or isinstance(price, Decimal):
        return price if above == 0 else None
    if above == 0:
        return Decimal(price.base)
    return next((Decimal(tier.price) for tier in price.tiers if tier.start == above), None)


if __name__ == "__main__":
    main()
