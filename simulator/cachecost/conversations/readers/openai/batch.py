"""The two files of a batch of OpenAI's: requests and results, joined by `custom_id`.

Read from OpenAI's pages on its Batch API (November 2026): requests are `{"custom_id", "method", "url", "body"}`,
results `{"custom_id", "response": {"status_code", "body"}, "error"}`, both one a line and in any order. Results that
are alone in their file are joined with the requests in the file of the same folder that has "input" in its name in
place of "output" or "error". A request without a result is a call without usage; one that expired was never run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.base.formatting import count_text
from cachecost.conversations.input_files import Warn
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.anthropic_batch.results import NOT_RUN
from cachecost.conversations.readers.common.json_documents import objects
from cachecost.conversations.readers.openai.exchange import OpenAIExchange, time_of
from cachecost.prompts.wire import show_found

RESULTS = re.compile(r"outputs?|errors?|results?")


class OpenAIBatch:
    """A batch while it is read."""

    def __init__(self, path: Path, warn: Warn) -> None:
        self.path, self.warn = path, warn
        self.requests: dict[str, JsonObject] = {}
        self.results: dict[str, JsonObject] = {}

    def add(self, line: JsonObject) -> None:
        """Take a line: a request if it has a body, else a result."""
        name = line.text("custom_id")
        known = self.requests if "body" in line.data else self.results
        if name in known:
            line.fault("custom_id", f"expected a unique id; got {show_found(name)} again")
        known.setdefault(name, line)

    def exchanges(self, faults: list[Fault]) -> Iterator[OpenAIExchange]:
        """Each request with its result, in the order of the answers; requests without a result come last."""
        if self.results and not self.requests:
            self._read_request_file(faults)
        found = [one for name, line in self.requests.items() if (one := self._exchange(name, line)) is not None]
        yield from sorted(found, key=lambda one: time_of(one.answer))
        self._report_unmatched()

    def _read_request_file(self, faults: list[Fault]) -> None:
        request_file = self.path.with_name(RESULTS.sub("input", self.path.name))
        if request_file == self.path or not request_file.is_file():
            where = f"; expected them in {request_file.name}" if request_file != self.path else ""
            faults.append(Fault(str(self.path), f"contains batch results without their requests{where}"))
            return
        for line in objects(request_file, faults, self.warn):
            if "body" in line.data:
                self.add(line)

    def _exchange(self, name: str, line: JsonObject) -> OpenAIExchange | None:
        body = line.mapping("body")
        result = self.results.get(name)
        response = result.mapping("response", required=False) if result else {}
        answer: Any = response.get("body")
        status = response.get("status_code")
        if body is not line.data["body"]:
            return None
        if result and not response:
            status = NOT_RUN
        return OpenAIExchange(
            entry=line,
            body=body,
            body_at="body.",
            answer_in=result or line,
            answer=answer if isinstance(answer, dict) else {},
            answer_at="response.body.",
            status=status if isinstance(status, int) and status >= 400 else None,
            is_batch=True,
        )

    def _report_unmatched(self) -> None:
        if not self.requests:
            return
        for name, line in self.results.items():
            if name not in self.requests:
                line.fault("custom_id", f"no request has the id {show_found(name)}")
        unanswered = len(self.requests.keys() - self.results.keys())
        if self.results and unanswered:
            self.warn(f"{self.path}: {count_text(unanswered, 'request')} without a result: no usage")
