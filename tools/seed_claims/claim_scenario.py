"""The scenarios behind the claims (scenarios/seed-claims/), simulated strategy by strategy."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from pathlib import Path

from cachecost.ledger.results import Ledger
from cachecost.ledger.rows import CallRow
from cachecost.providers.prices import STANDARD
from cachecost.scenario import load, load_conversations
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.simulation.workload import scenario_setup
from tools.seed_claims.claim import MILLION

FOLDER = Path(__file__).parents[2] / "scenarios" / "seed-claims"
INPUT_CLASSES = ("input", "read", "write_5m", "write_1h")


class ClaimScenario:
    """A scenario with its ledgers by strategy, each simulated when it is first asked for."""

    def __init__(self, name: str, *sets: str) -> None:
        self._scenario = load(FOLDER / f"{name}.yaml", sets)
        self._conversations, bills = load_conversations(self._scenario, FOLDER)
        self._setup = scenario_setup(self._scenario, FOLDER, bills)
        self._ledgers: dict[str, Ledger] = {}
        self.how = f"`scenarios/seed-claims/{name}.yaml`" + "".join(f", `--set {text}`" for text in sets)

    def ledger(self, strategy: str) -> Ledger:
        if strategy not in self._ledgers:
            spec = next(spec for spec in self._scenario.strategies if spec.name == strategy)
            self._ledgers[strategy] = replay_strategy(spec, self._conversations, self._setup)
        return self._ledgers[strategy]

    def rows(self, strategy: str) -> list[CallRow]:
        return self.ledger(strategy).rows

    def cost(self, strategy: str) -> Decimal:
        return self.ledger(strategy).cost.total

    def minimum_tokens(self, model: str) -> int:
        """The shortest prefix of a model that is cached, on the scenario's day."""
        return self._setup.rules.rules(self._scenario.host, model).minimum_tokens

    def price(self, token_class: str) -> Decimal:
        """USD of a token of this class (input, read, write_5m, write_1h, output), for a prompt of ordinary length."""
        prices = self._setup.prices.quote(self._scenario.host, self._scenario.model, self._setup.day, STANDARD).of(1)
        return Decimal(getattr(prices, token_class)) / MILLION

    def usd(self, **counts: int) -> Decimal:
        """USD of so many tokens by class."""
        return sum((self.price(name) * count for name, count in counts.items()), Decimal(0))


def input_cost(rows: Iterable[CallRow]) -> Decimal:
    """USD of the input of these calls, read, written or neither."""
    return sum((getattr(row.cost, name) for row in rows for name in INPUT_CLASSES), Decimal(0))


def total_cost(rows: Iterable[CallRow]) -> Decimal:
    return sum((row.cost.total for row in rows), Decimal(0))


@cache
def claim_scenario(name: str, *sets: str) -> ClaimScenario:
    """A scenario with `--set` texts; the same object for the same words."""
    return ClaimScenario(name, *sets)
