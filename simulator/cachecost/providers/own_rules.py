"""A user's own rules file (`--rules FILE`), mostly one that `cachecost live --verify-rules` wrote.

[data]                                   # what it is; told, not used
source = "cachecost live --verify-rules, 34 calls"
[switches]                               # readings of open rules (rulebook, Switches)
ttl_in_key = false
[[minimum_tokens]]                       # minimum lengths over the shipped ones, from that day on
model = "claude-opus-5-5"                # host = "anthropic" unless it says so
value = 512
from = 2026-11-22
[[evidence]]                             # what was measured: for people
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import date
from pathlib import Path
from typing import Any

from cachecost.facts import fact
from cachecost.faults import CannotEvaluate, Fault, InputError, nearest
from cachecost.providers.rulefile import catalogue, hosts
from cachecost.providers.switches import read_switches
from cachecost.providers.toml_text import Lines, read_toml

TABLES = ("data", "switches", "minimum_tokens", "evidence")
MINIMUM_KEYS = ("host", "model", "value", "from", "source")
DEFAULT_HOST = "anthropic"
NO_SWITCHES: Mapping[str, Any] = {}


@fact
class OwnMinimum:
    """A model's minimum length in tokens on a host, from a day on."""

    host: str
    model: str
    value: int
    begins: date


@fact
class OwnRules:
    """What a rules file says: readings by switch, and minimum lengths in the order of their days."""

    switches: Mapping[str, Any] = field(default_factory=lambda: NO_SWITCHES)
    minimums: tuple[OwnMinimum, ...] = ()

    def minimum(self, host: str, model: str, day: date) -> int | None:
        """The minimum length that holds on `day` by this file; None: it says nothing."""
        found = [one for one in self.minimums if (one.host, one.model) == (host, model) and one.begins <= day]
        return found[-1].value if found else None


NO_OWN_RULES = OwnRules()


def own_rules(path: Path) -> OwnRules:
    """The rules of a file. Raises InputError with every fault, each with file and line."""
    data, lines = read_toml(path)
    faults = sorted(_faults(data, lines, str(path)), key=lambda fault: fault.line or 0)
    if faults:
        raise InputError(faults)
    rows = (
        OwnMinimum(host, catalogue(host).model(row["model"]).id, row["value"], row.get("from", date.min))
        for row in data.get("minimum_tokens", [])
        for host in (row.get("host", DEFAULT_HOST),)
    )
    return OwnRules(data.get("switches", {}), tuple(sorted(rows, key=lambda row: row.begins)))


def _faults(data: Mapping[str, Any], lines: Lines, file: str) -> Iterator[Fault]:
    for key in data:
        if key not in TABLES:
            yield Fault(file, f"{key}: expected one of {', '.join(TABLES)}{nearest(key, TABLES)}", lines.top(key))
    switches = data.get("switches", {})
    if not isinstance(switches, dict):
        yield Fault(file, "switches: expected a table, NAME = VALUE a line", lines.top("switches"))
    else:
        _, problems = read_switches(switches)
        for name, words in problems.items():
            yield Fault(file, f"switches.{words}", lines.of("switches", 0, name))
    rows = data.get("minimum_tokens", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        yield Fault(file, "minimum_tokens: expected [[minimum_tokens]], one table a row", lines.top("minimum_tokens"))
        return
    for number, row in enumerate(rows):
        for key, words in _row_faults(row):
            line = lines.of("minimum_tokens", number, key)
            yield Fault(file, f"minimum_tokens[{number}]{'.' if key else ''}{key}: {words}", line)


def _row_faults(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((key, f"unknown key{nearest(key, MINIMUM_KEYS)}") for key in row if key not in MINIMUM_KEYS)
    yield from (("", f"{key} is missing") for key in ("model", "value") if key not in row)
    value = row.get("value", 0)
    if type(value) is not int or value < 0:
        yield "value", f"expected tokens, a whole number from 0; got {value!r}"
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
