"""The plan of `optimize` where caches take no breakpoints: text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any

from rich.text import Text

from cachecost.base.formatting import change, change_text, count_text, dollars, exact, margin_text
from cachecost.views.bound_units import see_also
from cachecost.views.streams import REPORT_WIDTH, report_console

if TYPE_CHECKING:
    from cachecost.analysis.whatif.content_plan import ContentPlan


def content_words(plan: ContentPlan) -> str:
    if not plan.changes:
        return "Leave the content as it is: no order and no place of it makes these calls cheaper."
    return "Change the content: " + "; ".join(one.does for one in plan.changes) + "."


def content_answer(plan: ContentPlan) -> str:
    proof = "This plan is provably optimal:" if plan.is_optimal else "As the plan sends them,"
    worth = f"That costs {dollars(plan.usd)} instead of {dollars(plan.now)}: {_less(plan)}."
    return f"{content_words(plan)} {worth} {proof} {bound_words(plan)}."


def _less(plan: ContentPlan) -> str:
    return change_text(change(plan.usd, plan.now))


def bound_words(plan: ContentPlan) -> str:
    """What the requests cost at least as the plan sends them."""
    return f"these requests cost at least {dollars(plan.lower_bound_usd)}, whatever the pauses between them"


def token_words(plan: ContentPlan) -> str:
    margin = Decimal(str(plan.error_margin))
    return plan.token_source + (f" {margin_text(margin, plan.usd * margin)} on each figure" if margin else "")


def content_lines(plan: ContentPlan, title: str, arguments: str) -> Iterator[str]:
    yield content_words(plan)
    calls = count_text(plan.calls, "call")
    yield f"{dollars(plan.now)} now · {dollars(plan.usd)} with this plan: {_less(plan)}   {title}, {calls}"
    if len(plan.changes) > 1:
        parts = (f"{one.name} {dollars(one.saving or Decimal())}" for one in plan.changes)
        yield f"saves      {', then '.join(parts)}"
    yield f"minimum    {'provably optimal: ' if plan.is_optimal else ''}{bound_words(plan)}"
    yield f"tokens     {token_words(plan)}"
    if plan.changes:
        yield f"next       cachecost whatif {arguments} --jointly {','.join(one.name for one in plan.changes)}"
    yield see_also("optimize", arguments)


def print_content(plan: ContentPlan, title: str, arguments: str, stream: IO[str]) -> None:
    console = report_console(stream, REPORT_WIDTH)
    for number, line in enumerate(content_lines(plan, title, arguments)):
        console.print(Text(line, "" if number else "bold"), soft_wrap=True)


def content_object(plan: ContentPlan) -> dict[str, Any]:
    """The object of docs/reference/output-formats.md. Dollars are decimal strings."""
    return {
        "format": 1,
        "best": {
            "cost_usd": exact(plan.usd),
            "words": content_words(plan),
            "plan": [],
            "changes": [
                {"name": one.name, "does": one.does, "saving_usd": exact(one.saving or Decimal())}
                for one in plan.changes
            ],
        },
        "lower_bound_usd": exact(plan.lower_bound_usd),
        "proved_optimal": plan.is_optimal,
        "strategies": {"as recorded": exact(plan.now)},
        "tokens": {"source": plan.token_source, "error_margin": plan.error_margin},
    }
