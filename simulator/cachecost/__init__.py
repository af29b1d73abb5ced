"""cachecost: a deterministic simulator of what LLM prompt caching costs.

import cachecost
session = cachecost.read("recording.jsonl", tools_tokens=21_000, system_tokens=6_000)
cachecost.compare(session, ["none", "automatic", "progressive"]).frame()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cachecost.analysis.lint import LintFinding, lint
    from cachecost.api import Recording, Result, compare, explain, read, replay
    from cachecost.faults import CannotEvaluate, InputError

__version__ = "0.1.0"
__all__ = [
    "CannotEvaluate",
    "InputError",
    "LintFinding",
    "Recording",
    "Result",
    "compare",
    "explain",
    "lint",
    "read",
    "replay",
]

_ELSEWHERE = {
    "CannotEvaluate": "cachecost.faults",
    "InputError": "cachecost.faults",
    "LintFinding": "cachecost.analysis.lint",
    "lint": "cachecost.analysis.lint",
}


def __getattr__(name: str) -> Any:
    """Public names, imported when first used: `import cachecost` alone stays light."""
    if name not in __all__:
        raise AttributeError(f"module 'cachecost' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_ELSEWHERE.get(name, "cachecost.api")), name)
