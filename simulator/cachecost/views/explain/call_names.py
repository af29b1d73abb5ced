"""The name of a call for people: its session and number there, its time, and where it was recorded."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePath

from cachecost.base.formatting import short_session
from cachecost.base.times import seconds
from cachecost.ledger.findings import Explanation, Finding


def call_name(finding: Finding, explanation: Explanation) -> str:
    """ "session 1e0816ef call 14, 2026-02-09 07:10, file.jsonl:231"; "call 14" where the log has no sessions.

    The file is also named where the findings are of several files.
    """
    place = f"{PurePath(finding.file).name}:{finding.line}" if finding.file and finding.line else ""
    if finding.session:
        name = f"session {short_session(finding.session)} call {finding.session_call}"
        return ", ".join(filter(None, (name, _minute(finding.timestamp), place)))
    has_several = len({one.file for one in explanation.findings}) > 1
    return ", ".join(filter(None, (f"call {finding.call}", place if has_several else "")))


def _minute(timestamp: str | None) -> str:
    """UTC, to the minute."""
    return f"{datetime.fromtimestamp(seconds(timestamp), UTC):%Y-%m-%d %H:%M}" if timestamp else ""
