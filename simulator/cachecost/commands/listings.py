"""`cachecost strategies`, `models`, `rules`: the built-in data, with sources and dates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.commands.options import SharedOptions, json_option, option, shared_options
from cachecost.commands.output_paths import CheckedCommand
from cachecost.providers.hosts import catalogue
from cachecost.providers.listing import ModelRow, RowSightings, RuleRow, assumption_rows, model_rows, rule_rows
from cachecost.providers.prices import STANDARD, PriceBook, Prices
from cachecost.providers.usage import USUAL_TTL_S
from cachecost.views.tables.table import print_table

PRICE_COLUMNS = ("input", "5m write", "1h write", "read", "out")
MODEL_COLUMNS = ("model", "from", "to", "minimum", "window", "thinking", "tokenizer", *PRICE_COLUMNS)


@click.command(cls=CheckedCommand)
@option("--breakpoints", "List the primitives that place breakpoints instead, with their options.", is_flag=True)
@option("--changes", "List the other changes of strategies instead, with their options.", is_flag=True)
@json_option
def strategies(breakpoints: bool, changes: bool, as_json: bool) -> None:
    """List the strategies by name: what they do, who uses them, and when that was checked."""
    from cachecost.strategies.registry import list_strategies
    from cachecost.strategies.spec import BREAKPOINTS, CHANGES_TABLE

    if breakpoints or changes:
        tables = [table for wanted, table in ((breakpoints, BREAKPOINTS), (changes, CHANGES_TABLE)) if wanted]
        parts = [row for table in tables for row in table.list_options()]
        if as_json:
            return _print_json("parts", [row._asdict() for row in parts])
        return print_table("", ("name", "what it does", "options"), [tuple(row) for row in parts])
    rows = list_strategies()
    if as_json:
        return _print_json("strategies", [row._asdict() for row in rows])
    return print_table("", ("strategy", "what it does", "source", "as of"), [tuple(row) for row in rows])


@click.command(cls=CheckedCommand)
@json_option
@shared_options
def models(as_json: bool, shared: SharedOptions) -> None:
    """List the models of a host with their rules and prices (USD per 10^6 tokens) on one day."""
    setup = shared.setup
    rows = list(model_rows(setup.rules, shared.one_host))
    priced = [(row, price_of(row, setup.prices)) for row in rows]
    if as_json:
        return _print_json("models", [{**_plain(row), "prices": _plain(price)} for row, price in priced])
    is_usual = all(row.rules.ttl_s == USUAL_TTL_S for row in rows)
    note = "" if is_usual else "5m and 1h stand for the host's short and long TTL (rules, ttl_s)."
    cells = [(*model_cells(row), *price_cells(price)) for row, price in priced]
    return print_table(note, MODEL_COLUMNS, cells, ("tokenizer", "to", "thinking", "from", "window"))


def model_cells(row: ModelRow) -> tuple[str, ...]:
    rules = row.rules
    kept = "kept" if rules.keeps_thinking else "last turn"
    limits = (f"{rules.minimum_tokens:,}", f"{rules.context_window:,}")
    return (row.id, str(row.released), str(row.retired or ""), *limits, kept, row.generation)


def price_of(row: ModelRow, prices: PriceBook) -> Prices | None:
    """The prices on the day of the rules; None where there are none to find: self-hosted, another way of caching.
    Raises CannotEvaluate for any other model without a price."""
    book = catalogue(row.host)
    try:
        return prices.quote(row.host, row.id, row.rules.day, STANDARD).of(0)
    except CannotEvaluate:
        model = book.model(row.id)
        if book.is_priced and model.is_priced and not model.is_other_way:
            raise
        return None


def price_cells(price: Prices | None) -> tuple[str, ...]:
    """USD per 10**6 tokens, by token class; blank where there are none."""
    if price is None:
        return ("",) * len(PRICE_COLUMNS)
    amounts = (price.input, price.write_5m, price.write_1h, price.read, price.output)
    return tuple(f"{amount.normalize():f}" for amount in amounts)


@click.command(cls=CheckedCommand)
@option(
    "--assumptions",
    "List the assumptions about open rules instead: every value, what it means, and its source.",
    is_flag=True,
)
@json_option
@shared_options
def rules(assumptions: bool, as_json: bool, shared: SharedOptions) -> None:
    """List every rule by host and model: its value, the days it applies, and its source.

    Shows how often recorded calls with bills followed a row and contradicted it.
    """
    if assumptions:
        known = list(assumption_rows())
        if as_json:
            return _print_json("assumptions", known)
        lines = [
            (row.name if not number else "", reading.value, reading.means, f"{reading.source} ({reading.source_date})")
            for row in known
            for number, reading in enumerate(row.readings)
        ]
        title = "The first value of each assumption is the default."
        return print_table(title, ("assumption", "value", "meaning", "source"), lines)
    rows = list(rule_rows(shared.one_host))
    if as_json:
        return _print_json("rules", rows)
    order = {rule: number for number, rule in enumerate(dict.fromkeys(row.rule for row in rows))}
    together: dict[tuple[str, ...], list[RuleRow]] = {}
    for row in sorted(rows, key=lambda row: order[row.rule]):
        model = catalogue(row.host).models.get(row.model)
        start = "release" if model and model.released == row.start else str(row.start)
        sure = "refuted" if row.refuted_by else row.confidence
        source = f"{row.source} ({row.source_date})"
        key = (row.rule, value_words(row.value), start, str(row.end or ""), sure, source)
        together.setdefault(key, []).append(row)
    table = []
    for (rule, *dates, sure, source), group in together.items():
        special = [(row.model, row.way or row.reading) for row in group]
        models = ", ".join(f"{model} ({way})" if way else model for model, way in special)
        seen = sum((row.seen for row in group if row.seen), RowSightings())  # none: no recorded call tests the row
        counts = [f"{seen.held:,} held" if seen.held else "", f"{seen.failed:,} failed" if seen.failed else ""]
        table.append((rule, models, *dates, ", ".join(filter(None, counts)), sure, source))
    columns = ("rule", "model", "value", "from", "to", "seen", "confidence", "source")
    return print_table("", columns, table, ("source", "confidence", "to", "from", "seen"))


def value_words(value: Any) -> str:
    """ "5m 1,800, 1h 43,200" for a table; none for an empty list or table."""
    if isinstance(value, dict):
        words = [
            f"{key} ({value_words(each)})" if isinstance(each, (list, tuple, dict)) else f"{key} {value_words(each)}"
            for key, each in value.items()
        ]
        return ", ".join(words) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(value_words, value)) or "none"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return f"{value:,g}" if isinstance(value, float) else f"{value:,}"


def _print_json(name: str, rows: Iterable[Any]) -> None:
    document = {"format": 1, name: [_plain(row) for row in rows]}
    click.echo(msgspec.json.format(msgspec.json.encode(document, enc_hook=str)).decode())


def _plain(row: Any) -> Any:
    return msgspec.to_builtins(row, enc_hook=str)
