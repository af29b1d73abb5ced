"""The page of rules: every dated row with its source, and the assumptions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from cachecost.providers.hosts import hosts
from cachecost.providers.listing import RuleRow, assumption_rows, rule_rows
from cachecost.providers.rules import data_date
from tools.reference.markdown import code, prose, table

HEAD = """# Rules

What the simulated cache does is data: each row says since which day a value holds, until which (left out: still), and
where that was read, on which day. The rules in words are in [the rulebook](../rulebook.md), and what
stands behind each in [why the model is what it is](../explanation/why.md). `cachecost rules` prints these rows,
`cachecost rules --assumptions` the assumptions.
"""
FIRST = "anthropic"
RULE = re.compile(r"\brule (\d+)")


def page() -> str:
    """The page: assumptions, then the rows of each host that are its own."""
    others = [name for name in hosts() if name != FIRST]
    return "\n".join([HEAD, _assumptions(), *(_host(name) for name in (FIRST, *others))])


def _assumptions() -> str:
    about = (
        "Where sources are silent or differ, `--rule NAME=VALUE` on the command line or `rules: {NAME: VALUE}` in a "
        "scenario chooses a value. The first of each is the default."
    )
    return f"## Assumptions\n\n{about}\n\n{table(('assumption', 'value', 'means', 'source'), _readings())}"


def _readings() -> Iterator[tuple[str, ...]]:
    for row in assumption_rows():
        for number, reading in enumerate(row.readings):
            name = "" if number else f"{code(row.name)}<br>{prose(row.about)}"
            yield name, code(reading.value), prose(reading.means), _source(reading.source, reading.source_date)


def _host(host: str) -> str:
    rows = [row for row in rule_rows(host) if row.as_on is None]
    by_rule = groupby(sorted(rows, key=lambda row: row.rule), key=lambda row: row.rule)
    inherits = "" if host == FIRST else f" What is not listed is as on {FIRST}."
    sections = "\n".join(_rule(host, name, list(found)) for name, found in by_rule)
    return f"## {host}\n\nData of {data_date(host)}.{inherits}\n\n{sections}"


def _rule(host: str, name: str, rows: list[RuleRow]) -> str:
    unit = f" In {rows[0].unit}." if rows[0].unit else ""
    rendered = table(("model", "value", "from", "to", "source"), (_row(row) for row in rows))
    return f"### {name} {{ #{host}-{name} }}\n\n{_linked(_sentence(prose(rows[0].meaning)))}{unit}\n\n{rendered}"


def _linked(text: str) -> str:
    """Each "rule N" of Markdown as a link to the rulebook."""
    return RULE.sub(r"[rule \1](../rulebook.md#rule-\1)", text)


def _row(row: RuleRow) -> tuple[str, ...]:
    model = "all" if row.model == "*" else code(row.model)
    refuted = f"; never used, contradicted by: {prose(row.refuted_by)}" if row.refuted_by else ""
    source = _source(row.source, row.source_date) + refuted
    return model, code(_value(row.value)), str(row.start), str(row.end or ""), source


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_value(each)}" for key, each in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ", ".join(_value(each) for each in value) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _source(title: str, day: object) -> str:
    return f"{prose(title)} ({day})"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
