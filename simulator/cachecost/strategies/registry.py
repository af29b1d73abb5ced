"""Strategies by name: the built-in ones, then those of other packages; and from a name to one that can plan.

A package adds strategies by entry points of the group `cachecost.strategies`. An entry point's name is the strategy's,
its object a Strategy or something that makes one when called. They are loaded when a name is not built in, and for
listings; a built-in name cannot be taken. NAME@1h and NAME@5m are a strategy with that TTL on all breakpoints that name
none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from cachecost.base.errors import nearest
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.model import Conversation
from cachecost.prompts.request import TTL
from cachecost.strategies.agent import Agent
from cachecost.strategies.changes.base import Facts
from cachecost.strategies.presets import PRESETS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from cachecost.strategies.spec import StrategySpec


class Strategy(Protocol):
    """A way to send a conversation. `source` says who does it so, `date` when that was read."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def date(self) -> str: ...

    def plan(self, conversation: Conversation) -> Iterator[Call]:
        """The calls, in the order they start. Never prices, never looks at a cache."""
        ...

    def notes(self, conversation: Conversation) -> list[str]:
        """What this strategy cannot do here, in sentences for the report; empty if there is nothing to say."""
        ...


WELL_KNOWN = ("automatic", "base", "claude-code", "none", "progressive", "system-only")
TTLS = ("5m", "1h")
Found = Agent | Strategy


class StrategyListing(NamedTuple):
    name: str
    what: str
    source: str
    date: str


class UnknownStrategy(ValueError):
    """No strategy has this name; the text lists some that there are, and the nearest one."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        listed = ", ".join(f"'{each}'" if "," in each else each for each in WELL_KNOWN if each in known)
        more = f" … ({len(known)}: cachecost strategies), or one with @5m or @1h"
        super().__init__(f"expected one of {listed}{more}; got '{name}'{nearest(name, known)}")


def names() -> list[str]:
    """The built-in names, sorted; loads nothing."""
    return sorted(PRESETS)


def find_strategy(name: str) -> Found:
    """The strategy of that name. Raises UnknownStrategy, and ValueError for a TTL that does not go with it."""
    if name in PRESETS:
        return PRESETS[name]
    base, at, ttl = name.rpartition("@")
    if at and ttl in TTLS:
        found = find_strategy(base)
        if not isinstance(found, Agent):
            raise ValueError(f"'{found.name}' belongs to another package: it takes no TTL")
        placement = replace(found.placement, ttl=cast("TTL", ttl))
        if fault := placement.ttl_error():
            raise ValueError(f"{name}: {fault}")
        return replace(found, name=name, placement=placement)
    others = _entry_points()
    if name in others:
        return _load(others[name])
    raise UnknownStrategy(name, sorted({*PRESETS, *others}))


def list_strategies() -> list[StrategyListing]:
    """All strategies for `cachecost strategies`, by name; those of other packages are loaded for it."""
    others = {name: _load(point) for name, point in _entry_points().items() if name not in PRESETS}
    found: dict[str, Found] = {**PRESETS, **others}
    return [
        StrategyListing(name, getattr(strategy, "what", ""), strategy.source, strategy.date)
        for name, strategy in sorted(found.items())
    ]


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    points = entry_points(group="cachecost.strategies")
    return {point.name: point for point in sorted(points, key=lambda point: point.value)}


def _load(point: EntryPoint) -> Found:
    loaded = point.load()
    strategy = loaded() if isinstance(loaded, type) or not hasattr(loaded, "plan") else loaded
    missing = [part for part in ("name", "source", "date", "plan", "notes") if not hasattr(strategy, part)]
    if missing:
        raise ValueError(f"entry point {point.name} = {point.value}: no Strategy, it lacks {', '.join(missing)}")
    return cast("Strategy", strategy)


def build(spec: StrategySpec | str, *, model: str | None = None, facts: Facts | None = None) -> Strategy:
    """The strategy that a name or a scenario's entry describes, ready to plan.

    `model` is used where the entry names none (it wins over the recording's); `facts` tells of a model, by its
    id, what window it has, whether it accepts a forced tool choice and on which host it runs. Raises UnknownStrategy,
    ValueError for options that do not go together, and CannotEvaluate where a strategy is another one on each host
    and nothing is known of this one.
    """
    found = find_strategy(spec) if isinstance(spec, str) else spec.resolve()
    if not isinstance(found, Agent):
        return found
    agent = replace(found, model=found.model or model, facts=found.facts or facts)
    return agent.for_host_of(agent.model) if agent.model and agent.facts else agent
