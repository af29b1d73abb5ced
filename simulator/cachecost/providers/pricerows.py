"""The rows of a price sheet, dated and sourced. Like those of rules, they are named tuples."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from cachecost.base.structs import value

ANY_MODEL = "*"
ANY_HOST = "*"


def _within(start: date | None, day: date, end: date | None) -> bool:
    return (start is None or start <= day) and (end is None or day < end)


def _names(models: tuple[str, ...], model: str) -> bool:
    return model in models or ANY_MODEL in models


@value
class PriceRow:
    """Prices (USD per 10**6 tokens) of some token classes of a model, for prompts longer than `above` tokens."""

    start: date | None
    end: date | None
    above: int
    prices: Mapping[str, Decimal]
    source: str

    def holds(self, day: date) -> bool:
        return _within(self.start, day, self.end)


@value
class Modifier:
    """A multiplier of all prices for a way of calling, for some models and days."""

    name: str
    host: str
    models: tuple[str, ...]
    exceptions: tuple[str, ...]
    multiplier: Decimal
    start: date | None
    end: date | None
    not_with: tuple[str, ...]
    source: str

    def covers(self, host: str, model: str) -> bool:
        return host == self.host and _names(self.models, model) and model not in self.exceptions

    def holds(self, day: date) -> bool:
        return _within(self.start, day, self.end)


@value
class SamePrice:
    """Models that have the prices of the host `base` where `host` has no price of its own."""

    host: str
    base: str
    models: tuple[str, ...]
    start: date | None
    end: date | None
    source: str

    def covers(self, host: str, model: str, day: date) -> bool:
        return host == self.host and _names(self.models, model) and _within(self.start, day, self.end)


@value
class PriceSubstitute:
    """A class without a price of its own on `host` costs `times` what the class `like` costs there."""

    host: str
    models: tuple[str, ...]
    price: str
    like: str
    times: Decimal
    start: date | None
    end: date | None
    source: str

    def covers(self, host: str, model: str, day: date) -> bool:
        return host == self.host and _names(self.models, model) and _within(self.start, day, self.end)


@value
class Storage:
    """The storage price of an explicit cache object, in USD per 10**6 tokens and hour."""

    host: str
    models: tuple[str, ...]
    usd_per_hour: Decimal
    start: date | None
    end: date | None
    source: str

    def covers(self, host: str, model: str, day: date) -> bool:
        return host == self.host and _names(self.models, model) and _within(self.start, day, self.end)


@value
class Peak:
    """Hours (UTC; from, to, the latter excluded; 16.5 is 16:30) of weekdays (Monday is 0) that cost `multiplier` times
    as much.
    """

    host: str
    models: tuple[str, ...]
    multiplier: Decimal
    hours: tuple[tuple[float, float], ...]
    weekdays: tuple[int, ...]
    start: date | None
    end: date | None
    source: str

    def covers(self, host: str, model: str, day: date, moment: datetime) -> bool:
        """Whether a call at `moment` (in UTC) is one at peak by the rows of `day`, holidays aside."""
        if host != self.host or not _names(self.models, model) or not _within(self.start, day, self.end):
            return False
        hour = moment.hour + moment.minute / 60
        return moment.weekday() in self.weekdays and any(start <= hour < end for start, end in self.hours)


@value
class Holiday:
    """Days without peak hours on a host."""

    host: str
    start: date
    end: date
    source: str


@value
class ToolFee:
    """USD a use of a server tool, beside its tokens."""

    tool: str
    hosts: tuple[str, ...]
    models: tuple[str, ...]
    usd: Decimal
    start: date | None
    end: date | None
    source: str

    def covers(self, host: str, model: str, day: date) -> bool:
        return host in self.hosts and _names(self.models, model) and _within(self.start, day, self.end)


@value
class TermName:
    """What a host calls a tier or a region, and the modifier that this means ("": the standard one)."""

    host: str
    names: tuple[str, ...]
    means: str
    source: str


@value
class Sheet:
    """One layer of prices. Among the rows of a model the last that matches wins."""

    name: str
    rows: Mapping[tuple[str, str], tuple[PriceRow, ...]]
    modifiers: tuple[Modifier, ...] = ()
    same: tuple[SamePrice, ...] = ()
    instead: tuple[PriceSubstitute, ...] = ()
    storage: tuple[Storage, ...] = ()
    peaks: tuple[Peak, ...] = ()
    holidays: tuple[Holiday, ...] = ()
    fees: tuple[ToolFee, ...] = ()
    disputes: tuple[tuple[str, str, str], ...] = ()
    """Host, model, and what public tables state differently."""
    tiers: tuple[TermName, ...] = ()
    regions: tuple[TermName, ...] = ()
