"""Which models a host serves on a day, and the user's price file: it reports every error with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from cachecost.base.errors import CannotEvaluate, Fault, InputError, nearest
from cachecost.base.limits import is_amount, is_tokens
from cachecost.base.structs import replace
from cachecost.base.toml_text import TomlLines, read_toml
from cachecost.providers.hosts import DEFAULT_HOST, Model, catalogue, hosts, unknown_model
from cachecost.providers.pricerows import ANY_MODEL, PriceRow, Sheet, sheet_of
from cachecost.providers.usage import PRICED_CLASSES

Check = tuple[Callable[[Any], bool], str]
MODIFIERS = ("batch", "flex", "fast", "priority", "ultrafast", "us", "regional", "discount")
DAYS = ("from", "to")
PRICE_KEYS = ("host", "model", *DAYS, "above", *PRICED_CLASSES, "source")
MODIFIER_KEYS = ("name", "host", "models", "except", "multiplier", *DAYS, "not_with", "source")
GPU_NEEDS = ("host", "usd_per_hour", "prefill_tokens_per_s")
GPU_KEYS = (*GPU_NEEDS, "model", *DAYS, "output", "source")
SHAPES = {"price": PRICE_KEYS, "modifier": MODIFIER_KEYS, "gpu": GPU_KEYS}
NEEDS = {"price": ("model",), "modifier": ("name", "models", "multiplier"), "gpu": GPU_NEEDS}
USD: Check = (is_amount, "USD, a number from 0")
VALUES: dict[str, dict[str, Check]] = {
    "price": {
        **dict.fromkeys(PRICED_CLASSES, (is_amount, "USD per 10**6 tokens, a number from 0")),
        "above": (is_tokens, "tokens, a whole number from 0"),
    },
    "modifier": {
        "name": (lambda name: name in MODIFIERS, f"one of {', '.join(MODIFIERS)}"),
        "multiplier": (is_amount, "a number from 0"),
        "not_with": (
            lambda names: isinstance(names, list) and all(name in MODIFIERS for name in names),
            f"a list of {', '.join(MODIFIERS)}",
        ),
    },
    "gpu": {
        "usd_per_hour": USD,
        "output": USD,
        "prefill_tokens_per_s": (lambda speed: is_amount(speed) and bool(speed), "tokens a second, a number above 0"),
    },
}
"""By kind of table, what each value must be, and in words."""
SECONDS_PER_HOUR = 3600
MEGATOKENS = 6
SMALLEST = Decimal("0.000001")


def own_sheet(path: Path) -> Sheet:
    """A user's price file (`--prices`; its format is at the head of `prices/overlay.toml`).

    Raises InputError with every fault, each with file and line, if it cannot be read or is not valid.
    """
    data, lines = read_toml(path)
    faults = list(_find_faults(data, lines, str(path)))
    if faults:
        raise InputError(sorted(faults, key=lambda fault: fault.line or 0))
    sheet = sheet_of(data, str(path))
    rows = {key: list(found) for key, found in sheet.rows.items()}
    for entry in data.get("gpu", []):
        file = str(path)
        seconds = Decimal(entry["usd_per_hour"]) / SECONDS_PER_HOUR
        price = (seconds / Decimal(entry["prefill_tokens_per_s"])).scaleb(MEGATOKENS).quantize(SMALLEST)
        prices = {"input": price, "read": Decimal(0), "write_5m": price, "write_1h": price}
        prices["output"] = Decimal(entry.get("output", 0))
        rows.setdefault((entry["host"], entry.get("model", ANY_MODEL)), []).insert(
            0, PriceRow(entry.get("from"), entry.get("to"), entry.get("source", file), 0, prices)
        )
    return replace(sheet, rows={key: tuple(found) for key, found in rows.items()})


def _find_faults(data: dict[str, Any], lines: TomlLines, file: str) -> Iterator[Fault]:
    for key, value in data.items():
        if key not in SHAPES:
            yield Fault(
                file, f"{key}: expected [[price]], [[modifier]] or [[gpu]]{nearest(key, SHAPES)}", lines.top(key)
            )
        elif not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            yield Fault(file, f"{key}: expected [[{key}]], one table a row", lines.top(key))
    for kind, keys in SHAPES.items():
        entries = data.get(kind)
        tables = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        for number, entry in enumerate(tables):
            unknown = ((key, f"unknown key{nearest(key, keys)}") for key in entry if key not in keys)
            for key, message in (*unknown, *_day_and_name_faults(entry), *_value_faults(kind, entry)):
                where = f"{kind}[{number}]" + (f".{key}" if key else "")
                yield Fault(file, f"{where}: {message}", lines.of(kind, number, key))


def _value_faults(kind: str, entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield from (("", f"{key} is missing") for key in NEEDS[kind] if key not in entry)
    if kind == "price" and not any(name in entry for name in PRICED_CLASSES):
        yield "", f"no price in it; expected one of {', '.join(PRICED_CLASSES)}"
    for key, (is_right, expected) in VALUES[kind].items():
        if key in entry and not is_right(entry[key]):
            near = nearest(str(entry[key]), MODIFIERS) if key == "name" else ""
            yield key, f"expected {expected}; got {_show(entry[key])}{near}"
    host = entry.get("host")
    if kind == "gpu" and host in hosts() and catalogue(str(host)).is_priced:
        own = ", ".join(name for name in hosts() if not catalogue(name).is_priced)
        yield "host", f"{host} is not a self-hosted server; expected one of {own}"


def _day_and_name_faults(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Errors of days, host and models: a row with an unknown name would never match."""
    days = {key: entry[key] for key in DAYS if key in entry}
    wrong = [key for key, day in days.items() if type(day) is not date]
    yield from ((key, f"expected a day like 2026-03-07; got {_show(days[key])}") for key in wrong)
    if len(days) == len(DAYS) and not wrong and days["to"] <= days["from"]:
        yield "to", f"expected a day after from = {days['from']}; got {days['to']}"
    host = entry.get("host", DEFAULT_HOST)
    if host not in hosts():
        yield "host", f"no rules for host {_show(host)}{nearest(str(host), hosts())}; known: {', '.join(hosts())}"
        return
    if "source" in entry and not isinstance(entry["source"], str):
        yield "source", f"expected text; got {_show(entry['source'])}"
    named = [("model", entry["model"])] if "model" in entry else []
    for key in ("models", "except"):
        value = entry.get(key, [])
        if isinstance(value, list):
            named += [(key, name) for name in value if (key, name) != ("models", ANY_MODEL)]
        else:
            yield key, f'expected a list of models, or ["{ANY_MODEL}"]; got {_show(value)}'
    yield from ((key, why) for key, name in named if (why := unknown_model(host, name)))


def _show(value: object) -> str:
    return str(value) if isinstance(value, Decimal | date) else repr(value)


CLAUDE_API = "anthropic"


def is_offered(model: Model, host: str, day: date | None) -> bool:
    """Whether `host` serves the model on `day` (None: that of the shipped data). It does while no end is known."""
    when = day or catalogue(host).data_date
    retired = _retirement_day(model)
    return model.released <= when and not (retired and retired <= when)


def list_models(host: str, *days: date | None) -> Iterator[Model]:
    """The models that `host` serves on each of these days, as `is_offered` has them."""
    for model in catalogue(host).models.values():
        if all(is_offered(model, host, day) for day in days):
            yield model


def withdrawn(host: str, name: str, day: date | None) -> str:
    """Why `host` does not serve a model that it has no longer; "" where it does, or never had it."""
    try:
        model = catalogue(host).model(name, day)
    except CannotEvaluate:
        return ""
    retired = _retirement_day(model)
    if not retired or retired > (day or catalogue(host).data_date):
        return ""
    known = "" if model.retired else f" from the Claude API, and no later day is known for {host}"
    return f"{model.name} was retired on {retired}{known}"


def must_be_served(host: str, name: str, day: date | None) -> None:
    """Raise CannotEvaluate unless `host` serves the model on `day`; the text names the --as-of that would do."""
    book = catalogue(host)
    model, when = book.model(name, day), day or book.data_date
    if is_offered(model, host, when):
        return
    if when < model.released:
        came = f"{model.name} was released on {model.released}, after the date of this replay ({when})"
        raise CannotEvaluate(f"{came}; add --as-of {model.released} or a later day")
    why, before = withdrawn(host, name, when), last_day(model)
    raise CannotEvaluate(f"{why}; the date of this replay is {when}; add --as-of {before} or an earlier day")


def last_day(model: Model) -> date | None:
    """The last day on which the model is served; None: no end is known."""
    retired = _retirement_day(model)
    return retired - timedelta(days=1) if retired else None


def _retirement_day(model: Model) -> date | None:
    """The first day without the model; the Claude API's where the host states none, as it may end there too."""
    ours = catalogue(CLAUDE_API).models.get(model.name)
    return model.retired or (ours.retired if ours else None)
