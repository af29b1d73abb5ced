"""Hosts and models that a scenario names: one that is not known is a fault at its line, with the nearest name."""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.base.errors import CannotEvaluate, Fault
from cachecost.base.schema_errors import one_of
from cachecost.base.yaml_text import PlacedValue, Way
from cachecost.providers.hosts import AUTO_HOST, host_of
from cachecost.providers.rulefile import Catalogue, catalogue, hosts
from cachecost.scenario.ways import get


def unknown_names(placed: PlacedValue) -> Iterator[Fault]:
    """A fault for the host, if there are no rules for it, else one for each model that it does not have."""
    host = get(placed, ("host",), AUTO_HOST)
    if host == AUTO_HOST:
        host = host_of(None, AUTO_HOST, str(get(placed, ("model",), "")))
    if not isinstance(host, str):
        return
    if host not in hosts():
        yield placed.fault(("host",), one_of(hosts(), host))
        return
    book = catalogue(host)
    for way in _model_ways(placed):
        yield from _unknown_model(placed, way, book)


def _model_ways(placed: PlacedValue) -> Iterator[Way]:
    """Where a model may be named: for all, for a strategy, for the questions of one."""
    yield ("model",)
    strategies = get(placed, ("strategies",))
    for number in range(len(strategies) if isinstance(strategies, list) else 0):
        yield ("strategies", number, "model")
        yield ("strategies", number, "inquiry", "model")


def _unknown_model(placed: PlacedValue, way: Way, book: Catalogue) -> Iterator[Fault]:
    name = get(placed, way)
    if not isinstance(name, str) or not name:
        return
    try:
        book.model(name)
    except CannotEvaluate as error:
        yield placed.fault(way, str(error))
