"""Checks scenarios against their budgets and baselines, for the command, the library and the pytest plugin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from cachecost.base.errors import Fault, InputError, NamesNotKnown, exit_code
from cachecost.base.structs import replace
from cachecost.base.yaml_text import SourcePlace
from cachecost.budgets.baseline import FILE_NAME, RECORDING, Baseline, baseline_of, read_baseline, write_accepted
from cachecost.budgets.determinism import check_determinism
from cachecost.budgets.limits import check_budgets, check_hit_rates, differences
from cachecost.budgets.prompt_changes import PromptComparison, find_prompt_changes
from cachecost.budgets.strategy_replays import ReplayedStrategy, replay_strategies
from cachecost.budgets.verdicts import SessionVolume, State, Verdict, exact_share, overall, session_volume
from cachecost.scenario import Scenario, load
from cachecost.scenario.loading import (
    NO_DEFAULTS,
    FileDefaults,
    Record,
    RecordedScenario,
    name_with_sets,
    without_command,
)
from cachecost.simulation.setup import Progress, no_progress

__all__ = ["BudgetResult", "StrategyCost", "Verdict", "check_scenarios"]
REPORTS = Path("reports")


class ReadShare(NamedTuple):
    """Tokens read from the cache, of all input tokens."""

    read: int
    input: int

    @property
    def rate(self) -> Decimal | None:
        """The cache hit rate; None without input."""
        return exact_share(self.read, self.input) if self.input else None


NOTHING_READ, ONE_SESSION = ReadShare(0, 0), SessionVolume(1, None)


@dataclass(frozen=True, slots=True)
class StrategyCost:
    """What a strategy comes to, and what it came to in the baseline (None: there is none to compare with).

    `error_margin` is the relative error of the token counts behind it.
    """

    scenario: str
    strategy: str
    calls: int
    cost: Decimal
    before: Decimal | None
    error_margin: float
    errors: int = 0
    """Calls without a cost: refused by the API, or of an unknown model."""
    reads: ReadShare = NOTHING_READ
    reads_before: ReadShare | None = None
    """As `before`."""
    volume: SessionVolume = ONE_SESSION
    output_tokens: int = 0
    """0 where no call says what was answered: then the cost is that of the input."""


@dataclass(frozen=True, slots=True)
class BudgetResult:
    """The verdict on every budget, in the order of the scenarios and of their files.

    `costs` are those of all strategies, `updated` the baselines that were written, `files` the scenarios by name.
    """

    budgets: list[Verdict]
    costs: list[StrategyCost] = field(default_factory=list)
    updated: list[Path] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    comparisons: list[PromptComparison] = field(default_factory=list)
    """What changed since the accepted recording, of each strategy of a scenario that has one."""
    sets: Sequence[str] = ()
    """The values of the scenarios that were overridden, as `--set` has them."""

    @property
    def verdict(self) -> State:
        """One word for all: a broken budget outweighs one that could not be checked."""
        return overall(self.budgets)

    @property
    def exit_code(self) -> int:
        """0 fine, 1 a budget is broken, 3 one could not be judged and none is broken."""
        return exit_code(self.verdict == "fail", self.verdict == "not_comparable")


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How scenarios are checked."""

    reports: Path = REPORTS
    """Folder of the baselines and accepted recordings."""
    update: bool = False
    """Today's costs become the baselines first."""
    today: date | None = None
    """The day on which new baselines are accepted."""
    sets: Sequence[str] = ()
    """Values that override those of each scenario ("a.b=V"); such a variant has a name and a baseline of its own."""
    defaults: FileDefaults = field(default_factory=lambda: NO_DEFAULTS)
    """What stands where a scenario states nothing."""
    record: Record = without_command
    """Runs the commands of scenarios that have one, all before the first is checked."""
    fail_under: Decimal | None = None
    """The cache hit rate that every strategy with a budget must reach, or the recorded calls where there is none."""


AS_WRITTEN = CheckOptions()


def check_scenarios(
    paths: Sequence[Path],
    options: CheckOptions = AS_WRITTEN,
    progress: Callable[[str], AbstractContextManager[Progress]] = lambda scenario: nullcontext(no_progress),
) -> BudgetResult:
    """Check the scenarios at `paths` against their budgets, and against their baselines.

    Raises InputError with the faults of all files (NamesNotKnown where nothing else is wrong than hosts and models that
    are not known), CannotEvaluate.
    """
    loaded: list[tuple[Path, Scenario]] = []
    faults: list[Fault] = []
    kinds: set[type[InputError]] = set()
    first: dict[str, Path] = {}
    for path in paths:
        try:
            scenario = load(path, options.sets, options.defaults)
            loaded.append((path, scenario.model_copy(update={"name": name_with_sets(scenario.name, options.sets)})))
        except InputError as error:
            faults += error.faults
            kinds.add(type(error))
    for path, scenario in loaded:
        if first.setdefault(scenario.name, path) != path:
            same = f"got '{scenario.name}', as in {first[scenario.name]}"
            expected = f"expected a unique name, as the baseline is stored under it; {same}"
            faults.append(replace(scenario.fault(("name",), expected), file=str(path)))
            kinds.add(InputError)
    if faults:
        raise (NamesNotKnown if kinds == {NamesNotKnown} else InputError)(list(dict.fromkeys(faults)))
    scenarios = [(path, options.record(path, scenario)) for path, scenario in loaded]
    files = {one.scenario.name: str(path) for path, one in scenarios}
    result = BudgetResult([], files=files, sets=tuple(options.sets))
    for path, recorded in scenarios:
        with progress(recorded.scenario.name) as report_progress:
            _check_scenario(path, recorded, options, report_progress, result)
    return result


def _check_scenario(
    path: Path, recorded: RecordedScenario, options: CheckOptions, progress: Progress, result: BudgetResult
) -> None:
    scenario, update = recorded.scenario, options.update
    folder = options.reports / scenario.name  # of its baseline and its accepted recording
    baseline = None if update else read_baseline(folder / FILE_NAME)
    and_recorded = options.fail_under is not None and not scenario.budget
    replays = list(replay_strategies(scenario, path.parent, progress, and_recorded))
    now = baseline_of(scenario, replays, options.today if update else None)
    if update:
        result.updated.extend(write_accepted(folder, now, recorded))
        baseline = read_baseline(folder / FILE_NAME)
    result.budgets.extend(check_budgets(scenario, replays, now, baseline))
    if options.fail_under is not None:
        place = SourcePlace(str(path))
        result.budgets.extend(check_hit_rates(scenario, replays, now, options.fail_under, place))
    result.costs.extend(_cost(scenario.name, one, now, baseline) for one in replays)
    result.budgets.extend(check_determinism(recorded, path.parent))
    recording, kept = folder / RECORDING, recorded.kept
    if update or not recording.exists():
        return

    def replay(recording: Path) -> list[ReplayedStrategy]:
        source = scenario.conversation.model_copy(update={"recording": str(recording.resolve())})
        replaying = scenario.model_copy(update={"conversation": source})
        return list(replay_strategies(replaying, path.parent, and_recorded=and_recorded))

    # Where the scenario keeps digests, both sides are digests.
    messages = (call.request.thread.message for call in recorded.kept_calls)
    has_content = any(block.content is not None for message in messages if message for block in message.blocks)
    today = replay(kept) if kept and not has_content else replays
    accepted = {one.strategy: one for one in replay(recording)}
    for one in today:
        if one.strategy in accepted:
            result.comparisons.append(find_prompt_changes(scenario.name, accepted[one.strategy], one))


def _cost(scenario: str, one: ReplayedStrategy, now: Baseline, baseline: Baseline | None) -> StrategyCost:
    usage, name = one.ledger.usage, one.strategy
    known = baseline is not None and name in baseline.strategies and not differences(baseline, now, name)
    before = baseline.strategies[name] if known and baseline else None
    reads = None
    if before:
        written = before.ephemeral_5m_input_tokens + before.ephemeral_1h_input_tokens
        read = before.cache_read_input_tokens
        reads = ReadShare(read, before.input_tokens + written + read)
    return StrategyCost(
        scenario,
        name,
        len(one.rows),
        one.ledger.cost.total,
        before.cost_usd if before else None,
        one.ledger.error_margin,
        one.ledger.errors,
        ReadShare(usage.read, usage.total_input),
        reads,
        session_volume(one.calls),
        usage.output_tokens,
    )
