"""Strategies by name: the built-in ones, then those of other packages.

A package adds strategies by entry points of the group `cachecost.strategies`. An entry point's name is
the strategy's, its object a Strategy or something that makes one when called. They are loaded when a
name is not built in, and for listings; a built-in name cannot be taken. NAME@1h and NAME@5m are a strategy with that
TTL on all breakpoints that name none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from cachecost.base.errors import nearest
from cachecost.prompts.request import TTL
from cachecost.strategies.agent import Agent
from cachecost.strategies.plan import Strategy
from cachecost.strategies.presets import PRESETS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "cachecost.strategies"
WELL_KNOWN = ("automatic", "base", "claude-code", "none", "progressive", "system-only")
TTLS = ("5m", "1h")
Found = Agent | Strategy


class StrategyListing(NamedTuple):
    """A row of `cachecost strategies`."""

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
        return _with_ttl(find_strategy(base), name, cast("TTL", ttl))
    others = _entry_points()
    if name in others:
        return _load(others[name])
    raise UnknownStrategy(name, sorted({*PRESETS, *others}))


def _with_ttl(found: Found, name: str, ttl: TTL) -> Agent:
    if not isinstance(found, Agent):
        raise ValueError(f"'{found.name}' belongs to another package: it takes no TTL")
    placement = replace(found.placement, ttl=ttl)
    if fault := placement.ttl_error():
        raise ValueError(f"{name}: {fault}")
    return replace(found, name=name, placement=placement)


def list_strategies() -> list[StrategyListing]:
    """All strategies for `cachecost strategies`, by name; those of other packages are loaded for it."""
    others = {name: _load(point) for name, point in _entry_points().items() if name not in PRESETS}
    found: dict[str, Found] = {**PRESETS, **others}
    return [_strategy_row(name, strategy) for name, strategy in sorted(found.items())]


def _strategy_row(name: str, strategy: Found) -> StrategyListing:
    return StrategyListing(name, getattr(strategy, "what", ""), strategy.source, strategy.date)


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.value)}


def _load(point: EntryPoint) -> Found:
    loaded = point.load()
    strategy = loaded() if isinstance(loaded, type) or not hasattr(loaded, "plan") else loaded
    missing = [part for part in ("name", "source", "date", "plan", "notes") if not hasattr(strategy, part)]
    if missing:
        raise ValueError(f"entry point {point.name} = {point.value}: no Strategy, it lacks {', '.join(missing)}")
    return cast("Strategy", strategy)
