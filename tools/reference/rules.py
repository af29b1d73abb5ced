"""The page of rules: the assumptions, then a table for each rule with every dated value, and the sources once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from cachecost.providers import rules as shipped
from cachecost.providers.hosts import catalogue, hosts
from cachecost.providers.listing import AssumptionRow, RuleRow, assumption_rows, rule_rows
from tools.reference.markdown import code, prose, table

HEAD = """# Rules

What the simulated cache does is data: one table for each rule, with a row for each value. `cachecost rules --host X`
prints the same for one host, and how often recorded calls followed each row. [The rulebook](../rulebook.md) has the
rules in words.

*Since* is the first day of a value, left out where that is the day of the model's release; *until* is the first day
without it. A host that a rule does not list is as the one it builds on: every host of Claude as `anthropic`, `azure`
as `openai`, `vertex` as `gemini`. [Groups](#groups) of models and [sources](#sources) are at the end.
"""
Groups = dict[tuple[str, tuple[str, ...]], str]
"""The names of long lists of a host's models."""
RULE = re.compile(r"\brule (\d+)")
MANY = 12
"""Models that a row lists; more are a group that the end of the page lists."""


def page() -> str:
    """The page."""
    rows = sorted((row for host in hosts() for row in rule_rows(host) if row.as_on is None), key=lambda row: row.rule)
    groups: Groups = {}
    sections = [_rule(name, list(found), groups) for name, found in groupby(rows, key=lambda row: row.rule)]
    listed = table(("group", "models"), sorted((name, ", ".join(models)) for (_, models), name in groups.items()))
    text = "\n".join([HEAD, _assumptions(), *sections, f"## Groups\n\n{listed}"])
    return f"{text}\n{_sources(text)}"


def _assumptions() -> str:
    about = (
        "Where sources are silent or differ, `--rule NAME=VALUE` on the command line or `rules: {NAME: VALUE}` in a "
        "scenario chooses a value. The first of each is the default."
    )
    rows = ((code(row.name), prose(row.about), "<br>".join(_readings(row))) for row in assumption_rows())
    return f"## Assumptions\n\n{about}\n\n{table(('assumption', 'decides', 'values (source)'), rows)}"


def _readings(row: AssumptionRow) -> Iterator[str]:
    for reading in row.readings:
        yield f"{code(reading.value)}: {prose(reading.means)} ({_key(reading.source, reading.source_date)})"


def _models(host: str, models: tuple[str, ...], groups: Groups) -> str:
    if len(models) <= MANY:
        return ", ".join(models)
    name = groups.setdefault((host, models), f"{host} group {1 + sum(on == host for on, _ in groups)}")
    return f"[{name}](#groups)"


def _rule(name: str, rows: list[RuleRow], groups: Groups) -> str:
    cells: dict[tuple[str, ...], dict[str, None]] = {}
    models: dict[tuple[str, ...], dict[str, None]] = {}
    for row in rows:
        models.setdefault((row.host, *_value_cells(row)), {})[_model(row)] = None
    for (host, *values), found in models.items():
        cells.setdefault((_models(host, tuple(found), groups), *values), {})[host] = None
    rendered = table(
        ("host", "models", "value", "since", "until", "source"), ((", ".join(on), *row) for row, on in cells.items())
    )
    return f"## {name}\n\n{_meanings(rows)}\n\n{rendered}"


def _meanings(rows: Iterable[RuleRow]) -> str:
    """What the rule means, first as most hosts have it; then as others do."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        unit = f" In {row.unit}." if row.unit else ""
        found.setdefault(_linked(_sentence(prose(row.meaning))) + unit, {})[row.host] = None
    first, *others = sorted(found, key=lambda meaning: -len(found[meaning]))
    return "\n".join([first, *(f"- {', '.join(found[each])}: {each}" for each in others)]).replace("\n-", "\n\n-", 1)


def _linked(text: str) -> str:
    """Each "rule N" of Markdown as a link to the rulebook."""
    return RULE.sub(r"[rule \1](../rulebook.md#rule-\1)", text)


def _model(row: RuleRow) -> str:
    model = "all" if row.model == "*" else code(row.model)
    return f"{model} ({row.way or code(row.reading or '')})" if row.way or row.reading else model


def _value_cells(row: RuleRow) -> tuple[str, str, str, str]:
    refuted = f"; never used, contradicted by: {prose(row.refuted_by)}" if row.refuted_by else ""
    source = _key(row.source, row.source_date) + refuted
    return code(_value(row.value)), _since(row), str(row.end or ""), source


def _since(row: RuleRow) -> str:
    models = catalogue(row.host).models
    is_release = row.model in models and models[row.model].released == row.start
    return "" if is_release else str(row.start)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_value(each)}" for key, each in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ", ".join(_value(each) for each in value) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _key(title: str, day: object) -> str:
    return f"{_keys()[title, str(day)]} {day}"


@cache
def _keys() -> dict[tuple[str, str], str]:
    """The key of each source by its title and day: that of its data file, with the file's name where two differ."""
    found: dict[tuple[str, str], str] = {}
    for path in sorted(Path(shipped.__file__).with_name("rules").glob("*.toml")):
        for key, source in tomllib.loads(path.read_text(encoding="utf-8")).get("sources", {}).items():
            name = key if key not in found.values() else f"{path.stem}/{key}"
            found.setdefault((source["title"], str(source["date"])), name)
    return found


def _sources(text: str) -> str:
    """The table of the sources that a page names."""
    named = set(re.findall(r"[ (]([\w/.-]+ \d{4}-\d\d-\d\d)", text))
    rows = sorted((key, day, prose(title)) for (title, day), key in _keys().items() if f"{key} {day}" in named)
    return f"## Sources\n\n{table(('key', 'read on', 'source'), rows)}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
