"""What `cachecost optimize` prints by default: the answer, in at most ten lines."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from textwrap import shorten, wrap
from typing import IO

from rich.text import Text

from cachecost.analysis.optimum.optimum import Optimum
from cachecost.base.formatting import change, change_text, count_text, dollars, percent, rough_dollars
from cachecost.views.optimum.sentences import plan_words
from cachecost.views.optimum.tables import cheapest_groups
from cachecost.views.see_also import see_also
from cachecost.views.streams import REPORT_WIDTH, report_console

MOST_ALTERNATIVES = 3
PLAN_LINES = 3
"""Lines for the sentence that says where breakpoints go; --full has all of it."""


def print_brief(optimum: Optimum, title: str, arguments: str, stream: IO[str], is_scenario: bool) -> None:
    """Print to `stream`; what does not fit the plan's lines is left to --full."""
    console = report_console(stream, REPORT_WIDTH)
    width = min(console.width, REPORT_WIDTH)
    for line in _plan_lines(plan_words(optimum.plan), width):
        console.print(Text(line, "bold"), soft_wrap=True)
    for line in brief_lines(optimum, title, arguments, is_scenario):
        console.print(Text(line), soft_wrap=True)


def brief_lines(optimum: Optimum, title: str, arguments: str, is_scenario: bool) -> Iterator[str]:
    """The dollars, what else saves, the lower bound, how sure that is, and what to type next."""
    name, now = cost_now(optimum)
    calls = count_text(len(optimum.plan) - len(optimum.extras), "call")
    less = change_text(change(optimum.usd, now))
    yield f"{dollars(now)} {name} · {dollars(optimum.usd)} with this plan: {less}   {title}, {calls}"
    yield f"saves too  {' · '.join(_alternatives(optimum, now)) or 'no built-in strategy is cheaper'}"
    yield f"bound      {_bound(optimum)}"
    yield f"sure       {_certainty(optimum)}"
    yield f"next       cachecost optimize {arguments} --emit DIR: requests, strategy and client code; --full: the table"
    yield see_also("optimize", arguments, is_scenario=is_scenario)


def cost_now(optimum: Optimum) -> tuple[str, Decimal]:
    """What the calls cost as they are sent, in words and USD: calls without breakpoints cost what "none" does.

    Where some calls were left out, that is not known, and the cheapest built-in strategy stands for it.
    """
    if optimum.recorded_usd is not None:
        return f"now ({optimum.first}, simulated)", optimum.recorded_usd
    best = optimum.best_preset
    if optimum.refused:
        return f"with the cheapest built-in strategy ({best.name})", best.usd
    none = next((one for one in optimum.presets if one.name == "none"), best)
    return "now (no breakpoints, simulated)", none.usd


def _plan_lines(words: str, width: int) -> list[str]:
    lines = wrap(words, width)
    if len(lines) <= PLAN_LINES:
        return lines
    rest = shorten(" ".join(lines[PLAN_LINES - 1 :]), width, placeholder=" … (--full: all)")
    return [*lines[: PLAN_LINES - 1], rest]


def _alternatives(optimum: Optimum, now: Decimal) -> Iterator[str]:
    """The cheapest strategies that save, those of the same cost as one."""
    groups = [(names, usd) for names, usd in cheapest_groups(optimum) if usd < now]
    for names, usd in groups[:MOST_ALTERNATIVES]:
        more = f" (and {len(names) - 1:,} more)" if len(names) > 1 else ""
        yield f"{names[0]}{more} {dollars(usd)}, {change_text(change(usd, now))}"


def _bound(optimum: Optimum) -> str:
    gap = change(optimum.usd, optimum.lower_bound_usd)
    limit = dollars(optimum.lower_bound_usd)
    if optimum.is_optimal:
        return f"provably optimal: no legal plan for these requests costs less than {limit}"
    if gap is not None and gap <= 0:
        return f"at the lower bound of {limit}, but not under every assumption"
    above = f"; this one is {percent(gap)} above that" if gap is not None else ""
    return f"no legal plan for these requests costs less than {limit}{above}"


def _certainty(optimum: Optimum) -> str:
    margin = Decimal(str(optimum.error_margin))
    about = f" ±{percent(margin)} → ±{rough_dollars(optimum.usd * margin)} on each figure" if margin else ""
    if not optimum.depends_on:
        return f"{optimum.token_source}{about}; holds under every tried assumption"
    return f"{optimum.token_source}{about}; depends on {', '.join(optimum.depends_on)} (--full)"
