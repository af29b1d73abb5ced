"""A sweep's rows are what each cell's ledgers add up to, whatever cells came before it in the process."""

from __future__ import annotations

from pathlib import Path

import pytest
from sweep_bench import scenario_at

from cachecost.scenario import load_conversations
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.simulation.workload import scenario_setup
from cachecost.sweep import cells
from cachecost.sweep.cells import evaluate_task
from cachecost.sweep.rows import CellKey, SweepRow, ledger_row
from cachecost.sweep.runs import Sweep, load_sweep

TEXT = """\
format: 1
name: shares
as_of: 2026-11-01
model: claude-opus-4-6
tokens: bytes
conversation:
  synthetic: {turns: 3, calls: 3, pauses: {turn: 400}}
  head: {system: {tokens: 6_000}}
strategies:
  - progressive
  - name: lasting
    preset: progressive
    ttl: 5m
  - adaptive
  - name: pings
    preset: progressive
    changes: [keep_alive: {}]
"""
GRID = ["model=claude-opus-4-6,claude-sonnet-4-5", "strategies.1.ttl=5m,1h", "conversation.synthetic.turns=2,3"]


def plainly(sweep: Sweep, folder: Path) -> list[SweepRow]:
    """Each strategy of each cell by its ledger, from conversations of its own."""
    rows = []
    for task in sweep.tasks():
        scenario = sweep.job.at(task.point)
        conversations, bills = load_conversations(scenario, folder)
        terms = scenario_setup(scenario, folder, bills)
        key = CellKey(task.point.labels(sweep.job.axes), 0)
        rows += [ledger_row(key, replay_strategy(spec, conversations, terms)) for spec in scenario.strategies]
    return rows


@pytest.mark.parametrize("is_reversed", [False, True])
def test_rows_are_those_of_the_ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_reversed: bool) -> None:
    monkeypatch.setattr(cells, "_conversations", type(cells._conversations)())
    sweep = load_sweep(scenario_at(tmp_path, TEXT), GRID)
    tasks = list(sweep.tasks())
    found = [evaluate_task(sweep.job, task) for task in (reversed(tasks) if is_reversed else tasks)]
    wanted = plainly(sweep, tmp_path)
    assert [repr(row) for rows in (reversed(found) if is_reversed else found) for row in rows] == list(
        map(repr, wanted)
    )
    assert len(cells._conversations) == 2
