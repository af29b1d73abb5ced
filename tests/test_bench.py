"""`make bench`: what is a third worse than recorded is over its limit, and every case that is held is recorded."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import bench
import readme_table
from bench import cells, chosen, found, judged
from cachecost.base.structs import replace
from cases import CASES, Case, Pair, Pairs, cores, grid, grid_seeds, growth, script, seeds, strategies
from readme_table import BEGIN, END, HEAD, README
from scaling import COLUMNS, Point, figure
from verdicts import Recorded, Result, as_json, load, record

THEN = Recorded(3.0, 30.0, "3.13.0", "2026-11-22")


def result(ratio: float = 3.0, peak_mib: float | None = 30.0, recorded: Recorded | None = THEN) -> Result:
    return Result("log-long", "orjson.loads of every line", ratio, peak_mib, recorded)


def case_of(*pairs: Pair, runs_asked: list[int] | None = None, name: str = "log-long") -> Case:
    """Gives the pairs whatever is asked; `runs_asked` gets how many runs were."""

    def measure(_: Path, runs: int) -> Pairs:
        if runs_asked is not None:
            runs_asked.append(runs)
        return pairs

    return Case(name, "nothing", measure)


@pytest.mark.parametrize(
    ("ratio", "peak_mib", "verdict"),
    [
        (4.0, 40.0, "ok"),
        (4.01, 40.0, "over"),
        (4.0, 40.1, "memory over"),
        (4.01, 40.1, "over, memory over"),
        (4.0, None, "ok"),
        (2.25, 30.0, "ok"),
        (2.24, 30.0, "better: record it"),
        (2.24, 40.1, "memory over"),
    ],
)
def test_a_third_worse_than_recorded_is_over(ratio: float, peak_mib: float | None, verdict: str) -> None:
    assert result(ratio, peak_mib).verdict == verdict
    assert bool(result(ratio, peak_mib).faults) == ("over" in verdict)


def test_what_is_not_recorded_is_not_judged() -> None:
    new = result(1e9, 1e9, None)
    assert (new.verdict, new.faults, new.limit) == ("not recorded", [], None)
    assert result(recorded=replace(THEN, peak_mib=None), peak_mib=1e9).faults == []


def test_the_least_of_each_side_makes_the_ratio_and_the_most_memory_counts() -> None:
    one = found(case_of(Pair(6, 4, 20.0), Pair(9, 2, 25.0), Pair(8, 3)), 3, THEN)
    assert (one.ratio, one.peak_mib) == (3.0, 25.0)
    assert found(case_of(Pair(1, 2)), 1, None).peak_mib is None


@pytest.mark.parametrize(("ratio", "runs"), [(4.0, [3]), (4.1, [3, 6])])
def test_what_is_over_is_measured_once_more_with_twice_the_runs(
    ratio: float, runs: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    runs_asked: list[int] = []
    assert judged(case_of(Pair(ratio, 1), runs_asked=runs_asked), 3, THEN).ratio == ratio
    assert runs_asked == runs
    again = "log-long: over (4.1; 3 on Python 3.13.0, 2026-11-22); once more, with 6 runs\n" if len(runs) > 1 else ""
    assert capsys.readouterr().err == "log-long …\n" + again


@pytest.mark.parametrize(
    ("words", "ratio", "code"), [([], 4.1, 0), (["--check"], 4.0, 0), (["--check"], 4.1, 1), (["--record"], 4.1, 0)]
)
def test_the_exit_code_tells_what_is_over(
    words: list[str], ratio: float, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bench, "CASES", [case_of(Pair(ratio, 1))])
    monkeypatch.setattr(bench, "load", lambda: {"log-long": THEN})
    monkeypatch.setattr(bench, "record", lambda results, order: record(results, order, tmp_path / "recorded.json"))
    monkeypatch.setattr(readme_table, "write", lambda cases, recorded: None)
    monkeypatch.setattr("sys.argv", ["bench.py", "--quick", *words])
    assert bench.main() == code
    assert (tmp_path / "recorded.json").exists() == ("--record" in words)


def test_json_is_what_the_table_says(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench, "CASES", [case_of(Pair(4.1, 1))])
    monkeypatch.setattr(bench, "load", lambda: {"log-long": THEN})
    monkeypatch.setattr("sys.argv", ["bench.py", "--json"])
    assert bench.main() == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert one == as_json(Result("log-long", "nothing", 4.1, None, THEN))
    assert (one["limit"], one["verdict"]) == (4.0, "over")


@pytest.mark.parametrize(
    ("only", "quick", "names"),
    [((), False, ["a", "b"]), ((), True, ["a"]), (("b",), False, ["b"]), (("b",), True, ["b"])],
)
def test_quick_leaves_out_the_long_ones_that_nobody_named(
    only: tuple[str, ...], quick: bool, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "CASES", [case_of(name="a"), replace(case_of(name="b"), quick=False)])
    assert [case.name for case in chosen(only, quick)] == names


def test_recording_keeps_what_was_not_measured_and_drops_what_is_no_more(tmp_path: Path) -> None:
    path = tmp_path / "recorded.json"
    assert load(path) == {}
    record([Result(name, "", 1.0, None) for name in ("gone", "kept", "new")], ["gone", "kept", "new"], path)
    record([Result("new", "", 2.3456, 12.345)], ["new", "kept"], path)
    now = load(path)
    assert list(now) == ["new", "kept"]
    assert (now["kept"].ratio, now["new"].ratio, now["new"].peak_mib) == (1.0, 2.35, 12.3)


def test_every_case_is_recorded_under_a_name_of_its_own() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert list(load()) == names
    assert all(" " not in name for name in names)


def test_the_readme_has_what_is_recorded() -> None:
    assert readme_table.table(CASES, load()) in README.read_text(encoding="utf-8")


def test_the_table_of_the_readme_is_written_anew_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"before\n{BEGIN}old\n{END}after\n", encoding="utf-8")
    case = replace(case_of(), goal=0.4, before=27.0)
    for _ in range(2):
        readme_table.write([case, case_of(name="new")], {"log-long": THEN}, path)
    row = "| `log-long` | nothing | 27 | 3.0 | 4.0 | 0.40 | 30 |\n"
    assert path.read_text(encoding="utf-8") == f"before\n{BEGIN}{HEAD}{row}{END}after\n"


def test_cells_are_flush_right_in_three_digits() -> None:
    assert cells(result(12.0)) == [
        "log-long",
        "orjson.loads of every line",
        "   12.0",
        "    3.00",
        "   4.00",
        "    30",
        "over",
    ]
    assert cells(result(0.0275, None, None))[2:6] == [" 0.0275", "       –", "      –", "     –"]


@pytest.mark.parametrize(
    ("of", "measured", "ratio"),
    [
        (growth, {"seconds": {"a": [1.0, 8.0], "b": [1.0, 8.0]}}, 1.0),
        (growth, {"seconds": {"a": [1.0, 12.0], "b": [3.0, 36.0]}}, 1.5),
        (seeds, {"all": {"seconds": 2.0, "engine_s": 100.0}}, 0.02),
        (grid, {"grid_us": 7.0, "plain_us": 100.0}, 0.07),
        (grid_seeds, {"seeds_us": 2.0, "plain_us": 100.0}, 0.02),
        (strategies, {"one_process": 0.2}, 0.2),
        (cores, {"efficiency": 0.8, "machine": 0.8}, 1.0),
        (cores, {"efficiency": 0.45, "machine": 0.9}, 2.0),
    ],
)
def test_what_scripts_tell_becomes_a_ratio(of: Callable[..., Pair], measured: object, ratio: float) -> None:
    pair = of(measured)
    assert pair.cost / pair.reference == pytest.approx(ratio)


def test_a_script_runs_as_often_as_it_is_asked(tmp_path: Path) -> None:
    words = "growth.py --turns 2 4 --runs 1"
    assert len(script(words, growth, tmp_path, 1)) == 1
    assert script(words, growth, tmp_path, 0) == []


def test_the_chart_has_time_and_memory_of_both_kinds_of_logs() -> None:
    points = [[Point(250 * 2**step, (0.2, 0.1), (24, 13)) for step in range(len(shapes))] for _, shapes in COLUMNS]
    axes = figure(points).get_axes()
    assert [len(one.get_lines()) for one in axes] == [2, 2, 2, 2]
    assert [one.get_title(loc="left") for one in axes[:2]] == [name for name, _ in COLUMNS]
    assert list(axes[2].get_lines()[0].get_ydata()) == [24] * len(COLUMNS[0][1])
