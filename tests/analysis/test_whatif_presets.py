"""What-ifs with the breakpoints of a preset, on the requests as they were sent."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.viewer_logs import replay_setup, requests, write_log

from cachecost.base.errors import InputError
from cachecost.changes.catalogue import RecordingProfile
from cachecost.changes.presets import list_placing_presets, preset_option
from cachecost.changes.steps import Replays, ReplayStep, change_breakpoints, set_ttl
from cachecost.conversations.logs import Logs
from cachecost.simulation.workload import read_workload

NAMES = [preset.name for preset in list_placing_presets()]


@pytest.fixture(scope="module")
def replays(tmp_path_factory: pytest.TempPathFactory) -> Replays:
    log = write_log(tmp_path_factory.mktemp("logs") / "a.jsonl", list(requests(3)))
    return Replays(read_workload(Logs([log]), replay_setup()))


@pytest.mark.parametrize("name", NAMES)
def test_only_breakpoints_change(replays: Replays, name: str) -> None:
    option = preset_option(name)
    assert option and option.name == f"breakpoints={name}" and "," not in name
    steps = option.change(replays.recorded)
    for before, after in zip(replays.recorded, steps, strict=True):
        assert after.number == before.number and after.content is before.content
        assert after.call.request.thread is before.call.request.thread
    assert places(option.change(replays.recorded)) == places(steps), "nothing is learned from one replay for the next"


def places(steps: Sequence[ReplayStep]) -> list[object]:
    return [(step.call.request.breakpoints, step.call.request.automatic) for step in steps]


@pytest.mark.parametrize(("name", "layers"), [("none", []), ("system-only", ["system"])])
def test_breakpoints_are_where_the_preset_places_them(replays: Replays, name: str, layers: list[str]) -> None:
    option = preset_option(name)
    assert option
    for step in option.change(replays.recorded):
        assert [breakpoint.layer for breakpoint in step.call.request.breakpoints] == layers


def test_a_preset_keeps_the_ttl_of_the_request(replays: Replays) -> None:
    hour = change_breakpoints(set_ttl("1h"))(replays.recorded)
    own, fixed = preset_option("claude-code"), preset_option("claude-code-1h")
    assert own and fixed
    for steps, ttl in ((hour, "1h"), (replays.recorded, "5m")):
        found = {breakpoint.ttl for step in own.change(steps) for breakpoint in step.call.request.breakpoints}
        assert found == {ttl}
    assert {mark.ttl for step in fixed.change(replays.recorded) for mark in step.call.request.breakpoints} == {"1h"}


@pytest.mark.parametrize("name", ["adaptive", "rfc013-tree", "jp", "best-per-provider", "nobody"])
def test_presets_that_do_more_are_none(name: str) -> None:
    assert name not in NAMES and preset_option(name) is None


def test_presets_are_found_by_name(replays: Replays) -> None:
    profile = RecordingProfile.of(replays.traffic, replays.rows(replays.recorded))
    assert [one.name for one in profile.find_options(["breakpoints=claude-code"])] == ["breakpoints=claude-code"]
    with pytest.raises(InputError, match="breakpoints=claude-cod"):
        profile.find_options(["breakpoints=claude-cod"])
