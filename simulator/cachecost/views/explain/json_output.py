"""The object of `explain --json` (docs/output-formats.md)."""

from __future__ import annotations

from typing import Any

from cachecost.base.formatting import exact
from cachecost.ledger.findings import Explanation, Finding

FORMAT = 1


def explanation_object(told: Explanation) -> dict[str, Any]:
    """An explanation as JSON; dollars are decimal strings of all digits. The findings' add up to `avoidable_usd`."""
    return {
        "format": FORMAT,
        "strategy": told.strategy,
        "calls": told.calls,
        "cost_usd": exact(told.cost),
        "avoidable_usd": exact(told.avoidable),
        "without_usd": exact(told.without),
        "findings": [_finding(finding) for finding in told.findings],
        "tokens": {"source": told.token_source, "band": told.band},
        "warm_start": {"calls": told.warm.calls, "tokens": told.warm.tokens},
        "other_readings": list(told.flips),
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
        "message": finding.message,
        "excerpt": finding.excerpt,
        "fix": finding.fix,
        "diagnostics": finding.diagnostics,
    }
