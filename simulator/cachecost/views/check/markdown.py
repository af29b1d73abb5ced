"""A check as one comment in Markdown, from its JSON. Empty where there is nothing to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from cachecost.base.formatting import change, count_text, dollars, percent
from cachecost.base.inert import inert
from cachecost.views.check.text import SIGNS, change_words, projection_words, ranked_budgets, with_changes_once
from cachecost.views.tables.markdown import escape_markdown, markdown_table
from cachecost.views.tables.table import build_table

MARKER = "<!-- cachecost -->"
"""By this first line the comment is found again, and updated in place."""
CheckObject = Mapping[str, Any]


def render(check: CheckObject) -> str:
    """The comment; "" where all limits hold and no strategy costs anything else than in its baseline."""
    changed = [one for one in check["strategies"] if one["baseline_usd"] not in (None, one["cost_usd"])]
    if check["verdict"] == "pass" and not changed:
        return ""
    return "\n".join(
        [
            MARKER,
            *_headline(check),
            *_broken_budgets(check),
            *_accept_commands(check),
            *_costs(changed),
            *_projection(check),
        ]
    )


def _headline(check: CheckObject) -> Iterator[str]:
    states = [one["verdict"] for one in check["budgets"]]
    parts = [
        f"{count_text(states.count('fail'), 'budget')} broken" if "fail" in states else "",
        f"{states.count('not_comparable')} not comparable" if "not_comparable" in states else "",
        f"{states.count('pass')} hold" if "pass" in states else "",
    ]
    yield f"### {SIGNS[check['verdict']]} cachecost: {', '.join(filter(None, parts)) or 'costs have changed'}"
    yield ""


def _broken_budgets(check: CheckObject) -> Iterator[str]:
    broken = list(with_changes_once(ranked_budgets(check)))
    for one in broken:
        yield f"- {SIGNS[one['verdict']]} **{escape_markdown(one['scenario'])}**: {escape_markdown(one['message'])}"
        yield from (f"  - {escape_markdown(change_words(change))}" for change in one["changes"])
    if broken:
        yield ""


def _accept_commands(check: CheckObject) -> Iterator[str]:
    if check["accept"]:
        yield from ("Accept it with:", "", "```", *map(inert, check["accept"]), "```", "")


def _costs(changed: list[CheckObject]) -> Iterator[str]:
    if changed:
        rows = [_cost_cells(cost) for cost in changed]
        yield markdown_table(build_table("", ["scenario", "strategy", "baseline", "now", "change"], rows, words=2))
        yield ""


def _cost_cells(cost: CheckObject) -> list[str]:
    now, before = Decimal(cost["cost_usd"]), Decimal(cost["baseline_usd"])
    share = percent(change(now, before), signed=True)
    return [cost["scenario"], cost["strategy"], dollars(before), dollars(now), share]


def _projection(check: CheckObject) -> Iterator[str]:
    for one in check.get("project", ()):
        yield f"- {escape_markdown(projection_words(one))}"
    if check.get("project"):
        yield ""
