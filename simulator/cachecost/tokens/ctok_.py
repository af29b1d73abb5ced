"""Claude's own tokenizers as `ctok` reconstructs them: nearly exact, slow (0.4 MB/s), Python >= 3.12 only."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import version

from cachecost.base.errors import CannotEvaluate
from cachecost.base.extras import how_to_install, is_installed, require
from cachecost.tokens.calibration import KINDS, calibration
from cachecost.tokens.textcounter import TextCounter

VERSIONS = {"claude-3": "3.0", "claude-4.7": "4.7", "claude-4.8": "4.8"}
"""Our tokenizer generations by ctok's names for them."""
KEYS = {"claude-3": "ctok-3", "claude-4.7": "ctok-4.7", "claude-4.8": "ctok-4.8"}
"""Their names in `Block.counts`."""
OLDEST_PYTHON = (3, 12)
"""With an older one the extra installs nothing."""
INSTEAD = "or use --tokens tiktoken"


def has_ctok() -> bool:
    """Whether ctok can be imported; does not import it."""
    return is_installed("ctok")


class Ctok:
    """Tokens of one generation, without the message frame that ctok includes."""

    def __init__(self, generation: str) -> None:
        self.key = KEYS[generation]
        self._version = VERSIONS[generation]

    @property
    def advice(self) -> str:
        """Asked for where a count is missing only: to find how this copy was installed takes 10 ms."""
        return (
            f"import the recording again where ctok is installed ({how_to_install(['ctok'])}), or use --tokens tiktoken"
        )

    def __call__(self, text: str) -> int:
        """Tokens of `text`. The first call loads the vocabulary, about 0.4 s."""
        from ctok import token_count

        return int(token_count(text, self._version)) - _frame(self._version)


@cache
def _frame(version_: str) -> int:
    """ctok counts a whole user message; "a" is one token in every generation."""
    from ctok import token_count

    return int(token_count("a", version_)) - 1


def require_ctok() -> None:
    """Raise NotInstalled where ctok is missing, CannotEvaluate where this Python is too old for it."""
    if sys.version_info < OLDEST_PYTHON and not has_ctok():
        raise CannotEvaluate(
            f"--tokens ctok needs Python {'.'.join(map(str, OLDEST_PYTHON))} or later: {INSTEAD.removeprefix('or ')}"
        )
    require("--tokens ctok", "ctok", instead=INSTEAD)


def ctok_counter(generation: str) -> TextCounter:
    """ctok's tokens + the generation's structure constants. Raises as `require_ctok`."""
    require_ctok()
    measured = calibration(generation)
    source = f"ctok {version('ctok')}, the tokenizer of {generation}"
    return TextCounter("ctok", source, measured, Ctok(generation), dict.fromkeys(KINDS, 1.0))
