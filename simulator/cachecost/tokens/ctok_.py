"""Claude's own tokenizers as `ctok` reconstructs them: nearly exact, slow (0.4 MB/s), Python >= 3.12 only."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec

from cachecost.faults import CannotEvaluate
from cachecost.tokens.calibration import calibration
from cachecost.tokens.prose import KINDS
from cachecost.tokens.textcounter import TextCounter

VERSIONS = {"claude-3": "3.0", "claude-4.7": "4.7", "claude-4.8": "4.8"}
"""Our tokenizer generations by ctok's names for them."""
KEYS = {"claude-3": "ctok-3", "claude-4.7": "ctok-4.7", "claude-4.8": "ctok-4.8"}
"""Their names in `Block.counts`."""
NEEDS = "ctok wants Python >= 3.12: pip install 'cachecost[claude-tokens]'"


def has_ctok() -> bool:
    """Whether ctok can be imported; does not import it."""
    return find_spec("ctok") is not None


class Ctok:
    """Tokens of one generation, without the frame of the message that ctok counts along."""

    def __init__(self, generation: str) -> None:
        self.key = KEYS[generation]
        self.advice = f"import the recording again where ctok is installed ({NEEDS}), or use --tokens tiktoken"
        self._version = VERSIONS[generation]

    def __call__(self, text: str) -> int:
        """Tokens of `text`. The first call loads the vocabulary, about 0.4 s."""
        from ctok import token_count

        return int(token_count(text, self._version)) - _frame(self._version)


@cache
def _frame(version_: str) -> int:
    """ctok counts a whole user message; "a" is one token in every generation."""
    from ctok import token_count

    return int(token_count("a", version_)) - 1


def ctok_counter(generation: str) -> TextCounter:
    """ctok's tokens + the generation's structure constants. Raises CannotEvaluate where ctok is missing."""
    if not has_ctok():
        python = ".".join(map(str, sys.version_info[:2]))
        raise CannotEvaluate(f"--tokens ctok: ctok is not installed for this Python {python}. {NEEDS}")
    measured = calibration(generation)
    source = f"ctok {version('ctok')}, the tokenizer of {generation}"
    return TextCounter("ctok", source, measured, Ctok(generation), dict.fromkeys(KINDS, 1.0))
