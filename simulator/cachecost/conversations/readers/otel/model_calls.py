"""Which spans are calls of a model: each call once, however many tracers wrote it down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cachecost.conversations.readers.common.notes import ReaderNotes
from cachecost.conversations.readers.otel.messages import CHOICE, DETAILS, IN_EVENTS, ROLES
from cachecost.conversations.readers.otel.spans import OtelSpan

Attributes = Mapping[str, Any]
CALLS = ("chat", "generate_content", "text_completion", "completion", "responses", "messages")
"""`gen_ai.operation.name` and `llm.request.type` of a model call."""
NO_CALLS = (
    *("embeddings", "embedding", "execute_tool", "invoke_agent", "create_agent", "invoke_workflow", "retrieval"),
    *("plan", "rerank", "image_generation", "speech", "transcription"),
)
BETWEEN = ("execute_tool", "invoke_agent", "invoke_workflow", "tool", "agent", "chain")
"""Spans between two nested model calls that make the inner one a separate call."""
MODEL = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "llm.request.model_name")
USAGE = ("gen_ai.usage.", "llm.token_count.")
RECORDS = (DETAILS, CHOICE, *ROLES)


def model_calls(found: Iterable[OtelSpan], notes: ReaderNotes) -> Iterator[OtelSpan]:
    """The spans that are model calls. Their log records and events are merged into their attributes."""
    spans = _join_records(list(found), notes)
    for span in spans:
        _take_events(span)
    known = {(span.trace, span.id): span for span in spans if span.id}
    chosen = [span for span in spans if _is_call(span)]
    outer = {id(above) for span in chosen for above in _outer_duplicates(span, known)}
    notes.skip("span", "not a model call", len(spans) - len(chosen))
    notes.skip("span", "same call as a span inside it", len(outer))
    yield from (span for span in chosen if id(span) not in outer)


def _join_records(found: list[OtelSpan], notes: ReaderNotes) -> list[OtelSpan]:
    """The spans, each with its log records. A record of a whole call stands for a span that is not there."""
    spans = [span for span in found if not span.is_record]
    known = {(span.trace, span.id): span for span in spans if span.id}
    for record in (one for one in found if one.is_record):
        span = known.get((record.trace, record.id))
        if span is not None and record.name in RECORDS:
            span.events += record.events
        elif span is None and record.name == DETAILS:
            spans.append(record)
        else:
            notes.skip("log record", "not a model call")
    return spans


def _take_events(span: OtelSpan) -> None:
    for name, attributes in span.events:
        if name in IN_EVENTS:
            span.attributes = {**attributes, **span.attributes}


def _is_call(span: OtelSpan) -> bool:
    attributes = span.attributes
    kind = attributes.get("openinference.span.kind")
    operation = str(attributes.get("gen_ai.operation.name") or attributes.get("llm.request.type") or "").lower()
    if kind is not None or operation in (*CALLS, *NO_CALLS):
        return kind == "LLM" if kind is not None else operation in CALLS
    has_usage = any(name.startswith(USAGE) for name in attributes)
    return has_usage and any(attributes.get(name) for name in MODEL)


def _outer_duplicates(span: OtelSpan, known: Mapping[tuple[str, str], OtelSpan]) -> Iterator[OtelSpan]:
    """Calls that a call lies in with no agent or tool between: the same call, seen from further out."""
    above, seen = known.get((span.trace, span.parent)), {id(span)}
    while above is not None and id(above) not in seen and not _separates_calls(above):
        seen.add(id(above))
        if _is_call(above):
            yield above
        above = known.get((above.trace, above.parent))


def _separates_calls(span: OtelSpan) -> bool:
    attributes = span.attributes
    names = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
    return any(str(attributes.get(name)).lower() in BETWEEN for name in names)
