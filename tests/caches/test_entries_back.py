"""Entries before a prefix, walked once, are those that each prefix has when it is asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bodies import RULES
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import PrefixCache
from cachecost.caches.expiry import new_entry
from cachecost.prompts.blocks import Layer, Prefix, given_block
from cachecost.prompts.compare import path
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.usage import TTLS

NODES = 8
KEPT = st.lists(st.tuples(st.integers(1, NODES), st.sampled_from(TTLS)), max_size=8)


def chain() -> list[Prefix]:
    """Prefixes of one block more each, with a cache key after each second one."""
    nodes = [Prefix(None, Layer.TOOLS, None, 0)]
    for number in range(NODES):
        before = nodes[-1].cache_key(b"k", Layer.SYSTEM, 1) if number % 2 else nodes[-1]
        nodes.append(before.then(given_block("text", "user", str(number), 10), Layer.MESSAGES, 10))
    return nodes


@given(KEPT, st.integers(0, NODES), st.integers(0, NODES), st.booleans())
def test_entries_are_found_deepest_first(kept: list[tuple[int, str]], end: int, depth: int, by_ttl: bool) -> None:
    rules = replace(RULES, assumptions=Assumptions(ttl_in_key=by_ttl))
    nodes, cache = chain(), PrefixCache()
    for number, ttl in kept:
        cache.keep(nodes[number], ttl, rules, new_entry(rules, ttl, float(number), float(number)))
    plain = [
        (node, cache.entry(node, ttl, rules))
        for node in reversed(path(nodes[end], depth))
        for ttl in (TTLS if by_ttl else TTLS[:1])
        if cache.state(node, ttl, rules, 0.0) != "absent"
    ]
    assert list(cache.entries_back(nodes[end], depth, rules)) == plain
