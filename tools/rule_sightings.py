"""`python -m tools.rule_sightings LOG…`: how often each row of the rules was seen, into `providers/sightings.json`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from cachecost.analysis.fidelity.judging import claim_name, is_refuted
from cachecost.analysis.fidelity.validation import Validation
from cachecost.ledger.results import Fidelity, Judgement
from cachecost.providers import listing
from cachecost.providers.hosts import catalogue, hosts
from cachecost.providers.listing import Sighting
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup

TESTED: Mapping[str, tuple[str, ...]] = {
    "2 thinking": ("default_thinking",),
    "2 effort": ("default_effort", "effort_layer"),
    "3 stripped": ("keeps_thinking",),
    "3 kept": ("keeps_thinking",),
    "4": ("frame",),
    "8 below": ("minimum_tokens",),
    "8 reached": ("minimum_tokens",),
    "9 lookback": ("lookback_positions",),
    "11": ("visibility",),
    "12 alive": ("ttl_s",),
    "12 expired": ("ttl_s",),
    "step": ("step_tokens", "reported_step_tokens"),
    "minimum": ("minimum_tokens",),
    "kept": ("matching",),
    "nothing else": ("matching",),
    "range": ("matching",),
}
"""The rules of the rule data that a rule of the rulebook, or a claim of a host, tests. No bill tests the others."""


def find_sightings(judgements: Iterable[Judgement]) -> list[Sighting]:
    """A row for each host, model, day and rule, as the evidence page counts them. A call counts once for a rule: it
    fails if one of its claims does."""
    held: Counter[tuple[str, str, str, str]] = Counter()
    failed: Counter[tuple[str, str, str, str]] = Counter()
    for one in judgements:
        tested: dict[str, bool] = {}
        prefix = claim_name(one.host, "")
        for name in one.rules:
            claim = name.removeprefix(prefix)
            if claim == name and one.kind == "unknown":
                continue
            fails = name in one.broken or not one.exact if claim == name else is_refuted(one, name, claim)
            for rule in TESTED.get(claim, ()):
                tested[rule] = tested.get(rule, False) or fails
        for rule, fails in tested.items():
            (failed if fails else held)[one.host, one.model_row, str(one.day), rule] += 1
    return [Sighting(*key, held[key], failed[key]) for key in sorted({*held, *failed})]


def main(logs: list[str]) -> int:
    """Judge the calls of the logs and write the file anew."""
    setup = ReplaySetup(RuleBook(), PriceBook.load())
    listing.DATA.write_text(render(Validation([*map(Path, logs)], setup).fidelity()), encoding="utf-8")
    return 0


def render(fidelity: Fidelity) -> str:
    """The data file, dated by the newest rule data."""
    day = max(catalogue(host).data_date for host in hosts())
    return listing.sightings_text(find_sightings(fidelity.judgements), day)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
