"""A scenario -> what each of its strategies costs, in each of its variants."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from cachecost.analysis.comparison.answer import verdict_of
from cachecost.analysis.comparison.assumed import assumptions_of, comparison_when_shipped, seed_comparisons
from cachecost.analysis.comparison.variant_run import VariantRun
from cachecost.analysis.optimum.lower_bound import lower_bound_of
from cachecost.conversations.calls import Call
from cachecost.ledger.results import RunResult
from cachecost.scenario import Scenario
from cachecost.simulation.setup import Progress, ReplaySetup, no_progress


def run(
    scenario: Scenario,
    folder: Path,
    progress: Progress = no_progress,
    with_timelines: bool = False,
    explains_variants: bool = True,
) -> RunResult:
    """Simulate every strategy in every variant. Paths in the scenario start at `folder`.

    `with_timelines` adds what only the HTML report shows: the timelines of all calls, and what is avoidable in the
    first and the best strategy. Unless it `explains_variants`, the causes of their calls are unknown, which saves time.

    Raises CannotEvaluate for a model, rule, price or count that is not known, InputError for a bad recording.
    """
    variants = [VariantRun(name, variant, folder) for name, variant in scenario.all_variants]
    main = variants[0]
    comparisons = [main.comparison(progress, _lower_bound, with_timelines)]
    comparisons += [variant.comparison(progress, explains=explains_variants) for variant in variants[1:]]
    shipped = comparison_when_shipped(main, comparisons)
    seeds = seed_comparisons(main)
    return RunResult(
        scenario.name,
        scenario.question,
        main.about(),
        verdict_of(comparisons, scenario.question_about, scenario.conclusion, seeds),
        comparisons,
        assumptions_of(main, comparisons, seeds, shipped),
        [main.published_figure(published_figure) for published_figure in scenario.published_figures],
        main.versions(),
        seeds,
        main.explanations(comparisons[0]) if with_timelines else [],
    )


def _lower_bound(calls: Sequence[Call], setup: ReplaySetup) -> Decimal:
    return lower_bound_of(calls, setup).usd
