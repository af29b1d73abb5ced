"""What a page asks for is answered in bounded time, and not worked on for a client that has left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Event, Lock
from typing import Any

import pytest
from tests.command_runs import run_here
from tests.live.viewer_client import Client
from tests.viewer_logs import requests, source_of, write_log

from cachecost.analysis.viewing.listing import CallReading
from cachecost.base.atomic_files import WorkStopped, checked_by
from cachecost.conversations.calls import Call
from cachecost.live.viewer.source import TooLong, WorkLimit, held, run_in_thread
from cachecost.simulation.engine import SimulatedCall, Simulation

CALLS = 12
WHAT_IF = "api/session/s1/whatif?ttl=1h"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("logs") / "a.jsonl", list(requests(CALLS)), session="s1")


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The calls that are simulated."""
    made: list[Call] = []
    original = Simulation.simulate

    def simulate(self: Simulation, call: Call) -> SimulatedCall:
        result = original(self, call)
        made.append(call)
        return result

    monkeypatch.setattr(Simulation, "simulate", simulate)
    return made


def limit_of(checks: int) -> WorkLimit:
    """A limit that so many checks keep."""
    times = count()
    return WorkLimit(checks, lambda: float(next(times)))


@pytest.mark.parametrize("budget", [1, CALLS, CALLS + 5, 2 * CALLS + 5, 3 * CALLS + 5, 4 * CALLS + 5])
def test_a_what_if_that_takes_too_long_names_the_command(log: Path, simulated: list[Call], budget: int) -> None:
    client = Client(source_of(log), limits=lambda: limit_of(budget))
    simulated.clear()
    answer = client.get(WHAT_IF)
    assert answer.status == 422 and not client.said
    assert len(simulated) <= budget
    words = f"a replay of this takes longer than the {budget} s that a page waits"
    run = f"; run: cachecost whatif {log} --jointly ttl=1h"
    has_read = budget > 3 * CALLS  # each call is looked at three times
    assert answer.json["error"]["message"] == (words + run if has_read else words)


def test_the_command_that_is_named_answers(log: Path) -> None:
    answer = Client(source_of(log), limits=lambda: limit_of(3 * CALLS + 5)).get(WHAT_IF)
    command = answer.json["error"]["message"].partition("; run: cachecost ")[2].split()
    assert run_here(*command, cwd=log.parent).returncode == 0


def test_what_was_cut_short_is_made_whole_when_there_is_time(log: Path) -> None:
    """At each check the work may end: whatever was made by then, a later answer is that of a new page."""
    paths = [f"api/session/s1/{name}" for name in ("simulated", "options", "whatif?ttl=1h", "whatif?host=bedrock")]
    expected = [Client(source_of(log)).get(path).json for path in paths]
    for path, right in zip(paths, expected, strict=True):
        source, budget = source_of(log), 1
        while Client(source, limits=lambda: limit_of(budget)).get(path).status == 422:  # noqa: B023
            budget += 3
        assert budget > CALLS
        assert [Client(source).get(one).json for one in paths] == expected
        assert Client(source).get(path).json == right


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            "tll=1h",
            "expected one of ttl, breakpoints, model, host, keep_alive, compaction; got 'tll' (did you mean 'ttl'",
        ),
        ("ttl=2h", "ttl: expected one of as sent, 5m, 1h, 1h:tools, 1h:tools+system; got '2h'"),
        ("ttl=1h&host=bedrok", "got 'bedrok' (did you mean 'bedrock'?)"),
        ("breakpoints=best", "got 'best'"),
        ("model=claude-nothing", "claude-nothing"),
        ("keep_alive=often", "got 'often'"),
        ("compaction=0.5", "got '0.5'"),
    ],
)
def test_a_wrong_choice_is_refused_before_any_replay(log: Path, simulated: list[Call], query: str, words: str) -> None:
    source = source_of(log)
    simulated.clear()
    answer = Client(source).get(f"api/session/s1/whatif?{query}")
    assert (answer.status, simulated) == (400, [])
    assert words in answer.json["error"]["message"]


def test_a_wrong_kind_is_refused_before_the_log_is_read(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of(log)
    monkeypatch.setattr(CallReading, "read", lambda *_: pytest.fail("read"))
    assert Client(source).get("api/session/s1/whatif?tll=1h").status == 400


@pytest.mark.parametrize("query", ["ttl=as%20sent", "compaction=50k", "keep_alive=295s:1", "breakpoints=claude-code"])
def test_what_is_possible_is_not_refused(log: Path, query: str) -> None:
    assert Client(source_of(log)).get(f"api/session/s1/whatif?{query}").status == 200


def test_the_model_of_any_call_may_be_changed(tmp_path: Path) -> None:
    """Which of two models costs most is found by the replay: no choice for either is refused before."""
    bodies = list(requests(4))
    for body in bodies[1:]:
        body["model"] = "claude-haiku-4-5-20251001"
    client = Client(source_of(write_log(tmp_path / "a.jsonl", bodies, session="s1")))
    models = client.get("api/session/s1/options").json["models"][1:]
    assert {client.get(f"api/session/s1/whatif?model={one}").status for one in models} == {200}


@pytest.mark.parametrize("path", ["simulated", "options", "whatif?ttl=1h", "whatif?model=claude-opus-4-5", "page"])
def test_no_call_is_simulated_for_a_client_that_left(log: Path, simulated: list[Call], path: str) -> None:
    source, has_left = source_of(log), Event()

    class Waiting(CallReading):
        def read(self, files: Any) -> Any:
            assert has_left.wait(10)
            return super().read(files)

    def stop(self: WorkLimit) -> None:
        stop_limit(self)
        has_left.set()

    source.reading = Waiting()
    client = Client(source, messages=[{"type": "http.disconnect"}])
    simulated.clear()
    stop_limit = WorkLimit.stop
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkLimit, "stop", stop)
        answer = client.get(f"api/session/s1/{path}")
    assert (answer.status, simulated, client.said) == (422, [], [])
    assert Client(source).get(f"api/session/s1/{path}").status == 200


def test_who_waits_for_another_answer_waits_no_longer_than_allowed(log: Path) -> None:
    source = source_of(log)
    one = source._session("s1")
    with one.lock:
        answer = asyncio.run(run_in_thread(lambda: Client(source, limits=lambda: limit_of(2)).get(WHAT_IF)))
    assert answer.status == 422
    assert Client(source).get(WHAT_IF).status == 200


def test_a_limit_ends_work_at_its_second() -> None:
    seconds: Iterator[float] = iter([100.0, 129.9, 130.0])
    limit = WorkLimit(30, lambda: next(seconds))
    limit.check()
    with pytest.raises(TooLong, match="longer than the 30 s that a page waits"):
        limit.check()


def test_without_a_limit_only_leaving_ends_work() -> None:
    limit = WorkLimit(None)
    limit.check()
    limit.stop()
    with pytest.raises(WorkStopped, match="left"):
        limit.check()


def test_a_lock_is_free_again_after_work_that_was_stopped() -> None:
    limit, lock = WorkLimit(None), Lock()
    limit.stop()
    with pytest.raises(WorkStopped), checked_by(limit.check), held(lock):
        limit.check()
    assert lock.acquire(blocking=False)
