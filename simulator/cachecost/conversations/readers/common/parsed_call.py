"""Calls that another tool logged, put into the words of the Messages API: what most readers make their calls of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from cachecost.conversations.readers.common.message_threads import MessageThreads
from cachecost.conversations.readers.request_log.reader import Iteration, LoggedCall, Starts
from cachecost.prompts.intake import Intake
from cachecost.prompts.wire import answer_blocks, content_blocks
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a log tells of one call.

    `body` is a Messages API body, `answer` the content blocks of the response (a list, or a text). `timestamp` is
    ISO 8601 (None: not told), `first_token_s` seconds from then to the first token, `answer_id` what a message thread
    goes on by. The other fields are those of `LoggedCall`.
    """

    body: Mapping[str, Any]
    usage: Usage | None = None
    answer: Sequence[Mapping[str, Any]] | str = ()
    timestamp: str | None = None
    first_token_s: float = 0.0
    host: str | None = None
    workspace: str = ""
    status: int | None = None
    is_batch: bool = False
    iterations: tuple[Iteration, ...] = ()
    source: str = ""
    seen_on: date | None = None
    session: str = ""
    id: str = ""
    line: int = field(default=0)
    answer_id: str = ""


class Teller:
    """Makes calls of what logs tell; one instance a file, so that calls share what they repeat."""

    def __init__(self, keep_content: bool = True) -> None:
        self._intake = Intake(keep_content)
        self._keep = keep_content
        self._starts = Starts()
        self._threads = MessageThreads()

    def call(self, told: Told) -> LoggedCall:
        """The call. Raises NotAMessage with the path of what is wrong in the body, the answer or the time."""
        content = content_blocks(told.answer if isinstance(told.answer, str) else list(told.answer), "response.content")
        start, request = self._starts.of(told.timestamp), self._intake.body(told.body)
        answer = answer_blocks(content, request.deferred, self._keep)
        request = self._threads.whole(request, told.answer_id, answer)
        return LoggedCall(
            told.line,
            start,
            told.timestamp,
            request,
            told.usage,
            told.first_token_s,
            told.host,
            told.workspace,
            told.status,
            told.is_batch,
            told.iterations,
            answer,
            told.source,
            told.seen_on,
            told.session,
            told.id,
        )
