"""A matching model for each name that rules may state."""

from __future__ import annotations

import pytest
from trees import Tree, rules

from cachecost.caches.breakpoints import PrefixCache
from cachecost.caches.explicit_objects import ExplicitObjectCache
from cachecost.caches.fixed_blocks import FixedBlockCache
from cachecost.caches.fixed_units import FixedUnitCache
from cachecost.caches.hosts import CACHE_MODELS, HostCaches, NoCache, create_cache


def test_each_name_is_a_model_of_its_own_and_fresh() -> None:
    kinds = {name: type(create_cache(name)) for name in CACHE_MODELS}
    assert kinds == {
        "breakpoint": PrefixCache,
        "grid": FixedBlockCache,
        "units": FixedUnitCache,
        "named": ExplicitObjectCache,
        "best_effort": FixedBlockCache,
        "none": NoCache,
    }
    assert create_cache("grid") is not create_cache("grid")


@pytest.mark.parametrize("kind", sorted(CACHE_MODELS))
def test_every_model_divides_the_whole_prompt(kind: str) -> None:
    tree, matching = Tree(), create_cache(kind)
    stated = rules(ttl_s={"5m": 300.0, "1h": 3600.0}, step_tokens=16, minimum_tokens=10)
    for start, sent in enumerate((["S:50", "|", "A:9"], ["S:50", "|", "A:9", "B:30"], ["S:50", "|", "C:1"])):
        prompt = tree.prompt(*sent, tail=4, breakpoint=1)
        outcome = matching.call(prompt, stated, start)
        assert outcome.usage.total_input == prompt.total_tokens
        assert (outcome.hit is None) == (outcome.read == 0)


def test_a_model_without_a_cache_reads_nothing_however_often_it_is_asked() -> None:
    tree, cache = Tree(), create_cache("none")
    stated = rules(matching="none", minimum_tokens=10)
    for start in range(3):
        prompt = tree.prompt("S:50", "|", "A:900", tail=4)
        outcome = cache.call(prompt, stated, start)
        assert (outcome.read, outcome.uncached, outcome.hit) == (0, prompt.total_tokens, None)
        assert cache.state(prompt.end, "5m", stated, start) == "absent"


def test_an_unknown_name_is_a_fault_that_lists_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match=r"matching='grids': expected one of breakpoint, grid, units, named, best_effort, none"
    ):
        create_cache("grids")


@pytest.mark.parametrize(
    ("offset", "usages"),
    [(0, [(0, 210, 4), (200, 30, 14)]), (30, [(0, 210, 4), (170, 30, 44)]), (95, [(0, 210, 4), (205, 30, 9)])],
)
def test_reads_of_breakpoints_end_on_a_grid_where_rules_say_so(offset: int, usages: list[tuple[int, int, int]]) -> None:
    """Steps of 100 from so many hidden tokens on. What is left of a hit is plain input; writes stay as they are."""
    tree, matching = Tree(), HostCaches()
    stated = rules(matching="breakpoint", ttl_s={"5m": 300.0}, step_tokens=100, grid_offset_tokens=offset)
    told = []
    for start, sent in enumerate((["A:210"], ["A:210", "B:30"])):
        outcome = matching.call(tree.prompt(*sent, tail=4, breakpoint=start + 1), stated, start)
        told.append((outcome.read, outcome.write_5m, outcome.uncached))
    assert told == usages
