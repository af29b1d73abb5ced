"""The message of a failed assertion: what failed, by how much, which call, which block, and the fix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from cachecost.base.formatting import count_text, dollars, exact_dollars, percent
from cachecost.ledger.findings import Explanation, Finding
from cachecost.ledger.results import CallRow
from cachecost.testing.stability import LayerChange
from cachecost.views.explain.tables import group_findings

if TYPE_CHECKING:
    from cachecost.analysis.lint import LintFinding

NO_CALL = (
    "no call reached cache_cost: give the code under test cache_cost.client(), a client with cache_cost.transport, "
    "or cache_cost.base_url"
)
NOTHING_TO_COMPARE = (
    "nothing was compared: no call goes on from another one. Let the test make two calls of one conversation, or "
    "compare conversations with across_conversations=True"
)
SHOWN_CALLS = 12
SHOWN_CAUSES = 3


@dataclass(frozen=True, slots=True)
class CostEvidence:
    """Why it came to that: each call, what of it was avoidable, and which layers changed on the way."""

    calls: Sequence[CallRow]
    explanation: Explanation
    changes: Sequence[LayerChange]

    def lines(self) -> Iterator[str]:
        yield from _first_changes(self.changes)
        yield from _causes(self.explanation)
        yield from _table(self.calls)


def cost_message(spent: Decimal, limit: Decimal, evidence: CostEvidence) -> str:
    """The dollars, then why."""
    write = exact_dollars if dollars(spent) == dollars(limit) else dollars
    more = f"{dollars(spent - limit)} more than the limit of {exact_dollars(limit)}"
    return "\n".join([f"{_calls_cost(evidence.calls)} {write(spent)}, {more}", *evidence.lines()])


def hit_rate_message(reached: Decimal, limit: Decimal, evidence: CostEvidence) -> str:
    """The share, then why it is not larger."""
    head = f"{percent(reached)} of the input was read from the cache; expected at least {percent(limit)}"
    return "\n".join([head, *evidence.lines()])


def _calls_cost(calls: Sequence[CallRow]) -> str:
    return f"{count_text(len(calls), 'call')} {'costs' if len(calls) == 1 else 'cost'}"


def _causes(explanation: Explanation) -> Iterator[str]:
    """The most expensive call of each cause, most expensive cause first."""
    if not explanation.findings:
        yield "  no avoidable cost with these prompts, breakpoints and times"
        return
    yield f"  {dollars(explanation.avoidable)} of it was avoidable:"
    for group in group_findings(explanation)[:SHOWN_CAUSES]:
        yield from _cause(group.example, len(group.findings), group.cost)


def _cause(first: Finding, count: int, cost: Decimal) -> Iterator[str]:
    since = f" since call {first.since}" if first.since else ""
    more = f" and {count_text(count - 1, 'more call')}" if count > 1 else ""
    shown = f": “{first.excerpt}”" if first.excerpt else ""
    yield f"  {first.code} call {first.call}{more}, {first.block}{since}: {first.message}{shown} ({dollars(cost)})"
    yield f"        → {first.fix}"


def _table(calls: Sequence[CallRow]) -> Iterator[str]:
    yield f"  {'call':>4} {'read':>9} {'written':>9} {'uncached':>9} {'cost':>10}  cause"
    for row in calls[:SHOWN_CALLS]:
        usage = row.usage
        cause = row.error or row.cause or ""
        figures = f"{usage.read:>9,} {usage.write:>9,} {usage.input_tokens:>9,} {dollars(row.cost.total):>10}"
        yield f"  {row.call:>4} {figures}  {cause}"
    if len(calls) > SHOWN_CALLS:
        yield f"  and {count_text(len(calls) - SHOWN_CALLS, 'more call')}"


def stability_message(found: Sequence[LayerChange]) -> str:
    """The first change of each layer, with the text before and after it."""
    layers = list(dict.fromkeys(one.layer for one in found))
    verb = "is" if len(layers) == 1 and layers[0] == "system" else "are"
    return "\n".join([f"{' and '.join(layers)} {verb} not stable", *_first_changes(found)])


def _first_changes(found: Sequence[LayerChange]) -> Iterator[str]:
    for layer in dict.fromkeys(one.layer for one in found):
        changed = [one for one in found if one.layer == layer]
        yield from _change_lines(changed[0], len(changed))


def _change_lines(first: LayerChange, count: int) -> Iterator[str]:
    more = f" (and in {count_text(count - 1, 'more call')})" if count > 1 else ""
    yield f"  call {first.call}: {first.path} {first.what}, since call {first.since}{more}"
    if first.offset is not None:
        yield f"    was  {first.was}"
        yield f"    now  {first.now}"


def lint_message(found: Sequence[LintFinding]) -> str:
    """Each finding with its place and its fix."""
    lines = [f"lint found {count_text(len(found), 'problem')}"]
    for one in found:
        where = f" call {one.call}" if one.call is not None else ""
        often = f" (in {one.calls} calls)" if one.calls > 1 else ""
        lines.append(f"  {one.code} {one.severity}{where}, {one.path}: {one.message}{often}")
        lines.append(f"        → {one.fix}")
    return "\n".join(lines)
