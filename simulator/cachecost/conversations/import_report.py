"""The result of an import, file by file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cachecost.base.errors import Fault
from cachecost.conversations.bills import BillTotal
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One file, or several merged ones: the detected format and the reason, and the recording with its contents.

    `calls` counts the calls of a log, or the replies of a conversation. `bill` has the usage and dollars of the file.
    """

    file: str
    format: str
    reason: str
    recording: str
    name: str
    calls: int
    conversations: int = 1
    inquiries: int = 0
    bill: BillTotal = field(default_factory=BillTotal)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import. `refused` files left nothing behind; `skipped` files in folders have no known format."""

    imported: list[ImportedFile] = field(default_factory=list)
    refused: list[Fault] = field(default_factory=list)
    files: int = 0
    skipped: list[Fault] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return sum(one.calls for one in self.imported)

    @property
    def billed_usage(self) -> Usage:
        """The usage in the files."""
        return sum((one.bill.usage for one in self.imported), Usage())

    @property
    def billed_usd(self) -> Decimal:
        """Its dollars, at the prices of each call's day."""
        return sum((one.bill.dollars for one in self.imported), Decimal(0))

    @property
    def unpriced_calls(self) -> Counter[str]:
        """The calls that are missing from the dollars, by reason."""
        return sum((one.bill.unpriced for one in self.imported), Counter())

    def json(self) -> dict[str, Any]:
        """The object of `import --json` (docs/reference/output-formats.md), without dollars: a view formats them."""
        return {
            "format": 1,
            "files": self.files,
            "conversations": sum(one.conversations for one in self.imported),
            "calls": self.calls,
            "billed": self.billed_usage.wire(),
            "refused": [{"file": one.file, "line": one.line, "reason": one.message} for one in self.refused],
            "skipped": [{"file": one.file, "reason": one.message} for one in self.skipped],
        }
