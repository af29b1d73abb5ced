"""The verdict on each limit, and what changed since the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from cachecost.base.exit_codes import ExitCode
from cachecost.base.yaml_text import SourcePlace

State = Literal["pass", "fail", "not_comparable"]
EXIT_CODES: Mapping[State, ExitCode] = {
    "pass": ExitCode.OK,
    "not_comparable": ExitCode.NOT_EVALUATED,
    "fail": ExitCode.CHECK_FAILED,
}
RANKS: Sequence[State] = ("fail", "not_comparable", "pass")
"""Broken budgets come first."""


@dataclass(frozen=True, slots=True)
class CostChange:
    """Why calls cost more or less: `what` happened and its `effect`, in words.

    `call` is the first of them (from 1), `calls` how many there are, `cost` their dollars over those of the baseline
    (without one: over those of the same calls without the cause). `code` is that of `explain`, "" where it has none;
    `block` is where on the wire. An empty `what` stands for all other calls together.
    """

    call: int
    calls: int
    cost: Decimal
    what: str = ""
    effect: str = ""
    code: str = ""
    layer: str = ""
    block: str = ""
    last: int = 0
    """Where several calls share a row of the baseline: the last call that may be the first. 0: `call` it is."""
    search: tuple[str, ...] = ()
    """Texts to find its source line by (`source_lines.py`)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one limit of one strategy.

    `limit` and `actual` are exact decimals: dollars, a share such as 0.05, breakpoints, positions, tokens written
    in vain, or calls at which a layer changed; `actual` None where it cannot be known. `message` is one sentence.
    `changes` tell why a budget broke. `place` is where the limit is written.
    """

    scenario: str
    strategy: str
    budget: str
    limit: Decimal
    actual: Decimal | None
    verdict: State
    message: str
    place: SourcePlace | None = None
    changes: tuple[CostChange, ...] = ()


def overall(verdicts: Iterable[Verdict]) -> State:
    """One word for all: a broken budget outweighs one that could not be checked."""
    states = {verdict.verdict for verdict in verdicts}
    return next((state for state in RANKS if state in states), "pass")


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """0 fine, 1 a budget is broken, 3 one could not be evaluated and none is broken."""
    return EXIT_CODES[overall(verdicts)]
