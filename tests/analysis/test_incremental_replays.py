"""A replay that makes only some calls anew is the replay that makes all of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.base.structs import replace
from cachecost.caches.losses import Loss
from cachecost.changes.steps import (
    ChangedReplay,
    PricedSimulation,
    Replays,
    ReplayStep,
    TrackedReplay,
    add_pings,
    as_sent,
    set_hour_on,
    set_ttl,
)
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Layer
from cachecost.prompts.request import Request
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import SimulatedCall, Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, read_workload
from cachecost.strategies.changes.keepalive import KeepAlive
from planted.check import written
from planted.random_logs import random_log
from slow_cases import examples

RECORDINGS = Path(__file__).parents[2] / "scenarios" / "recordings"
SESSIONS = sorted((RECORDINGS / "sessions").glob("*.jsonl")) + sorted((RECORDINGS / "traffic" / "rig").glob("*.jsonl"))


def workload(path: Path, assumptions: Assumptions | None = None) -> Workload:
    rules = RuleBook(assumptions or Assumptions())
    return read_workload(path, ReplaySetup(rules, PriceBook.load()), "bytes" if path.name == "log.jsonl" else None)


def without_messages(request: Request) -> Request:
    kept = tuple(one for one in request.breakpoints if one.layer is not Layer.MESSAGES)
    return replace(request, breakpoints=kept, automatic=None)


def without_any(request: Request) -> Request:
    return replace(request, breakpoints=(), automatic=None)


MARKINGS = (without_messages, without_any, set_ttl("1h"), set_ttl("5m"), set_hour_on((Layer.TOOLS, Layer.SYSTEM)))


def changed(steps: Sequence[ReplayStep], dice: Random) -> list[ReplayStep]:
    """Other breakpoints in few calls, reads that are limited, and keep-alives in the pauses of some."""
    made = list(steps)
    for _ in range(dice.randint(0, max(1, len(steps) // 4))):
        place = dice.randrange(len(made))
        made[place] = made[place].with_request(dice.choice(MARKINGS)(made[place].call.request))
    if dice.random() < 0.3:
        place = dice.randrange(len(made))
        limited = replace(made[place].call, most_read=dice.choice((0, 1500, 10**6)))
        made[place] = ReplayStep(made[place].number, limited, limited)
    if dice.random() < 0.6:
        habit = KeepAlive(every_s=dice.choice((60.0, 295.0, 400.0)), times=dice.randint(1, 3))
        made = add_pings(made, habit)
        made = [step for step in made if step.number or dice.random() < 0.7]
    return made


def facts(loss: Loss) -> tuple[object, ...]:
    """All of a loss; of the call that it is compared with, what can be seen of it."""
    since = loss.since
    seen = since and (since.number, since.start, since.thread, since.end, since.entry, since.ttl, since.pool)
    return replace(loss, since=None), seen and tuple(map(str, (*seen[:2], *seen[5:]))), *(seen[2:5] if seen else ())


def observed(calls: Iterator[SimulatedCall]) -> list[object]:
    return [
        (made.row, made.prices, made.rules, [one.outcome for one in made.passes], list(map(facts, made.losses)))
        for made in calls
    ]


def priced(rows: Iterable[CallRow]) -> list[object]:
    return [(row.usage, row.cost, row.error, row.error_type, row.cost_if_missed, row.is_priced) for row in rows]


def tracked(traffic: Workload, steps: Sequence[ReplayStep] | None = None) -> TrackedReplay:
    replay = Replays(traffic).tracked_replay(as_sent(traffic.calls) if steps is None else steps)
    list(replay.run())
    return replay


def assert_the_same(traffic: Workload, dice: Random) -> None:
    earlier = tracked(traffic)
    steps = changed(earlier.steps, dice)
    for _ in range(2):  # the second time from a replay that has keep-alives itself
        matches = earlier.match(steps)
        if matches is None:
            return
        whole = list(Replays(traffic).tracked_replay(steps).run())
        assert observed(ChangedReplay(earlier, steps, matches).run()) == observed(iter(whole))
        rows = priced(made.row for made in whole)
        assert (
            priced(made.row for made in ChangedReplay(earlier, steps, matches, PricedSimulation, explained=False).run())
            == rows
        )
        assert priced(Replays(traffic).rows(steps, kind=PricedSimulation)) == rows
        earlier, steps = tracked(traffic, steps), list(steps)
        place = dice.randrange(len(steps))
        steps[place] = steps[place].with_request(dice.choice(MARKINGS)(steps[place].call.request))


@given(st.integers(0, 10**9), st.integers(0, 10**9))
@settings(max_examples=examples(150), deadline=None)
def test_random_logs(seed: int, changes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_the_same(workload(written(Path(folder, "log.jsonl"), random_log(seed))), Random(changes))


@given(st.integers(0, 10**9), st.sampled_from(["ttl_in_key", "shallow_breakpoints"]))
@settings(max_examples=40, deadline=None)
def test_random_logs_under_other_assumptions(seed: int, name: str) -> None:
    other = Assumptions(ttl_in_key=True) if name == "ttl_in_key" else Assumptions(shallow_breakpoints="ignore")
    with tempfile.TemporaryDirectory() as folder:
        assert_the_same(workload(written(Path(folder, "log.jsonl"), random_log(seed)), other), Random(seed))


@pytest.mark.parametrize("path", SESSIONS[:12], ids=lambda path: path.stem)
def test_recorded_sessions(path: Path) -> None:
    traffic = workload(path)
    for seed in range(3):
        assert_the_same(traffic, Random(seed))


@pytest.fixture
def earlier() -> TrackedReplay:
    return tracked(workload(SESSIONS[0]))


def test_a_keep_alive_leaves_most_calls_as_they_were(earlier: TrackedReplay) -> None:
    """What a keep-alive touches differs only until a call touches it, too."""
    steps = add_pings(earlier.steps, KeepAlive(every_s=60.0, times=1))
    matches = earlier.match(steps)
    assert matches is not None and len(steps) > len(earlier.steps)
    known = {id(one.made.row) for one in earlier.calls}
    anew = [made for made in ChangedReplay(earlier, steps, matches, explained=False).run() if id(made.row) not in known]
    assert len(anew) < 2 * (len(steps) - len(earlier.steps)) + len(earlier.steps) // 4


def test_only_what_differs_is_made_anew(earlier: TrackedReplay, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    simulate = Simulation.simulate

    def counted(self: Simulation, call: object) -> SimulatedCall:
        made.append(1)
        return simulate(self, call)  # type: ignore[arg-type]

    monkeypatch.setattr(Simulation, "simulate", counted)
    steps = list(earlier.steps)
    steps[-1] = steps[-1].with_request(without_any(steps[-1].call.request))
    matches = earlier.match(steps)
    assert matches is not None
    assert len(list(ChangedReplay(earlier, steps, matches).run())) == len(steps) > 5 * len(made) > 0


def test_other_content_another_order_and_many_changes_are_replayed_whole(earlier: TrackedReplay) -> None:
    steps = list(earlier.steps)
    assert earlier.match(steps) == list(range(1, len(steps) + 1))
    other = steps[1].with_change(lambda call: replace(call, request=replace(call.request, params={})))
    assert earlier.match([steps[0], other, *steps[2:]]) is None
    assert earlier.match([steps[1], steps[0], *steps[2:]]) is None
    assert earlier.match(steps[:-1]) is None
    assert earlier.match([step.with_request(without_any(step.call.request)) for step in steps]) is None


def test_drawn_assumptions_are_replayed_whole() -> None:
    traffic = workload(SESSIONS[0], Assumptions(early_eviction_probability=0.5))
    replay = tracked(traffic)
    assert replay.match(replay.steps) is None
