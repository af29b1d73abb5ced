"""Notes on the day whose rules and prices hold: where another one would give other figures, with its --as-of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import TypeVar

from cachecost.base.errors import CannotEvaluate
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.conversations.calls import Call
from cachecost.live.clock import today
from cachecost.providers.hosts import host_of
from cachecost.providers.prices import STANDARD, PriceBook
from cachecost.providers.rulefile import catalogue
from cachecost.providers.served_models import last_day
from cachecost.providers.usage import TOKEN_CLASSES
from cachecost.simulation.setup import ReplaySetup

AnyCall = TypeVar("AnyCall", bound=Call)


class ModelDays:
    """The models that calls ran on, each with its host and the last day of its calls that is known."""

    def __init__(self, host: str) -> None:
        """`host` is that of the calls that name none."""
        self._host = host
        self._days: dict[tuple[str, str], date] = {}

    def add(self, call: Call) -> None:
        key = (host_of(call.host, self._host, call.request.model), call.request.model)
        if call.day is not None and call.day > self._days.get(key, date.min):
            self._days[key] = call.day

    def of_calls(self, calls: Iterable[AnyCall]) -> Iterator[AnyCall]:
        """The calls, which are added as they pass."""
        for call in calls:
            self.add(call)
            yield call

    def notes(self, setup: ReplaySetup, now: date) -> Iterator[str]:
        """For each model: that it was retired by the day of --as-of, or that its prices changed between then and now.

        `now` is today.
        """
        for (host, model), day in self._days.items():
            as_of = setup.day
            note = retirement_note(host, model, as_of) if as_of else price_note(setup.prices, host, model, day, now)
            if note:
                yield note


def print_dated_notes(models: ModelDays, setup: ReplaySetup) -> None:
    """Print the notes on these models to stderr."""
    for note in models.notes(setup, today()):
        print_diagnostic(note)


def retirement_note(host: str, name: str, as_of: date) -> str:
    """That the host had retired the model by then, and its last day; "" where it had not, or the model is unknown."""
    try:
        model = catalogue(host).model(name, as_of)
    except CannotEvaluate:
        return ""
    last = last_day(model)
    if last is None or as_of <= last:
        return ""
    return f"{model.name} is retired on {as_of}, so its last rules and prices hold; its last day: --as-of {last}"


def price_note(prices: PriceBook, host: str, name: str, day: date, now: date) -> str:
    """That the prices of a model changed between two days; "" where they are the same or one is unknown."""
    try:
        before, after = (_amounts(prices, host, name, when) for when in (day, now))
    except CannotEvaluate:
        return ""
    if before == after:
        return ""
    return f"{name}: the prices changed after {day}, the day of its last call; for those of today: --as-of {now}"


def _amounts(prices: PriceBook, host: str, name: str, day: date) -> list[object]:
    found = prices.quote(host, name, day, STANDARD).of(0)
    return [getattr(found, token_class) for token_class in TOKEN_CLASSES]
