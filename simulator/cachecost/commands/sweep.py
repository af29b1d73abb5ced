"""`cachecost sweep`: a scenario over a grid of values and seeds, on this machine or a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cachecost.base.errors import CannotEvaluate, exit_code
from cachecost.commands.catalogue import scenario_defaults
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.options import (
    SharedOptions,
    json_option,
    scenario_options,
    set_option,
    shared_options,
    workers_options,
)
from cachecost.commands.output_paths import OutputPath, SectionedCommand
from cachecost.commands.workloads import cells_bar, use_recording

if TYPE_CHECKING:
    from cachecost.sweep.rows import Store
    from cachecost.sweep.runs import Sweep
    from cachecost.sweep.workers import Workers


@click.command(cls=SectionedCommand)
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option(
    "--grid", multiple=True, metavar="A.B=V1,V2", help="Values for one key of the scenario, an axis; repeatable."
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    metavar="N",
    help="Simulate each point with seeds 1 to N, and show percentiles.  [default: no random draws]",
)
@click.option(
    "--draw",
    multiple=True,
    metavar="NAME=SPREAD",
    help="Distribution of a value that the seeds draw; repeatable. NAME: turn, loop, first_token (seconds), eviction,"
    " lag_probability, lag_s, retry_rate, retry_wait, retry_billed.  [default: the pauses of the scenario or its"
    " recording]",
)
@set_option
@workers_options("one per core")
@click.option(
    "--out",
    type=OutputPath(),
    metavar="F.parquet|F.csv|DIR",
    help="File or folder for the whole table.  [default: not written]",
)
@click.option("--resume", is_flag=True, help="Continue an interrupted sweep; needs --out.")
@json_option
@shared_options
def sweep(
    scenario: Path,
    grid: tuple[str, ...],
    seeds: int | None,
    draw: tuple[str, ...],
    sets: tuple[str, ...],
    backend: str,
    scheduler: str | None,
    worker_timeout: float,
    jobs: int | None,
    out: Path | None,
    resume: bool,
    as_json: bool,
    shared: SharedOptions,
) -> int:
    """Compute the cost of every strategy of SCENARIO.yaml at each point of a grid.

    With --seeds, each point is simulated once per seed.
    """
    from cachecost.sweep import processes

    _check(seeds, draw, out, resume)
    own = scenario_options(scenario, None, shared)
    if backend == "loky":
        processes.begin(jobs or -1, "cachecost.sweep.runs")
    from cachecost.sweep.cells import parse_draws
    from cachecost.sweep.rows import exclusive_store, temporary_store
    from cachecost.sweep.runs import load_sweep
    from cachecost.sweep.workers import Workers

    try:
        made = load_sweep(
            scenario,
            grid,
            seeds or 0,
            sets,
            parse_draws(draw),
            own.assumptions,
            own.setup.rules.own,
            scenario_defaults(),
            use_recording,
        )
        workers = Workers(backend, jobs or -1, scheduler, worker_timeout)
        workers.check()
        kept = exclusive_store(out, made.axes, made.about(), resume) if out else temporary_store(made.axes)
        with kept as store:
            _run_sweep(made, workers, store, bool(out))
            return exit_code(not_evaluated=_show(made, store, out, as_json))
    except KeyboardInterrupt:
        processes.kill_helpers()
        raise


def _check(seeds: int | None, draw: Sequence[str], out: Path | None, resume: bool) -> None:
    if draw and not seeds:
        raise click.UsageError("--draw: expected --seeds N too")
    if resume and not out:
        raise click.UsageError("--resume: expected --out too; without it nothing was kept")


def _run_sweep(made: Sweep, workers: Workers, store: Store, is_kept: bool) -> None:
    from cachecost.sweep.runs import run_sweep

    try:
        with cells_bar(made.name, len(made.places)) as progress:
            run_sweep(made, workers, store, progress)
    except (KeyboardInterrupt, CannotEvaluate):
        if is_kept:
            print_diagnostic("results so far are kept; run the same command with --resume to continue")
        raise


def _show(made: Sweep, store: Store, out: Path | None, as_json: bool) -> bool:
    """Whether there were faults."""
    from cachecost.views.sweep import print_json, print_sweep

    rows, cells = store.rows(made.job.axes), len(made.places)
    if as_json:
        return print_json(made.name, made.axes, cells, rows, sys.stdout)
    return print_sweep(made.name, made.axes, cells, rows, sys.stdout, out)
