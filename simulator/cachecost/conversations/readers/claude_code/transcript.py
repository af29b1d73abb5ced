"""Claude Code transcripts (`~/.claude/projects/…/*.jsonl`) as steps: one API call each, with its usage.

How lines become steps, and what that rests on (transcripts of Claude Code 1.0.17 to 2.1.37):

- An answer stands on several lines, each with the usage again; tool results may stand between them. Lines with the
  same message id and request id are one step. Input is the same on all of them; `output_tokens` is that of the
  stream's start on all but the last line (sometimes on all), so the line with the most of it is the bill.
- A line whose uuid was there before is a copy: left out. So is an answer without usage.
- Answers of the model "<synthetic>" and API errors are the client's own words: they cost nothing.
- `parentUuid` makes a tree. A step goes on from the step that its ancestors lead to; where the tree is cut (a
  compaction, a file that begins in the middle), from the last one of its chain.
- Sub-agents (`isSidechain`) are chains of their own: one an `agentId`, else one a root.
- A compaction is a `compact_boundary` or an `isCompactSummary`; a `microcompact_boundary` takes old tool results out.
  Lines of type summary are titles for a list of conversations: they say nothing of calls.
- A request began between the record before it (a person's words, a tool result) and the first line of its answer.
- A transcript holds neither tools nor system prompt, nor the calls that the client makes on the side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from cachecost.base.errors import Fault, InputError
from cachecost.base.times import seconds
from cachecost.conversations.checked import Checked, Warn, json_lines, parsed, quiet
from cachecost.conversations.readers.claude_code.line import (
    client_of,
    content_of,
    is_summed,
    kind_of,
    longer,
    modes_of,
    usage_on,
)
from cachecost.conversations.readers.common.notes import ReaderNotes
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.steps import BETWEEN, KIND, Step, steps_of, steps_to_records
from cachecost.prompts.wire import shown
from cachecost.providers.usage import Usage

__all__ = ["Step", "read_steps", "sniff", "steps_to_records"]
MAIN, SIDE = "main", "side"
SYNTHETIC = "<synthetic>"
BOUNDARIES = {"compact_boundary": "compaction", "microcompact_boundary": "edit", "api_error": "error"}
SILENT = ("summary", "attachment", "progress", "file-history-snapshot", "queue-operation", "pr-link")
"""Types of lines that are known to say nothing of calls."""
OWN_KEYS = ("parentUuid", "leafUuid", "sessionId", "isSidechain", "isSnapshotUpdate")
OWN_PAIRS = (("uuid", "message"), ("messageId", "snapshot"))
"""Keys that only lines of a transcript have: one of the first, or both of a pair, beside a "type"."""


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is a transcript or the content-free form of one; None if it is neither."""
    first = parsed(head.split(b"\n", 1)[0])
    if isinstance(first, dict) and first.get("kind") == KIND:
        return f"its first line says format and kind {KIND}"
    return sniff_lines(head)


def sniff_lines(head: bytes) -> str | None:
    """Why a file that begins with `head` is a transcript; None if it is not.

    Clients begin a transcript with lines that are no part of the tree of records, and every version has new ones: so
    the first line that can only be a transcript's decides, as long as all lines before it have a "type".
    """
    for number, line in enumerate(head.split(b"\n"), 1):
        if not line.strip():
            continue
        keys = set(top_keys(line))
        if "type" not in keys:
            return None
        if own := _own_key(keys):
            place = "its first line" if number == 1 else f"its line {number}"
            return f'{place} has a "type" and a "{own}"'
    return None


def _own_key(keys: Set[str]) -> str | None:
    """The key that tells a transcript's line."""
    pairs = (pair[0] for pair in OWN_PAIRS if keys >= set(pair))
    return next((key for key in OWN_KEYS if key in keys), None) or next(pairs, None)


def read_steps(path: Path, warn: Warn = quiet) -> list[Step]:
    """The steps of a transcript, or of the content-free form of one, in the order of their first lines.

    Lines are read one by one and not kept. What was left out, and a last line that is cut off, is said to `warn`.
    Raises InputError with every fault, each with its line.
    """
    faults: list[Fault] = []
    first, lines = _open(path, faults, warn)
    is_content_free = first is not None and first.data.get("kind") == KIND
    steps = steps_of(lines) if is_content_free else [partial.step for partial in _read(lines, path, warn, False)]
    if faults:
        raise InputError(faults)
    return steps


def read_steps_with_content(path: Path, warn: Warn) -> list[PartialStep]:
    """The steps of a transcript with the content of their requests and answers.

    Raises InputError with every error, each with its line.
    """
    faults: list[Fault] = []
    steps = _read(_open(path, faults, warn)[1], path, warn, True)
    if faults:
        raise InputError(faults)
    return steps


def _open(path: Path, faults: list[Fault], warn: Warn) -> tuple[Checked | None, Iterator[Checked]]:
    """(the first line, all lines)."""
    lines = json_lines(path, faults, warn)
    first = next(lines, None)
    if first is None and not faults:
        faults.append(Fault(str(path), "is empty; expected a transcript, one JSON object per line"))
    return first, chain([first], lines) if first else lines


def _read(lines: Iterable[Checked], path: Path, warn: Warn, keeps_content: bool) -> list[PartialStep]:
    transcript = Transcript(keeps_content)
    for line in lines:
        transcript.take(line)
    transcript.notes.report(path, warn)
    return list(transcript.steps.values())


@dataclass(slots=True, eq=False)
class InputRecord:
    """What a person, a tool or the client put in with one record, and what was put in before it since the last step.

    `is_cut` is a compaction: nothing before it goes into the next request.
    """

    blocks: list[Any]
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
class _PendingRecords:
    """What was recorded since a step's request, its own answer included; or since the beginning of a chain."""

    blocks: int = 0
    between: set[str] = field(default_factory=set)
    inputs: list[InputRecord] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class PartialStep:
    """A step whose lines are still being read.

    `answer` holds the blocks of its answer, `asked` those that its request has after the answer of the step
    `before`, both only where content is kept. With `is_cut` the request begins with `asked`.
    """

    step: Step
    client: str
    pending: _PendingRecords = field(default_factory=_PendingRecords)
    goes_on: bool = False
    before: PartialStep | None = None
    session: str = ""
    id: str = ""
    answer: list[Any] = field(default_factory=list)
    request_blocks: list[Any] = field(default_factory=list)
    is_cut: bool = False


@dataclass(slots=True)
class _RecordChain:
    """The main thread of a session, or a sub-agent: its last step, and the time of its last record."""

    name: str
    is_side: bool
    step: PartialStep | None = None
    time: float | None = None
    last_input: InputRecord | None = None
    beginning: _PendingRecords = field(default_factory=_PendingRecords)


class _TreePosition(NamedTuple):
    """Where a record stands: its chain, the last step on the way to it, its time, what was said since that step."""

    chain: _RecordChain
    step: PartialStep | None
    time: float | None
    last_input: InputRecord | None

    @property
    def pending(self) -> _PendingRecords:
        return self.step.pending if self.step else self.chain.beginning


_StepAndInput = tuple[PartialStep | None, InputRecord | None]
"""What a record leaves behind: the last step, and what was said since."""


class Transcript:
    """A transcript while it is read, line by line."""

    def __init__(self, keeps_content: bool = False) -> None:
        self.keeps_content = keeps_content
        self.steps: dict[tuple[object, object], PartialStep] = {}
        self.notes = ReaderNotes()
        self._positions: dict[str, _TreePosition] = {}
        self._chains: dict[tuple[str, object], _RecordChain] = {}
        self._names: Counter[str] = Counter()

    def take(self, line: Checked) -> None:
        """Read one line. Faults go to its list."""
        kind, uuid = line.text("type"), line.data.get("uuid")
        if kind in HANDLERS and isinstance(uuid, str) and uuid in self._positions:
            self.notes.skip("line", "same uuid as an earlier line")
            return
        if kind and kind not in HANDLERS and kind not in SILENT:
            self.notes.skip("line", f"unknown type {shown(kind)}")
        if kind in HANDLERS or isinstance(uuid, str):
            self._place(line, kind, uuid)

    def _place(self, line: Checked, kind: str, uuid: object) -> None:
        """Give the line its place in the tree and, if it is of a call, its part in a step."""
        moment = line.moment("timestamp")
        time = seconds(moment) if moment else None
        before = self._before(line)
        step, last_input = (
            HANDLERS[kind](self, line, before, time) if kind in HANDLERS else (before.step, before.last_input)
        )
        place = _TreePosition(before.chain, step, before.time if time is None else time, last_input)
        place.chain.step, place.chain.time, place.chain.last_input = place.step, place.time, place.last_input
        if isinstance(uuid, str):
            self._positions[uuid] = place

    # ------------------------------------------------------------------------------- the tree of records

    def _before(self, line: Checked) -> _TreePosition:
        """The place that the line follows."""
        is_side = line.flag("isSidechain")
        key = _chain_key(line, is_side)
        parent = self._parent(line)
        if parent and parent.chain.is_side == is_side:
            self._chains.setdefault(key, parent.chain)
            return parent
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = _RecordChain(self._name(SIDE if is_side else MAIN), is_side)
        return _TreePosition(chain, chain.step, chain.time, chain.last_input)

    def _parent(self, line: Checked) -> _TreePosition | None:
        uuids = (line.data.get(name) for name in ("parentUuid", "logicalParentUuid"))
        return next(
            (self._positions[uuid] for uuid in uuids if isinstance(uuid, str) and uuid in self._positions), None
        )

    def _name(self, word: str) -> str:
        """ "main", "main 2" …, "side 1", "side 2" …"""
        self._names[word] += 1
        number = self._names[word]
        return word if word == MAIN and number == 1 else f"{word} {number}"

    # --------------------------------------------------------------------------------- one kind of line

    def answer(self, line: Checked, before: _TreePosition, time: float | None) -> _StepAndInput:
        """A line of an answer."""
        message = line.within(line.mapping("message"), "message")
        if message.data.get("model") == SYNTHETIC or line.data.get("isApiErrorMessage"):
            before.pending.between.add("error")
            self.notes.add("client-generated message", "ignored")
            return before.step, before.last_input
        if not message.has("usage"):
            self.notes.skip("answer", "no usage")
            return before.step, before.last_input
        partial = self._extend_step(line, message, before, time)
        return partial, before.last_input if partial is before.step else None

    def _extend_step(self, line: Checked, message: Checked, before: _TreePosition, time: float | None) -> PartialStep:
        """The step of this line, with what the line adds to it."""
        key = (message.text("id", "") or ("line", line.line), line.text("requestId", ""))
        usage, content = message.mapping("usage"), content_of(message)
        if key not in self.steps:
            self.steps[key] = self._start_step(line, message.text("model"), before, time, usage)
            self.steps[key].id = " ".join(map(str, filter(None, key))) if message.data.get("id") else ""
        partial = self.steps[key]
        partial.pending.blocks += len(content)
        partial.answer += content if self.keeps_content else []
        partial.step = longer(partial.step, usage_on(message, usage), content, time)
        return partial

    def _start_step(
        self, line: Checked, model: str, before: _TreePosition, time: float | None, usage: dict[str, Any]
    ) -> PartialStep:
        """A step that begins with this line."""
        step = _new_step(len(self.steps) + 1, line, model, before, time)
        partial = PartialStep(replace(step, modes=modes_of(usage), summed=is_summed(usage)), client_of(line))
        partial.before, partial.session = before.step, str(line.data.get("sessionId") or "")
        partial.request_blocks, partial.is_cut = _request_blocks(before)
        if before.step:
            before.step.goes_on = True
        return partial

    def user(self, line: Checked, before: _TreePosition, time: float | None) -> _StepAndInput:
        """A person's words, tool results, or what the client puts in."""
        content = content_of(line.within(line.mapping("message"), "message"))
        before.pending.blocks += len(content)
        last_input = before.last_input
        if line.data.get("isCompactSummary"):
            last_input = self._cut(before)
        elif any(kind_of(block) != "tool_result" for block in content):
            before.pending.between.add("human")
        return before.step, self._add_input(before.pending, content, last_input)

    def system(self, line: Checked, before: _TreePosition, time: float | None) -> _StepAndInput:
        """What the client notes: boundaries, errors, and much else."""
        boundary = BOUNDARIES.get(str(line.data.get("subtype")))
        if boundary == "compaction":
            return before.step, self._cut(before)
        if boundary:
            before.pending.between.add(boundary)
        return before.step, before.last_input

    def _add_input(self, pending: _PendingRecords, blocks: list[Any], before: InputRecord | None) -> InputRecord | None:
        if not self.keeps_content:
            return None
        record = InputRecord(blocks, before)
        pending.inputs.append(record)
        return record

    def _cut(self, before: _TreePosition) -> InputRecord | None:
        """A compaction; a boundary and the summary that follows it are one."""
        before.pending.between.add("compaction")
        is_known = before.last_input is not None and before.last_input.is_cut
        return before.last_input if is_known else InputRecord([], None, is_cut=True)


HANDLERS = {"assistant": Transcript.answer, "user": Transcript.user, "system": Transcript.system}
"""How each kind of line that matters is taken."""


def _request_blocks(before: _TreePosition) -> tuple[list[Any], bool]:
    """The blocks that a request has after the answer before it, in the order of the file; whether it was cut there.

    Results of tools that ran at once stand on branches of their own: they belong to the request all the same.
    """
    path = before.last_input.path() if before.last_input else []
    is_cut = bool(path) and path[-1].is_cut
    called = {block.get("id") for block in before.step.answer if isinstance(block, dict)} if before.step else set()
    missing = called - {_answered_call(block) for record in path for block in record.blocks} - {None}
    request_blocks: list[Any] = []
    for record in before.pending.inputs:
        if record in path:
            request_blocks += record.blocks
        elif not is_cut:
            request_blocks += [block for block in record.blocks if _answered_call(block) in missing]
    return request_blocks, is_cut


def _answered_call(block: object) -> object:
    """The tool call that a result answers; None for any other block."""
    return block.get("tool_use_id") if isinstance(block, dict) else None


def _chain_key(line: Checked, is_side: bool) -> tuple[str, object]:
    """What records of one chain share where the tree does not join them."""
    if not is_side:
        return (MAIN, str(line.data.get("sessionId")))
    agent = line.data.get("agentId")
    return ("agent", str(agent)) if agent else ("root", line.line)


def _new_step(number: int, line: Checked, model: str, before: _TreePosition, time: float | None) -> Step:
    """A step that begins with this line, its usage still to be told."""
    between = before.pending.between | _differences(before.step, model, client_of(line))
    return Step(
        number,
        line.line or 0,
        before.chain.name,
        before.step.step.number if before.step else None,
        model,
        Usage(),
        None if time is None or before.time is None else min(before.time, time),
        time,
        time,
        before.pending.blocks,
        between=tuple(name for name in BETWEEN if name in between),
    )


def _differences(before: PartialStep | None, model: str, client: str) -> set[str]:
    """What a step does not share with the one that it goes on from."""
    if before is None:
        return set()
    told = {
        "model": model != before.step.model,
        "client": bool(client and before.client and client != before.client),
        "fork": before.goes_on,
    }
    return {name for name, holds in told.items() if holds}
