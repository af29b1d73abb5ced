"""`cachecost sweep`: a scenario over a grid of values and seeds, on this machine or a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.options import Ground, check_scenario, ground_options
from cachecost.commands.progress import cells_bar
from cachecost.exit_codes import ExitCode

if TYPE_CHECKING:
    from cachecost.sweep.backends import Workers
    from cachecost.sweep.store import Store
    from cachecost.sweep.sweeping import Sweep

@click.command()
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option("--grid", multiple=True, metavar="A.B=V1,V2", help="An axis: values at a path of the file; repeatable.")
@click.option("--seeds", type=click.IntRange(min=1), help="Seeds 1 to N for each point: percentiles of what is drawn.")
@click.option(
    "--draw",
    multiple=True,
    metavar="NAME=SPREAD",
    help="What seeds draw: turn, loop, first_token (seconds), eviction, lag_probability, lag_s, retry_rate, retry_wait,"
    " retry_billed.  [default: the scenario's pauses, or the recording's own]",
)
@click.option("--set", "sets", multiple=True, metavar="A.B=VALUE", help="Put a value over the file's; repeatable.")
@click.option("--backend", type=click.Choice(["loky", "dask", "ray"]), default="loky", show_default=True)
@click.option("--scheduler", metavar="ADDRESS", help="The cluster, as tcp://host:8786.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes of this machine.  [default: one a core]")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="F.parquet|F.csv|DIR", help="Where the whole table goes."
)
@click.option("--resume", is_flag=True, help="Go on with the sweep that was interrupted.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@ground_options
def sweep(
    scenario: Path,
    grid: tuple[str, ...],
    seeds: int | None,
    draw: tuple[str, ...],
    sets: tuple[str, ...],
    backend: str,
    scheduler: str | None,
    jobs: int | None,
    out: Path | None,
    resume: bool,
    as_json: bool,
    base: Ground,
) -> int:
    """Cost every strategy of SCENARIO.yaml at each point of a grid, seed by seed where --seeds is given."""
    from cachecost.sweep import processes

    _check(scenario, seeds, draw, out, resume, base)
    if backend == "loky":
        processes.begin(jobs or -1, "cachecost.sweep.backends")
    from cachecost.sweep.backends import Workers
    from cachecost.sweep.store import anywhere, opened
    from cachecost.sweep.sweeping import sweep_of
    from cachecost.sweep.varying import drawing_of

    made = sweep_of(scenario, grid, seeds or 0, sets, drawing_of(draw), base.readings, base.rules.own)
    workers = Workers(backend, jobs or -1, scheduler)
    workers.check()
    with nullcontext(opened(out, made.axes, made.about(), resume)) if out else anywhere(made.axes) as store:
        _swept(made, workers, store, bool(out))
        return ExitCode.NOT_EVALUATED if _show(made, store, out, as_json) else ExitCode.OK


def _check(
    scenario: Path, seeds: int | None, draw: Sequence[str], out: Path | None, resume: bool, base: Ground
) -> None:
    check_scenario(scenario, None, base)
    if draw and not seeds:
        raise click.UsageError("--draw: expected --seeds N beside it")
    if resume and not out:
        raise click.UsageError("--resume: expected --out beside it; without it nothing was kept")


def _swept(made: Sweep, workers: Workers, store: Store, is_kept: bool) -> None:
    from cachecost.sweep.sweeping import swept

    try:
        with cells_bar(made.name, len(made.places)) as progress:
            swept(made, workers, store, progress)
    except KeyboardInterrupt:
        if is_kept:
            print_diagnostic("what was computed is kept; the same command with --resume goes on")
        raise


def _show(made: Sweep, store: Store, out: Path | None, as_json: bool) -> bool:
    """Whether there were faults."""
    from cachecost.views.sweep_rows import print_json
    from cachecost.views.sweep_text import print_sweep

    rows, cells = store.rows(made.job.axes), len(made.places)
    if as_json:
        return print_json(made.name, made.axes, cells, rows, sys.stdout)
    return print_sweep(made.name, made.axes, cells, rows, sys.stdout, out)
