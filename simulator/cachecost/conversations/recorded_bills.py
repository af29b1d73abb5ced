"""Recorded calls as billed calls: for logs whose requests are known, and formats without a reader for bills."""

from __future__ import annotations

from collections.abc import Iterable

from cachecost.conversations.billed_calls import BilledCall, SessionFile
from cachecost.conversations.bills import APART
from cachecost.conversations.calls import RecordedCall
from cachecost.prompts.blocks import Thread
from cachecost.providers.prices import terms_of
from cachecost.providers.usage import Usage

REQUESTS = "requests"
"""The client of calls that were recorded one by one, not read from an agent's session store."""
SERVER_TOOLS = "server_tool_use"


class RecordedSessions:
    """Groups the recorded calls of a log by session, and finds which call continues which."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._files: dict[tuple[str, str], SessionFile] = {}
        self._at_thread: dict[tuple[str, str, Thread], int] = {}

    def add_all(self, calls: Iterable[RecordedCall]) -> list[BilledCall | None]:
        """The billed calls, in order; None for a call that has no bill or failed."""
        return [self.add(call) for call in calls]

    def add(self, call: RecordedCall) -> BilledCall | None:
        returned = call.returned_usage
        if returned is None or call.has_failed:
            return None
        path = call.file or self.path
        key = (path, call.session)
        file = self._files.get(key)
        if file is None:
            file = self._files[key] = SessionFile(path, REQUESTS, call.project, [])
            file.has_requests = not call.is_bill_only
        made = _billed_call(call, returned, len(file.calls) + 1)
        made.before = self._before(key, call)
        file.calls.append(made)
        return made

    def _before(self, key: tuple[str, str], call: RecordedCall) -> int:
        """The latest call whose messages this one begins with; the one before it where only bills are known."""
        if call.is_bill_only:
            return len(self._files[key].calls)
        thread = call.request.thread
        found = next((self._at_thread[(*key, node)] for node in thread.back() if (*key, node) in self._at_thread), 0)
        self._at_thread[(*key, thread)] = len(self._files[key].calls) + 1
        return found

    @property
    def files(self) -> list[SessionFile]:
        return list(self._files.values())


def _billed_call(call: RecordedCall, billed: Usage, number: int) -> BilledCall:
    extra = tuple((one.model, _tokens(one.usage)) for one in call.iterations if one.kind in APART)
    sums = [one for one in call.iterations if one.kind == "message"]
    has_server_tools = any(block.kind == SERVER_TOOLS for block in call.response)
    return BilledCall(
        number,
        call.line,
        call.request.model,
        _tokens(billed),
        call.start if call.timestamp is not None else None,
        agent=call.agent,
        session=call.session or call.file,
        id=call.id,
        modes=terms_of(call.request.params, call.is_batch).modes,
        is_summed=len(sums) > 1 or has_server_tools,
        host=call.host or "",
        extra=extra,
        answered=call.start + call.first_token_s if call.timestamp is not None else None,
        tool_uses=billed.tool_uses,
        charged_usd=billed.charged_usd,
    )


def _tokens(usage: Usage) -> tuple[int, int, int, int, int]:
    return (usage.input_tokens, usage.read, usage.write_5m, usage.write_1h, usage.output_tokens)
