"""The pages of `explain` and `optimize`: the answer first, then one table a strategy, then how sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from cachecost.analysis.optimum.optimum import Optimum
from cachecost.base.formatting import change, dollars, percent
from cachecost.base.version import __version__
from cachecost.ledger.findings import Explanation
from cachecost.views.explain.text import closing, groups, headline
from cachecost.views.html.frame import Table, page
from cachecost.views.optimum.json_output import optimum_object
from cachecost.views.optimum.text import answer, facts
from cachecost.views.run.html_tables import findings_table


@dataclass(frozen=True, slots=True)
class Part:
    """A section: its anchor, its heading, sentences, a table, and what follows it."""

    anchor: str
    title: str
    words: list[str]
    table: Table | None = None
    after: list[str] = field(default_factory=list)


def explain_page(source: str, told: Sequence[Explanation], again: str) -> str:
    """What each strategy of a scenario, or a log, pays more than it must."""
    parts = [_explained(number, each) for number, each in enumerate(told, 1)]
    first = parts[0].words[0] if len(parts) == 1 else _cheapest(told)
    return page(
        "analysis.html",
        title=source,
        question="What was paid that did not have to be, and why?",
        answer=first,
        parts=parts,
        again=again,
        version=__version__,
    )


def optimum_page(source: str, found: Optimum, again: str) -> str:
    """The cheapest legal marks, lifetimes and pings, and how far every strategy is from the floor."""
    first, *more = answer(found)
    return page(
        "analysis.html",
        title=source,
        question="What is the least that these calls can cost, and with which marks?",
        answer=first,
        parts=[
            Part("strategies", "How far each strategy is from it", more, _distances(found)),
            Part("sure", "How sure", [f"{name}: {words}" if name else words for name, words in facts(found)]),
        ],
        again=again,
        version=__version__,
    )


def _explained(number: int, told: Explanation) -> Part:
    found = groups(told)
    words = [" ".join(line.split()) for line in headline(told, found)]
    after = [" ".join(line.split()) for line in closing(told) if line]
    return Part(f"part-{number}", told.strategy or "as recorded", words, findings_table(told) if found else None, after)


def _cheapest(told: Sequence[Explanation]) -> str:
    """The strategy that pays least in vain, and the one that pays most."""
    ranked = sorted(told, key=lambda each: each.avoidable)
    low, high = ranked[0], ranked[-1]
    much = dollars(high.avoidable)
    return f"“{low.strategy}” pays {dollars(low.avoidable)} more than it must, “{high.strategy}” {much}."


def _distances(found: Optimum) -> Table:
    """Every strategy that could run, the cheapest first."""
    known = {name: Decimal(usd) for name, usd in optimum_object(found)["strategies"].items()}
    ranked = sorted(known, key=lambda name: (known[name], name))
    over = {name: percent(change(known[name], found.floor_usd), signed=True) for name in ranked}
    rows = [
        ["the best plan found", dollars(found.usd), percent(change(found.usd, found.floor_usd), signed=True)],
        *([name, dollars(known[name]), over[name]] for name in ranked),
        ["floor: nothing legal is cheaper", dollars(found.floor_usd), ""],
    ]
    return Table("Dollars for these calls", ["strategy", "cost", "over floor"], rows, strong=frozenset({0}))
