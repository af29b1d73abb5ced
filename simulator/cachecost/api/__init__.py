"""The library, as a notebook or a test uses it; `import cachecost` gives the same names.

`read` a recording, `replay` it under a strategy, `compare` strategies; `validate` against bills; `explain`, `lint`,
`optimize` and `whatif` say what was avoidable; `check` holds scenarios to their budgets. Every result has `frame()`
(pandas: tokens as int, dollars as Decimal), `plot()` (a matplotlib Figure) and a table for notebooks.
"""

from __future__ import annotations

from cachecost.analysis.lint.finding import LintFinding
from cachecost.api.alternatives import Alternatives, whatif
from cachecost.api.checks import Checked, check
from cachecost.api.comparing import Replay, Result, compare, replay
from cachecost.api.explained import Explained, explain
from cachecost.api.linted import Linted, lint
from cachecost.api.optimized import Optimized, optimize
from cachecost.api.projection import Monthly, Projection
from cachecost.api.reading import Recording, read
from cachecost.api.validated import Validated, validate
from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.conversations.model import Conversation

__all__ = [
    "Alternatives",
    "CannotEvaluate",
    "Checked",
    "Conversation",
    "Explained",
    "InputError",
    "LintFinding",
    "Linted",
    "Monthly",
    "Optimized",
    "Projection",
    "Recording",
    "Replay",
    "Result",
    "Validated",
    "check",
    "compare",
    "explain",
    "lint",
    "optimize",
    "read",
    "replay",
    "validate",
    "whatif",
]
