"""Reads Langfuse generations: pages of its API, traces, and exports from its website or to blob storage.

Source: Langfuse's documentation (blob storage export fields, observations API v2), its server's export streams and
its SDK 5.0, read 2026-11. JSON Lines, an array, `{"data": […]}`, or traces with their `observations`; names in
camelCase or snake_case, contents as JSON or as JSON in a text. An observation of type GENERATION is a call. Pages
list the newest first, so calls are sorted by their start. Conversation is the session, else the trace.

Not in an export: system prompts, tools, thinking and breakpoints that the instrumentation did not log (LangChain's
handler converts tools to OpenAI's format and loses their breakpoints; OpenAI's wrapper logs no tool choice), the HTTP
status of most failures, and the TTL of writes where only their sum was sent. Where no usage was sent, Langfuse counts
tokens itself; the export does not say where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.dialects import CallBuilder, ParsedCall, Tracing, first_token, status_in
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.readers.langfuse.bodies import (
    answer_of,
    body_of,
    first_token_at,
    model_and_host,
    parameters_of,
    start_of,
    text_of,
    usage_of,
    value_of,
)

TRACE_IDS = {"traceId", "trace_id"}
OWN_KEYS = {
    *("usageDetails", "usage_details", "parentObservationId", "parent_observation_id"),
    *("providedModelName", "provided_model_name", "statusMessage", "status_message", "internalModelId"),
}
"""Keys that, together with a trace id, only an observation has."""
BEFORE_INPUT = {"traceId", "startTime", "completionStartTime", "modelParameters"}
"""What stands before an input that is longer than the beginning of a file."""
TRACE_KEYS = {"projectId", "project_id", "timestamp", "bookmarked", "htmlPath", "sessionId", "trace", "latency"}
TRACE_SESSION = "session of the trace"
LIST = re.compile(rb'"(?:data|observations)"\s*:\s*\[')


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` holds observations; None if it does not."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().removeprefix(b"[")
    keys = set(top_keys(text))
    if _is_observation(keys):
        return f'its first object has a "{min(keys & TRACE_IDS)}" and a "{min(keys & OWN_KEYS)}"'
    if keys >= BEFORE_INPUT:
        return 'its first object has a "traceId" and a "modelParameters"'
    if "observations" in keys and keys & TRACE_KEYS:
        return 'its first object is a trace with "observations"'
    inside = LIST.search(head) if "data" in keys else None
    found = set(top_keys(head[inside.end() :])) if inside else set()
    if _is_observation(found) or ("observations" in found and found & TRACE_KEYS):
        return 'its "data" contains observations'
    return None


def _is_observation(keys: set[str]) -> bool:
    return bool(keys & TRACE_IDS and keys & OWN_KEYS and keys & {"type", "startTime", "start_time"})


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[RecordedCall]:
    """The calls in the order of time. Raises InputError with every error; what the export lacks goes to `warn`."""
    tracing = Tracing(CallBuilder(keep_content), "type", ("generation",))
    yield from tracing.read(path, "observations of Langfuse", _observations, _add_call, warn)


def _observations(row: JsonObject) -> Iterator[JsonObject]:
    """The observations in a row: a page of observations or of traces, one trace, or one observation.

    Inside a trace, each has the session of the trace in the field `TRACE_SESSION`.
    """
    inside = row.data.get("observations")
    if isinstance(inside, list):
        trace = row.data.get("trace")
        session = text_of(row.within(trace, "trace") if isinstance(trace, dict) else row, "sessionId", "session_id")
        if any(isinstance(one, str) for one in inside):
            row.fault("observations", "expected observations; got only their ids (as in a list of traces)")
            return
        for inner in row.objects("observations"):
            yield JsonObject({**inner.data, TRACE_SESSION: session}, row.faults, row.file, row.line, inner.place)
    elif isinstance(row.data.get("data"), list):
        for inner in row.objects("data"):
            yield from _observations(inner)
    else:
        yield row


def _add_call(tracing: Tracing, row: JsonObject) -> None:
    model, host = model_and_host(row)
    if not model:
        tracing.notes.skip("model call", "no model name")
        return
    parent = text_of(row, "parentObservationId", "parent_observation_id")
    tracing.add(_parse_call(tracing, row, model, host), parent)


def _parse_call(tracing: Tracing, row: JsonObject, model: str, host: str | None) -> ParsedCall:
    parameters = parameters_of(value_of(row, "modelParameters", "model_parameters"))
    body, note = body_of(value_of(row, "input"), parameters, model)
    if note:
        tracing.notes.add("call", note)
    usage, start = usage_of(row), start_of(row)
    failed = usage is None and row.data.get("level") == "ERROR"
    return ParsedCall(
        body={**body, "model": model},
        usage=usage,
        answer=[] if failed else answer_of(value_of(row, "output"), row.data.get("output")),
        timestamp=start,
        first_token_s=first_token(start, first_token_at(row)),
        host=host,
        status=status_in(text_of(row, "statusMessage", "status_message")) if failed else None,
        session=text_of(row, "sessionId", "session_id", TRACE_SESSION) or text_of(row, "traceId", "trace_id"),
        id=text_of(row, "id"),
        line=row.line or 0,
    )
