"""A cell is a function of its key: what `cachecost run` says of it, whatever else is swept."""

from __future__ import annotations

from pathlib import Path

import pytest
from sweep_bench import SCENARIO, rows_of, scenario_at

from cachecost.analysis.comparison.run import run
from cachecost.scenario import load
from cachecost.sweep.cells import Drawing, evaluate_task, parse_draws
from cachecost.sweep.runs import load_sweep

VARIED = SCENARIO.replace("turns: 3,", "turns: 3, sizes: {human: [20, 400]},")
PINGS = SCENARIO + "  - {name: pings, preset: automatic, changes: [{keep_alive: {every_s: 290, times: 3}}]}\n"
KINDS = SCENARIO.replace("strategies:\n  - automatic\n", "strategies:\n  - progressive\n")


def test_a_cell_costs_what_run_says(tmp_path: Path) -> None:
    path = scenario_at(tmp_path)
    sets = ["conversation.synthetic.turns=2", "strategies.1.ttl=5m"]
    sweep = load_sweep(path, ["conversation.synthetic.turns=4,2", "strategies.1.ttl=1h,5m"])
    rows = [row for row in rows_of(sweep) if row.key.labels == ("2", "5m")]
    ledgers = run(load(path, sets), tmp_path).main.ledgers
    assert [(row.strategy, row.calls, row.cost_usd) for row in rows] == [
        (ledger.strategy, len(ledger.rows), ledger.cost.total) for ledger in ledgers
    ]


def test_a_bare_preset_opens_to_take_an_option(tmp_path: Path) -> None:
    sweep = load_sweep(scenario_at(tmp_path), ["strategies.0.ttl=5m,1h"])
    first = [row for row in rows_of(sweep) if row.strategy == "automatic"]
    assert [bool(row.write_1h) for row in first] == [False, True]


def test_a_set_holds_in_every_cell(tmp_path: Path) -> None:
    swept_rows = [
        rows_of(load_sweep(scenario_at(tmp_path), ["conversation.synthetic.turns=2"], sets=sets))
        for sets in (["strategies.0.ttl=1h"], [])
    ]
    assert swept_rows[0][0].write_1h > 0 == swept_rows[1][0].write_1h


@pytest.mark.parametrize("text", [VARIED, PINGS, SCENARIO], ids=["sizes vary", "pings", "only times vary"])
def test_a_seed_is_the_same_in_whatever_company_and_order(tmp_path: Path, text: str) -> None:
    path = scenario_at(tmp_path, text)
    many = load_sweep(path, ["model=claude-opus-4-6,claude-sonnet-4-6"], 7)
    rows = rows_of(many)
    assert {row.key.seed for row in rows} == set(range(1, 8))
    assert len({row.cost_usd for row in rows if row.strategy == "automatic"}) > 2
    last = [task for task in many.tasks() if task.point.numbers == (1,)][-1]
    alone = evaluate_task(many.job, last._replace(seeds=(7,)))
    assert alone == [row for row in rows if row.key == (("claude-sonnet-4-6",), 7)]


def test_points_are_compared_on_the_same_draws(tmp_path: Path) -> None:
    """A seed's draws are its own, not the point's: what differs between two points is what the axis does."""
    sweep = load_sweep(scenario_at(tmp_path), ["question=one,another"], 5)
    rows = rows_of(sweep)
    half = len(rows) // 2
    assert [row.cost_usd for row in rows[:half]] == [row.cost_usd for row in rows[half:]]


def test_a_seed_of_varying_sizes_is_that_of_the_scenario(tmp_path: Path) -> None:
    path = scenario_at(tmp_path, VARIED)
    rows = [row for row in rows_of(load_sweep(path, [], 3)) if row.key.seed == 3]
    ledgers = run(load(path, ["conversation.synthetic.seed=3"]), tmp_path).main.ledgers
    assert [row.cost_usd for row in rows] == [ledger.cost.total for ledger in ledgers]


def test_draws_go_over_what_the_scenario_suggests(tmp_path: Path) -> None:
    path = scenario_at(tmp_path)
    never, evicted = (
        [
            row.cost_usd
            for row in rows_of(load_sweep(path, [], 20, drawing=parse_draws(draws)))
            if row.strategy == "automatic"
        ]
        for draws in (("turn=10",), ("turn=10", "eviction=1"))
    )
    assert len(set(never)) == 1 < len(set(evicted))
    assert min(evicted) >= never[0]


def test_faults_of_a_cell_are_rows_and_the_others_stand(tmp_path: Path) -> None:
    path = scenario_at(tmp_path)
    rows = rows_of(load_sweep(path, ["model=claude-opus-4-6,claude-opus-9,claude-sonnet-4-6"]))
    assert [(row.key.labels[0], bool(row.fault)) for row in rows] == [
        ("claude-opus-4-6", False),
        ("claude-opus-4-6", False),
        ("claude-opus-9", True),
        ("claude-sonnet-4-6", False),
        ("claude-sonnet-4-6", False),
    ]
    assert rows[2].strategy == ""
    assert "claude-opus-9" in rows[2].fault


def test_what_cannot_be_drawn_is_a_fault_of_its_cells(tmp_path: Path) -> None:
    draws = Drawing({"retry_rate": 0.5, "retry_billed": True})
    (row,) = rows_of(load_sweep(scenario_at(tmp_path, PINGS), [], 1, drawing=draws))
    assert row.fault == "strategy 'pings' depends on the clock, so billed retries cannot be drawn for it"
    (row,) = rows_of(load_sweep(scenario_at(tmp_path, VARIED), [], 1, drawing=draws))
    assert row.fault.startswith("retries can be drawn only if times alone vary")
