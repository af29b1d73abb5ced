"""How often whatif replays a recording, and that its replays, which look for no causes, cost what others do."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from cachecost.analysis.replays.replays import Replays
from cachecost.analysis.replays.steps import ReplayStep
from cachecost.analysis.whatif.catalogue import RecordingProfile
from cachecost.analysis.whatif.option import Option
from cachecost.analysis.whatif.report import what_if
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, read_workload

SESSIONS = Path(__file__).parents[2] / "scenarios" / "recordings" / "sessions"


@pytest.fixture(scope="module", params=["claude-code.jsonl", "claude-code-56-minutes.jsonl"])
def session(request: pytest.FixtureRequest) -> Workload:
    return read_workload(SESSIONS / request.param, ReplaySetup(RuleBook(), PriceBook()))


def options(replays: Replays) -> list[Option]:
    profile = RecordingProfile.of(replays.traffic, replays.rows(replays.recorded))
    return [option for option in profile.options() if not option.unchanged]


def test_nothing_is_replayed_twice_and_as_much_as_was_expected(session: Workload) -> None:
    names, expected = list[str](), list[int]()

    def expect(replays: int) -> None:
        expected.append(len(names) + replays)

    what_if(session, readings=False, progress=lambda name, calls: names.append(name), expect=expect)
    counted = Counter(names)
    cold = counted.pop("as recorded")
    assert cold in (1, 2) and set(counted.values()) == {1}
    alone = sum(" + " not in name for name in counted)
    assert expected[0] == cold + alone + 1  # the best combination of all, at least
    assert len(names) <= expected[1] + 2


def test_rows_without_causes_are_those_with_causes(session: Workload) -> None:
    replays = Replays(session)
    for option in options(replays):
        steps = option.apply(replays.recorded)
        simulation = replays.simulation(steps)
        whole = [simulation.row(step.call) for step in steps]
        rows = replays.rows(steps)
        assert [replace(row, cause=None) for row in rows] == [replace(row, cause=None) for row in whole]


def test_what_is_kept_as_rendered_is_what_is_rendered_anew(session: Workload) -> None:
    replays = Replays(session)
    preparer = session.setup.preparer()
    for option in options(replays):
        steps: list[ReplayStep] = option.apply(replays.recorded)
        keeping = preparer.fork_for(step.content for step in steps)
        for step in steps:
            with suppress(CannotEvaluate):
                kept = keeping.prompt_as_sent(step.content)
                assert kept in (None, replays._prompt(step.content, preparer))
