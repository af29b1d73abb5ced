"""The README of an emitted plan: what each file is, what it costs, and how to replay it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from cachecost.analysis.optimum.online_rule import RuleResult
from cachecost.analysis.optimum.optimum import Optimum
from cachecost.base.formatting import change, change_text, count_text, dollar_column, exact_dollars, percent
from cachecost.base.version import __version__
from cachecost.views.optimum.brief import cost_now
from cachecost.views.optimum.client_code import rule_words
from cachecost.views.optimum.sentences import extra_words

MARK = "<!-- written by cachecost optimize --emit -->"
"""The first line of the README: a folder that has it may be written again."""


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What the README says. `requests_usd` and `strategy_usd` are what `cachecost replay` says (None: not possible).

    `arguments` are the paths as on a command line, `options` the options of a replay with the same rules and prices,
    `missing` is why there is no request log.
    """

    optimum: Optimum
    rule: RuleResult
    arguments: str
    options: str
    folder: Path
    requests_usd: Decimal | None
    strategy_usd: Decimal | None
    missing: str = ""


def plan_readme(facts: PlanFacts) -> str:
    """The text of README.md."""
    return "\n".join(_lines(facts)) + "\n"


def _lines(facts: PlanFacts) -> Iterator[str]:
    yield MARK
    yield f"# Cache plan for {facts.arguments}"
    yield ""
    yield from _table(facts)
    yield ""
    yield from _about_rule(facts)
    yield ""
    yield from _about_requests(facts)
    yield from _about_replays(facts)
    yield ""
    yield f"Tokens: {facts.optimum.token_source}. Written by cachecost {__version__}."


def _table(facts: PlanFacts) -> Iterator[str]:
    optimum = facts.optimum
    name, now = cost_now(optimum)
    log = "`breakpoints.jsonl`" if facts.missing else "`requests.jsonl`"
    rows = [
        (name, now),
        ("`strategy.yaml`, `client.py`: a rule that knows only the past", facts.rule.usd),
        (f"{log}: the cheapest plan, which knows every later call", optimum.usd),
        ("lower bound: no legal plan for these requests costs less", optimum.lower_bound_usd),
    ]
    yield "| | cost | against the first |"
    yield "| --- | ---: | ---: |"
    for (what, usd), text in zip(rows, dollar_column([usd for _, usd in rows]), strict=True):
        yield f"| {what} | {text} | {change_text(change(usd, now)) if usd != now else '–'} |"


def _about_rule(facts: PlanFacts) -> Iterator[str]:
    optimum, rule = facts.optimum, facts.rule
    more = change(rule.usd, optimum.usd)
    word = "less" if rule.usd < optimum.usd else "more"
    gap = f"{exact_dollars(abs(rule.usd - optimum.usd))} ({percent(abs(more))}) {word} than" if more else "the same as"
    yield f"The rule: {rule_words(rule.rule)}. It costs {gap} the plan."
    if (habit := rule.rule.keep_alive) is not None:
        sent = f"{count_text(rule.keep_alives, 'keep-alive')} here"
        yield f"Keep-alives: every {habit.every_s:g} s after a call, at most {habit.times}; {sent}, in the cost."
    if (best := optimum.best_preset).usd < rule.usd:
        yield f"Cheaper, but without code here: the built-in strategy {best.name}, {exact_dollars(best.usd)}."
    yield "It is the cheapest of those tried on these calls, and a guess for others: replay a later log to check it."


def _about_requests(facts: PlanFacts) -> Iterator[str]:
    if facts.missing:
        yield f"There is no `requests.jsonl`: {facts.missing}."
        yield "`breakpoints.jsonl` has the breakpoints of each call by path instead."
        return
    words = " ".join(extra_words(facts.optimum.plan))
    yield "`requests.jsonl` has the requests with the plan's breakpoints, without the usage that was billed for others."
    if words:
        yield f"{words} They are lines of their own."
    if facts.optimum.refused:
        yield f"{count_text(len(facts.optimum.refused), 'call')} that failed or cannot be evaluated left out."


def _about_replays(facts: PlanFacts) -> Iterator[str]:
    """The commands, with exactly what they say; where that differs from the table, why."""
    shown = []
    if facts.requests_usd is not None:
        shown.append(
            (
                f"cachecost replay {facts.folder / 'requests.jsonl'}{facts.options}",
                facts.requests_usd,
                facts.optimum.usd,
            )
        )
    if facts.strategy_usd is not None:
        command = f"cachecost replay {facts.arguments}{facts.options} --strategy {facts.folder / 'strategy.yaml'}"
        shown.append((command, facts.strategy_usd, facts.rule.usd))
    if not shown:
        return
    width = max(len(command) for command, _, _ in shown)
    yield ""
    yield from (f"    {command:<{width}}  # {exact_dollars(usd)}" for command, usd, _ in shown)
    if any(usd != expected for _, usd, expected in shown):
        yield ""
        yield (
            "Where a replay differs from the table: it starts with the caches that the bills show, plans conversations "
            "anew, and has other times for calls without one; the table holds all that equal."
        )
