"""A call: one request and when it was sent. A recorded call adds its bill, a planned call adds its purpose."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec

from cachecost.base.structs import replace, value
from cachecost.base.times import day_of, iso_milliseconds
from cachecost.conversations.known_lengths import KnownLengths
from cachecost.conversations.readers.common.message_threads import why_not_whole
from cachecost.prompts.blocks import COMPACTION, Block, given_block
from cachecost.prompts.request import Request
from cachecost.providers.usage import Usage

BILL_ONLY = "the log has only the bill, not the request"
ON_DEMAND = "on-demand compaction (compaction: summarize): its prompt is not published and the log has no iterations"
_set = msgspec.structs.force_setattr


@value
class Call:
    """A request and everything about it that is not in the body.

    `start` is in seconds since the epoch, `timestamp` the same in ISO 8601 (None: unknown), `first_token_s` the seconds
    until the first token, when the entry that the call writes can be read. `day` picks rules and prices (None: that of
    the shipped data, or `as_of`). The output is `output_tokens` where known, else the sum over `output`. `response`
    holds the blocks of the answer where they are known: server tools and summaries in it make the call several passes.
    `number` is the call's place in its file, where the file is not in time order (0: it is). `most_read` is how many
    tokens the call can read at most, because its bill shows that what comes after them was lost (None: no limit).
    `rounding_s`: how many seconds later than `start` it may have begun, as its log has whole seconds only.
    """

    request: Request
    start: float
    day: date | None = None
    timestamp: str | None = None
    host: str | None = None
    workspace: str = ""
    first_token_s: float = 0.0
    output: tuple[Block, ...] = ()
    response: tuple[Block, ...] = ()
    output_tokens: int | None = None
    is_batch: bool = False
    number: int = 0
    most_read: int | None = None
    rounding_s: float = 0.0

    @property
    def ready_s(self) -> float:
        """Seconds from `start` until what the call writes may be readable for a call of the same log: until its first
        token, less what the rounding of their stamps can hide."""
        return max(0.0, self.first_token_s - self.rounding_s) if self.rounding_s else self.first_token_s

    @property
    def has_failed(self) -> bool:
        return False

    @property
    def why_unknown(self) -> str:
        """Why the log does not show what was sent, or what the API made of it; empty where it does."""
        return ""

    @property
    def may_be_refused(self) -> bool:
        """Whether a call that the log does not show in full may be one that its host refuses."""
        return False

    @property
    def pass_bills(self) -> tuple[Usage, ...]:
        """The bill of each pass of a call that the API compacted in; empty for any other call."""
        return ()

    @property
    def simulated_response(self) -> tuple[Block, ...]:
        """The response to simulate."""
        return self.response

    @property
    def purpose(self) -> str:
        """`main`, or why a strategy sends the call."""
        return "main"

    @property
    def turn(self) -> int:
        return 0

    @property
    def inquiry(self) -> int | None:
        """The number of the side question that the call answers (None: it answers none)."""
        return None

    @property
    def session(self) -> str:
        """The conversation that the log says the call belongs to; this and the next four as in `RecordedCall`."""
        return ""

    @property
    def project(self) -> str:
        return ""

    @property
    def agent(self) -> str:
        return ""

    @property
    def file(self) -> str:
        return ""

    @property
    def line(self) -> int:
        return 0


@value
class Iteration:
    """One of the passes that the usage of a call lists: "message", "compaction", "advisor_message" …

    `model` is that of the pass; "" is the call's own.
    """

    kind: str
    usage: Usage
    model: str = ""


@value
class RecordedCall(Call):
    """A call from a log or a recording, with its bill.

    `day` and `output_tokens` need not be given: they follow from the timestamp and the bill. `billed` is the usage that
    came back, `status` the HTTP status (None: not recorded, so fine). `response` is whole where the reader keeps
    content; else it holds only an answer with server tools, which take part in the cache. `source` is who recorded the
    call, `session` the conversation that the log says it belongs to, `project` the folder that the agent worked in,
    `agent` the sub-agent that made the call, `id` identifies copies of one call in several files; each is "" where the
    log does not say (`agent` also for the main thread). `lengths` are those that the log states of a call without a
    bill. `file` and `line` are where the call was recorded, `before` is the line of the call of that file that the
    recording says it goes on from (0: it does not say).
    """

    billed: Usage | None = None
    iterations: tuple[Iteration, ...] = ()
    status: int | None = None
    source: str = ""
    session: str = ""
    id: str = ""
    project: str = ""
    agent: str = ""
    lengths: KnownLengths | None = None
    before: int = 0
    file: str = ""
    line: int = 0

    def __post_init__(self) -> None:
        made: Any = self
        request = self.request
        if self.billed is not None and request.answering_model != request.model:
            _set(made, "request", replace(request, answering_model=request.model))
        if self.day is None and self.timestamp is not None:
            _set(made, "day", day_of(self.start))
        if self.output_tokens is None:
            _set(made, "output_tokens", self._output_tokens())

    def _output_tokens(self) -> int | None:
        """What the bill says, or the blocks of the response where their lengths are known; None: unknown."""
        if self.iterations and self.pass_bills:
            return sum(bill.output_tokens for bill in self.pass_bills)
        if self.billed:
            return self.billed.output_tokens
        if self.lengths is not None and self.lengths.output is not None:
            return self.lengths.output
        lengths = [block.tokens for block in self.response]
        return sum(filter(None, lengths)) if lengths and None not in lengths else None

    @property
    def has_failed(self) -> bool:
        return self.status is not None and self.status >= 400

    @property
    def has_known_length(self) -> bool:
        """Whether the log states the length of the prompt without a bill."""
        return self.lengths is not None and self.lengths.prompt > 0

    @property
    def is_bill_only(self) -> bool:
        """Whether the log holds the bill of the call but nothing of what was sent."""
        request = self.request
        is_empty = not (request.thread.length or request.tools.blocks or request.system.blocks)
        return is_empty and self.billed is not None and self.billed.total_input > 0

    @property
    def pass_bills(self) -> tuple[Usage, ...]:
        """The bill of each pass of a call that the API compacted in: their sum is its bill."""
        if not any(one.kind == COMPACTION for one in self.iterations):
            return ()
        return tuple(one.usage for one in self.iterations if one.kind in (COMPACTION, "message"))

    @property
    def why_unknown(self) -> str:
        if self.is_bill_only:
            return BILL_ONLY
        if self.request.params.get("compaction") and not self.pass_bills:
            return ON_DEMAND
        return why_not_whole(self.request.params)

    @property
    def may_be_refused(self) -> bool:
        return self.billed is None and not self.is_bill_only

    @property
    def simulated_response(self) -> tuple[Block, ...]:
        """The response; if the call was compacted and the log has no summary, with one as long as it was billed."""
        bills = self.pass_bills
        if not bills or any(block.kind == COMPACTION for block in self.response):
            return self.response
        lengths = [one.usage.output_tokens for one in self.iterations if one.kind == COMPACTION]
        summaries = [given_block(COMPACTION, "assistant", f"{self.start} {self.line}", tokens) for tokens in lengths]
        rest = self.response or (given_block("text", "assistant", "answer", 0),)
        return (*summaries, *(rest if len(bills) > len(summaries) else ()))


@value
class PlannedCall(Call):
    """A call that a strategy would make, and why. Session, project and agent are those of its conversation."""

    purpose: str = "main"
    turn: int = 0
    inquiry: int | None = None
    session: str = ""
    project: str = ""
    agent: str = ""


def date_call(call: PlannedCall) -> PlannedCall:
    """The call with the day and the timestamp of its start."""
    return replace(call, day=day_of(call.start), timestamp=iso_milliseconds(call.start))


def name_call(call: PlannedCall, session: str, project: str, agent: str) -> PlannedCall:
    """The call as one of this conversation."""
    return replace(call, session=session, project=project, agent=agent)


def derive_call(call: Call, request: Request, start: float, output_tokens: int | None, purpose: str) -> PlannedCall:
    """A call that was not recorded, sent the way `call` was; only the length of its answer is known."""
    is_timed = call.timestamp is not None
    return PlannedCall(
        request,
        start,
        day_of(start) if is_timed else call.day,
        iso_milliseconds(start) if is_timed else None,
        call.host,
        call.workspace,
        output_tokens=output_tokens,
        is_batch=call.is_batch,
        rounding_s=call.rounding_s,
        purpose=purpose,
        turn=call.turn,
        inquiry=call.inquiry,
    )
