# ruff: noqa: F401
"""The library for notebooks and tests; `import cachecost` gives the same names.

`read` a recording, `replay` it under a strategy, `compare` strategies, `validate` predictions against bills. `explain`,
`lint`, `optimize` and `whatif` find avoidable cost. `check` checks the budgets of scenarios. Every result has `frame()`
(pandas: the fields of `--json`), `plot()` (a matplotlib Figure) and a table for notebooks.
"""

from __future__ import annotations

from cachecost.analysis.lint.finding import LintFinding
from cachecost.api.demo import load_demo
from cachecost.api.explaining import ExplainResult, LintResult, OptimizeResult, explain, lint, optimize
from cachecost.api.html import Monthly, Projection
from cachecost.api.next_messages import BillResult, NextResult, bill, next_message
from cachecost.api.setup import Alternatives, Recording, Replay, Result, compare, read, replay, whatif
from cachecost.api.validating import CheckResult, ValidationResult, check, validate
from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.conversations.model import Conversation
