"""A user's own rules file (`--rules FILE`), often written by `python -m tools.probes`.

[data]                                   # a description, not used
source = "python -m tools.probes, 34 calls"
[assumptions]                               # assumptions (docs/rulebook.md)
ttl_in_key = false
[[minimum_tokens]]                       # minimum lengths over the shipped ones, from that day on
model = "claude-opus-5-5"                # host = "anthropic" unless it says so
value = 512
from = 2026-11-22
[[capacity_tokens]]                      # what a self-hosted server holds; [[step_tokens]] its block: the same keys
host = "vllm"
model = "*"
value = 1_200_000
[[evidence]]                             # what was measured, for readers
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import date
from pathlib import Path
from typing import Any

from cachecost.base.errors import CannotEvaluate, Fault, InputError, nearest
from cachecost.base.limits import is_tokens
from cachecost.base.structs import value
from cachecost.providers.assumptions import read_assumptions
from cachecost.providers.hosts import DEFAULT_HOST
from cachecost.providers.rulefile import ANY, Model, catalogue, hosts
from cachecost.providers.toml_text import TomlLines, read_toml

LEAST = {"minimum_tokens": 0, "capacity_tokens": 1, "step_tokens": 1}
"""Rules in tokens that a file may give for a model, and the least that each can be."""
VALUES = tuple(LEAST)
TABLES = ("data", "assumptions", *VALUES, "evidence")
VALUE_KEYS = ("host", "model", "value", "from", "source")
NO_SWITCHES: Mapping[str, Any] = {}


@value
class OwnValue:
    """A rule of a model on a host in tokens, from a day on."""

    rule: str
    host: str
    model: str
    value: int
    begins: date


@value
class OwnRules:
    """The content of a rules file: assumptions by name, and rules of models in the order of their days."""

    assumptions: Mapping[str, Any] = field(default_factory=lambda: NO_SWITCHES)
    rows: tuple[OwnValue, ...] = ()

    def values(self, host: str, model: Model, day: date) -> dict[str, int]:
        """The rules of the model on `day` in this file, by name; a row of the model wins over one for all models."""
        found = [one for one in self.rows if one.host == host and one.begins <= day]
        wanted = (ANY, model.id)
        return {one.rule: one.value for name in wanted for one in found if one.model == name}


NO_OWN_RULES = OwnRules()


def own_rules(path: Path) -> OwnRules:
    """The rules of a file. Raises InputError with every fault, each with file and line."""
    data, lines = read_toml(path)
    faults = sorted(_faults(data, lines, str(path)), key=lambda fault: fault.line or 0)
    if faults:
        raise InputError(faults)
    rows = (
        OwnValue(rule, host, catalogue(host).model(row["model"]).id, row["value"], row.get("from", date.min))
        for rule in VALUES
        for row in data.get(rule, [])
        for host in (row.get("host", DEFAULT_HOST),)
    )
    return OwnRules(data.get("assumptions", {}), tuple(sorted(rows, key=lambda row: row.begins)))


def _faults(data: Mapping[str, Any], lines: TomlLines, file: str) -> Iterator[Fault]:
    for key in data:
        if key not in TABLES:
            yield Fault(file, f"{key}: expected one of {', '.join(TABLES)}{nearest(key, TABLES)}", lines.top(key))
    assumptions = data.get("assumptions", {})
    if not isinstance(assumptions, dict):
        yield Fault(file, "assumptions: expected a table, NAME = VALUE a line", lines.top("assumptions"))
    else:
        _, problems = read_assumptions(assumptions)
        for name, words in problems.items():
            yield Fault(file, f"assumptions.{words}", lines.of("assumptions", 0, name))
    for rule in VALUES:
        yield from _value_faults(rule, data.get(rule, []), lines, file)


def _value_faults(rule: str, rows: Any, lines: TomlLines, file: str) -> Iterator[Fault]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        yield Fault(file, f"{rule}: expected [[{rule}]], one table a row", lines.top(rule))
        return
    for number, row in enumerate(rows):
        for key, words in _row_faults(row, LEAST[rule]):
            yield Fault(file, f"{rule}[{number}]{'.' if key else ''}{key}: {words}", lines.of(rule, number, key))


def _row_faults(row: Mapping[str, Any], least: int) -> Iterator[tuple[str, str]]:
    yield from ((key, f"unknown key{nearest(key, VALUE_KEYS)}") for key in row if key not in VALUE_KEYS)
    yield from (("", f"{key} is missing") for key in ("model", "value") if key not in row)
    value = row.get("value", least)
    if not is_tokens(value) or value < least:
        yield "value", f"expected tokens, a whole number from {least}; got {value!r}"
    if "from" in row and type(row["from"]) is not date:
        yield "from", f"expected a day like 2026-03-07; got {row['from']!r}"
    host = row.get("host", DEFAULT_HOST)
    if host not in hosts():
        yield "host", f"no rules for host {host!r}{nearest(str(host), hosts())}; known: {', '.join(hosts())}"
    elif "model" in row and (why := _unknown(host, row["model"])):
        yield "model", why


def _unknown(host: str, model: object) -> str | None:
    try:
        catalogue(host).model(str(model))
    except CannotEvaluate as error:
        return str(error)
    return None
