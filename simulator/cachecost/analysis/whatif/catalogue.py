"""All options for a recording, and lookup by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from cachecost.analysis.replays.steps import as_sent
from cachecost.analysis.whatif.compaction import compaction_option, compaction_options
from cachecost.analysis.whatif.contents import tools_options, volatile_options
from cachecost.analysis.whatif.option import Option
from cachecost.analysis.whatif.pauses import RecordedPauses, measure_pauses
from cachecost.analysis.whatif.pings import ping_option, ping_options
from cachecost.analysis.whatif.places import (
    MainModel,
    batch_options,
    count_waiting,
    host_options,
    model_option,
    model_options,
    residency_options,
    retired_since,
)
from cachecost.analysis.whatif.thinking import thinking_options
from cachecost.analysis.whatif.ttls import breakpoint_options, ttl_options
from cachecost.base.errors import CannotEvaluate, Fault, InputError, nearest
from cachecost.ledger.results import CallRow
from cachecost.providers.prices import STANDARD, Prices
from cachecost.providers.served_models import last_day
from cachecost.simulation.workload import Workload

SHORT_S = 300.0
"""The short TTL if no model's rules are known."""


@dataclass(frozen=True, slots=True)
class RecordingProfile:
    """What options need to know of a recording. `main` is its most expensive model (None: unknown), with `prices`.

    What is withdrawn by `today` is not offered (None: what was withdrawn after the recording is).
    """

    traffic: Workload
    main: MainModel | None
    prices: Prices | None
    pauses: RecordedPauses
    lengths: dict[int, int]
    refused: frozenset[int] = frozenset()
    """The calls that have no usage as recorded."""
    today: date | None = None

    @classmethod
    def of(cls, traffic: Workload, rows: Sequence[CallRow], today: date | None = None) -> RecordingProfile:
        """`rows` are those of the calls as recorded."""
        costs: dict[int, Decimal] = {row.call: row.cost.total for row in rows}
        main = MainModel.of(traffic, costs)
        lengths = {row.call: row.usage.total_input for row in rows}
        refused = frozenset(row.call for row in rows if row.error)
        return cls(traffic, main, _prices(traffic, main), measure_pauses(traffic.calls), lengths, refused, today)

    @property
    def short_s(self) -> float:
        return self.main.rules.ttl_s["5m"] if self.main else SHORT_S

    def options(self) -> Iterator[Option]:
        """Every option, whether or not it changes anything here."""
        calls = self.traffic.calls
        yield from ttl_options(calls, self.pauses, self.short_s)
        yield from ping_options(calls, self.pauses, self.prices, self.short_s, self.refused)
        yield from breakpoint_options(calls)
        yield from tools_options(calls)
        yield from volatile_options(calls)
        yield from thinking_options(self.traffic)
        yield from compaction_options(self.traffic, self.lengths)
        yield from batch_options(calls, count_waiting(as_sent(calls)))
        yield from residency_options(calls)
        yield from self._place_options()

    def offered_options(self) -> Iterator[Option]:
        """Those of `options` that a page offers: finding them reads no prompt."""
        calls = self.traffic.calls
        yield from ttl_options(calls, self.pauses, self.short_s)
        yield from ping_options(calls, self.pauses, self.prices, self.short_s, self.refused)
        yield from breakpoint_options(calls)
        yield from compaction_options(self.traffic, self.lengths)
        yield from self._place_options()

    def _place_options(self) -> Iterator[Option]:
        if self.main:
            yield from model_options(self.traffic, self.main, self.today)
            yield from host_options(self.traffic, self.main, self.today)

    def retired_models(self) -> dict[str, date]:
        """The models that are not offered since they were retired after the recording, and the last day of each."""
        found = retired_since(self.main, self.today) if self.main else []
        return {one.name: day for one in found if (day := last_day(one))}

    def find_options(self, names: Sequence[str]) -> list[Option]:
        """The options of these names; models, intervals, limits and presets' breakpoints that are not in the table are
        allowed.

        Raises InputError with every fault: names that are not known, and two of one kind.
        """
        known = {option.name: option for option in self.options()}
        found, faults = list[Option](), list[Fault]()
        for name in names:
            try:
                option = known.get(name) or self.build_option(name)
            except CannotEvaluate as error:
                faults.append(Fault("--jointly", f"{name}: {error}"))
                continue
            if option is None:
                words = f"expected the name of an alternative from the table; got '{name}'{nearest(name, known)}"
                faults.append(Fault("--jointly", words))
            else:
                found.append(option)
        faults += _find_conflicts(found)
        if faults:
            raise InputError(faults)
        return found

    def build_option(self, name: str) -> Option | None:
        """An option that is not offered; None: no such name. Raises CannotEvaluate: a model not served."""
        kind, _, value = name.partition("=")
        try:
            if kind == "model" and self.main:
                return model_option(self.traffic, self.main, value)
            if kind == "breakpoints":
                return _find_preset(value)
            if kind == "keep-alive":
                return ping_option(self.traffic.calls, self.pauses, self.prices, self.short_s, self.refused, value)
            if kind == "compaction":
                limit = int(value.removesuffix("k")) * (1000 if value.endswith("k") else 1)
                return compaction_option(self.traffic, self.lengths, limit)
        except ValueError:
            pass
        return None


def _find_preset(name: str) -> Option | None:
    """The breakpoints of a preset; None: no such preset."""
    from cachecost.analysis.whatif.presets import preset_option  # all strategies are a lot to import

    return preset_option(name)


def _find_conflicts(options: Sequence[Option]) -> list[Fault]:
    by_kind: dict[str, str] = {}
    faults = []
    for option in options:
        if option.kind in by_kind and by_kind[option.kind] != option.name:
            faults.append(Fault("--jointly", f"'{by_kind[option.kind]}' and '{option.name}' cannot be combined"))
        by_kind.setdefault(option.kind, option.name)
    return faults


def _prices(traffic: Workload, main: MainModel | None) -> Prices | None:
    if main is None:
        return None
    try:
        return traffic.setup.prices.quote(main.host, main.rules.model, main.day, STANDARD).of(0)
    except CannotEvaluate:
        return None
