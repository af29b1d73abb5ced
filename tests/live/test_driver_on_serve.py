"""The driver against the simulated API itself, which fails as the real one does: nothing lost, nothing paid twice."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from driver_fake import KEY, START, FakeClock, journal_of, small_plan
from server_fakes import Says, served_by

from cachecost.conversations.readers.detect import read_calls
from cachecost.live.driver.run import LiveResult, LiveRun, drive
from cachecost.live.driver.sending import read_journal
from cachecost.live.server.app import app_of
from cachecost.live.server.state import Meter, faults_from
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import ZERO
from cachecost.simulation.setup import ReplaySetup
from loopback import Loopback

PLAN = small_plan(tokens="tiktoken")
FAULTS = ("429", "500", "529", "cut", "timeout", "slow", "garbage")
PRICES = PriceBook.load(None, None)


@dataclass
class Api:
    """`cachecost serve` without a socket, by a clock that nobody waits for."""

    faults: tuple[str, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        self.clock = FakeClock(START)
        self.meter = Meter(ReplaySetup(RuleBook(), PRICES, "anthropic", "auto"))
        faults = faults_from(self.faults, self.seed)
        served = served_by(Says(first=0.4, seconds=0.9), self.meter, clock=self.clock, faults=faults)
        self.transport = Loopback(app_of(served))

    @property
    def billed(self) -> Decimal:
        return sum((row.cost.total for row in self.meter.rows), ZERO)

    def drive(self, folder: Path, limit: Decimal) -> LiveResult:
        given = LiveRun(PLAN, KEY, limit, self.clock, "http://test", timeout_s=0.05, transport=self.transport)
        with journal_of(PLAN, folder) as journal:
            return asyncio.run(drive(given, journal, lambda step, sent, budget: None))


def answers_by_call(journal: Path) -> Counter[str]:
    lines = map(json.loads, journal.read_text().splitlines())
    return Counter(line["call"] for line in lines if line["kind"] == "done")


def test_without_faults_every_bill_is_as_predicted(tmp_path: Path) -> None:
    api = Api(())
    done = api.drive(tmp_path, Decimal(5))
    assert done.billed == api.billed > 0
    assert all(call.predicted == call.sent.usage for outcome in done.outcomes for call in outcome.calls)


@pytest.mark.parametrize("kind", FAULTS)
def test_after_each_fault_all_calls_are_answered_once(tmp_path: Path, kind: str) -> None:
    """The second, fifth and sixth attempts fail; what may have been billed stays counted."""
    api = Api(tuple(f"{number}:{kind}" for number in (2, 5, 6)))
    done = api.drive(tmp_path, Decimal(5))
    story = read_journal(tmp_path / "journal.jsonl")
    planned = sum(len(outcome.calls) for outcome in done.outcomes)
    assert not done.ended.undone and not done.ended.failed
    assert len(story.done) == planned == sum(call.billed is not None for call in read_calls(done.recording))
    assert story.billed_usd <= api.billed <= story.billed_usd + story.unknown


@pytest.mark.parametrize("seed", range(12))
def test_the_budget_holds_whatever_fails(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    limit = Decimal(random.randint(1, 30)) / 100
    api = Api(tuple(f"{kind}:0.06" for kind in FAULTS), seed)
    for _ in range(3):
        done = api.drive(tmp_path, limit)
        story = read_journal(tmp_path / "journal.jsonl")
        assert api.billed <= story.billed_usd + story.unknown <= limit
        assert max(answers_by_call(tmp_path / "journal.jsonl").values(), default=1) == 1
        if not done.ended.undone:
            break
