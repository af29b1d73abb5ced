"""Writes the content-free form of a transcript, as the recordings in `scenarios/recordings/transcripts` have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from cachecost.base.times import iso_or_none
from cachecost.conversations.input_files import token_counts
from cachecost.conversations.json_object import TranscriptStep


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
