"""What a result of a web search costs, whose text is encrypted: fitted on bills of calls with several passes.

Such a bill is a sum over the passes, so that it is no sample of the other fits: all but the results is taken from the
calibration that is in use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.prompts.blocks import Block
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import CallPreparer, PreparedCall
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.calibration import Calibration, calibration
from cachecost.tokens.parts import parts_of
from tools.calibrate.fit import Bill, least_absolute
from tools.calibrate.recorded import read_recorded
from tools.calibrate.samples import rendered

FOUND, SEALED = "found", "sealed"
UNIT = 1000
"""Characters of encrypted content that a fitted constant is for: constants are in half tokens."""
STARTS = {FOUND: 100, SEALED: 250}
"""Where the oldest generation's start."""


@dataclass(frozen=True, slots=True)
class Search:
    """A billed call with results of a search: their number and encrypted characters, summed over its passes, and the
    tokens that are left for them."""

    generation: str
    facts: Mapping[str, int]
    left: float
    billed: int


def searches_in(logs: Iterable[Path]) -> list[Search]:
    """The searches of recordings that are not held out."""
    setup = ReplaySetup(RuleBook(), PriceBook(), tokens="ctok", may_lack_prices=True)
    preparer = CallPreparer.of(setup)
    return [search for log in logs for search in _searches_in(log, preparer)]


def _searches_in(log: Path, preparer: CallPreparer) -> Iterator[Search]:
    for one in read_recorded(log):
        if one.is_held_out:
            continue
        try:
            made = preparer.prepare(one.call)
        except CannotEvaluate:
            continue
        if isinstance(made, PreparedCall) and (found := _search(made, one.billed)):
            yield found


def _search(made: PreparedCall, billed: int) -> Search | None:
    """What is left of a bill for the results; None: the call has none whose content is there."""
    facts: Counter[str] = Counter()
    for prompt in made.prompts:
        for block in rendered(prompt.end):
            facts += _facts(block)
    if not facts[SEALED]:
        return None
    structure = calibration(made.rules.generation).structure
    counted = sum(prompt.total_tokens for prompt in made.prompts)
    left = billed - counted + sum(structure[name] * number for name, number in facts.items())
    return Search(made.rules.generation, facts, left, billed)


def _facts(block: Block) -> Counter[str]:
    facts = parts_of(block.kind, block.content).facts if block.content else {}
    return Counter({name: facts[name] for name in STARTS if name in facts})


def with_searches(fitted: Mapping[str, Calibration], searches: Sequence[Search]) -> dict[str, Calibration]:
    """The calibrations with what results of searches cost; a generation of which few tell has the one before it, grown
    as texts grow."""
    found: dict[str, Calibration] = {}
    known: Mapping[str, float] = STARTS
    before: Calibration | None = None
    for generation, one in fitted.items():
        growth = one.ratio["text"] / before.ratio["text"] if before else 1.0
        told = _fit([search for search in searches if search.generation == generation], known, growth)
        structure = {**one.structure, FOUND: told[FOUND], SEALED: round(told[SEALED] / UNIT, 3)}
        found[generation] = replace(one, structure=structure)
        known, before = told, one
    return found


def _fit(searches: Sequence[Search], known: Mapping[str, float], growth: float) -> dict[str, float]:
    bills = [
        Bill({FOUND: one.facts[FOUND], SEALED: one.facts[SEALED] / UNIT}, one.left, one.billed) for one in searches
    ]
    return least_absolute(bills, {**known, SEALED: known[SEALED] * growth})
