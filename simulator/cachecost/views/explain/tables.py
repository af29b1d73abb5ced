"""The avoidable cost of an explanation by cause: the groups of its findings, and their table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.explain.codes import codes
from cachecost.base.formatting import dollar_column
from cachecost.ledger.findings import Explanation, Finding
from cachecost.ledger.results import ZERO
from cachecost.views.tables.table import COMPARISON, COUNT, DETAIL, Column, Table

CALLS_SHOWN = 6


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """The findings of one code, the most expensive first."""

    findings: list[Finding]

    @property
    def cost(self) -> Decimal:
        """USD that are avoidable."""
        return sum((finding.cost for finding in self.findings), ZERO)

    @property
    def paid_again(self) -> Decimal:
        """USD above the price of a read that was paid."""
        return sum((finding.paid_again for finding in self.findings), ZERO)

    @property
    def example(self) -> Finding:
        """The most expensive finding."""
        return self.findings[0]


def group_findings(explanation: Explanation) -> list[CauseGroup]:
    """The findings by code, the most expensive code first."""
    return _by_code((*explanation.findings, *explanation.not_explained))


def group_notes(explanation: Explanation) -> list[CauseGroup]:
    """What was paid again and no fix makes cheaper, by code."""
    return _by_code(explanation.notes)


def _by_code(findings: Iterable[Finding]) -> list[CauseGroup]:
    by_code: dict[str, list[Finding]] = {}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    groups = [CauseGroup(sorted(found, key=_expensive_first)) for found in by_code.values()]
    return sorted(groups, key=lambda group: (-group.cost, -group.paid_again, group.example.code))


def _expensive_first(finding: Finding) -> tuple[Decimal, Decimal, int]:
    return -finding.cost, -finding.paid_again, finding.call


def findings_table(explanation: Explanation) -> Table:
    """A row a cause, the most expensive first, with its most expensive example and the fix."""
    groups = group_findings(explanation)
    examples = [group.example for group in groups]
    columns = [
        _words_column("cause", [f"{one.code} {codes()[one.cause].name}" for one in examples]),
        _words_column("most expensive example", [f"call {one.call}: {one.message}" for one in examples], DETAIL),
        _words_column("fix", [one.fix for one in examples], DETAIL),
        _words_column("paid again", [str(one.layer) for one in examples], COMPARISON),
        _words_column("calls", [call_numbers(group.findings) for group in groups], COUNT),
        Column("times", "times", [f"{len(group.findings):,}" for group in groups], rank=COMPARISON),
        Column("avoidable", "avoidable", dollar_column([group.cost for group in groups])),
    ]
    return Table(columns, f"What “{explanation.strategy}” pays more than it must")


def _words_column(header: str, cells: list[str], rank: int = 0) -> Column:
    return Column(header, header, cells, right=False, rank=rank)


def call_numbers(findings: Sequence[Finding]) -> str:
    numbers = sorted({finding.call for finding in findings})
    more = " …" if len(numbers) > CALLS_SHOWN else ""
    return ", ".join(f"{number:,}" for number in numbers[:CALLS_SHOWN]) + more
