"""Rule 13: breakpoints at or before the hit. The entry written again there lasts as the shorter of the two TTLs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bodies import RULES
from cachecost.caches.breakpoints import new_entry, refresh_before_hit, shorter_ttl
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.rules import ModelRules


def rules(assumption: str = "rewrite") -> ModelRules:
    return replace(RULES, assumptions=Assumptions(shallow_breakpoints=assumption))  # type: ignore[arg-type]


@pytest.mark.parametrize(("own", "hit"), [("5m", "5m"), ("5m", "1h"), ("1h", "5m"), ("1h", "1h")])
def test_what_is_written_again_lasts_as_the_shorter_ttl(own: str, hit: str) -> None:
    expected = "1h" if own == hit == "1h" else "5m"
    assert shorter_ttl(own, hit, rules()) == expected
    assert refresh_before_hit(None, own, hit, 100.0, rules()) == expected
    expired = new_entry(rules(), own, 60.0, 0.0, 0.0)
    assert refresh_before_hit(expired, own, hit, 100.0, rules()) == expected


@pytest.mark.parametrize("assumption", ["refresh", "ignore"])
def test_other_assumptions_write_nothing(assumption: str) -> None:
    assert refresh_before_hit(None, "1h", "5m", 100.0, rules(assumption)) is None


def test_a_live_entry_is_refreshed_and_not_written() -> None:
    entry = new_entry(rules(), "5m", 300.0, 0.0, 0.0)
    assert refresh_before_hit(entry, "5m", "1h", 299.0, rules()) is None
    assert (entry.state(598.0), entry.state(600.0)) == ("live", "expired")
