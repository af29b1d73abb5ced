"""The object of `explain --json` (docs/reference/output-formats.md)."""

from __future__ import annotations

from typing import Any

from cachecost.base.formatting import exact
from cachecost.ledger.findings import Explanation, Finding

FORMAT = 1


def explanation_object(explanation: Explanation) -> dict[str, Any]:
    """An explanation as JSON; dollars are decimal strings of all digits. The findings' add up to `avoidable_usd`."""
    return {
        "format": FORMAT,
        "strategy": explanation.strategy,
        "calls": explanation.calls,
        "cost_usd": exact(explanation.cost),
        "avoidable_usd": exact(explanation.avoidable),
        "without_usd": exact(explanation.without),
        "findings": [_finding(finding) for finding in explanation.findings],
        "notes": [_finding(note) for note in explanation.notes],
        **({} if explanation.lower_bound is None else {"lower_bound_usd": exact(explanation.lower_bound)}),
        **_bill(explanation),
        "tokens": {"source": explanation.token_source, "error_margin": explanation.error_margin},
        "warm_start": {"calls": explanation.warm.calls, "tokens": explanation.warm.tokens},
        "other_assumptions": list(explanation.flips),
    }


def _bill(explanation: Explanation) -> dict[str, Any]:
    """Where the calls have bills: necessary + avoidable + not explained = billed, exactly."""
    if explanation.billed is None or explanation.necessary is None:
        return {}
    return {
        "billed_usd": exact(explanation.billed),
        "necessary_usd": exact(explanation.necessary),
        "not_explained_usd": exact(explanation.not_explained_usd),
        "not_explained": [_finding(finding) for finding in explanation.not_explained],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "cause": finding.cause,
        "call": finding.call,
        "since_call": finding.since,
        "layer": str(finding.layer),
        "block": finding.block,
        "tokens": finding.tokens,
        "cost_usd": exact(finding.cost),
        "paid_again_usd": exact(finding.paid_again),
        "message": finding.message,
        "excerpt": finding.excerpt,
        "behind": finding.is_behind,
        "fix": finding.fix,
        "diagnostics": finding.diagnostics,
        "session": finding.session,
        "session_call": finding.session_call,
        "project": finding.project,
        "agent": finding.agent,
        "timestamp": finding.timestamp,
        "file": finding.file,
        "line": finding.line,
    }
