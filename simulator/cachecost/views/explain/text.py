"""What `cachecost explain` prints for people: the answer, a line a cause with its dearest example, and how sure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from textwrap import wrap
from typing import IO

from rich.console import Console
from rich.table import Table

from cachecost.base.formatting import counted, dollars, percent, rough_dollars
from cachecost.ledger.findings import Explanation, Finding
from cachecost.ledger.results import ZERO
from cachecost.views.streams import inert_console
from cachecost.views.tables.plain import PIPE_WIDTH

SHOWN_CALLS = 3
MOST = Decimal("0.9")
"""Share of the avoidable dollars that the causes named in the first line make."""


@dataclass(frozen=True, slots=True)
class Group:
    """The findings of one code, the dearest first."""

    findings: list[Finding]

    @property
    def cost(self) -> Decimal:
        return sum((finding.cost for finding in self.findings), ZERO)

    @property
    def dearest(self) -> Finding:
        return self.findings[0]


def groups(told: Explanation) -> list[Group]:
    """The findings by code, dearest code first."""
    by_code: dict[str, list[Finding]] = {}
    for finding in told.findings:
        by_code.setdefault(finding.code, []).append(finding)
    made = [Group(sorted(found, key=lambda one: (-one.cost, one.call))) for found in by_code.values()]
    return sorted(made, key=lambda group: (-group.cost, group.dearest.code))


def print_explanation(told: Explanation, titles: dict[str, str], stream: IO[str]) -> None:
    """Print to `stream`; rich respects NO_COLOR, pipes and the width. `titles` are the codes' names."""
    console = inert_console(stream, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    found = groups(told)
    for line in headline(told, found):
        console.print(line, markup=False, soft_wrap=True)
    if found:
        console.print()
        console.print(_table(found, titles))
        console.print()
        for group in found:
            _print_example(console, group)
    for line in closing(told):
        console.print(line, markup=False, soft_wrap=True)


def headline(told: Explanation, found: Sequence[Group]) -> Iterator[str]:
    """The answer: what it cost, what of that was avoidable, and how many causes make most of it."""
    name = f"{told.strategy}   " if told.strategy else ""
    if not found:
        yield f"{name}{dollars(told.cost)} · nothing avoidable: as cheap as these bytes, marks and times allow"
        return
    share = percent(told.avoidable / told.cost) if told.cost else percent(0)
    most = f"{counted(len(found), 'cause')}"
    count, part = _most(found, told.avoidable)
    if count < len(found):
        most = f"{counted(count, 'cause')} {'makes' if count == 1 else 'make'} {percent(part)} of it"
    yield f"{name}{dollars(told.cost)} · {dollars(told.avoidable)} avoidable ({share}) · {most}"


def _most(found: Sequence[Group], avoidable: Decimal) -> tuple[int, Decimal]:
    """How many causes, from the dearest on, make most of it, and what share."""
    sum_so_far = ZERO
    for number, group in enumerate(found, 1):
        sum_so_far += group.cost
        if sum_so_far >= MOST * avoidable:
            return number, sum_so_far / avoidable
    return len(found), Decimal(1)


def _table(found: Sequence[Group], titles: dict[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, expand=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for group in found:
        first = group.dearest
        calls = _calls(group.findings)
        title = titles[first.cause]
        where = f"{first.layer} paid again"
        table.add_row(first.code, title, where, f"{len(group.findings)} ×", dollars(group.cost), calls)
    return table


def _calls(findings: Sequence[Finding]) -> str:
    numbers = sorted({finding.call for finding in findings})
    word = "call" if len(numbers) == 1 else "calls"
    more = " …" if len(numbers) > SHOWN_CALLS else ""
    return f"{word} {', '.join(map(str, numbers[:SHOWN_CALLS]))}{more}"


def _print_example(console: Console, group: Group) -> None:
    """The dearest call of a cause: what happened there, and the mend."""
    first = group.dearest
    shown = f": “{first.excerpt}”" if first.excerpt else ""
    example = f"call {first.call}: {first.message}{shown} ({dollars(first.cost)})"
    console.print(f"{first.code}  {example}", markup=False)
    for line in wrap(first.fix, max(40, console.width - 9)):
        console.print(f"       {'→' if first.fix.startswith(line) else ' '} {line}", markup=False)


def closing(told: Explanation) -> Iterator[str]:
    """What remains, and how sure all of this is."""
    if told.findings:
        fine = told.calls - len({finding.call for finding in told.findings})
        yield ""
        yield f"Nothing else: {counted(fine, 'call')} are as cheap as these bytes allow."
    if told.warm.calls:
        yield told.warm.sentence
    if told.token_source:
        band = Decimal(str(told.band))
        error = f" ±{percent(band)} → ±{rough_dollars(told.avoidable * band)}" if band and told.findings else ""
        yield f"tokens   {told.token_source}{error}"
    for sentence in told.flips:
        yield f"reading  {sentence}"
