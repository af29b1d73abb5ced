"""Checks scenarios against their budgets and baselines, for the command, the library and the pytest plugin.

What changed between the accepted calls of a strategy and today's: each change with its place, its text and dollars.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from cachecost.base.errors import Fault, InputError, NamesNotKnown
from cachecost.base.structs import replace as replace_struct
from cachecost.base.yaml_text import SourcePlace
from cachecost.budgets.determinism import check_determinism
from cachecost.budgets.limits import check_budgets, check_hit_rates, differences
from cachecost.budgets.request_edits import (
    BlockKey,
    ChangeKind,
    Edit,
    EditedRequestBuilder,
    RequestPair,
    key_by_digest,
    key_by_shape,
    pair_in_order,
    pair_requests,
)
from cachecost.budgets.source_lines import place_of, place_of_call, version_of
from cachecost.budgets.strategy_replays import (
    FILE_NAME,
    RECORDING,
    Baseline,
    Figures,
    ReplayedStrategy,
    baseline_of,
    read_baseline,
    replay_strategies,
    write_accepted,
)
from cachecost.budgets.verdicts import SessionVolume, State, Verdict, exact_share, exit_code, overall, session_volume
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Block
from cachecost.prompts.render import TokenCounter
from cachecost.providers.usage import ZERO
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

Rows = Sequence[CallRow | None]
LAYERS = ("model", "tools", "system", "parameters", "messages", "breakpoints", "calls")
"""The order in which changes are made."""
KINDS = ("model_changed", "removed", "changed", "reordered", "added", "parameter_changed", "breakpoint_moved")
MOST = 12
"""Changes with dollars of their own; the others of a strategy are one."""
CALLS_GONE, CALLS_NEW = Edit("calls", "removed"), Edit("calls", "added")


@dataclass(frozen=True, slots=True)
class PromptChange:
    """One change of what is sent, however many calls have it.

    `path` is its place in the first of these, as sent; `call` the number of that call, today (of calls that are no
    longer made: in the accepted recording). `character` counts from 0 in the text at `path`; None where no text is
    known or none differs. Excerpts are the text around it. `tokens_before` and `tokens_after` are those of what
    changed, in `call`. `rewritten` are the calls, by their numbers today, that read less of the cache because of it,
    `refused` how many calls the API refuses since. `more` counts further changes that share these dollars. `varies`:
    calls that have it differ from each other, as with a time in a prompt. `search` are texts
    to find its place in the source code by, best first. `name` is that of the tool, "" where it is none.
    """

    layer: str
    path: str
    kind: ChangeKind
    call: int
    calls: int
    before_excerpt: str | None
    after_excerpt: str | None
    character: int | None
    tokens_before: int | None
    tokens_after: int | None
    cost: Decimal
    rewritten: tuple[int, ...] = ()
    refused: int = 0
    more: int = 0
    varies: bool = False
    search: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class PromptComparison:
    """All changes of a strategy; their dollars and `rest` add up to `cost`, today's above the accepted calls'.

    `rest` is what other answers, times and token counts cost; `answers` the part of it that is output tokens.
    """

    scenario: str
    strategy: str
    changes: tuple[PromptChange, ...]
    cost: Decimal
    rest: Decimal
    answers: Decimal


@dataclass(frozen=True, slots=True)
class _CallPair:
    """A call before and now; None where a recording does not have it. `number` is today's, or the accepted one's."""

    old: Call | None
    new: Call | None
    number: int
    requests: RequestPair | None = None


def find_prompt_changes(scenario: str, accepted: ReplayedStrategy, now: ReplayedStrategy) -> PromptComparison:
    """What changed from the `accepted` replay of a strategy of `scenario` to the one of today."""
    pairs = _pair_calls(accepted, now)
    found = _edits(pairs)
    replays = _Replays(now, pairs)
    made: set[Edit] = set()
    begin = before = replays.rows(made)
    changes = []
    for group in _grouped(list(found)):
        made.update(group)
        after = replays.rows(made)
        change = _describe(group, found, pairs, now)
        changes.append(replace(change, **_effects(pairs, before, after)))
        before = after
    cost = now.ledger.cost.total - accepted.ledger.cost.total
    rest = cost - sum((one.cost for one in changes), ZERO)
    answers = sum((row.cost.output for row in begin if row), ZERO) - accepted.ledger.cost.output
    return PromptComparison(scenario, now.strategy, tuple(changes), cost, rest, answers)


# ------------------------------------------------------------------------------------------------ pairs


def _pair_calls(accepted: ReplayedStrategy, now: ReplayedStrategy) -> list[_CallPair]:
    """The calls of both, in today's order; one that is no longer made stands behind the one that it followed."""
    key = _block_key(accepted, now)
    old, new = accepted.calls, now.calls
    pairs, shift = [], 0.0
    for one, other in pair_in_order([_call_key(call, key) for call in old], [_call_key(call, key) for call in new]):
        before = None if one is None else old[one]
        after = None if other is None else new[other]
        both = pair_requests(before.request, after.request, key) if before and after else None
        if before and after:
            shift = after.start - before.start
        elif before:
            before = replace_struct(before, start=before.start + shift)
        number = one if other is None else other
        assert number is not None
        pairs.append(_CallPair(before, after, number + 1, both))
    return pairs


def _block_key(accepted: ReplayedStrategy, now: ReplayedStrategy) -> BlockKey:
    """What makes blocks equal: their digests, unless these were made under different keys."""
    ours, theirs = (
        {block.digest: block for call in replay.calls for block in _blocks(call)} for replay in (accepted, now)
    )
    is_bare = any(block.content is None and block.tokens is None for block in (*ours.values(), *theirs.values()))
    return key_by_shape if is_bare and ours.keys().isdisjoint(theirs) else key_by_digest


def _blocks(call: Call) -> Iterator[Block]:
    """Those of a call that no call before it has, and its tools and system prompt."""
    message = call.request.thread.message
    yield from (*call.request.tools.blocks, *call.request.system.blocks, *(message.blocks if message else ()))


def _call_key(call: Call, key: BlockKey) -> Hashable:
    """What a call adds to its conversation."""
    message = call.request.thread.message
    return call.request.thread.length, message and (message.role, tuple(map(key, message.blocks)))


def _edits(pairs: Sequence[_CallPair]) -> dict[Edit, list[int]]:
    """The indices of the pairs that have each change; changes in the order in which they are made."""
    found: dict[Edit, list[int]] = {}
    for at, pair in enumerate(pairs):
        names = pair.requests.edits() if pair.requests else [CALLS_GONE if pair.new is None else CALLS_NEW]
        for name in dict.fromkeys(names):
            found.setdefault(name, []).append(at)
    order = sorted(found, key=lambda name: (LAYERS.index(name.layer), KINDS.index(name.kind)))
    return {name: found[name] for name in order}


def _grouped(names: Sequence[Edit]) -> list[Sequence[Edit]]:
    """Each change by itself; those beyond MOST together."""
    alone = names if len(names) <= MOST else names[: MOST - 1]
    rest = names[len(alone) :]
    return [*([name] for name in alone), *([rest] if rest else [])]


# ---------------------------------------------------------------------------------------------- replays


class _Replays:
    """Replays of the calls between the accepted ones and today's, under today's rules and prices."""

    def __init__(self, now: ReplayedStrategy, pairs: Sequence[_CallPair]) -> None:
        self._now, self._pairs, self._builder = now, pairs, EditedRequestBuilder()

    def rows(self, made: set[Edit]) -> Rows:
        """The row of each pair after the changes `made`; None where the call is not made."""
        simulation = self._now.traffic.simulation()
        sent = (self._call(pair, made) for pair in self._pairs)
        return [None if call is None else simulation.row(call) for call in sent]

    def _call(self, pair: _CallPair, made: set[Edit]) -> Call | None:
        if pair.new is None:
            return None if CALLS_GONE in made else pair.old
        if pair.requests is None:
            return pair.new if CALLS_NEW in made else None
        if made.issuperset(pair.requests.edits()):
            return pair.new
        return replace_struct(pair.new, request=self._builder.between(pair.requests, made))


def _effects(pairs: Sequence[_CallPair], before: Rows, after: Rows) -> dict[str, Any]:
    """What a change does: its dollars, the calls that read less of the cache, and how many more are refused."""
    both = [(pair.number, old, new) for pair, old, new in zip(pairs, before, after, strict=True) if old and new]
    return {
        "cost": _total(after) - _total(before),
        "rewritten": tuple(
            number
            for number, old, new in both
            if (not new.error and new.usage.read < old.usage.read and _unread(new) > _unread(old))
        ),
        "refused": sum(bool(new.error) and not old.error for _, old, new in both),
    }


def _total(rows: Rows) -> Decimal:
    return sum((row.cost.total for row in rows if row), ZERO)


def _unread(row: CallRow) -> int:
    return row.usage.total_input - row.usage.read


# ------------------------------------------------------------------------------------------- descriptions


def _describe(
    group: Sequence[Edit], found: Mapping[Edit, Sequence[int]], pairs: Sequence[_CallPair], now: ReplayedStrategy
) -> PromptChange:
    """The first change of `group`, in the first call that has it; without its effects."""
    edit = group[0]
    first = pairs[found[edit][0]]
    call = first.new or first.old
    assert call is not None
    place = place_of(edit, first.requests, _counter(now)) if first.requests else place_of_call(call.request)
    return PromptChange(
        layer=edit.layer,
        path=place.path,
        kind=edit.kind,
        call=first.number,
        calls=len({at for name in group for at in found[name]}),
        before_excerpt=place.before,
        after_excerpt=place.after,
        character=place.character,
        tokens_before=place.tokens_before,
        tokens_after=place.tokens_after,
        cost=ZERO,
        more=len(group) - 1,
        varies=len({version_of(edit, both) for at in found[edit] if (both := pairs[at].requests)}) > 1,
        search=place.search,
        name=place.name,
    )


def _counter(now: ReplayedStrategy) -> TokenCounter | None:
    generation = next((one.rules.generation for one in now.simulated if one.rules), None)
    return now.traffic.setup.counter(generation) if generation else None


__all__ = ["BudgetResult", "StrategyCost", "Verdict", "check_scenarios"]

REPORTS = Path("reports")
ProgressOf = Callable[[str], AbstractContextManager[Progress]]
"""Makes, for a scenario's name, the context in which its progress is shown."""


def silent(scenario: str) -> AbstractContextManager[Progress]:
    """No progress is shown."""
    return nullcontext(no_progress)


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
        return exit_code(self.budgets)


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
    paths: Sequence[Path], options: CheckOptions = AS_WRITTEN, progress: ProgressOf = silent
) -> BudgetResult:
    """Check the scenarios at `paths` against their budgets, and against their baselines.

    Raises InputError with the faults of all files, CannotEvaluate.
    """
    scenarios = [(path, options.record(path, scenario)) for path, scenario in _load_scenarios(paths, options)]
    files = {one.scenario.name: str(path) for path, one in scenarios}
    result = BudgetResult([], files=files, sets=tuple(options.sets))
    for path, recorded in scenarios:
        with progress(recorded.scenario.name) as report_progress:
            _ScenarioCheck(path, recorded, options, report_progress).add_to(result)
    return result


@dataclass(frozen=True, slots=True)
class _ScenarioCheck:
    """The check of one scenario."""

    path: Path
    recorded: RecordedScenario
    options: CheckOptions
    progress: Progress

    @property
    def folder(self) -> Path:
        """Where its baseline and its accepted recording are."""
        return self.options.reports / self.recorded.scenario.name

    def add_to(self, result: BudgetResult) -> None:
        """Add what is found to `result`."""
        scenario, place, update = self.recorded.scenario, self.folder / FILE_NAME, self.options.update
        baseline = None if update else read_baseline(place)
        replays = self._replays(scenario, self.progress)
        now = baseline_of(scenario, replays, self.options.today if update else None)
        if update:
            result.updated.extend(write_accepted(self.folder, now, self.recorded))
            baseline = read_baseline(place)
        result.budgets.extend(check_budgets(scenario, replays, now, baseline))
        if self.options.fail_under is not None:
            result.budgets.extend(
                check_hit_rates(scenario, replays, now, self.options.fail_under, SourcePlace(str(self.path)))
            )
        result.costs.extend(_cost(scenario.name, one, now, baseline) for one in replays)
        result.budgets.extend(check_determinism(self.recorded, self.path.parent))
        if not update:
            result.comparisons.extend(self._compare(replays))

    def _replays(self, scenario: Scenario, progress: Progress = no_progress) -> list[ReplayedStrategy]:
        and_recorded = self.options.fail_under is not None and not scenario.budget
        return list(replay_strategies(scenario, self.path.parent, progress, and_recorded))

    def _compare(self, replays: Sequence[ReplayedStrategy]) -> Iterator[PromptComparison]:
        """What changed since the accepted recording, if there is one. Raises InputError where it cannot be read.

        Where the scenario keeps digests, both sides are digests.
        """
        recording, scenario = self.folder / RECORDING, self.recorded.scenario
        if not recording.exists():
            return
        kept = self.recorded.kept
        is_digest = kept is not None and not any(map(_has_content, self.recorded.kept_calls))
        today = self._replays(_replaying(scenario, kept)) if kept and is_digest else replays
        accepted = {one.strategy: one for one in self._replays(_replaying(scenario, recording))}
        for now in today:
            if now.strategy in accepted:
                yield find_prompt_changes(scenario.name, accepted[now.strategy], now)


def _has_content(call: Call) -> bool:
    message = call.request.thread.message
    return message is not None and any(block.content is not None for block in message.blocks)


def _replaying(scenario: Scenario, recording: Path) -> Scenario:
    source = scenario.conversation.model_copy(update={"recording": str(recording.resolve())})
    return scenario.model_copy(update={"conversation": source})


def _cost(scenario: str, one: ReplayedStrategy, now: Baseline, baseline: Baseline | None) -> StrategyCost:
    usage, name = one.ledger.usage, one.strategy
    known = baseline is not None and name in baseline.strategies and not differences(baseline, now, name)
    before = baseline.strategies[name] if known and baseline else None
    return StrategyCost(
        scenario,
        name,
        len(one.rows),
        one.ledger.cost.total,
        before.cost_usd if before else None,
        one.ledger.error_margin,
        one.ledger.errors,
        ReadShare(usage.read, usage.total_input),
        _reads_of(before) if before else None,
        session_volume(one.calls),
        usage.output_tokens,
    )


def _reads_of(figures: Figures) -> ReadShare:
    written = figures.ephemeral_5m_input_tokens + figures.ephemeral_1h_input_tokens
    read = figures.cache_read_input_tokens
    return ReadShare(read, figures.input_tokens + written + read)


def _load_scenarios(paths: Sequence[Path], options: CheckOptions) -> list[tuple[Path, Scenario]]:
    """All scenarios, each with a name of its own. Raises InputError with the faults of all: NamesNotKnown where nothing
    else is wrong than hosts and models that are not known."""
    loaded: list[tuple[Path, Scenario]] = []
    faults: list[Fault] = []
    kinds: set[type[InputError]] = set()
    for path in paths:
        try:
            scenario = load(path, options.sets, options.defaults)
            loaded.append((path, scenario.model_copy(update={"name": name_with_sets(scenario.name, options.sets)})))
        except InputError as error:
            faults += error.faults
            kinds.add(type(error))
    first: dict[str, Path] = {}
    for path, scenario in loaded:
        if first.setdefault(scenario.name, path) != path:
            same = f"got '{scenario.name}', as in {first[scenario.name]}"
            expected = f"expected a unique name, as the baseline is stored under it; {same}"
            faults.append(replace(scenario.fault(("name",), expected), file=str(path)))
            kinds.add(InputError)
    if faults:
        raise (NamesNotKnown if kinds == {NamesNotKnown} else InputError)(list(dict.fromkeys(faults)))
    return loaded
