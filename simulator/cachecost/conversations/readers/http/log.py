"""The model calls among a file's exchanges; what is wrong with one is a fault, what is none is counted and said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from cachecost.base.errors import Fault, InputError
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.checked import Checked, Warn
from cachecost.conversations.readers.common.parsed_call import CallBuilder
from cachecost.conversations.readers.http.bodies import Misplaced
from cachecost.conversations.readers.http.exchange import HttpExchange, read
from cachecost.prompts.wire import NotAMessage

REFUSED = "that the API refused and that are no Messages request"


ParseEntry = Callable[[Checked, Checked, Checked], HttpExchange]


class ExchangeLog:
    """Makes calls of the exchanges of one file. `faults` are those of the file itself, too."""

    def __init__(self, path: Path, keep_content: bool) -> None:
        self.path = path
        self.faults: list[Fault] = []
        self.left_out: Counter[str] = Counter()
        self._teller = CallBuilder(keep_content)
        self._calls: list[RecordedCall] = []

    def add_entry(self, entry: Checked, parse: ParseEntry, answer_required: bool = True) -> None:
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
                self.left_out[REFUSED] += 1
            else:
                self.faults.append(Fault(str(self.path), str(error), exchange.line or None))

    def _add(self, exchange: HttpExchange) -> None:
        told = read(exchange)
        if isinstance(told, str):
            self.left_out[told] += 1
            return
        try:
            self._calls.append(self._teller.build(told))
        except NotAMessage as error:
            raise _with_place(exchange, error) from None

    def end(self, warn: Warn, by_time: bool) -> list[RecordedCall]:
        """The calls, in the order they started or in that of the file. Raises InputError with every fault."""
        if self.faults:
            raise InputError(self.faults)
        for kind, number in sorted(self.left_out.items()):
            warn(f"{self.path}: {number} entries {kind}: left out")
        without_usage = sum(call.billed is None and not call.failed for call in self._calls)
        if without_usage:
            warn(f"{self.path}: {without_usage} calls whose answers do not tell their usage")
        return sorted(self._calls, key=lambda call: call.start) if by_time else self._calls


def _with_place(exchange: HttpExchange, error: NotAMessage) -> NotAMessage:
    """The fault with the place of the body that it is in."""
    is_answers = error.path.startswith("response.")
    return Misplaced(exchange.response_at if is_answers else exchange.request_at, error)
