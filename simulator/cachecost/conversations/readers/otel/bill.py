"""The billed calls of a telemetry file, by session: the same calls that `reader.calls` gives, without their requests.

Telemetry does not say which call continues which: a call is taken to continue the one before it of the same session
and agent. Failed calls have no bill; they are an event of the call after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from cachecost.base.errors import Fault
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import BilledCall, SessionFile, Warn, quiet
from cachecost.conversations.readers.otel.reader import TelemetryFile, read_telemetry
from cachecost.conversations.readers.otel.spans import ClaudeCall
from cachecost.providers.usage import Usage

COMPACT = "compact"
"""The source of the call that summarizes the history (`query_source`)."""
CLAUDE_CODE, OTHER = "claude-code", "otel"


def session_files(path: Path, warn: Warn = quiet) -> list[SessionFile]:
    """The billed calls of a file, each session as a file of its own. Raises InputError if it cannot be read."""
    faults: list[Fault] = []
    notes: list[str] = []

    def keep(text: str) -> None:
        warn(text)
        notes.append(text.removeprefix(f"{path}: "))

    found = read_telemetry(path, faults, keep)
    damaged = tuple((fault.line or 0, fault.message) for fault in faults)
    by_session: dict[str, list[RecordedCall]] = {}
    for call in found.calls:
        by_session.setdefault(call.session, []).append(call)
    return [
        SessionFile(
            str(path),
            CLAUDE_CODE if any(call.id in found.events for call in calls) else OTHER,
            calls=billed,
            damaged=damaged,
            notes=tuple(notes),
        )
        for calls in by_session.values()
        if (billed := list(_billed_calls(calls, found)))
    ]


def _billed_calls(calls: Iterable[RecordedCall], found: TelemetryFile) -> Iterator[BilledCall]:
    """The calls of one session that have a bill, in the order of their start."""
    last: dict[str, tuple[BilledCall, ClaudeCall | None]] = {}
    has_failed, was_compacted = set[str](), False
    number = 0
    for call in calls:
        returned = call.returned_usage
        if returned is None:
            has_failed.add(call.agent)
            continue
        number += 1
        event = found.events.get(call.id)
        before, event_before = last.get(call.agent, (None, None))
        events = tuple(_events(call, event, before, event_before))
        events += ("error",) if call.agent in has_failed else ()
        events += ("compaction",) if was_compacted and not call.agent and before else ()
        has_failed.discard(call.agent)
        was_compacted = call.agent == COMPACT or (was_compacted and bool(call.agent))
        made = _billed_call(number, call, returned, event, before, events)
        last[call.agent] = made, event
        yield made


def _events(
    call: RecordedCall, event: ClaudeCall | None, before: BilledCall | None, event_before: ClaudeCall | None
) -> Iterator[str]:
    """What happened since the call that this one continues."""
    if before is None:
        return
    if event and event_before and event.prompt != event_before.prompt:
        yield "human"
    if before.model != call.request.model:
        yield "model"
    if event and event_before and event.effort != event_before.effort:
        yield "effort"
    if event and event_before and event.version != event_before.version:
        yield "client"


def _billed_call(
    number: int,
    call: RecordedCall,
    billed: Usage,
    event: ClaudeCall | None,
    before: BilledCall | None,
    events: tuple[str, ...],
) -> BilledCall:
    tokens = (billed.input_tokens, billed.read, billed.write_5m, billed.write_1h, billed.output_tokens)
    return BilledCall(
        number,
        call.line,
        call.request.model,
        tokens,
        start=None if call.timestamp is None else call.start,
        end=event.end if event else None,
        before=before.number if before else 0,
        events=events,
        agent=call.agent,
        session=call.session,
        id=call.id,
        version=event.version if event else "",
        modes=("fast",) if call.request.params.get("speed") == "fast" else (),
        host=call.host or "",
    )
