"""How often whatif replays a recording, and that its replays, which look for no causes, cost what others do."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from cachecost.analysis.whatif.report import what_if
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.changes.catalogue import RecordingProfile
from cachecost.changes.option import Option
from cachecost.changes.steps import Replays, ReplayStep
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import PreparedCall
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

    what_if(session, tries_assumptions=False, progress=lambda name, calls: names.append(name), expect=expect)
    counted = Counter(names)
    cold = counted.pop("as recorded")
    assert cold in (1, 2) and set(counted.values()) == {1}
    alone = sum(" + " not in name for name in counted)
    assert expected[0] == cold + alone + 1  # the best combination of all, at least
    assert len(names) <= expected[1] + 2


def test_rows_without_causes_are_those_with_causes(session: Workload) -> None:
    replays = Replays(session)
    for option in options(replays):
        steps = option.change(replays.recorded)
        simulation = replays.simulation(steps)
        whole = [simulation.row(step.call) for step in steps]
        rows = replays.rows(steps)
        assert [replace(row, cause=None) for row in rows] == [replace(row, cause=None) for row in whole]


def test_what_is_kept_as_rendered_is_what_is_rendered_anew(session: Workload) -> None:
    replays = Replays(session)
    preparer = session.setup.preparer()
    for option in options(replays):
        steps: list[ReplayStep] = option.change(replays.recorded)
        keeping = preparer.fork_for(step.content for step in steps)
        for step in steps:
            with suppress(CannotEvaluate):
                kept = keeping.prompt_as_sent(step.content)
                assert kept in (None, replays._prompt(step.content, preparer))


def test_a_call_with_other_breakpoints_is_prepared_as_if_by_itself(session: Workload) -> None:
    replays, reused = Replays(session), 0
    preparer = session.setup.preparer()
    for option in options(replays):
        steps = option.change(replays.recorded)
        if not replays.are_as_sent(steps):
            continue
        for step in (one for one in steps if one.call is not one.content):
            made, anew = preparer.prepare_marked(step.call, step.content), preparer.fork().prepare(step.call)
            assert type(made) is type(anew) and made.notes == anew.notes
            if isinstance(made, PreparedCall) and isinstance(anew, PreparedCall):
                sizes = [
                    [one.total(prompt) for one, prompt in zip(of.sizes, of.prompts, strict=True)] for of in (made, anew)
                ]
                assert (made.prompts, made.prices, made.rules) == (anew.prompts, anew.prices, anew.rules)
                assert sizes[0] == sizes[1]
                reused += made.sizes[0] is preparer.prepare_marked(step.content, step.content).sizes[0]
    assert reused
