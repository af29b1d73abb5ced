"""The bill of the content-free form of a transcript (transcript_steps.py)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cachecost.base.structs import value
from cachecost.conversations.input_files import BilledCall, open_input
from cachecost.conversations.json_object import KIND, TranscriptStep
from cachecost.conversations.readers.claude_code.record_kinds import SIDE

HEADER_BYTES = 4096


@value
class _Header:
    kind: str = ""


def is_content_free(path: Path) -> bool:
    """Whether a file begins with the header of the content-free form. Raises InputError if it cannot be read."""
    with open_input(path) as stream:
        line = stream.readline(HEADER_BYTES)
    if b'"kind"' not in line:
        return False
    try:
        return msgspec.json.decode(line, type=_Header).kind == KIND
    except msgspec.DecodeError:
        return False


def read_step_bills(path: Path) -> list[BilledCall]:
    """A call a step. Raises InputError with every error."""
    from cachecost.conversations.readers.claude_code.transcript import read_steps

    return [_billed_call(step) for step in read_steps(path)]


def _billed_call(step: TranscriptStep) -> BilledCall:
    usage = step.usage
    return BilledCall(
        step.number,
        step.line,
        step.model,
        (usage.input_tokens, usage.read, usage.write_5m, usage.write_1h, usage.output_tokens),
        step.answered if step.after is None else step.after,
        step.ended,
        step.before or 0,
        step.between,
        agent=step.chain if step.chain.startswith(SIDE) else "",
        modes=step.modes,
        blocks=step.blocks,
        has_thinking=step.thinking,
        is_summed=step.summed,
        answered=step.answered,
        tool_uses=usage.tool_uses,
    )
