"""What `check` prints, from its JSON: what broke first, by how much and why; the words that all its formats share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

from cachecost.base.formatting import count_text, dollar_change, dollars, inert, percent, range_text, rough_dollars

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
        key = comparison["scenario"], comparison["strategy"]
        session = next(one for one in check["sessions"] if (one["scenario"], one["strategy"]) == key)
        lines.append(f"  prompts of {comparison['scenario']}, {comparison['strategy']}: {session_words(session)}")
        lines += [f"    {volume}"] if (volume := volume_words(session)) else []
        for change, line in change_lines(comparison):
            lines += [f"    {line}", *(f"      {excerpt}" for excerpt in excerpt_lines(change))]
        lines += [f"    {rest}"] if (rest := rest_words(comparison)) else []
    lines += (f"  accept it with: {command}" for command in check["accept"])
    return [inert(line) for line in (*lines, *projections)]


def ranked_budgets(check: CheckObject) -> list[CheckObject]:
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


def projection_words(one: CheckObject) -> str:
    """ "mine, progressive: $723.00 a month at 10 sessions a day, ±$22.00 (30 days)"."""
    month, high = Decimal(one["usd_per_month"]), Decimal(one["high_usd"])
    error_margin = f", ±{rough_dollars(high - month)}" if high != month else ""
    rate = f"{count_text(one['sessions_per_day'], 'session')} a day"
    return (
        f"{one['scenario']}, {one['strategy']}: {dollars(month)} a month of {one['days']} days at {rate}{error_margin}"
    )


def shown_comparisons(check: CheckObject) -> list[CheckObject]:
    """Of each scenario the strategy whose budget broke, else one whose cost changed, else the first; where its prompts
    and its dollars changed, or where a budget of the scenario does not hold."""
    by_scenario: dict[str, list[CheckObject]] = {}
    for one in check["prompt_changes"]:
        by_scenario.setdefault(one["scenario"], []).append(one)
    leads = (
        min(found, key=lambda one: (not has_failed(check, one), not Decimal(one["cost_usd"])))
        for found in by_scenario.values()
    )
    broken = {one["scenario"] for one in check["budgets"] if one["verdict"] != "pass"}
    return [one for one in leads if one["changes"] and (Decimal(one["cost_usd"]) or one["scenario"] in broken)]


def has_failed(check: CheckObject, one: CheckObject) -> bool:
    key = one["scenario"], one["strategy"]
    return any((row["scenario"], row["strategy"]) == key and row["verdict"] == "fail" for row in check["budgets"])


def ranked_changes(comparison: CheckObject) -> list[CheckObject]:
    return sorted(comparison["changes"], key=lambda one: -Decimal(one["cost_usd"]))


def placed_changes(check: CheckObject) -> list[tuple[CheckObject, CheckObject]]:
    """The shown changes that cost something and whose source line is known, each with its comparison."""
    pairs = ((one, change) for one in shown_comparisons(check) for change in ranked_changes(one))
    return [(one, change) for one, change in pairs if change["file"] and Decimal(change["cost_usd"])]


def before_and_now(before: str | None, now: str) -> str:
    """ "$0.20 → $0.79"; only the second where the first is not known."""
    amount = dollars(Decimal(now))
    return amount if before in (None, now) else f"{dollars(Decimal(before or 0))} → {amount}"


def rates_before_and_now(session: CheckObject) -> str:
    """ "83% → 12%"; "" where no input is sent."""
    now, before = session["hit_rate"], session["baseline_hit_rate"]
    if now is None:
        return ""
    rate = percent(Decimal(now))
    return rate if before is None or percent(Decimal(before)) == rate else f"{percent(Decimal(before))} → {rate}"


def session_words(session: CheckObject) -> str:
    """ "$0.20 → $0.79 a session, cache hit rate 83% → 12%"; a session without answers costs "input only"."""
    rates = rates_before_and_now(session)
    cost = before_and_now(session["baseline_usd"], session["cost_usd"])
    scope = "" if session["output_tokens"] else " (input only)"
    return f"{cost} a session{scope}{', cache hit rate ' + rates if rates else ''}"


def volume_words(session: CheckObject) -> str:
    """ "$8.18 → $31.44 a day and $245 → $943 a month at 40 sessions a day"; "" without a volume."""
    volume = session["volume"]
    if volume is None:
        return ""
    day, month = (
        before_and_now(session[f"baseline_usd_per_{span}"], session[f"usd_per_{span}"]) for span in ("day", "month")
    )
    rate = f"{Decimal(volume['sessions_per_day']):,.1f}".removesuffix(".0")
    recorded = "" if volume["days"] is None else f", as in the recording of {count_text(volume['days'], 'day')}"
    sessions = f"{rate} {'session' if rate == '1' else 'sessions'} a day{recorded}"
    return f"{day} a day and {month} a month of 30 days at {sessions}"


def cost_words(change: CheckObject) -> str:
    cost = Decimal(change["cost_usd"])
    return dollar_change(cost) if cost else "no change in cost"


def place_words(change: CheckObject) -> str:
    """ "agent.py:12"; "" where the source line is not known."""
    return f"{change['file']}:{change['line']}" if change["file"] else ""


def prompt_change_words(change: CheckObject) -> str:
    """ "system.0.text differs from character 14 on in 6 calls; calls 2–6 pay again for what was cached"."""
    calls, where = change["calls"], ""
    if calls != 1:
        since = f" since call {change['call']}" if change["call"] > 1 else ""
        where = f" in {calls:,} calls{since}{', different in each' if change['varies'] else ''}"
    elif change["layer"] != "calls":
        where = f" in call {change['call']}"
    effects = []
    if rewritten := change["rewritten"]:
        verb = "pays" if len(rewritten) == 1 else "pay"
        effects.append(f"{call_ranges(rewritten)} {verb} again for what was cached")
    if change["refused"]:
        effects.append(f"{count_text(change['refused'], 'call')} refused by the API")
    parts = [f"{_what_changed(change)}{where}", ", ".join(effects)]
    if change["more"]:
        parts.append(f"and {count_text(change['more'], 'more change')} that share these dollars")
    return "; ".join(filter(None, parts))


def change_sentence(change: CheckObject) -> str:
    """ "+$0.58 a session: system.0.text differs from character 14 on in 6 calls"."""
    return f"{cost_words(change)} a session: {prompt_change_words(change)}"


def _what_changed(change: CheckObject) -> str:
    kind, path = change["kind"], change["path"] + (f" ({change['name']})" if change["name"] else "")
    if change["layer"] == "calls":
        return "calls that are not in the accepted recording" if kind == "added" else "calls that are no longer made"
    if kind in ("model_changed", "parameter_changed"):
        return f"{path} changed from {change['before'] or 'nothing'} to {change['after'] or 'nothing'}"
    if kind == "breakpoint_moved":
        before, after = change["before"], change["after"]
        noun = "breakpoints" if "," in f"{before}{after}" else "a breakpoint"
        if before is None or after is None:
            return f"{'no more' if after is None else 'new:'} {noun} at {before or after}"
        return f"{noun} moved from {before} to {after}"
    if kind == "reordered":
        return f"the order of {change['layer']} changed from {path} on"
    if kind == "changed":
        where = f"differs from character {change['character']:,} on" if change["character"] is not None else "changed"
        return f"{path} {where}{_sizes(change)}"
    return f"{path} {'is new' if kind == 'added' else 'is gone'}{_sizes(change)}"


def _sizes(change: CheckObject) -> str:
    before, after = change["tokens_before"], change["tokens_after"]
    known = [f"{size:,}" for size in (before, after) if size is not None]
    if not known or before == after:
        return ""
    return f" ({' → '.join(known)} tokens)"


def call_ranges(calls: Sequence[int]) -> str:
    """ "call 3", "calls 2–6", "calls 2, 4–6 and 9 more"."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(calls), key=lambda one: one[1] - one[0])]
    shown = [range_text(str(run[0]), str(run[-1])) for run in runs[:3]]
    hidden = sum(map(len, runs[3:]))
    names = f"{', '.join(shown)} and {hidden} more" if hidden else ", ".join(shown)
    return f"{'call' if len(calls) == 1 else 'calls'} {names}"


def excerpt_lines(change: CheckObject) -> list[str]:
    """The text before and now as lines of a diff; none where the words say it."""
    if change["kind"] in ("model_changed", "parameter_changed", "breakpoint_moved"):
        return []
    sides = (("-", change["before"]), ("+", change["after"]))
    return [f"{sign} {text}" for sign, text in sides if text is not None]


def rest_words(comparison: CheckObject) -> str:
    rest = Decimal(comparison["rest"]["cost_usd"])
    if not rest:
        return ""
    answers = Decimal(comparison["rest"]["answers_usd"])
    what = "answers of another length" if answers == rest else "times between calls and token counts"
    both = "answers of another length, times between calls and token counts"
    return f"{dollar_change(rest)}  {what if not answers or answers == rest else both}"


def change_lines(comparison: CheckObject) -> Iterator[tuple[CheckObject, str]]:
    for change in ranked_changes(comparison):
        place = place_words(change)
        yield change, f"{cost_words(change)}  {prompt_change_words(change)}{'  ' + place if place else ''}"
