"""The calls of a transcript as tests look at them, and its content-free form, as the recordings in
`scenarios/recordings/transcripts` have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from cachecost.base.times import iso_or_none
from cachecost.conversations.input_files import Warn, billed_call, quiet, token_counts
from cachecost.conversations.readers.claude_code import steps as reader
from cachecost.conversations.readers.claude_code.content_free import BETWEEN
from cachecost.conversations.readers.common.session_calls import SessionCall
from cachecost.providers.usage import Usage

NO_USAGE = Usage()


@dataclass(slots=True)
class TranscriptStep:
    """A call without content: `after` is the time of the record before the request, `answered` and `ended` those of
    the first and the last record of the answer; `between` is which of `BETWEEN` lie before it."""

    number: int
    line: int
    chain: str
    before: int | None
    model: str
    usage: Usage = NO_USAGE
    after: float | None = None
    answered: float | None = None
    ended: float | None = None
    blocks: int = 0
    thinking: bool = False
    between: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    summed: bool = False
    id: str = field(default="", compare=False)

    @classmethod
    def of(cls, call: SessionCall) -> TranscriptStep:
        bill = call.bill
        step = cls(bill.number, bill.line, call.thread, bill.before or None, bill.model, bill.usage, call.after)
        step.answered, step.ended, step.blocks, step.thinking = bill.answered, bill.end, bill.blocks, bill.has_thinking
        step.between = tuple(name for name in BETWEEN if name in bill.events)
        step.modes, step.summed, step.id = bill.modes, bill.is_summed, bill.id
        return step

    def call(self) -> SessionCall:
        bill = billed_call(self.line, self.model, self.usage, self.after, self.ended, id=self.id)
        bill.number, bill.before, bill.answered = self.number, self.before or 0, self.answered
        bill.blocks, bill.has_thinking, bill.events = self.blocks, self.thinking, self.between
        bill.modes, bill.is_summed = self.modes, self.summed
        return SessionCall(bill, thread=self.chain, after=self.after)


def read_steps(path: Path, warn: Warn = quiet) -> list[TranscriptStep]:
    return [TranscriptStep.of(call) for call in reader.read_steps(path, warn)]


def session_calls(steps: Sequence[TranscriptStep]) -> list[SessionCall]:
    return [step.call() for step in steps]


def steps_to_records(steps: Iterable[TranscriptStep], name: str) -> Iterator[dict[str, Any]]:
    yield {"format": 1, "kind": "steps", "name": name}
    for step in steps:
        times = step.after, step.answered, step.ended
        waited, took = (
            None if one is None or other is None else round(other - one, 6) for one, other in pairwise(times)
        )
        values = {"before": step.before, "answered": iso_or_none(step.answered), "waited_s": waited, "took_s": took}
        flags = {"blocks": step.blocks, "thinking": step.thinking, "summed": step.summed}
        lists = {"between": step.between, "modes": step.modes, "tool_uses": step.usage.tool_uses}
        yield {
            "step": step.number,
            "chain": step.chain,
            "model": step.model,
            "usage": token_counts(step.usage),
            **{name: value for name, value in values.items() if value is not None},
            **{name: value for name, value in (flags | lists).items() if value},
        }
