"""What a reader tells the user about a file: entries that it skipped, and what calls lack. Each kind is counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cachecost.base.formatting import count_text
from cachecost.conversations.input_files import Warn


class ReaderNotes:
    """Counts notes and reports each kind in one line, in the order in which the kinds first occurred."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def skip(self, noun: str, reason: str, times: int = 1) -> None:
        """Count skipped entries: "skipped 2 entries: no model name"."""
        self._counts["skipped ", noun, f": {reason}"] += times

    def add(self, noun: str, what: str, times: int = 1) -> None:
        """Count entries that were read, but not whole: "2 calls without usage"."""
        self._counts["", noun, f" {what}"] += times

    def report(self, path: Path | str, warn: Warn) -> None:
        """Pass each kind that occurred to `warn`."""
        for (verb, noun, rest), times in self._counts.items():
            if times:
                warn(f"{path}: {verb}{count_text(times, noun)}{rest}")
