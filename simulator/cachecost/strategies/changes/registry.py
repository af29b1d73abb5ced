"""Every change by the name a scenario gives it."""

from __future__ import annotations

from cachecost.strategies.changes import switching
from cachecost.strategies.changes.base import Change

CHANGES: dict[str, type[Change]] = {**switching.CHANGES}
