"""Steps of a transcript while its lines are read: where a record stands in the tree, and what a request has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from cachecost.conversations.readers.claude_code.line import LineMessage, TranscriptLine
from cachecost.conversations.readers.claude_code.recorded_requests import RecordedBreakpoints
from cachecost.conversations.readers.claude_code.transcript_blocks import TranscriptBlock
from cachecost.conversations.transcript_steps import BETWEEN, TranscriptStep


@dataclass(slots=True, eq=False)
class InputRecord:
    """The input of one record (by a person, a tool or the client), linked to the input before it since the last step.

    `is_cut` is a compaction: nothing before it goes into the next request.
    """

    blocks: list[TranscriptBlock]
    before: InputRecord | None
    is_cut: bool = False

    def path(self) -> list[InputRecord]:
        """All since the last step or the last compaction, latest first; the compaction ends it."""
        found, node = [self], self
        while node.before is not None and not node.is_cut:
            node = node.before
            found.append(node)
        return found


@dataclass(slots=True)
class PendingRecords:
    """What was recorded since a step's request, its own answer included; or since the beginning of a chain."""

    blocks: int = 0
    between: set[str] = field(default_factory=set)
    inputs: list[InputRecord] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class PartialStep:
    """A step whose lines are still being read.

    `answer` holds the blocks of its answer, `asked` those that its request has after the answer of the step
    `before`, both only where content is kept. With `is_cut` the request begins with `asked`. With `is_copy` it is an
    answer of another file, without its bill. `breakpoints` are those of its request, where they are recorded.
    """

    step: TranscriptStep
    client: str
    pending: PendingRecords = field(default_factory=PendingRecords)
    goes_on: bool = False
    before: PartialStep | None = None
    answer: list[TranscriptBlock] = field(default_factory=list)
    request_blocks: list[TranscriptBlock] = field(default_factory=list)
    is_cut: bool = False
    is_copy: bool = False
    breakpoints: RecordedBreakpoints | None = None


@dataclass(slots=True)
class RecordChain:
    """The main thread of a session, or a sub-agent: its last step, and the time of its last record."""

    name: str
    is_side: bool
    step: PartialStep | None = None
    time: float | None = None
    last_input: InputRecord | None = None
    beginning: PendingRecords = field(default_factory=PendingRecords)


class TreePosition(msgspec.Struct, frozen=True, gc=False):
    """Where a record stands: its chain, the last step on the way to it, its time, the input since that step."""

    chain: RecordChain
    step: PartialStep | None
    time: float | None
    last_input: InputRecord | None

    @property
    def pending(self) -> PendingRecords:
        return self.step.pending if self.step else self.chain.beginning


StepAndInput = tuple[PartialStep | None, InputRecord | None]
"""What a record leaves behind: the last step, and the input since then."""


def request_blocks_of(before: TreePosition) -> tuple[list[Any], bool]:
    """The blocks that a request has after the answer before it, in the order of the file; whether it was cut there.

    Results of tools that ran at once stand on branches of their own: they belong to the request all the same.
    """
    path = before.last_input.path() if before.last_input else []
    is_cut = bool(path) and path[-1].is_cut
    called = {block.id for block in before.step.answer} if before.step else set()
    missing = called - {block.answers for record in path for block in record.blocks} - {None}
    request_blocks: list[TranscriptBlock] = []
    for record in before.pending.inputs:
        if record in path:
            request_blocks += record.blocks
        elif not is_cut:
            request_blocks += [block for block in record.blocks if block.answers in missing]
    return request_blocks, is_cut


def new_step(
    number: int, line_number: int, line: TranscriptLine, message: LineMessage, before: TreePosition, time: float | None
) -> TranscriptStep:
    """A step that begins with this line, without its usage.

    A sub-agent has the session of the main thread, also in a file of its own, and its `agentId`, else its chain's name.
    """
    model, chain, request = message.model or "", before.chain, line.request_id or ""
    between = before.pending.between | _differences(before.step, model, line.version or "")
    return TranscriptStep(
        number,
        line_number,
        chain.name,
        _number(before.step),
        model,
        after=None if time is None or before.time is None else min(before.time, time),
        answered=time,
        ended=time,
        blocks=before.pending.blocks,
        between=tuple([name for name in BETWEEN if name in between]) if between else (),
        session=line.session_id or "",
        project=line.cwd or "",
        agent=line.agent_id or (chain.name if chain.is_side else ""),
        id=f"{message.id} {request}".strip() if message.id else "",
    )


def _number(before: PartialStep | None) -> int | None:
    """The number of the step that a step continues. A copy is none: what continues it continues what it did."""
    if before is None:
        return None
    return before.step.before if before.is_copy else before.step.number


def _differences(before: PartialStep | None, model: str, client: str) -> set[str]:
    """How a step differs from the one that it continues."""
    if before is None:
        return set()
    told = {"model"} if model != before.step.model else set()
    if client and before.client and client != before.client:
        told.add("client")
    if before.goes_on:
        told.add("fork")
    return told
