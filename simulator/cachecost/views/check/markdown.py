"""A check as one comment in Markdown, from its JSON. Empty where there is nothing to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from cachecost.base.formatting import change, counted, dollars, percent
from cachecost.base.inert import inert
from cachecost.views.check.text import MARKS, change_words, projection_words, ranked_budgets, with_changes_once
from cachecost.views.tables.markdown import escaped

MARKER = "<!-- cachecost -->"
"""By this first line the comment is found again, and updated in place."""
Told = Mapping[str, Any]


def markdown(told: Told) -> str:
    """The comment; "" where all limits hold and no strategy costs anything else than in its baseline."""
    changed = [one for one in told["strategies"] if one["baseline_usd"] not in (None, one["cost_usd"])]
    if told["verdict"] == "pass" and not changed:
        return ""
    return "\n".join([MARKER, *_headline(told), *_broken(told), *_accept(told), *_costs(changed), *_projection(told)])


def _headline(told: Told) -> Iterator[str]:
    states = [one["verdict"] for one in told["budgets"]]
    parts = [
        f"{counted(states.count('fail'), 'budget')} broken" if "fail" in states else "",
        f"{states.count('not_comparable')} not comparable" if "not_comparable" in states else "",
        f"{states.count('pass')} hold" if "pass" in states else "",
    ]
    yield f"### {MARKS[told['verdict']]} cachecost: {', '.join(filter(None, parts)) or 'costs have changed'}"
    yield ""


def _broken(told: Told) -> Iterator[str]:
    found = list(with_changes_once(ranked_budgets(told)))
    for one in found:
        yield f"- {MARKS[one['verdict']]} **{escaped(one['scenario'])}**: {escaped(one['message'])}"
        yield from (f"  - {escaped(change_words(change))}" for change in one["changes"])
    if found:
        yield ""


def _accept(told: Told) -> Iterator[str]:
    if told["accept"]:
        yield from ("Accept it with:", "", "```", *map(inert, told["accept"]), "```", "")


def _costs(changed: list[Told]) -> Iterator[str]:
    if changed:
        yield from ("| scenario | strategy | baseline | now | change |", "|---|---|--:|--:|--:|")
        for one in changed:
            now, before = Decimal(one["cost_usd"]), Decimal(one["baseline_usd"])
            share = percent(change(now, before), signed=True)
            names = f"{escaped(one['scenario'])} | {escaped(one['strategy'])}"
            yield f"| {names} | {dollars(before)} | {dollars(now)} | {share} |"
        yield ""


def _projection(told: Told) -> Iterator[str]:
    for one in told.get("project", ()):
        yield f"- {escaped(projection_words(one))}"
    if told.get("project"):
        yield ""
