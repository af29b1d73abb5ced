"""What `check` prints, from its JSON: what broke first, by how much, since when and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from cachecost.base.formatting import count_text, dollars, inert, rough_dollars
from cachecost.views.check.change_words import (
    change_lines,
    excerpt_lines,
    place_words,
    rest_words,
    session_of,
    session_words,
    shown_comparisons,
    volume_words,
)

SIGNS = {"fail": "✗", "not_comparable": "?", "pass": "✓"}
"""What broke comes first."""
RANKS = tuple(SIGNS)
CheckObject = Mapping[str, Any]


def text_lines(check: CheckObject) -> list[str]:
    """A line a verdict, what broke first, each with the calls and blocks behind it; those of a scenario that hold
    together in one; then what accepts the rest, and the projection if there is one."""
    projections = [f"  {projection_words(one)}" for one in check.get("project", ())]
    if not check["budgets"]:
        return ["No budget is set, so nothing was checked.", *projections]
    ranked = ranked_budgets(check)
    lines = []
    for one in with_changes_once(ranked):
        lines.append(f"{SIGNS[one['verdict']]} {one['scenario']}: {one['message']}")
        lines += [f"  {change_words(change)}" for change in one["changes"]]
    passed: dict[str, list[str]] = {}
    for one in ranked:
        if one["verdict"] == "pass":
            passed.setdefault(one["scenario"], []).append(one["message"])
    for scenario, messages in passed.items():
        words = messages[0] if len(messages) == 1 else f"{len(messages)} limits hold."
        lines.append(f"{SIGNS['pass']} {scenario}: {words}")
    for comparison in shown_comparisons(check):
        lines += _comparison_lines(check, comparison)
    lines += (f"  accept it with: {command}" for command in check["accept"])
    return [inert(line) for line in (*lines, *projections)]


def ranked_budgets(check: CheckObject) -> list[CheckObject]:
    """The budgets, what broke first."""
    return sorted(check["budgets"], key=lambda one: RANKS.index(one["verdict"]))


def with_changes_once(ranked: Sequence[CheckObject]) -> Iterator[CheckObject]:
    """Those that do not hold; the same changes of a strategy are listed below the first only."""
    seen: list[tuple[str, str, object]] = []
    for one in ranked:
        if one["verdict"] != "pass":
            key = (one["scenario"], one["strategy"], one["changes"])
            yield {**one, "changes": []} if key in seen else one
            seen.append(key)


def change_words(change: CheckObject) -> str:
    """ "since call 18: tool x changed → tools written again: $1.74"; "and 3 more calls: $0.18"."""
    cost = dollars(Decimal(change["cost_usd"]))
    if not change["what"]:
        return f"and {count_text(change['calls'], 'more call')}: {cost}"
    first, last = change["call"], change["last"]
    since = f"since call {first}" if first == last else f"since one of calls {first} to {last}"
    effect = f" → {change['effect']}" if change["effect"] else ""
    times = f" in {change['calls']:,} calls" if change["calls"] > 1 else ""
    code = f" [{change['code']}]" if change["code"] else ""
    place = f"  {place_words(change)}" if change["file"] else ""
    return f"{since}: {change['what']}{effect}{times}: {cost}{code}{place}"


def _comparison_lines(check: CheckObject, comparison: CheckObject) -> Iterator[str]:
    """What changed in the prompts of a strategy, the most expensive change first."""
    session = session_of(check, comparison)
    yield f"  prompts of {comparison['scenario']}, {comparison['strategy']}: {session_words(session)}"
    if volume := volume_words(session):
        yield f"    {volume}"
    for change, line in change_lines(comparison):
        yield f"    {line}"
        yield from (f"      {excerpt}" for excerpt in excerpt_lines(change))
    if rest := rest_words(comparison):
        yield f"    {rest}"


def projection_words(one: CheckObject) -> str:
    """ "mine, progressive: $723.00 a month at 10 sessions a day, ±$22.00 (30 days)"."""
    month, high = Decimal(one["usd_per_month"]), Decimal(one["high_usd"])
    error_margin = f", ±{rough_dollars(high - month)}" if high != month else ""
    rate = f"{count_text(one['sessions_per_day'], 'session')} a day"
    return (
        f"{one['scenario']}, {one['strategy']}: {dollars(month)} a month of {one['days']} days at {rate}{error_margin}"
    )
