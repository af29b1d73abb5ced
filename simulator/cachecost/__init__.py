"""cachecost: a deterministic simulator of what LLM prompt caching costs.

import cachecost
session = cachecost.read("recording.jsonl", tools_tokens=21_000, system_tokens=6_000)
cachecost.compare(session, ["none", "automatic", "progressive"])
cachecost.load_demo().plot()

`read`, `replay`, `compare`, `validate`, `check`, `explain`, `lint`, `optimize`, `whatif`, `next_message`: every result
has `frame()` (pandas; the fields of `--json`), `plot()` (a matplotlib Figure) and a table for notebooks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cachecost.base.version import __version__ as __version__

if TYPE_CHECKING:
    from cachecost.analysis.lint.finding import LintFinding
    from cachecost.api.demo import load_demo
    from cachecost.api.explaining import ExplainResult, LintResult, OptimizeResult, explain, lint, optimize
    from cachecost.api.html import Monthly, Projection
    from cachecost.api.next_messages import BillResult, NextResult, bill, next_message
    from cachecost.api.setup import Alternatives, Recording, Replay, Result, compare, read, replay, whatif
    from cachecost.api.validating import CheckResult, ValidationResult, check, validate
    from cachecost.base.errors import CannotEvaluate, InputError
    from cachecost.conversations.model import Conversation

__all__ = [
    "Alternatives", "BillResult", "CannotEvaluate", "CheckResult", "Conversation", "ExplainResult", "InputError",
    "LintFinding", "LintResult", "Monthly", "NextResult", "OptimizeResult", "Projection", "Recording", "Replay",
    "Result", "ValidationResult", "bill", "check", "compare", "explain", "lint", "load_demo", "next_message",
    "optimize", "read", "replay", "validate", "whatif",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Public names, imported when first used: `import cachecost` alone stays light."""
    if name not in __all__:
        raise AttributeError(f"module 'cachecost' has no attribute '{name}'")
    from cachecost import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
