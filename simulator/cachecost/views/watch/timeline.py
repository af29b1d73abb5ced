"""The prompt timeline in characters: a line a call, as long as its prompt, in the order of the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cachecost.analysis.bill.timeline import TimelineCall

READ, WRITTEN, AGAIN, UNCACHED = "=", "+", "!", "."
"""Signs of every encoding."""
NAMES = {READ: "read", WRITTEN: "written", AGAIN: "written again", UNCACHED: "uncached"}
STYLES = {READ: "cyan", WRITTEN: "yellow", AGAIN: "bold red", UNCACHED: "magenta"}


class PromptParts(NamedTuple):
    """Tokens of a prompt by outcome, in the order of the prompt."""

    read: int
    again: int
    written: int
    uncached: int


def prompt_parts(one: TimelineCall) -> PromptParts:
    """What became of a call's prompt. What was cached before and is sent uncached counts as uncached."""
    call = one.call
    again = min(one.rewrite.tokens, call.written) if one.rewrite else 0
    return PromptParts(call.read, again, call.written - again, call.tokens[0])


def timeline_bars(calls: Sequence[TimelineCall], width: int) -> list[str]:
    """A bar a call; the longest prompt has `width` characters."""
    prompts = [prompt_parts(one) for one in calls]
    longest = max(map(sum, prompts), default=0)
    return [_bar(prompt, longest, width) for prompt in prompts]


def _bar(prompt: PromptParts, longest: int, width: int) -> str:
    """Each part ends where it ends in the prompt, rounded: a part of less than half a character is not seen."""
    bar, end = "", 0
    for part, sign in zip(prompt, (READ, AGAIN, WRITTEN, UNCACHED), strict=True):
        end += part
        bar += sign * ((2 * end * width + longest) // (2 * longest) - len(bar) if longest else 0)
    return bar
