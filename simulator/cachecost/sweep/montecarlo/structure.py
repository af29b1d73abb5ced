"""What does not vary: which prefixes each call may read and write, and how its tokens divide in each case.

The engine itself is run once over the calls, with a cache that takes down what it was asked. Sizes, prices, rules and
refusals depend on the day and the bytes, which are the same for all seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cachecost.caches.breakpoints import Outcome, PrefixCache
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.lookback import lookback_steps
from cachecost.prompts.render import MarkedPrefix, Prompt
from cachecost.prompts.sizes import AS_COUNTED, Sizes
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage
from cachecost.replay.simulation import Call, SimulatedCall
from cachecost.replay.workload import Workload
from cachecost.sweep.montecarlo.times import MAIN

Key = tuple[Prefix, str]
LIVES = ("5m", "1h")


@dataclass(frozen=True, slots=True)
class Spot:
    """A mark: the number of the entry it writes, how deep it stands, and its lifetime as an index of LIVES."""

    entry: int
    depth: int
    life: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that a call may find, in the order it looks; `size` is its length in tokens as this call knows it."""

    entry: int
    depth: int
    size: int


class Place(NamedTuple):
    """An attempt at a call: its number from 0, and whether it is the final one."""

    call: int
    is_final: bool


@dataclass(frozen=True, slots=True)
class Visit:
    """A prompt before the cache, `later_s` after its call starts. `usages` has one item a candidate, then a miss."""

    place: Place
    later_s: float
    first_token_s: float
    rules: ModelRules
    prices: Prices
    spots: tuple[Spot, ...]
    candidates: tuple[Candidate, ...]
    usages: tuple[Usage, ...]


@dataclass(frozen=True, slots=True)
class Structure:
    """All visits in order, how many entries they could write, and of calls without usage the kind of error and why."""

    visits: list[Visit]
    entries: int
    errors: list[tuple[str | None, str]]


@dataclass(frozen=True, slots=True)
class _Asked:
    prompt: Prompt
    rules: ModelRules
    start: float
    first_token_s: float
    sizes: Sizes


@dataclass(slots=True)
class _Listening(PrefixCache):
    """A cache that takes down what it is asked."""

    asked: list[_Asked] = field(default_factory=list)

    def __post_init__(self) -> None:
        PrefixCache.__init__(self)

    def call(
        self, prompt: Prompt, rules: ModelRules, start: float, first_token_s: float = 0.0, sizes: Sizes = AS_COUNTED
    ) -> Outcome:
        self.asked.append(_Asked(prompt, rules, start, first_token_s, sizes))
        return PrefixCache.call(self, prompt, rules, start, first_token_s, sizes)


def structure_of(traffic: Workload, attempts: int = 1) -> Structure:
    """The structure of a traffic; main calls are made in up to two `attempts`, the first of which not every seed makes.

    Costs one simulation of all attempts. Raises CannotEvaluate for an unknown counter.
    """
    cache = _Listening()
    simulation = replace(traffic, setup=replace(traffic.setup, starts_warm=False)).simulation(cache)
    entries: dict[Key, int] = {}
    visits: list[Visit] = []
    errors: list[tuple[str | None, str]] = []
    for number, call in enumerate(traffic.calls):
        for left in reversed(range(attempts if call.purpose == MAIN else 1)):
            cache.asked.clear()
            simulated = simulation.simulate(call)
            visits += _visits(Place(number, left == 0), call, simulated, cache.asked, entries)
        if simulated.row.error:
            errors.append((simulated.row.error_type, simulated.row.error))
    return Structure(visits, len(entries), errors)


def _visits(
    place: Place, call: Call, simulated: SimulatedCall, asked: Sequence[_Asked], entries: dict[Key, int]
) -> Iterator[Visit]:
    """The visits of one attempt: one pass, or more with server tools; none of a call that has no usage."""
    for order, one in enumerate(asked if simulated.prices else ()):
        assert simulated.prices is not None
        output = 0 if order else simulated.row.usage.output_tokens
        candidates = tuple(_candidates(one, entries))
        spots = tuple(_spot(mark, one.rules, entries) for mark in one.prompt.marks)
        usages = tuple(_divided(one, found, output) for found in (*candidates, None))
        later_s = one.start - call.start
        yield Visit(place, later_s, one.first_token_s, one.rules, simulated.prices, spots, candidates, usages)


def _spot(mark: MarkedPrefix, rules: ModelRules, entries: dict[Key, int]) -> Spot:
    entry = entries.setdefault(_key(mark.prefix, mark.ttl, rules), len(entries))
    return Spot(entry, mark.prefix.depth, LIVES.index(mark.ttl))


def _candidates(asked: _Asked, entries: dict[Key, int]) -> Iterator[Candidate]:
    """The entries that rule 9 looks at, as far as an earlier call could have written them, each once."""
    seen: set[int] = set()
    for mark in reversed(asked.prompt.marks):
        for node in _window(mark.prefix, asked.rules):
            entry = entries.get(_key(node, mark.ttl, asked.rules))
            if entry is not None and entry not in seen:
                seen.add(entry)
                yield Candidate(entry, node.depth, asked.sizes.of(node))


def _window(mark: Prefix, rules: ModelRules) -> Iterator[Prefix]:
    """The blocks from a mark back to the end of its lookback."""
    node: Prefix | None = mark
    while node is not None:
        if lookback_steps(mark, node, rules) >= rules.lookback_positions:
            return
        if node.block:
            yield node
        node = node.parent


def _divided(asked: _Asked, found: Candidate | None, output: int) -> Usage:
    """Rule 15 for a hit at `found`, or a miss."""
    prompt, sizes = asked.prompt, asked.sizes
    a, depth = (found.size, found.depth) if found else (0, 0)
    enough = [mark for mark in prompt.marks if sizes.of(mark.prefix) >= asked.rules.minimum_tokens]
    after = [mark for mark in enough if mark.prefix.depth > depth]
    b = max(_sizes(after, sizes, "1h"), default=a)
    c = max(_sizes(after, sizes), default=a)
    return Usage(sizes.total(prompt) - c, a, c - b, b - a, output)


def _sizes(marks: Sequence[MarkedPrefix], sizes: Sizes, ttl: str | None = None) -> list[int]:
    return [sizes.of(mark.prefix) for mark in marks if ttl in (None, mark.ttl)]


def _key(prefix: Prefix, ttl: str, rules: ModelRules) -> Key:
    return (prefix, ttl if rules.switches.ttl_in_key else "")
