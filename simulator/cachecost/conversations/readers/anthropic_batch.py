"""Reads batches of the Messages API: requests and results, joined by `custom_id`.

Read from (Anthropic's pages on batch processing and on the batches endpoints, 2026-11):

- requests: `{"requests": [{"custom_id", "params": {Messages body}}, …]}` as it is posted, an array of such entries,
  or one a line;
- results: lines of `{"custom_id", "result": {"type": "succeeded", "message": {…}}}`, or "errored" with an "error",
  "canceled", "expired". They come in any order, without the requests, which are in the same file, or beside it, in the
  file with "requests" in its name in place of "results", or NAME.requests.jsonl for NAME.jsonl.

Two hosts put both into one line: Bedrock `{"recordId", "modelInput", "modelOutput" or "error"}` (InvokeModel jobs;
Amazon's pages on batch inference, 2026-11), Google Cloud `{"custom_id", "request", "response", "status"}` (its page on
batch predictions with Claude, 2026-11). There the job names the model; in the file only answers do, so a request
without one gets the first model in the file.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.apis.formats import NOT_RUN, REFUSED, STATUS, iteration_of
from cachecost.conversations.readers.call_builder import CallBuilder, errors_at, first_keys, objects
from cachecost.conversations.readers.common.json_values import array_at, object_or_empty
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.request import NotAMessage, content_blocks, show_found

HOSTS = {"modelInput": ("bedrock", "modelOutput"), "request": ("google-cloud", "response")}
"""Where a host's line holds the request: (host, where it holds the answer)."""
RESULTS = ("succeeded", "errored", "canceled", "expired")


def sniff(head: bytes) -> str | None:
    keys = first_keys(head)
    if "requests" in keys and re.search(rb'"requests"\s*:\s*\[\s*\{\s*"(custom_id|params)"', head):
        return 'it has "requests", each with a "custom_id"'
    for field in ("params", "result", "request"):
        if {"custom_id", field} <= keys:
            return f'its first entry has a "custom_id" and a "{field}"'
    return 'its first line has a "modelInput"' if "modelInput" in keys else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls in the order of the requests, until the first error; then the rest is only checked. Raises InputError
    with every error; one of them may be that requests are missing."""
    batch = _AnthropicBatch(path, warn, CallBuilder(keep_content))
    yield from batch.calls_in(path)
    if batch.results and not batch.requested:
        stem = Path(path.name.removesuffix(".gz")).stem
        twin = stem.replace("results", "requests") if "results" in stem else f"{stem}.requests"
        candidates = [path.with_name(twin + suffix) for suffix in (".jsonl", ".json", ".jsonl.gz", ".json.gz")]
        found = next((file for file in candidates if file.is_file()), path)
        if found == path:
            where = ", ".join(file.name for file in candidates)
            message = f"contains results without their requests; expected them in one of {where}"
            batch.faults.append(Fault(str(path), message))
        else:
            yield from batch.calls_in(found)
    for name, (line, _) in batch.results.items():
        if batch.requested and name and name not in batch.requested:
            reason = f"custom_id: no request in {batch.request_file.name} has the id {show_found(name)}"
            batch.faults.append(Fault(str(path), reason, line))
    if batch.faults:
        raise InputError(sorted(batch.faults, key=lambda fault: (fault.file != str(path), fault.line or 0)))
    unanswered = len(batch.requested - batch.results.keys()) if batch.results else 0
    batch.notes.add("request", "without a result: no usage", unanswered)
    batch.notes.report(path, warn)


Result = dict[str, Any]
"""What `CallBuilder.build` takes of an answer, or the status of a request that failed, or nothing."""


def _parse_result(entry: JsonObject) -> Result:
    stated = entry.mapping("result")
    result = entry.within(stated, "result")
    if stated is not entry.data.get("result") or result.one_of("type", RESULTS) != stated.get("type"):
        return {}
    if stated["type"] == "succeeded":
        return _parse_answer(result, "message")
    if stated["type"] != "errored":
        return {"status": NOT_RUN}
    error = result.mapping("error")
    inner = error["error"] if isinstance(error.get("error"), Mapping) else error  # some tools keep only the inner one
    return {"status": STATUS.get(str(inner.get("type")), REFUSED)}


def _parse_host_result(entry: JsonObject, answer: str) -> Result:
    if entry.data.get(answer):
        return _parse_answer(entry, answer)
    error = entry.data.get("error")
    if error is None:
        return {"status": REFUSED} if entry.data.get("status") else {}
    code = object_or_empty(error).get("errorCode")
    return {"status": code if isinstance(code, int) and code >= REFUSED else REFUSED}


def _parse_answer(place: JsonObject, name: str) -> Result:
    message, answer = place.mapping(name), Result()
    if not message:
        return answer
    with errors_at(place, f"{name}."):
        usage = usage_from(message.get("usage"), "usage", "anthropic")  # type: ignore[arg-type]
        content = content_blocks(message.get("content"), "content")
        passes = array_at(message["usage"].get("iterations") or [], "usage.iterations")
        iterations = tuple(iteration_of(one, f"usage.iterations.{number}") for number, one in enumerate(passes))
        answer |= {"usage": usage, "answer": content, "iterations": iterations, "id": str(message.get("id") or "")}
    return answer


class _AnthropicBatch:
    """A batch while it is read: first what became of its requests, then the requests. Damage of the results is reported
    when the requests are read."""

    def __init__(self, path: Path, warn: Warn, builder: CallBuilder) -> None:
        self.path = self.request_file = path
        self.warn, self.builder = warn, builder
        self.faults: list[Fault] = []
        self.results: dict[str, tuple[int | None, Result]] = {}
        self.requested: set[str] = set()
        self.notes = ReaderNotes()
        self.job_model: str | None = None
        for entry in _entries(path, [], quiet):
            if "result" in entry.data:
                known = JsonObject(entry.data, self.faults, entry.file, entry.line, entry.place)
                name = _unique(known, self.results)
                self.results[name] = (entry.line, _parse_result(known))

    def calls_in(self, request_file: Path) -> Iterator[Call]:
        self.request_file = request_file
        for entry in _entries(request_file, self.faults, self.warn):
            call = None
            host_field = next((field for field in HOSTS if field in entry.data), "")
            if "params" in entry.data:
                name = _unique(entry, self.requested)
                self.requested.add(name)
                result = self.results.get(name, (None, {}))[1]
                call = self._build_call(entry, "params", entry.mapping("params"), result)
            elif host_field:
                host, answer = HOSTS[host_field]
                body = entry.mapping(host_field)
                result = {"host": host, **_parse_host_result(entry, answer)}
                if model := _model(entry.data) or self._model_of_job():
                    call = self._build_call(entry, host_field, {**body, "model": model}, result)
            elif entry.data.get("type") == "message_batch":
                self.notes.skip("entry", "the status of a batch")
            elif "result" not in entry.data:
                entry.fault("params", 'expected the body of a request (or a "result"); got nothing')
            if call is not None and not self.faults:
                yield call

    def _build_call(self, entry: JsonObject, field: str, body: Mapping[str, Any], result: Result) -> Call | None:
        """None where the body is no object, or no request; where the API refused it, that is a note."""
        if not isinstance(entry.data[field], dict):
            return None
        try:
            return self.builder.build(body, **result, is_batch=True, line=entry.line or 0)
        except NotAMessage as fault:
            if result.get("status") == REFUSED:
                self.notes.skip("request", "refused by the API, and not a valid request")
            else:
                entry.faults.append(Fault(entry.file, f"{entry.place}{field}.{fault}", entry.line))
        return None

    def _model_of_job(self) -> str:
        """The first model named in a host's file; "" and one error (not one per line) if there is none."""
        if self.job_model is None:
            named = (_model(entry.data) for entry in _entries(self.path, [], quiet))
            self.job_model = next(filter(None, named), "")
            if not self.job_model:
                what = f"this file only in a {' or '.join(answer for _, answer in HOSTS.values())}"
                self.faults.append(Fault(str(self.path), f"no model name: the batch job has it, {what}"))
        return self.job_model


def _entries(path: Path, faults: list[Fault], warn: Warn) -> Iterator[JsonObject]:
    for entry in objects(path, faults, warn, "a batch, one request or result per line"):
        if "requests" in entry.data and "custom_id" not in entry.data:
            yield from entry.objects("requests")
        else:
            yield entry


def _unique(entry: JsonObject, earlier: Container[str]) -> str:
    name = entry.text("custom_id")
    if name and name in earlier:
        entry.fault("custom_id", f"expected a unique id; got {show_found(name)} again")
    return name


def _model(data: Mapping[str, Any]) -> str:
    places = (name for request, (_, answer) in HOSTS.items() for name in (request, answer))
    models = (object_or_empty(data.get(place)).get("model") for place in places)
    return next((model for model in models if isinstance(model, str)), "")
