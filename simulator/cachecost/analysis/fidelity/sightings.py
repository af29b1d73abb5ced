"""For each dated row of the rules: in how many recorded calls it was seen to hold, and to fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from cachecost.analysis.fidelity.rule_claims import OF_EACH_READ, claim_name
from cachecost.ledger.results import Judgement
from cachecost.providers.sightings import Sighting

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
    """A row for each host, model, day and rule. A call counts once for a rule: it fails if one of its claims does."""
    held: Counter[tuple[str, str, str, str]] = Counter()
    failed: Counter[tuple[str, str, str, str]] = Counter()
    for one in judgements:
        for rule, fails in _tested_rules(one).items():
            key = (one.host, one.model_row, str(one.day), rule)
            (failed if fails else held)[key] += 1
    return [Sighting(*key, held[key], failed[key]) for key in sorted({*held, *failed})]


def _tested_rules(one: Judgement) -> dict[str, bool]:
    """The rules that a call tests, and whether it refutes them."""
    tested: dict[str, bool] = {}
    for claim, fails in _tested_claims(one):
        for rule in TESTED.get(claim, ()):
            tested[rule] = tested.get(rule, False) or fails
    return tested


def _tested_claims(one: Judgement) -> Iterator[tuple[str, bool]]:
    """(rule of the rulebook, or claim of a host; whether the call refutes it), as the evidence page counts them."""
    prefix = claim_name(one.host, "")
    for rule in one.rules:
        if rule.startswith(prefix):
            claim = rule.removeprefix(prefix)
            yield claim, rule in one.broken if claim in OF_EACH_READ else not one.is_right
        elif one.kind != "unknown":
            yield rule, rule in one.broken or not one.exact
