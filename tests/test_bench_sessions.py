"""The chart and tables of what commands cost on sessions show what was measured, and say where measuring stopped."""

import json
import re
import sys
from pathlib import Path

import pytest

import grid_peer
import session_scaling
import session_tables
from cases import CASES
from growing_log import Shape, write_log
from measure import Run
from session_scaling import COLOURS, Measurement, Measurements, figure, measure_all, note
from session_speed import COMMANDS, SMALL_CASE, SMALL_COMMANDS, Sessions
from session_tables import BARE, BEGIN, END, GOAL_CALLS, Cost, Limits, SpeedTable, load, markdown, record

LIMITS = Limits(0.01, 0.04)


def measured(*rows: tuple[str, int, float], minutes: float = 10) -> Measurements:
    return Measurements(minutes, [Measurement(name, calls, seconds, 50.0) for name, calls, seconds in rows])


def table_of(calls: int = 1_000, **costs: dict[str, Cost]) -> SpeedTable:
    return SpeedTable(calls, 20.0, LIMITS, costs)


# ------------------------------------------------------------------------------------------------------------ chart


@pytest.mark.parametrize(("calls", "is_short"), [(6_000, True), (6_001, False)])
def test_a_command_is_left_out_where_it_would_take_too_long(calls: int, is_short: bool) -> None:
    """100 s for 1,000 calls, so 600 s for 6,000."""
    assert measured(("optimize", 500, 500.0), ("optimize", 1_000, 100.0)).is_short("optimize", calls) is is_short
    assert measured().is_short("optimize", 10**9)


def test_the_note_names_the_lines_that_stop() -> None:
    assert note(measured((BARE, 1_000, 1.0), ("bill", 1_000, 1.0))) == ""
    assert note(measured((BARE, 1_000, 1.0), (BARE, 20_000, 1.0), ("whatif", 1_000, 90.0), minutes=5)) == (
        "Stopped where a run would take over 5 min of processor time: whatif (1,000 calls)."
    )


def test_a_line_for_each_command_in_a_colour_of_its_own() -> None:
    assert set(COLOURS) - {BARE} <= set(COMMANDS)
    assert len(set(COLOURS.values())) == len(COLOURS) <= 12


def test_the_chart_has_the_points_in_the_order_of_calls() -> None:
    time, memory = figure(measured(("bill", 20_000, 2.0), ("bill", 1_000, 0.1), (BARE, 1_000, 0.1))).axes
    lines = {str(line.get_color()): line for line in time.lines}
    assert list(lines[COLOURS["bill"]].get_xydata().ravel()) == [1_000, 0.1, 20_000, 2.0]
    assert (time.get_xscale(), time.get_yscale(), memory.get_xscale(), memory.get_yscale()) == ("log",) * 4


def test_the_same_figures_give_the_same_chart_and_tell_no_place_or_day() -> None:
    found = measured(("bill", 1_000, 0.1), ("bill", 20_000, 2.0))
    first, second = (session_scaling.svg(figure(found)).decode() for _ in range(2))
    assert first == second
    assert not re.search(r"/tmp|/home|/root|<dc:date>", first)


def test_figures_are_kept_after_each_length_and_long_commands_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def written(folder: Path, sessions: int, megabytes: float) -> Sessions:
        return Sessions(folder, sessions * 50)

    def in_turns(sessions: Sessions, names: list[str], runs: int) -> dict[str, list[Run]]:
        seconds = {name: sessions.calls * (1.0 if name == "optimize" else 0.001) for name in names}
        return {name: [Run(9.0, seconds[name] + run, 10.0 + run) for run in range(runs)] for name in names}

    monkeypatch.setattr(Sessions, "written", written)
    monkeypatch.setattr(Sessions, "count_tokens", lambda sessions: None)
    monkeypatch.setattr(Sessions, "in_turns", in_turns)
    path = tmp_path / "figures.json"
    found = measure_all([4, 2], 2, 3.0, path)
    assert Measurements(3.0, list(found.found)) == Measurements.load(path)
    assert [(one.calls, one.processor_s, one.peak_mib) for one in found.of("optimize")] == [(100, 100.0, 11.0)]
    assert [one.calls for one in found.of("bill")] == [100, 200]
    assert "optimize" not in capsys.readouterr().out.split("200 calls")[1]


def test_drawing_measures_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures, chart = tmp_path / "figures.json", tmp_path / "chart.svg"
    measured(("bill", 1_000, 0.1)).save(figures)
    monkeypatch.setattr(session_scaling, "measure_all", None)
    monkeypatch.setattr(sys, "argv", ["session_scaling.py", "--draw", "--json", str(figures), "--out", str(chart)])
    assert session_scaling.main() == 0
    assert chart.read_bytes() == session_scaling.svg(figure(Measurements.load(figures)))


# ----------------------------------------------------------------------------------------------------------- tables


def test_a_table_has_milliseconds_a_call_and_how_far_it_is_from_the_limits() -> None:
    costs = {"before": {"import": Cost(2.0, 50.4)}, "now": {BARE: Cost(0.1, 9.0), "import": Cost(0.4, 40.0)}}
    text = markdown(table_of(**costs))
    assert text.startswith("1,000 calls, 20 MB; reading the bytes takes 0.010 s, reading and hashing them 0.040 s, ")
    assert text.endswith("| `import` |  | 2.0 (50) | 0.40 (40) |  | 10 | 4.0 |\n")
    assert BARE not in text


def test_goals_are_of_many_calls() -> None:
    costs = {"now": {BARE: Cost(10.0, 9.0), "import": Cost(20.0, 9.0), "explain": Cost(40.0, 9.0)}}
    goals = [line.split(" | ")[4] for line in markdown(table_of(GOAL_CALLS, **costs)).splitlines()[4:]]
    assert goals == ["1.5", "0.40"]
    few = markdown(table_of(GOAL_CALLS - 1, **costs)).splitlines()[4:]
    assert [line.split(" | ")[4].strip() for line in few] == ["", ""]


def test_recording_replaces_what_was_measured_and_keeps_the_rest(tmp_path: Path) -> None:
    figures, readme = tmp_path / "figures.json", tmp_path / "README.md"
    readme.write_text(f"above\n{BEGIN}old\n{END}below\n", encoding="utf-8")
    for costs in ({"once": {"bill": Cost(3.0, 30.0)}}, {"now": {"bill": Cost(2.0, 20.0), "run": Cost(1.0, 1.0)}}):
        record(table_of(**costs), figures, readme)
    record(table_of(9, now={"bill": Cost(1.0, 10.0)}), figures, readme)
    record(table_of(now={"bill": Cost(1.0, 10.0)}), figures, readme)
    few, many = load(figures)
    assert (few.calls, many.calls) == (9, 1_000)
    assert many.costs == {
        "once": {"bill": Cost(3.0, 30.0)},
        "now": {"bill": Cost(1.0, 10.0), "run": Cost(1.0, 1.0)},
    }
    assert readme.read_text(encoding="utf-8") == f"above\n{BEGIN}{markdown(few)}\n{markdown(many)}{END}below\n"


def test_the_readme_has_the_figures_that_are_kept() -> None:
    text = session_tables.README.read_text(encoding="utf-8")
    tables = load()
    assert tables
    assert BEGIN + "\n".join(map(markdown, tables)) + END in text


def test_limits_are_of_the_transcripts(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "a.jsonl").write_bytes(b"x" * 3_000_000)
    limits = Sessions(tmp_path, 1).limits(2)
    assert 0 < limits.read_s < limits.hash_s


# ------------------------------------------------------------------------------------------------------- quick cases


def test_quick_runs_have_the_commands_on_a_small_folder() -> None:
    quick = {case.name for case in CASES if case.quick}
    assert {f"small-{name}" for name in SMALL_COMMANDS} <= quick
    assert set(SMALL_COMMANDS) <= set(COMMANDS)


def test_the_small_folder_has_some_hundred_calls(tmp_path: Path) -> None:
    assert 200 <= Sessions.written(tmp_path, SMALL_CASE.sessions, SMALL_CASE.megabytes).calls <= 350


# -------------------------------------------------------------------------------------------------- a peer's engine


def test_the_peer_gets_each_conversation_of_the_log_as_one_run(tmp_path: Path) -> None:
    log, trace = tmp_path / "log.jsonl", tmp_path / "trace.jsonl"
    write_log(log, Shape(conversations=3, requests=4))
    grid_peer.write_trace(log, trace)
    rows = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    assert sorted((row["run_id"], row["index"]) for row in rows) == [
        (str(run), n) for run in range(3) for n in range(4)
    ]
    assert all(row["cache_breakpoints"] > 0 for row in rows)


def test_without_the_peer_the_grid_is_measured_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(grid_peer, "CALLS_SHAPE", Shape(conversations=2, requests=3))
    monkeypatch.setattr(sys, "argv", ["grid_peer.py", "--runs", "1"])
    assert grid_peer.main() == 0
    own, other = capsys.readouterr().out.splitlines()
    assert float(own.split()[1]) > 0
    assert other.startswith("tokenbill is not measured: --peers BIN")
