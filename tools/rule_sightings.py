"""`python -m tools.rule_sightings LOG…`: how often each row of the rules was seen, into `providers/sightings.json`."""

from __future__ import annotations

import sys
from pathlib import Path

from cachecost.analysis.fidelity.rules_seen import find_sightings
from cachecost.analysis.fidelity.validation import Validation
from cachecost.ledger.results import Fidelity
from cachecost.providers import listing
from cachecost.providers.hosts import catalogue, hosts
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup


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
