"""A scenario at other values of what it assumes: only what depends on them is simulated again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from cachecost.analysis.comparison.break_even import Names, Number
from cachecost.analysis.comparison.variant_run import VariantRun
from cachecost.ledger.results import Comparison, Ledger
from cachecost.scenario.assumed import AssumptionSpec, plain
from cachecost.scenario.loading import scenario_at
from cachecost.scenario.ways import numbered_paths, value_as_written


class Trials:
    """The comparison of a scenario at other values of one of its assumptions."""

    def __init__(self, main: VariantRun, comparison: Comparison, spec: AssumptionSpec) -> None:
        self._main, self._comparison, self._spec = main, comparison, spec
        self._ledgers: dict[tuple[Any, str], Ledger] = {}
        self._runs: dict[Any, VariantRun] = {}
        self._paths = numbered_paths(main.scenario, spec.set or ())
        self._by_host = {
            one.name for one in main.scenario.strategies if getattr(one.resolve(), "inquiry_by_host", None) is not None
        }
        """They ask as another strategy does, so the value of an option of questions cannot be set for them."""

    @property
    def as_written(self) -> Any:
        """The value in the scenario; None where its paths have several or an unknown one."""
        found = [value_as_written(self._main.scenario, path) for path in self._paths]
        return found[0] if found and all(value == found[0] for value in found) else None

    @property
    def strategies(self) -> list[str]:
        """The strategies that alone depend on the value; none where all do."""
        numbers = {int(path.split(".")[1]) for path in self._paths if path.startswith("strategies.")}
        is_local = all(path.startswith("strategies.") for path in self._paths)
        return [self._main.scenario.strategies[number].name for number in sorted(numbers)] if is_local else []

    def at(self, value: Number | Any, names: Names | None = None) -> Comparison:
        """The comparison at a value: of all strategies, or of those named and the compared one; never those
        that assume other rules and are compared apart, unless the assumption or the question is about them."""
        wanted = None if names is None else {*names, self._comparison.first}
        follow = self._by_host if any(".inquiry." in path for path in self._paths) else set()
        about = {*self.strategies, *self._main.scenario.question_about, self._comparison.first}
        ledgers = [
            ledger
            for ledger in self._comparison.ledgers
            if (ledger.ranked or not ledger.assumes or ledger.strategy in about)
            and (wanted is None or ledger.strategy in wanted)
            and ledger.strategy not in follow
        ]
        run = self._run(plain(value) if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else value)
        return replace(run.empty_comparison(), ledgers=list(self._at(run, value, ledgers)))

    def _run(self, value: Any) -> VariantRun:
        key = repr(value)
        if key not in self._runs:
            scenario = scenario_at(self._main.scenario, self._paths, value, self._main.folder)
            self._runs[key] = VariantRun("", scenario, self._main.folder, self._main)
        return self._runs[key]

    def _at(self, run: VariantRun, value: Any, ledgers: list[Ledger]) -> Iterator[Ledger]:
        local = self.strategies
        specs = {spec.name: spec for spec in run.scenario.strategies}
        for ledger in ledgers:
            key = (repr(value), ledger.strategy)
            if local and ledger.strategy not in local:
                yield ledger
                continue
            if key not in self._ledgers:
                self._ledgers[key] = run.ledger(specs[ledger.strategy], explains=False)
            yield self._ledgers[key]
