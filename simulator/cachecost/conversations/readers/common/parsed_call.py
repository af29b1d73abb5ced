"""Calls from other tools' logs, with their bodies as Messages API bodies: most readers build their calls here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from cachecost.conversations.calls import Iteration, RecordedCall
from cachecost.conversations.readers.common.message_threads import MessageThreads
from cachecost.conversations.start_times import StartTimes
from cachecost.prompts.intake import Intake
from cachecost.prompts.wire import answer_blocks, content_blocks
from cachecost.providers.hosts import host_of_message
from cachecost.providers.prices import served_params
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCall:
    """What a log says of one call.

    `body` is a Messages API body, `answer` the content blocks of the response (a list, or a text). `timestamp` is
    ISO 8601 (None: unknown), `seen_on` the day by which the call was recorded: it picks rules and prices where there is
    no timestamp. Message threads continue from `answer_id`. `served` is the answer with its usage: the service
    tier and the region that it names take the place of those in the body. The other fields are those of `RecordedCall`.
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
    line: int = 0
    answer_id: str = ""
    served: Mapping[str, Any] = field(default_factory=dict)


class CallBuilder:
    """Builds recorded calls from parsed ones; one instance a file, so that calls share what they repeat."""

    def __init__(self, keep_content: bool = True) -> None:
        self._intake = Intake(keep_content)
        self._keep = keep_content
        self._starts = StartTimes()
        self._threads = MessageThreads()

    def build(self, parsed: ParsedCall) -> RecordedCall:
        """The call. Raises NotAMessage with the path of what is wrong in the body, the answer or the time."""
        answer = parsed.answer if isinstance(parsed.answer, str) else list(parsed.answer)
        content = content_blocks(answer, "response.content")
        start, request = (
            self._starts.next(parsed.timestamp),
            self._intake.body(served_params(parsed.body, parsed.served)),
        )
        response = answer_blocks(content, request.deferred, self._keep)
        return RecordedCall(
            self._threads.complete(request, start, parsed.answer_id, response, parsed.usage is not None),
            start,
            parsed.seen_on if parsed.timestamp is None else None,
            parsed.timestamp,
            parsed.host or host_of_message(parsed.answer_id or parsed.id),
            parsed.workspace,
            parsed.first_token_s,
            response=response,
            is_batch=parsed.is_batch,
            billed=parsed.usage,
            iterations=parsed.iterations,
            status=parsed.status,
            source=parsed.source,
            session=parsed.session,
            id=parsed.id,
            line=parsed.line,
        )
