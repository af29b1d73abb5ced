"""What `cachecost live` prints: the plan before, the bill after, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import click

from cachecost.base.formatting import count_text, dollars, duration, exact
from cachecost.live.clock import moment
from cachecost.live.driver.planning import Plan
from cachecost.live.driver.run import LiveResult
from cachecost.providers.usage import ZERO, Usage
from cachecost.views.tables.output import pick
from cachecost.views.tables.table import print_table

COLUMNS = ("strategy", "calls", "exact", "predicted", "billed")
CALL_COLUMNS = ("call", "predicted read", "written", "uncached", "billed read", "written", "uncached", "cost", "")


def takes(plan: Plan, parallel: int) -> float:
    """Seconds of pauses in a run with `parallel` strategies at once; the time of answers comes on top."""
    ends = [0.0] * max(1, parallel)
    for planned in plan.strategies:
        ends.sort()
        ends[0] += planned.seconds
    return max(ends)


def totals(plan: Plan) -> tuple[Decimal, Decimal]:
    """(predicted, at most) dollars of all strategies."""
    strategies = plan.strategies
    return sum((one.predicted_usd for one in strategies), ZERO), sum((one.worst_usd for one in strategies), ZERO)


def plan_sentences(plan: Plan, limit: Decimal, pace: float, output: int) -> Iterator[str]:
    """What the user should know before anything is sent."""
    predicted, worst = totals(plan)
    generation = plan.terms.rules.rules("anthropic", plan.terms.model or "").generation
    error_margin = plan.terms.counter(generation).error_margin
    yield f"Token counts are estimates (±{error_margin:.1%}). The API counts each call before it is sent."
    if worst <= limit:
        yield f"Within budget: at most {dollars(worst)} of {dollars(limit)} without cache hits, retries not included."
    elif predicted <= limit:
        yield f"Within budget as predicted ({dollars(predicted)} of {dollars(limit)}); with few hits it stops early."
    else:
        yield f"Over budget: {dollars(predicted)} predicted, {dollars(limit)} allowed. It will stop early."
    yield f"Answers are limited to {output} tokens, so output costs differ from the scenario's."
    if pace != 1:
        yield (
            f"Pauses are scaled by {pace:g}, TTLs are not: entries may survive pauses that would expire them. "
            "The comparison uses the actual send times."
        )
    if plan.scenario.as_of:
        yield f"The scenario is dated {plan.scenario.as_of}; live calls use the rules and prices of today."
    if plan.scenario.variants:
        yield "Only the base scenario is sent, not its variants."
    every_note = dict.fromkeys(note for planned in plan.strategies for note in planned.notes)
    names = {note: [one.name for one in plan.strategies if note in one.notes] for note in every_note}
    for note, strategies in names.items():
        yield note if len(strategies) == len(plan.strategies) else f"{', '.join(strategies)}: {note}"
    for planned in plan.strategies:
        refused = [step for step in planned.steps if step.refused]
        if refused:
            calls = count_text(len(refused), "call")
            yield f"{planned.name}: {calls} not sent because the API would refuse: {refused[0].refused}"


def print_plan(plan: Plan, limit: Decimal, parallel: int) -> None:
    """The table of what would be sent."""
    rows = [
        (one.name, f"{len(one.steps)}", dollars(one.predicted_usd), dollars(one.worst_usd), duration(one.seconds))
        for one in plan.strategies
    ]
    predicted, worst = totals(plan)
    whole = ("all", f"{len(plan.steps)}", dollars(predicted), dollars(worst), duration(takes(plan, parallel)))
    click.echo(f"{plan.scenario.name}   what would be sent, within {dollars(limit)}\n")
    print_table("", ("strategy", "calls", "predicted", "at most", "takes"), [*rows, whole])


def plan_json(plan: Plan, limit: Decimal, parallel: int) -> dict[str, Any]:
    """The plan as one object; dollars are decimal strings."""
    predicted, worst = totals(plan)
    return {
        "format": 1,
        "scenario": plan.scenario.name,
        "run": plan.run,
        "max_usd": exact(limit),
        "predicted_usd": exact(predicted),
        "worst_usd": exact(worst),
        "seconds": takes(plan, parallel),
        "strategies": [
            {
                "name": one.name,
                "calls": len(one.steps),
                "refused": sum(step.refused is not None for step in one.steps),
                "predicted_usd": exact(one.predicted_usd),
                "worst_usd": exact(one.worst_usd),
                "seconds": one.seconds,
                "notes": list(one.notes),
            }
            for one in plan.strategies
        ],
    }


def print_driven(driven: LiveResult) -> None:
    """Every call, then every strategy."""
    rows: list[tuple[str, ...]] = []
    for call in (call for outcome in driven.outcomes for call in outcome.calls):
        predicted = _cells(call.predicted) if call.predicted else ("–", "–", "–")
        cost, reason = dollars(call.billed_usd), "" if call.exact else call.reason
        rows.append((call.label, *predicted, *_cells(call.sent.usage), cost, reason))
    click.echo("\ncall by call")
    print_table("", CALL_COLUMNS, rows)
    click.echo("\npredicted against billed")
    totals_rows: list[tuple[str, ...]] = []
    for one in driven.outcomes:
        calls = f"{len(one.calls)} of {sum(not step.refused for step in one.planned.steps)}"
        usd = (dollars(one.predicted_usd), dollars(one.billed_usd))
        totals_rows.append((one.planned.name, calls, f"{one.exact}", *usd))
    print_table("", COLUMNS, totals_rows)


def _cells(usage: Usage) -> tuple[str, str, str]:
    return f"{usage.read:,}", f"{usage.write:,}", f"{usage.input_tokens:,}"


def sentences(driven: LiveResult) -> Iterator[str]:
    """The result of the run, in sentences."""
    unknown = f"; {dollars(driven.unknown)} reserved for attempts whose bill is unknown" if driven.unknown else ""
    yield f"{dollars(driven.billed)} of {dollars(driven.limit)} billed{unknown}"
    for outcome in driven.outcomes:
        yield from (f"{outcome.planned.name}: {note}" for note in outcome.notes)
    yield from (f"{label} failed: {why}" for label, why in driven.ended.failed.items())
    if driven.ended.why:
        yield driven.ended.why
    if undone := driven.ended.undone:
        named = ", ".join(undone[:5]) + (" …" if len(undone) > 5 else "")
        yield f"{count_text(len(undone), 'call')} not sent: {named}; continue with --resume {driven.journal}"
    yield f"journal {driven.journal}, recording {driven.recording}"


def driven_json(driven: LiveResult) -> dict[str, Any]:
    """The run as one object; dollars are decimal strings."""
    return {
        "format": 1,
        "scenario": driven.plan.scenario.name,
        "run": driven.plan.run,
        "max_usd": exact(driven.limit),
        "billed_usd": exact(driven.billed),
        "unknown_usd": exact(driven.unknown),
        "stopped": driven.ended.why or None,
        **pick(driven.ended, "undone", "failed"),
        "journal": str(driven.journal),
        "recording": str(driven.recording),
        "strategies": [
            {
                "name": outcome.planned.name,
                "calls": len(outcome.planned.steps),
                "done": len(outcome.calls),
                "refused": sum(step.refused is not None for step in outcome.planned.steps),
                "exact": outcome.exact,
                "predicted_usd": exact(outcome.predicted_usd),
                "billed_usd": exact(outcome.billed_usd),
                "usage": outcome.usage.wire(),
                "notes": [*outcome.planned.notes, *outcome.notes],
                "rows": [
                    {
                        "call": call.label,
                        "timestamp": moment(call.sent.start),
                        "first_token_s": call.sent.first_token_s,
                        "predicted": call.predicted.wire() if call.predicted else None,
                        "billed": call.sent.usage.wire(),
                        "predicted_usd": exact(call.predicted_usd) if call.predicted_usd is not None else None,
                        "billed_usd": exact(call.billed_usd),
                        **pick(call, "exact", "reason"),
                    }
                    for call in outcome.calls
                ],
            }
            for outcome in driven.outcomes
        ],
    }
