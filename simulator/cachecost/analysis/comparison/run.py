"""A scenario -> what each of its strategies costs, in each of its variants."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cachecost.analysis.comparison.assumptions import assumptions_of
from cachecost.analysis.comparison.variant_run import VariantRun
from cachecost.analysis.comparison.verdict import verdict_of
from cachecost.analysis.optimum.lower_bound import lower_bound_of
from cachecost.base.errors import CannotEvaluate
from cachecost.ledger.results import Comparison, RunResult
from cachecost.providers.rules import data_date
from cachecost.scenario import Scenario
from cachecost.scenario.loading import scenario_at
from cachecost.simulation.setup import Progress, no_progress

SEEDS = 5
"""Seeds that a synthetic conversation is simulated with, its own among them."""


def seed_comparisons(main: VariantRun) -> list[Comparison]:
    """The scenario with other seeds; none where its conversation is not drawn at random."""
    spec = main.scenario.conversation.synthetic
    if spec is None or not spec.is_random:
        return []
    others = [seed for seed in range(1, SEEDS + 1) if seed != spec.seed][: SEEDS - 1]
    scenarios = [scenario_at(main.scenario, ["conversation.synthetic.seed"], seed, main.folder) for seed in others]
    return [
        VariantRun(f"seed {seed}", scenario, main.folder).comparison(explains=False)
        for seed, scenario in zip(others, scenarios, strict=True)
    ]


def comparison_when_shipped(main: VariantRun, comparisons: Sequence[Comparison]) -> Comparison | None:
    """The comparison with the rules and prices of the shipped data; None where one has another day than the first
    already, these rules and prices are used, or they lack the model.
    """
    days = {comparison.as_of for comparison in comparisons}
    if len(days) > 1 or data_date(main.scenario.host) in days:
        return None
    try:
        return VariantRun("", main.scenario.model_copy(update={"as_of": None}), main.folder, main).comparison(
            explains=False
        )
    except CannotEvaluate:
        return None


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
    comparisons = [main.comparison(progress, lambda calls, setup: lower_bound_of(calls, setup).usd, with_timelines)]
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
