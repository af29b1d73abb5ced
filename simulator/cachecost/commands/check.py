"""`cachecost check`: budgets and baselines, for CI."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cachecost.commands.progress import progress_bar

SCENARIOS, REPORTS = Path("scenarios"), Path("reports")


@click.command()
@click.argument("scenarios", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--update", is_flag=True, help="Write today's costs as the baseline.")
@click.option(
    "--reports", type=click.Path(path_type=Path), default=REPORTS, show_default=True, help="Folder of baselines."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def check(scenarios: tuple[Path, ...], update: bool, reports: Path, as_json: bool) -> int:
    """Hold SCENARIOS (default: all of scenarios/) to their budgets and their baselines."""
    from cachecost import budget, run
    from cachecost.baseline import baseline_of, read_baseline, write_baseline
    from cachecost.scenario import load

    paths = scenarios or tuple(sorted(SCENARIOS.glob("*.yaml")))
    if not paths:
        raise click.UsageError(f"expected SCENARIO.yaml …; there is none in {SCENARIOS}/")
    loaded = [(path, load(path)) for path in paths]
    verdicts = []
    for path, scenario in loaded:
        with progress_bar(scenario.name) as progress:
            result = run.run(scenario, path.parent, progress)
        place = reports / scenario.name / "baseline.json"
        if update:
            write_baseline(place, baseline_of(result))
            click.echo(f"{place} updated", err=True)
        verdicts += budget.check(scenario, result, read_baseline(place))
    if as_json:
        click.echo(json.dumps(budget.verdict_json(verdicts), indent=2))
    else:
        for line in budget.text_lines(verdicts, {scenario.name: str(path) for path, scenario in loaded}):
            click.echo(line)
    return budget.exit_code(verdicts)
