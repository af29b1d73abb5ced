"""The two files of a batch of OpenAI's: requests and what became of them, joined by `custom_id`.

Read from OpenAI's pages on its Batch API (November 2026): requests are `{"custom_id", "method", "url", "body"}`,
results `{"custom_id", "response": {"status_code", "body"}, "error"}`, both one a line and in any order. Results that
stand alone take the requests of the file beside them that is called "input" where theirs is called "output" or
"error". A request without a result is a call without usage; one that expired was never run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.conversations.input_files import Warn
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.anthropic_batch.results import NOT_RUN
from cachecost.conversations.readers.common.json_documents import objects
from cachecost.conversations.readers.openai.exchange import Exchange, time_of
from cachecost.prompts.wire import shown

RESULTS = re.compile(r"outputs?|errors?|results?")


class Batch:
    """A batch while it is read."""

    def __init__(self, path: Path, warn: Warn) -> None:
        self.path, self.warn = path, warn
        self.asked: dict[str, JsonObject] = {}
        self.results: dict[str, JsonObject] = {}

    def add(self, line: JsonObject) -> None:
        """Take a line: a request if it has a body, else a result."""
        name = line.text("custom_id")
        known = self.asked if "body" in line.data else self.results
        if name in known:
            line.fault("custom_id", f"{shown(name)} is that of an earlier one")
        known.setdefault(name, line)

    def exchanges(self, faults: list[Fault]) -> Iterator[Exchange]:
        """Each request with its result, by the time of the answer; those without one at the end."""
        if self.results and not self.asked:
            self._look_beside(faults)
        found = [one for name, line in self.asked.items() if (one := self._exchange(name, line)) is not None]
        yield from sorted(found, key=lambda one: time_of(one.answer))
        self._tell_what_is_left()

    def _look_beside(self, faults: list[Fault]) -> None:
        twin = self.path.with_name(RESULTS.sub("input", self.path.name))
        if twin == self.path or not twin.is_file():
            where = f": expected {twin.name}" if twin != self.path else ""
            faults.append(Fault(str(self.path), f"holds results of a batch without the requests{where}"))
            return
        for line in objects(twin, faults, self.warn):
            if "body" in line.data:
                self.add(line)

    def _exchange(self, name: str, line: JsonObject) -> Exchange | None:
        body = line.mapping("body")
        result = self.results.get(name)
        response = result.mapping("response", required=False) if result else {}
        answer: Any = response.get("body")
        status = response.get("status_code")
        if body is not line.data["body"]:
            return None
        if result and not response:
            status = NOT_RUN
        return Exchange(
            entry=line,
            body=body,
            body_at="body.",
            answer_in=result or line,
            answer=answer if isinstance(answer, dict) else {},
            answer_at="response.body.",
            status=status if isinstance(status, int) and status >= 400 else None,
            is_batch=True,
        )

    def _tell_what_is_left(self) -> None:
        if not self.asked:
            return
        for name, line in self.results.items():
            if name not in self.asked:
                line.fault("custom_id", f"no request has {shown(name)}")
        unanswered = len(self.asked.keys() - self.results.keys())
        if self.results and unanswered:
            self.warn(f"{self.path}: {unanswered} requests have no result: calls without usage")
