"""`cachecost sweep`: a scenario over a grid of values and seeds, on this machine or a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cachecost.base.errors import CannotEvaluate, exit_code
from cachecost.commands import options
from cachecost.commands.catalogue import scenario_defaults
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.output_paths import CheckedCommand, OutputPath
from cachecost.commands.workloads import cells_bar, use_recording


@click.command(cls=CheckedCommand)
@click.argument("scenario", type=click.Path(path_type=Path))
@options.option(
    "--grid", "Values for one key of the scenario, an axis; repeatable.", multiple=True, metavar="A.B=V1,V2"
)
@options.option(
    "--seeds",
    "Simulate each point with seeds 1 to N, and show percentiles.  [default: no random draws]",
    click.IntRange(min=1),
    metavar="N",
)
@options.option(
    "--draw",
    "Distribution of a value that the seeds draw; repeatable. NAME: turn, loop, first_token (seconds), eviction,"
    " lag_probability, lag_s, retry_rate, retry_wait, retry_billed.  [default: the pauses of the scenario or its"
    " recording]",
    multiple=True,
    metavar="NAME=SPREAD",
)
@options.set_option
@options.workers_options("one per core")
@options.option(
    "--out", "File or folder for the whole table.  [default: not written]", OutputPath(), metavar="F.parquet|F.csv|DIR"
)
@options.option("--resume", "Continue an interrupted sweep; needs --out.", is_flag=True)
@options.json_option
@options.shared_options
def sweep(
    scenario: Path,
    grid: tuple[str, ...],
    seeds: int | None,
    draw: tuple[str, ...],
    sets: tuple[str, ...],
    computing: options.WorkerOptions,
    out: Path | None,
    resume: bool,
    as_json: bool,
    shared: options.SharedOptions,
) -> int:
    """Compute the cost of every strategy of SCENARIO.yaml at each point of a grid.

    With --seeds, each point is simulated once per seed.
    """
    from cachecost.sweep import processes

    if draw and not seeds:
        raise click.UsageError("--draw: expected --seeds N too")
    if resume and not out:
        raise click.UsageError("--resume: expected --out too; without it nothing was kept")
    own = options.scenario_options(scenario, None, shared)
    if computing.backend == "loky":
        processes.begin(computing.jobs or -1, "cachecost.sweep.runs")
    from cachecost.sweep.cells import parse_draws
    from cachecost.sweep.rows import exclusive_store, temporary_store
    from cachecost.sweep.runs import load_sweep, run_sweep
    from cachecost.views import sweep as view

    try:
        defaults, draws = scenario_defaults(), parse_draws(draw)
        rules = (own.assumptions, own.setup.rules.own)
        made = load_sweep(scenario, grid, seeds or 0, sets, draws, *rules, defaults, use_recording)
        workers = computing.workers(-1)
        with exclusive_store(out, made.axes, made.about(), resume) if out else temporary_store(made.axes) as store:
            try:
                with cells_bar(made.name, len(made.places)) as progress:
                    run_sweep(made, workers, store, progress)
            except (KeyboardInterrupt, CannotEvaluate):
                if out:
                    print_diagnostic("results so far are kept; run the same command with --resume to continue")
                raise
            shown = (made.name, made.axes, len(made.places), store.rows(made.job.axes), sys.stdout)
            return exit_code(not_evaluated=view.print_json(*shown) if as_json else view.print_sweep(*shown, out))
    except KeyboardInterrupt:
        processes.kill_helpers()
        raise
