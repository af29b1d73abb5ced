"""Collects the model calls among the exchanges of a file, the errors in them, and notes on what was skipped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cachecost.base.errors import Fault, InputError
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.notes import ReaderNotes
from cachecost.conversations.readers.common.parsed_call import CallBuilder
from cachecost.conversations.readers.http.bodies import Misplaced
from cachecost.conversations.readers.http.exchange import HttpExchange, read
from cachecost.prompts.wire import NotAMessage

REFUSED = "refused by the API, and not a valid request"


ParseEntry = Callable[[JsonObject, JsonObject, JsonObject], HttpExchange]


class ExchangeLog:
    """Makes calls of the exchanges of one file. `faults` also has the errors of the file itself."""

    def __init__(self, path: Path, keep_content: bool) -> None:
        self.path = path
        self.faults: list[Fault] = []
        self.notes = ReaderNotes()
        self._builder = CallBuilder(keep_content)
        self._calls: list[RecordedCall] = []

    def add_entry(self, entry: JsonObject, parse: ParseEntry, answer_required: bool = True) -> None:
        """Add the exchange that `parse` makes of an entry, its request and its response, if none has an error."""
        before = len(entry.faults)
        request = entry.within(entry.mapping("request"), "request")
        response = entry.within(entry.mapping("response", answer_required), "response")
        if len(entry.faults) > before:
            return
        exchange = parse(entry, request, response)
        if len(entry.faults) == before:
            self.add(exchange)

    def add(self, exchange: HttpExchange) -> None:
        try:
            self._add(exchange)
        except NotAMessage as error:
            if (exchange.status or 0) >= 400:
                self.notes.skip("entry", REFUSED)
            else:
                self.faults.append(Fault(str(self.path), str(error), exchange.line or None))

    def _add(self, exchange: HttpExchange) -> None:
        told = read(exchange)
        if isinstance(told, str):
            self.notes.skip("entry", told)
            return
        try:
            self._calls.append(self._builder.build(told))
        except NotAMessage as error:
            raise _with_place(exchange, error) from None

    def end(self, warn: Warn, by_time: bool) -> list[RecordedCall]:
        """The calls, in the order of time or of the file. Raises InputError with every error."""
        if self.faults:
            raise InputError(self.faults)
        without_usage = sum(call.billed is None and not call.has_failed for call in self._calls)
        self.notes.add("call", "whose answer has no usage", without_usage)
        self.notes.report(self.path, warn)
        return sorted(self._calls, key=lambda call: call.start) if by_time else self._calls


def _with_place(exchange: HttpExchange, error: NotAMessage) -> NotAMessage:
    """The error with the place of the body that it is in."""
    is_answers = error.path.startswith("response.")
    return Misplaced(exchange.response_at if is_answers else exchange.request_at, error)
