"""Every change by the name a scenario gives it."""

from __future__ import annotations

from cachecost.strategies.changes import attachments, compaction, pruning, results, switching, truncation
from cachecost.strategies.changes.base import Change

MODULES = (switching, compaction, pruning, truncation, attachments, results)
CHANGES: dict[str, type[Change]] = {name: kind for module in MODULES for name, kind in module.CHANGES.items()}
