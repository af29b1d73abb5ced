"""The bill of a transcript in its content-free form (transcript_steps.py)."""

from __future__ import annotations

from pathlib import Path

from cachecost.conversations.billed_calls import BilledCall, SessionFile
from cachecost.conversations.readers.claude_code.transcript import MAIN, read_steps
from cachecost.conversations.transcript_steps import TranscriptStep

CLIENT = "claude-code"


def steps_file(path: Path) -> SessionFile:
    """The calls of the file: one session, whose chains other than the main thread are sub-agents. Raises InputError."""
    return SessionFile(str(path), CLIENT, path.stem, [_billed_call(step, path.stem) for step in read_steps(path)])


def _billed_call(step: TranscriptStep, session: str) -> BilledCall:
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
        agent="" if step.chain.startswith(MAIN) else step.chain,
        session=session,
        modes=step.modes,
        blocks=step.blocks,
        has_thinking=step.thinking,
        is_summed=step.summed,
        answered=step.answered,
    )
