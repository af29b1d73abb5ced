"""What answers in place of a model: a script, a recording or a small agent. The same call gets the same answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cachecost.base.errors import nearest
from cachecost.base.formatting import count_text
from cachecost.live.server.model import Answerer

ANSWERS = (
    "'agent', 'agent:N' (N tool calls a turn), 'agent:N:TOOL,TOOL' (these tools too, whatever their effect), "
    "'script:FILE' or 'recording:FILE'"
)
KINDS = ("agent", "script", "recording")
AGENT = re.compile(r"[0-9]{1,9}(:.+)?")
"""The number of tool calls per turn, and the tools that may be called regardless of their names."""


def answerer_from(text: str) -> Answerer:
    """The answerer of `--answers TEXT`: see ANSWERS. Raises ValueError, and InputError for its file."""
    kind, _, rest = text.partition(":")
    if text == "agent" or (kind == "agent" and AGENT.fullmatch(rest)):
        from cachecost.live.server.answers.agent import AgentAnswerer

        calls, _, allowed = rest.partition(":")
        return AgentAnswerer(int(calls or 2), frozenset(filter(None, allowed.split(","))))
    if kind == "script" and rest:
        from cachecost.live.server.answers.script import ScriptAnswerer

        return ScriptAnswerer.load(Path(rest))
    if kind == "recording" and rest:
        from cachecost.live.server.answers.recording import RecordingAnswerer

        return RecordingAnswerer.load(Path(rest))
    raise ValueError(f"expected {ANSWERS}; got '{text}'{nearest(kind, KINDS)}")


def notes_of(answerer: Answerer) -> Sequence[str]:
    missed = getattr(answerer, "missed", 0)
    if not missed:
        return tuple(getattr(answerer, "notes", ()))
    return (f"{count_text(missed, 'call')} not found in the recording and answered with a placeholder",)
