"""Where the calls of findings were recorded: session, time, file and line, so that people find them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from cachecost.conversations.calls import Call
from cachecost.ledger.findings import Finding


def with_places(findings: Sequence[Finding], calls: Sequence[Call]) -> list[Finding]:
    """The findings, whose `call` is a place among `calls` from 1, with what the log says of these calls."""
    numbers = _numbers_in_sessions(calls)
    return [_placed(finding, calls[finding.call - 1], numbers[finding.call - 1]) for finding in findings]


def _numbers_in_sessions(calls: Sequence[Call]) -> list[int | None]:
    """The number of each call within its session, its sub-agents included; None without a session."""
    met: Counter[str] = Counter()
    numbers: list[int | None] = []
    for call in calls:
        met[call.session] += 1
        numbers.append(met[call.session] if call.session else None)
    return numbers


def _placed(finding: Finding, call: Call, number: int | None) -> Finding:
    return replace(
        finding,
        session=call.session,
        project=call.project,
        agent=call.agent,
        timestamp=call.timestamp,
        file=call.file,
        line=call.line or None,
        session_call=number,
    )
