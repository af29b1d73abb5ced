"""Axes, values, keys: what a grid is, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest
from sweep_bench import SCENARIO, scenario_at

from cachecost.base.errors import InputError
from cachecost.base.limits import MOST_SWEPT
from cachecost.base.yaml_text import ExactNumber
from cachecost.scenario.loading import load
from cachecost.sweep.cells import parse_draws
from cachecost.sweep.grid import Axis, axes_of, axis_of, label, points_of
from cachecost.sweep.runs import load_sweep


@pytest.mark.parametrize(
    ("text", "path", "labels"),
    [
        ("model=a,b", "model", ("a", "b")),
        ("a.b=4_000,0.50", "a.b", ("4000", "0.50")),
        ("strategies.0.ttl=1h", "strategies.0.ttl", ("1h",)),
        ("a={x: 1, y: 2},[3, 4],null,true", "a", ('{"x": 1, "y": 2}', "[3, 4]", "null", "true")),
    ],
)
def test_values_are_yaml(text: str, path: str, labels: tuple[str, ...]) -> None:
    axis = axis_of(text)
    assert (axis.path, axis.labels) == (path, labels)


@pytest.mark.parametrize("text", ["model", "model=", "=a", "model= "])
def test_an_axis_needs_a_path_and_values(text: str) -> None:
    with pytest.raises(InputError) as caught:
        axis_of(text)
    assert str(caught.value) == f"--grid {text}: expected a.b=V1,V2"


def test_a_number_keeps_its_digits() -> None:
    assert label(ExactNumber("0.10")) == "0.10"
    assert label("text") == "text"


def test_the_scenarios_own_axes_come_first_and_give_way(tmp_path: Path) -> None:
    axes = axes_of({"model": ["a"], "host": ["b"]}, ["model=c,d", "rules.seed=1"], tmp_path)
    assert axes == [Axis("model", ("c", "d")), Axis("host", ("b",)), Axis("rules.seed", (1,))]


def test_a_glob_is_the_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "c.txt"):
        (tmp_path / name).touch()
    (axis,) = axes_of({}, ["conversation.recording='*.jsonl'"], tmp_path)
    assert axis.values == ("a.jsonl", "b.jsonl")
    with pytest.raises(InputError, match=r"conversation.recording=\*.yaml: expected a file; nothing matches in"):
        axes_of({}, ["conversation.recording='*.yaml'"], tmp_path)


def test_the_last_axis_runs_fastest() -> None:
    axes = [Axis("a", (1, 2)), Axis("b", ("x", "y"))]
    assert [point.labels(axes) for point in points_of(axes)] == [("1", "x"), ("1", "y"), ("2", "x"), ("2", "y")]


def test_every_fault_of_a_grid_is_told_at_once(tmp_path: Path) -> None:
    path = scenario_at(tmp_path)
    with pytest.raises(InputError) as caught:
        load_sweep(path, ["modle=a,b", "conversation.synthetic.turns=2,0,x", "model.name=c"])
    assert str(caught.value).splitlines() == [
        "--grid modle=a: modle: unknown key (did you mean 'model'?)",
        "--grid modle=b: modle: unknown key (did you mean 'model'?)",
        "--grid conversation.synthetic.turns=0: conversation.synthetic.turns: expected at least 1; got 0",
        "--grid conversation.synthetic.turns=x: conversation.synthetic.turns: expected a whole number; got 'x'",
        "--grid model.name: model: is the single value 'claude-opus-4-6'; nothing in it is named 'name'",
    ]


def test_values_that_are_given_twice_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        axes_of({}, ["a=1,2,1", "b"], tmp_path)
    assert str(caught.value).splitlines() == [
        "--grid b: expected a.b=V1,V2",
        "--grid a: expected each value once; got '1' twice",
    ]


def test_a_sweep_needs_something_to_vary(tmp_path: Path) -> None:
    path = scenario_at(tmp_path)
    with pytest.raises(InputError) as caught:
        load_sweep(path, [])
    assert str(caught.value) == f"{path} expected --grid a.b=V1,V2, --seeds N, or `sweep:` in the scenario; got none"
    own = load_sweep(scenario_at(tmp_path, SCENARIO + "sweep: {conversation.synthetic.turns: [1, 2]}\n"), [])
    assert (own.axes, len(own.places)) == (("conversation.synthetic.turns",), 2)


def test_what_is_only_reported_cannot_be_swept(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--grid budget: expected a key that changes the cost; this one is only rep"):
        load_sweep(scenario_at(tmp_path), ["budget={max_cost_usd: 3}"])


def test_draws_that_cannot_be_read_are_all_told() -> None:
    with pytest.raises(InputError) as caught:
        parse_draws(("turns=3", "turn=[4, 2]", "eviction=1.5", "retry_wait=3", "retry_billed=2"))
    names = "turn, loop, first_token, eviction, lag_probability, retry_rate, lag_s, retry_wait, retry_billed"
    assert str(caught.value).splitlines() == [
        f"--draw turns=3: expected NAME=VALUE, NAME one of {names} (did you mean 'turn'?)",
        "--draw turn=[4, 2]: expected [low, high], low first, both from 0; got [4, 2]",
        "--draw eviction=1.5: expected a number from 0 to 1; got 1.5",
        "--draw retry_billed=2: expected true or false; got 2",
        "--draw retry_rate: expected a share from 0 to 1 with the other retry draws; got none",
    ]


def test_an_axis_has_at_most_so_many_values(tmp_path: Path) -> None:
    most = ",".join(map(str, range(MOST_SWEPT)))
    assert len(axes_of({}, [f"a={most}"], tmp_path)[0].values) == MOST_SWEPT
    with pytest.raises(InputError, match=r"^--grid a: expected at most 10,000 values on an axis; got 10,001$"):
        axes_of({}, [f"a={most},x"], tmp_path)
    path = scenario_at(tmp_path)
    path.write_text(f"{path.read_text()}sweep: {{model: [{most},x]}}\n")
    with pytest.raises(InputError, match=r"sweep.model: expected at most 10,000 values on an axis; got 10,001$"):
        load(path)


def test_a_sweep_has_at_most_so_many_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scenario_at(tmp_path)
    with pytest.raises(InputError, match=r"expected at most 10,000,000 cells; got 1,000,000,000; set CACHECOST_MAX_C"):
        load_sweep(path, [], seeds=10**9)
    monkeypatch.setenv("CACHECOST_MAX_CELLS", "10")
    assert len(load_sweep(path, ["conversation.synthetic.seed=1,2"], seeds=5).places) == 10
    with pytest.raises(InputError, match=r"^--grid and --seeds: expected at most 10 cells; got 12; set"):
        load_sweep(path, ["conversation.synthetic.seed=1,2"], seeds=6)
