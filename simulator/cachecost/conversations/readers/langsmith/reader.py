"""Reads runs of LangSmith and LangChain: exports, pages of its API, rows of bulk exports, dumps of tracers and events.

Source: LangSmith's documentation (run data format, bulk export, threads) and the sources of langsmith 0.15,
langchain-core 1.8 and langchain-anthropic 1.7, read 2026-11. JSON Lines, an array, `{"runs": […]}`, or runs with
`child_runs`. A run of type "llm" is a call; its request is `inputs` (LangChain's messages, or the body that an SDK's
wrapper saw) with `extra.invocation_params`. API pages list the newest run first, so calls are sorted by their start.
`session_id` of a run is its project: a conversation is what the metadata calls session, thread or conversation, else
the trace.

Not in a run: beta headers, a `context_management` set on the model, redacted content, the HTTP status of most
failures, and the TTL of writes where the usage was not kept whole. Events (`astream_events`) have no times, tools or
parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.dialects import (
    Body,
    CallBuilder,
    ParsedCall,
    Tracing,
    first_token,
    status_in,
)
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.readers.langsmith.langchain_messages import (
    LangSmithRun,
    is_from_own_cache,
    usage_of_answer,
    usage_of_columns,
)
from cachecost.providers.usage import Usage

OTHER_KEYS = {"inputs", "outputs", "extra", "trace_id", "dotted_order", "session_id", "start_time", "parent_run_id"}
PAGE = re.compile(rb'^\s*\{\s*"runs"\s*:\s*\[')
SERIALIZED = re.compile(rb'"lc"\s*:\s*1\b')
CHAT_MODEL_END = "on_chat_model_end"


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` holds runs; None if it does not."""
    keys = set(top_keys(PAGE.sub(b"", head.removeprefix(b"\xef\xbb\xbf")).lstrip().removeprefix(b"[")))
    if "run_type" in keys and keys & OTHER_KEYS:
        return 'its first object has a "run_type"'
    if {"event", "run_id"} <= keys and keys & {"data", "metadata", "parent_ids"}:
        return 'its first object has an "event" and a "run_id"'
    return 'its first object has LangChain "inputs"' if "inputs" in keys and SERIALIZED.search(head) else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[RecordedCall]:
    """The calls in the order of their start. Raises InputError with every error; what the runs lack goes to `warn`."""
    tracing = Tracing(CallBuilder(keep_content), "run_type", ("llm", "chat_model"))
    yield from tracing.read(path, "runs of LangSmith", _runs, _add_call, warn)


def _runs(row: JsonObject) -> Iterator[JsonObject]:
    """The runs of a row: a page of them, a run and those inside it, or an event as the run that it ends."""
    if isinstance(row.data.get("runs"), list):
        for run in row.objects("runs"):
            yield from _runs(run)
    elif "event" in row.data and "run_type" not in row.data:
        yield JsonObject(_run_of_event(row.data), row.faults, row.file, row.line, row.place)
    else:
        yield row
        for child in row.objects("child_runs") if row.data.get("child_runs") else ():
            yield from _runs(child)


def _run_of_event(event: Mapping[str, Any]) -> Body:
    """The run that an event ends; every other event is no call."""
    data = event.get("data")
    if event.get("event") != CHAT_MODEL_END or not isinstance(data, Mapping):
        return {"run_type": str(event.get("event"))}
    message = data.get("output")
    is_result = isinstance(message, Mapping) and "generations" in message
    return {
        "run_type": "llm",
        "id": event.get("run_id"),
        "inputs": data.get("input"),
        "outputs": message if is_result else {"message": message},
        "extra": {"metadata": event.get("metadata")},
    }


def _add_call(tracing: Tracing, row: JsonObject) -> None:
    run = LangSmithRun(row)
    model, host = run.model_and_host()
    if is_from_own_cache(run.message):
        tracing.notes.skip("answer", "from LangChain's own cache, not billed by a provider")
    elif not model:
        tracing.notes.skip("model call", "no model name")
    else:
        parent = str(row.data.get("parent_run_id") or "")
        tracing.add(_parse_call(tracing, run, model, host), parent)


def _parse_call(tracing: Tracing, run: LangSmithRun, model: str, host: str | None) -> ParsedCall:
    body, note = run.body(model)
    if note:
        tracing.notes.add("call", note)
    usage = _usage(tracing, run)
    error = str(run.row.data.get("error") or "")
    failed = usage is None and bool(error or run.row.data.get("status") == "error")
    start = run.start()
    return ParsedCall(
        body={**body, "model": model},
        usage=usage,
        answer=[] if failed else run.answer(),
        timestamp=start,
        first_token_s=first_token(start, run.first_token()),
        host=host,
        status=status_in(error) if failed else None,
        session=run.session(),
        id=str(run.row.data.get("id") or ""),
        line=run.row.line or 0,
    )


def _usage(tracing: Tracing, run: LangSmithRun) -> Usage | None:
    """The bill. A failed call has none, even if LangSmith counted its prompt."""
    usage = usage_of_answer(run.message, run.outputs, run.extra)
    if usage is None and not run.row.data.get("error"):
        usage = usage_of_columns(run.row)
        if usage is not None:
            tracing.notes.add("call", "with usage counted by LangSmith, which may be an estimate")
    return usage
