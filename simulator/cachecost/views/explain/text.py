"""What `cachecost explain` prints for people: the answer, a line a cause, examples, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from textwrap import wrap
from typing import IO

from rich.console import Console

from cachecost.analysis.explain.codes import codes
from cachecost.base.formatting import count_text, dollars, percent, rough_dollars
from cachecost.ledger.findings import Explanation, Finding
from cachecost.ledger.results import ZERO
from cachecost.simulation.engine import AS_RECORDED
from cachecost.views.bill.lines import wrap_line
from cachecost.views.explain.call_names import call_name
from cachecost.views.explain.tables import CauseGroup, call_numbers, findings_table, group_findings, group_notes
from cachecost.views.see_also import see_also
from cachecost.views.streams import report_console
from cachecost.views.tables.fitting import fit_table, hidden_note
from cachecost.views.tables.text import PIPE_WIDTH, render_table

MOST = Decimal("0.9")
"""Share of the avoidable dollars that the causes named in the first line make."""
FIX_INDENT = 7
"""Blanks before what follows the code of an example."""


def print_explanation(explanation: Explanation, stream: IO[str], arguments: str = "") -> None:
    """Print to `stream`; rich respects NO_COLOR, pipes and the width. `arguments` are the logs, as they were typed."""
    console = report_console(stream, PIPE_WIDTH)
    groups = group_findings(explanation)
    _print_lines(console, headline(explanation, groups))
    if groups:
        table = fit_table(findings_table(explanation), console.width)
        console.print()
        console.print(render_table(table))
        console.print()
        for group in groups:
            _print_example(console, group, call_name(group.example, explanation))
        _print_lines(console, filter(None, [hidden_note([table], "--csv F")]))
    _print_lines(console, closing(explanation))
    if arguments:
        is_scenario = bool(explanation.strategy) and explanation.strategy != AS_RECORDED
        _print_lines(console, [see_also("explain", arguments, _known(explanation), is_scenario)])


def _known(explanation: Explanation) -> dict[str, str]:
    """What is known of the other commands' answers."""
    if explanation.lower_bound is None:
        return {}
    fixed = "with these fixes " if explanation.bounds_fixed_requests else ""
    return {"optimize": f"cheapest breakpoints; {fixed}no plan is below {dollars(explanation.lower_bound)}"}


def _print_lines(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def headline(explanation: Explanation, groups: Sequence[CauseGroup]) -> Iterator[str]:
    """The answer: what it cost, what of that was avoidable, and how many causes make most of it."""
    name = f"{explanation.strategy}   " if explanation.strategy else ""
    if explanation.billed is not None:
        yield _billed_line(explanation, explanation.billed, groups)
        return
    if not groups:
        yield f"{name}{dollars(explanation.cost)} · no avoidable cost with these prompts, breakpoints and times"
        return
    share = percent(explanation.avoidable / explanation.cost) if explanation.cost else percent(0)
    causes = count_text(len(groups), "cause")
    count, part = _main_causes(groups, explanation.avoidable)
    if count < len(groups):
        causes = f"{count_text(count, 'cause')} {'makes' if count == 1 else 'make'} {percent(part)} of it"
    yield f"{name}{dollars(explanation.cost)} · {dollars(explanation.avoidable)} avoidable ({share}) · {causes}"


def _billed_line(explanation: Explanation, billed: Decimal, groups: Sequence[CauseGroup]) -> str:
    """As above, of what was billed."""
    parts = [f"{dollars(billed)} billed"]
    for amount, word in ((explanation.avoidable, "avoidable"), (explanation.not_explained_usd, "not explained")):
        if amount:
            parts.append(f"{dollars(amount)} {word} ({percent(amount / billed)})")
    parts.append(count_text(len(groups), "cause") if groups else "no avoidable cost")
    return " · ".join(parts)


def _main_causes(groups: Sequence[CauseGroup], avoidable: Decimal) -> tuple[int, Decimal]:
    """How many causes, from the most expensive on, make most of it, and what share."""
    sum_so_far = ZERO
    for number, group in enumerate(groups, 1):
        sum_so_far += group.cost
        if sum_so_far >= MOST * avoidable:
            return number, sum_so_far / avoidable
    return len(groups), Decimal(1)


def _print_example(console: Console, group: CauseGroup, call: str) -> None:
    """The most expensive call of a cause: what happened there, and the fix."""
    first = group.example
    shown = f": “{first.excerpt}”" if first.excerpt else ""
    example = f"{call}: {first.message}{shown} ({dollars(first.cost)})"
    for line in wrap_line(f"{first.code}  {example}", console.width, hanging=" " * FIX_INDENT):
        console.print(line, markup=False, soft_wrap=True)
    for number, line in enumerate(wrap(first.fix, max(40, console.width - 9))):
        console.print(f"{' ' * FIX_INDENT}{' ' if number else '→'} {line}", markup=False)


def _note_line(group: CauseGroup) -> str:
    """What was paid again although no change known at the time would have saved it."""
    first = group.example
    where = "call" if len(group.findings) == 1 else "calls"
    name = f"{first.code}  {codes()[first.cause].name}"
    paid = f"{dollars(group.paid_again)} paid again; {_why(first)}"
    return f"note        {name}: {where} {call_numbers(group.findings)}, {paid}"


def _why(finding: Finding) -> str:
    """Why something that was paid again was not avoidable."""
    if finding.cause == "ttl_expired":
        return "no TTL and no keep-alives would have cost less"
    if codes()[finding.cause].fixed_in == "bill":
        return "it is what was asked for"
    return "the fix would have saved nothing"


def closing(explanation: Explanation) -> Iterator[str]:
    """What remains, and how sure all of this is."""
    if explanation.findings:
        rest = explanation.calls - len({finding.call for finding in explanation.findings})
        yield ""
        yield (
            f"No avoidable cost in the other {count_text(rest, 'call') if rest > 1 else 'call'}."
            if rest
            else "Every call has an avoidable cost."
        )
    yield from map(_note_line, group_notes(explanation))
    if explanation.warm.calls:
        yield explanation.warm.sentence
    if explanation.token_source:
        error_margin = Decimal(str(explanation.error_margin))
        has_error = error_margin and explanation.findings
        error = (
            f" ±{percent(error_margin)} → ±{rough_dollars(explanation.avoidable * error_margin)}" if has_error else ""
        )
        yield f"tokens      {explanation.token_source}{error}"
    for sentence in explanation.flips:
        yield f"assumption  {sentence}"
