"""A check as one comment in Markdown, from its JSON. Empty where there is nothing to say.

A reviewer reads it in this order: the dollars and the hit rate, which budgets broke, what changed in the prompts and
what each change costs, how to accept it. Everything else is folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import chain
from textwrap import indent

from cachecost.base.formatting import UNKNOWN, capitalized, change, count_text, dollars, percent
from cachecost.views.check.text import (
    SIGNS,
    CheckObject,
    before_and_now,
    change_words,
    cost_words,
    excerpt_lines,
    place_words,
    projection_words,
    prompt_change_words,
    ranked_budgets,
    ranked_changes,
    rates_before_and_now,
    rest_words,
    session_words,
    shown_comparisons,
    volume_words,
    with_changes_once,
)
from cachecost.views.tables.output import code_block, escape_comment, markdown_table, short
from cachecost.views.tables.table import build_table

MARKER = "<!-- cachecost -->"
"""By this first line the comment is found again, and updated in place."""
SHOWN = 3
"""Changes of a strategy that are not folded."""


def render(check: CheckObject) -> str:
    """The comment; "" where all limits hold and no strategy costs anything else than in its baseline."""
    changed = [one for one in check["strategies"] if one["baseline_usd"] not in (None, one["cost_usd"])]
    if check["verdict"] == "pass" and not changed:
        return ""
    comparisons = shown_comparisons(check)
    compared = {one["scenario"] for one in comparisons}
    broken = list(with_changes_once(ranked_budgets(check)))
    lines = [MARKER, *_headline(check, changed)]
    for one in broken:
        budget, *causes = _budget_lines(one)
        lines += [budget, *(causes if one["scenario"] not in compared else ())]
    lines += [""] if broken else []
    lines += _costs(check, changed)
    for one in comparisons:
        name = f"{escape_comment(one['scenario'])}, {escape_comment(one['strategy'])}"
        changes = [list(_change_lines(change)) for change in ranked_changes(one)]
        lines += [f"**What changed in the prompts** ({name})", "", *chain(*changes[:SHOWN])]
        lines += [f"- {escape_comment(rest)}"] if (rest := rest_words(one)) else []
        lines += ["", *_fold(count_text(len(changes) - SHOWN, "more change"), list(chain(*changes[SHOWN:])))]
    if check["accept"]:
        lines += ["Accept it with:", "", *code_block(check["accept"]).splitlines(), ""]
    keys = {(one["scenario"], one["strategy"]) for one in changed}
    found = [one for one in check["sessions"] if (one["scenario"], one["strategy"]) in keys and one["volume"]]
    volumes = [projection_words(one) for one in check.get("project", ())]
    volumes = volumes or [f"{one['scenario']}, {one['strategy']}: {volume_words(one)}" for one in found]
    lines += _fold("What a month is made of", [f"- {escape_comment(line)}" for line in volumes])
    folded = [one for one in broken if one["scenario"] in compared and one["changes"]]
    lines += _fold("Calls that cost more", [line for one in folded for line in _budget_lines(one)])
    return "\n".join(lines)


def _headline(check: CheckObject, changed: Sequence[CheckObject]) -> Iterator[str]:
    # the session whose cost changed most, of those whose budget broke if there are any; none if calls have no cost
    keys = {(one["scenario"], one["strategy"]) for one in changed if not one["errors"]}
    limited = {(one["scenario"], one["strategy"]) for one in check["budgets"]}
    failed = {(one["scenario"], one["strategy"]) for one in check["budgets"] if one["verdict"] == "fail"}
    wanted = keys & failed or keys & limited or keys
    found = [one for one in check["sessions"] if (one["scenario"], one["strategy"]) in wanted]
    lead = max(found, key=lambda one: abs(Decimal(one["cost_usd"]) - Decimal(one["baseline_usd"])), default=None)
    words = _budget_counts(check)
    if lead is not None:
        month = _month_words(lead)
        words = f"{session_words(lead)}{f', {month} a month' if month else ''}"
    yield f"### {SIGNS[check['verdict']]} cachecost: {escape_comment(words).replace(chr(92) + '$', '$')}"
    yield ""
    if lead is not None:
        others = len({one["scenario"] for one in changed}) - 1
        more = f" {count_text(others, 'more scenario')} changed." if others else ""
        name = escape_comment(f"{lead['scenario']}, {lead['strategy']}")
        yield f"{name}. {capitalized(_budget_counts(check))}.{more}"
        yield ""


def _month_words(session: CheckObject) -> str:
    """ "$245 → $943"; "" where a month is not known."""
    month = session["usd_per_month"]
    return "" if month is None else before_and_now(session["baseline_usd_per_month"], month)


def _budget_counts(check: CheckObject) -> str:
    states = [one["verdict"] for one in check["budgets"]]
    if states and set(states) == {"pass"}:
        return count_text(len(states), "budget", "hold")
    parts = [
        f"{count_text(states.count('fail'), 'budget')} broken" if "fail" in states else "",
        f"{states.count('not_comparable')} not comparable" if "not_comparable" in states else "",
        f"{states.count('pass')} hold" if "pass" in states else "",
    ]
    return ", ".join(filter(None, parts)) or "costs have changed"


def _budget_lines(one: CheckObject) -> list[str]:
    line = f"- {SIGNS[one['verdict']]} **{escape_comment(one['scenario'])}**: {escape_comment(one['message'])}"
    return [line, *(f"  - {escape_comment(change_words(cause))}" for cause in one["changes"])]


def _costs(check: CheckObject, changed: Sequence[CheckObject]) -> Iterator[str]:
    if not changed:
        return
    sessions = {(one["scenario"], one["strategy"]): one for one in check["sessions"]}
    found = [(one, sessions[one["scenario"], one["strategy"]]) for one in changed]
    has_month = any(session["usd_per_month"] is not None for _, session in found)
    headers = ["scenario", "strategy", "baseline", "now", "change", "cache hit rate", *["a month"] * has_month]
    rows = []
    for one, session in found:
        now, before = Decimal(one["cost_usd"]), Decimal(one["baseline_usd"])
        cells = [dollars(before), dollars(now), percent(change(now, before), signed=True)]
        rates, month = rates_before_and_now(session) or UNKNOWN, _month_words(session) or UNKNOWN
        rows.append([one["scenario"], one["strategy"], *cells, rates, *[month] * has_month])
    yield markdown_table(build_table("", headers, rows, words=2), escape_comment)
    yield ""


def _change_lines(one: CheckObject) -> Iterator[str]:
    place = place_words(one)
    where = f" ({escape_comment(place)})" if place else ""
    yield f"- **{escape_comment(cost_words(one))}** {escape_comment(prompt_change_words(one))}{where}"
    if lines := excerpt_lines(one):
        yield from indent(code_block(list(map(short, lines)), "diff"), "  ").splitlines()


def _fold(summary: str, lines: Sequence[str]) -> list[str]:
    """The lines behind their summary; none where there are none."""
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "", "</details>", ""] if lines else []
