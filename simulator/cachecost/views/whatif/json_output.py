"""`whatif --json`: one object; dollars are decimal strings of all digits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from cachecost.analysis.whatif.alternatives import Action, Alternative, Combination, TTLBreakEven, WhatifReport
from cachecost.base.formatting import exact

FORMAT = 1


def whatif_object(whatif: WhatifReport) -> dict[str, Any]:
    """All alternatives, their combination, actions, the break-even of the TTLs, and the error margins."""
    made: dict[str, Any] = {
        "format": FORMAT,
        "calls": whatif.calls,
        "cost_usd": exact(whatif.cost),
        "simulated_usd": exact(whatif.simulated),
        "alternatives": [_alternative(one) for one in whatif.alternatives],
        "jointly": _jointly(whatif.jointly),
        "break_even": _break_even(whatif.break_even),
        "tokens": {"source": whatif.token_source, "error_margin": whatif.error_margin},
        "retired_models": {name: day.isoformat() for name, day in whatif.retired_models.items()},
        "assumptions": {"asked": whatif.has_tried_assumptions, "other": list(whatif.assumptions)},
    }
    if whatif.billed is not None:
        made["billed_usd"] = exact(whatif.billed)
    if whatif.asked:
        made["asked"] = _jointly(whatif.asked)
    if whatif.actions:
        made["actions"] = [_action(one) for one in whatif.actions]
    return made


def _usd(amount: Decimal | None) -> str | None:
    return None if amount is None else exact(amount)


def _alternative(one: Alternative) -> dict[str, Any]:
    return {
        "name": one.name,
        "kind": one.kind,
        "does": one.does,
        "cost_usd": _usd(one.cost),
        "most_usd": _usd(one.most),
        "saving_usd": _usd(one.saving),
        "share": None if one.share is None else float(one.share),
        "calls_changed": one.calls_changed,
        "extra_calls": one.extra_calls,
        "error_usd": exact(one.error),
        "keeps_answers": one.keeps_answers,
        "assumption": one.assumption,
        "supported": one.supported,
        "depends_on": list(one.depends_on),
    }


def _jointly(joint: Combination | None) -> dict[str, Any] | None:
    if joint is None:
        return None
    return {
        "names": list(joint.names),
        "cost_usd": _usd(joint.cost),
        "saving_usd": _usd(joint.saving),
        "sum_of_parts_usd": exact(joint.sum_of_parts),
        "best_part_usd": exact(joint.best_part),
        "why": joint.why,
        "supported": joint.supported,
    }


def _action(one: Action) -> dict[str, Any]:
    return {
        "name": one.name,
        "at": one.at,
        "price_usd": exact(one.price),
        "cost_usd": exact(one.cost),
        "cost_without_usd": exact(one.cost_without),
        "tokens_lost": one.lost,
        "then_usd": exact(one.then),
        "then_without_usd": exact(one.then_without),
        "pays_after": one.pays_after,
        "assumption": one.assumption,
        "session": one.session,
        "file": one.file,
        "line": one.line,
    }


def _break_even(edge: TTLBreakEven | None) -> dict[str, Any] | None:
    if edge is None:
        return None
    return {
        "model": edge.model,
        "rewritten_per_new_token": float(edge.needed),
        "rewritten_per_new_token_here": None if edge.here is None else float(edge.here),
        "pauses_needed": None if edge.needed_pauses is None else float(edge.needed_pauses),
        "pauses_needed_an_hour": None if edge.needed_an_hour is None else float(edge.needed_an_hour),
        "pauses": dict(zip(("under_5m", "5m_to_1h", "from_1h"), edge.pauses, strict=True)),
        "longest_pause_s": edge.longest_s,
        "pings_worth": edge.pings,
    }
