"""Counters by the names of `--tokens`."""

from __future__ import annotations

from collections.abc import Callable

from cachecost.faults import CannotEvaluate, nearest
from cachecost.prompts.counting import TokenCounter
from cachecost.tokens.bytecount import BytesCounter
from cachecost.tokens.given import GIVEN, GivenCounter

DEFAULT = "tiktoken"
"""Where nothing is asked for and no bill can anchor the counts: it needs no network, no key and runs on
every Python. `ctok` is nearer to the truth and slower; `bytes` is for checking by hand."""


def _ctok(generation: str) -> TokenCounter:
    from cachecost.tokens.ctok_ import ctok_counter

    return ctok_counter(generation)


def _tiktoken(generation: str) -> TokenCounter:
    from cachecost.tokens.tiktoken_ import tiktoken_counter

    return tiktoken_counter(generation)


COUNTERS: dict[str, Callable[[str], TokenCounter]] = {
    "bytes": lambda generation: BytesCounter(),
    "ctok": _ctok,
    "tiktoken": _tiktoken,
}
PLANNED = ("anchored", "count_tokens")
OF_CLAUDE = {"ctok": "ctok has Claude's tokenizers", "count_tokens": "count_tokens is Anthropic's API"}
"""Counters that know no other maker's models, and why."""


def make_counter(name: str, generation: str) -> TokenCounter:
    """The counter that `--tokens NAME` means for a tokenizer generation ("claude-3", "o200k", …). Of a trace that gives
    its counts, it is those.

    Raises CannotEvaluate for a name that is not known or not there yet, for a generation that is not
    calibrated, for ctok where it is not installed, and for what only counts Claude's tokens where others are meant.
    """
    if generation == GIVEN:
        return GivenCounter()
    if name in OF_CLAUDE and not _is_of_claude(generation):
        raise CannotEvaluate(
            f"--tokens {name} cannot count for {generation}: {OF_CLAUDE[name]}. Use --tokens tiktoken, or bytes"
        )
    if name in COUNTERS:
        return COUNTERS[name](generation)
    planned = name in PLANNED
    why, near = ("is not there yet", "") if planned else ("is unknown", nearest(name, COUNTERS))
    raise CannotEvaluate(f"--tokens {name} {why}: expected one of {', '.join(COUNTERS)}{near}")


def _is_of_claude(generation: str) -> bool:
    from cachecost.tokens.calibration import CLAUDE, calibration

    return calibration(generation).generation.startswith(CLAUDE)
