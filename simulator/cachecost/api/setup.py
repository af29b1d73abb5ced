"""`replay`, `compare` and `whatif`, with recordings, strategies and settings as arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal
from warnings import warn

from pydantic import ValidationError
from typing_extensions import Unpack

from cachecost.analysis.comparison.summary import (
    CLASS_FIELDS,
    Summary,
    find_ranks,
    rank_fields,
    rank_sentences,
    refusal_sentences,
    rules_sentence,
    summarise,
    summarise_ledgers,
    token_sentences,
)
from cachecost.analysis.comparison.verdict import verdict_of
from cachecost.api.html import DAYS, Answered, HtmlTable, Monthly, monthly, paragraph
from cachecost.api.keywords import COUNTERS, CountOptions, ModelOptions, RuleOptions, named_keywords
from cachecost.base.atomic_files import is_yaml
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.formatting import count_text, dollar_change, dollars, percent, tokens
from cachecost.base.frames import MoneyColumn, frame_of
from cachecost.base.structs import replace
from cachecost.base.times import day_of
from cachecost.base.yaml_text import PlacedValue, SourcePlace, faults_of, one_of
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import input_path
from cachecost.conversations.model import Conversation
from cachecost.conversations.sessions import read_conversations
from cachecost.ledger.findings import margin
from cachecost.ledger.results import Comparison, Ledger
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.hosts import AUTO_HOST, host_of, hosts
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook, data_date
from cachecost.scenario import head_parts
from cachecost.scenario.models import Head
from cachecost.simulation.engine import AS_RECORDED
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.simulation.workload import Workload, plan_workload, recorded_workload
from cachecost.strategies.spec import StrategySpec
from cachecost.tokens.factory import CALIBRATED, counter_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cachecost.analysis.whatif.results import Alternative, WhatifReport


@dataclass(frozen=True, slots=True, repr=False)
class Recording:
    """A log of calls: the conversations found in it, and the calls with their bills."""

    name: str
    conversations: list[Conversation]
    calls: list[Call]
    path: Path | None = None
    """The file that it was read from."""

    @property
    def model(self) -> str | None:
        """None: each conversation has its own model."""
        return None

    def plot(self) -> Figure:
        """One column per call as it was sent: read, written and uncached tokens. Raises CannotEvaluate."""
        return replay(self).plot()

    def __repr__(self) -> str:
        words = f"{count_text(len(self.calls), 'call')} in {count_text(len(self.conversations), 'conversation')}"
        return f"<Recording {self.name}: {words}>"


Source = Conversation | Recording | str | Path
"""A result of `read`, or the path of a recording in any known format."""


@named_keywords()
def read(path: str | Path, *, tools_tokens: int = 0, system_tokens: int = 0) -> Conversation | Recording:
    """Read a recording in any known format: a conversation, or a log of calls.

    `tools_tokens` and `system_tokens` are the sizes of the tools and the system prompt of a conversation that was
    recorded without them. Raises InputError with every error in the file.
    """
    check_files([input_path(path)])
    conversations, calls = read_conversations(input_path(path))
    if calls or len(conversations) != 1:
        return Recording(PurePath(path).stem, conversations, calls, input_path(path))
    conversation = conversations[0]
    sizes = {"tools": tools_tokens, "system": system_tokens}
    head = Head.model_validate({name: {"tokens": size} for name, size in sizes.items() if size})
    tools, system = head_parts(head)
    return replace(
        conversation,
        tools=tools if tools_tokens else conversation.tools,
        system=system if system_tokens else conversation.system,
    )


def check_files(paths: Iterable[Path]) -> None:
    """Raises InputError for each path that is no file."""
    if missing := [path for path in paths if not path.is_file()]:
        raise InputError([Fault(str(path), "expected a file; there is none") for path in missing])


def check_choice(keyword: str, value: str, known: Sequence[str]) -> None:
    """Raises InputError for a value that is not among the known ones, with the nearest."""
    if value not in known:
        raise InputError([Fault(f"{keyword}:", one_of(known, value))])


def read_source(source: Source) -> Conversation | Recording:
    """The source, read if it is a path. Raises InputError for anything else."""
    if isinstance(source, Conversation | Recording):
        return source
    if isinstance(source, str | Path):
        return read(source)
    raise InputError([Fault("recording:", f"expected a path, or what read() gives; got a {type(source).__name__}")])


LogSource = Recording | str | Path
"""A log of calls that `read` read, or a path."""


def path_of(source: LogSource) -> Path:
    """The file of a source. Raises InputError where there is none, as for a conversation."""
    if isinstance(source, str | Path):
        return input_path(source)
    if isinstance(source, Recording) and source.path is not None:
        return source.path
    raise InputError([Fault("recording:", f"expected a path or a log with bills; got a {type(source).__name__}")])


def conversations_in(source: Conversation | Recording) -> Sequence[Conversation]:
    """The conversations of a recording."""
    return source.conversations if isinstance(source, Recording) else [source]


def calls_in(source: Conversation | Recording) -> Sequence[Call]:
    """The recorded calls; a conversation has none."""
    return source.calls if isinstance(source, Recording) else []


StrategyLike = str | Mapping[str, Any]
"""A preset's name (`cachecost strategies`), a mapping with the keys of a scenario's strategy, or "as recorded"."""
SpecOrRecorded = StrategySpec | None
"""None: a log's calls as they were sent."""


def spec_of(strategy: StrategyLike) -> SpecOrRecorded:
    """Parse a strategy. Raises InputError with every error, each with the nearest name."""
    return _parse_specs([strategy], "strategy:")[0]


def specs_of(strategies: Sequence[StrategyLike]) -> list[SpecOrRecorded]:
    """Parse strategies with distinct names. Raises InputError with every error."""
    if isinstance(strategies, str):
        message = f"expected a list; got '{strategies}' (did you mean ['{strategies}']?)"
        raise InputError([Fault("strategies:", message)])
    specs = _parse_specs(strategies, "strategies[{}]:")
    if not specs:
        raise InputError([Fault("strategies:", "expected at least one; got none")])
    names = [spec.name if spec else AS_RECORDED for spec in specs]
    twice = [(number, name) for number, name in enumerate(names) if names.index(name) != number]
    if twice:
        message = "expected a name of its own; got '{}', as strategies[{}]"
        raise InputError(
            [Fault(f"strategies[{number}]:", message.format(name, names.index(name))) for number, name in twice]
        )
    return specs


def _parse_specs(strategies: Sequence[StrategyLike], label: str) -> list[SpecOrRecorded]:
    specs, faults = list[SpecOrRecorded](), list[Fault]()
    for number, given in enumerate(strategies):
        if given == AS_RECORDED:
            specs.append(None)
            continue
        value = given if isinstance(given, str) else dict(given) if isinstance(given, Mapping) else given
        try:
            specs.append(StrategySpec.model_validate(value))
        except ValidationError as error:
            placed = PlacedValue(value, {(): SourcePlace(label.format(number))})
            faults += faults_of(error, placed, StrategySpec.model_json_schema())
    if faults:
        raise InputError(faults)
    return specs


def setup_of(
    *,
    as_of: date | str | None = None,
    host: str = AUTO_HOST,
    rules: Mapping[str, object] | None = None,
    prices: str | Path | None = None,
) -> ReplaySetup:
    """The setup that the keywords describe. Raises InputError."""
    day, own_prices = day_from(as_of), None if prices is None else Path(prices)
    book = RuleBook(assumptions_from(rules or {}, "rules:"), day)
    return ReplaySetup(book, PriceBook.load(own_prices, day), host_from(host))


def comparison_setup(
    recording: Conversation | Recording,
    *,
    model: str | None = None,
    tokens: str | None = None,
    **options: Unpack[RuleOptions],
) -> ReplaySetup:
    """The setup of strategies that are compared. Raises InputError; CannotEvaluate where no model is named."""
    chosen = model or recording.model
    calls = calls_in(recording)
    if chosen is None and not calls:
        raise CannotEvaluate(f"{recording.name} names no model; pass model='claude-…'")
    day = day_from(options.get("as_of"))
    day = day or (None if calls else data_date(host_from(options.get("host", AUTO_HOST))))
    on_day: RuleOptions = {**options, "as_of": day}
    setup = setup_of(**on_day)
    if tokens is not None:
        check_choice("tokens", tokens, COUNTERS)
    counter = counter_name(tokens, bool(calls))
    bills = calls if tokens in (None, CALIBRATED) else []
    return replace(setup, model=chosen, tokens=counter, bills=bills, starts_warm=True)


def workload_of(source: Source, strategy: StrategySpec | None = None, **options: Any) -> Workload:
    """The calls of a log as they were sent, or those that `strategy` makes. Raises CannotEvaluate, InputError."""
    recording = read_source(source)
    if strategy is not None:
        setup = comparison_setup(recording, **options)
        return plan_workload(strategy, conversations_in(recording), setup, recording.name)
    if not isinstance(recording, Recording) or not recording.calls:
        raise CannotEvaluate(f"{recording.name} contains no recorded call; pass a strategy, like strategy='automatic'")
    if options.pop("model", None):
        raise InputError([Fault("model:", "expected nothing: as recorded, each call ran on its own model")])
    tokens = options.pop("tokens", None)
    if tokens is not None:
        check_choice("tokens", tokens, COUNTERS)
    setup = setup_of(**options).with_recorded(recording.calls, tokens)
    return recorded_workload(recording.name, recording.calls, setup)


def only_supported(workload: Workload, function: str) -> Workload:
    """The workload without the calls of caches that `function` ("explain") does not support, of which it warns.

    Raises CannotEvaluate where no call is left.
    """
    from cachecost.simulation.workload import supported_calls

    supported, left_out = supported_calls(workload, function)
    for note in left_out.notes(function):
        warn(note, stacklevel=4)  # the caller of the public function, whose keywords are checked in between
    return supported


def host_from(host: str) -> str:
    """The host, if it has rules, or AUTO_HOST. Raises InputError."""
    check_choice("host", host, [*hosts(), AUTO_HOST])
    return host


def day_from(as_of: date | str | None, keyword: str = "as_of") -> date | None:
    """A date, or None. Raises InputError for text that is not an ISO date."""
    if not isinstance(as_of, str):
        return as_of
    try:
        return date.fromisoformat(as_of)
    except ValueError:
        raise InputError([Fault(f"{keyword}:", f"expected a date like 2026-03-07; got '{as_of}'")]) from None


MOST_BARS = 12


@dataclass(frozen=True, slots=True, repr=False)
class Alternatives(Answered):
    """The alternatives for a recording (`whatif.alternatives`); each is replayed and compared with it as it was
    sent.
    """

    whatif: WhatifReport

    @property
    def cost(self) -> Decimal:
        """USD of the recording as it was sent: the bill if the simulation is close to it, else the simulation."""
        return self.whatif.cost

    def __getitem__(self, name: str) -> Alternative:
        """The alternative of that name. Raises KeyError."""
        return self.whatif.find(name)

    @property
    def gains(self) -> list[Alternative]:
        """The alternatives that save money and keep the answers, largest saving first."""
        return [one for one in self.whatif.alternatives if one.is_gain and one.keeps_answers]

    def frame(self, *, money: MoneyColumn = "float") -> pd.DataFrame:
        """One row per alternative: `kind`, what it `does`; `cost_usd`, `most_usd` (without best-effort hits),
        `saving_usd` and `error_usd` (± of the saving), NaN if not evaluated; `share` of the cost; `calls_changed`,
        `extra_calls`; `keeps_answers`, on which `assumption`; `supported` ("yes", or why not); `depends_on` (a list of
        assumptions that change the sign of the saving)."""
        from cachecost.views.whatif import whatif_object

        return frame_of(whatif_object(self.whatif)["alternatives"], money, index="name")

    def plot(self) -> Figure:
        """USD saved (to the right) or lost by each alternative that changes the cost and keeps the answers."""
        from cachecost.api.charts import ChartBar, bars
        from cachecost.views.charts.palette import CLASS_COLOURS, LINE_COLOURS

        entries = []
        for one in self.whatif.alternatives:
            if one.saving and abs(one.saving) <= self.cost and one.keeps_answers and one.supported == "yes":
                label, share = dollar_change(one.saving), percent(one.share, signed=True)
                colour = LINE_COLOURS[2] if one.saving > 0 else CLASS_COLOURS["output"]
                entries.append(ChartBar(one.name, one.saving, label, share, one.is_gain, colour=colour))
        return bars(self._answer(), entries[:MOST_BARS])

    def _answer(self) -> str:
        whole = f"{count_text(self.whatif.calls, 'call')}, {dollars(self.cost)}"
        if not self.gains:
            return f"{whole}; no alternative that keeps the answers is cheaper"
        best = self.gains[0]
        return f"{whole}; {best.name} saves {dollars(best.saving)} ({percent(best.share)})"

    def _repr_html_(self) -> str:
        table = HtmlTable(("alternative", "cost", "saving", "share", "what it does"), prose=("what it does",))
        for one in (one for one in self.whatif.alternatives if one.saving):
            remarks = [] if one.keeps_answers else ["changes the answers"]
            remarks += [] if one.supported == "yes" else [one.supported]
            remarks += [f"depends on {', '.join(one.depends_on)}"] if one.depends_on else []
            does = f"{one.does} ({'; '.join(remarks)})" if remarks else one.does
            cells = (dollars(one.cost), dollar_change(one.saving), percent(one.share, signed=True), does)
            table.add(one.name, *cells, strong=one.is_gain and one.keeps_answers)
        below = [f"tokens: {self.whatif.token_source} ±{percent(self.whatif.error_margin)}"]
        return paragraph(self._answer(), strong=True) + table.html() + "".join(map(paragraph, below))


@named_keywords(CountOptions)
def whatif(
    source: Source,
    *,
    actions: Sequence[str] = (),
    at: int | None = None,
    jointly: Sequence[str] = (),
    assumptions: bool | None = None,
    today: date | str | None = None,
    **options: Unpack[CountOptions],
) -> Alternatives:
    """Alternative ways to send a log: TTLs, keep-alives, breakpoints, models, hosts, batches and compaction.

    Each is replayed and compared with the log as it was sent. `jointly` are alternatives to replay together. `actions`
    are changes like "effort=low" after the recorded call `at` (None: the last). `assumptions` repeats the comparison
    under the other assumptions about open rules (None: only for a short log). Models that are retired `today` are no
    alternatives (None: those that were retired on the day of the log). Calls to explicit cache objects are left out,
    with a warning. Raises InputError, CannotEvaluate.
    """
    from cachecost.analysis.whatif.report import what_if

    workload = only_supported(workload_of(source, **options), "whatif")
    return Alternatives(what_if(workload, jointly, actions, at, assumptions, today=day_from(today, "today")))


Picture = Literal["dollars", "calls", "question"]


@dataclass(frozen=True, slots=True, repr=False)
class Replay(Ledger):
    """The calls of one strategy: `rows`, and their sums `usage` (tokens), `cost` (USD by token class), `errors`.

    If not `is_priced`, the model is self-hosted without a price: `cost` has no meaning, only tokens have.
    """

    def frame(self, *, money: MoneyColumn = "float") -> pd.DataFrame:
        """One row per call: the fields of `replay --json`, with `usage.…` in tokens and `cost_by_class_usd.…`; a call
        with an error has `error.type` and `error.message` instead."""
        from cachecost.views.replay.call_rows import call_object

        priced = ((row, row.cost.by_class() if row.is_priced else None) for row in self.rows)
        rows = ({**call_object(row), "cost_by_class_usd": classes} for row, classes in priced)
        return frame_of(rows, money).drop(columns="format")

    def plot(self) -> Figure:
        """One column per call, as high as its prompt: read, written and uncached tokens."""
        from cachecost.api.charts import columns

        return columns(f"{self.strategy}: {count_text(len(self.rows), 'call')}, {cost_words(self)}", self.rows)

    def monthly(self, sessions_per_day: Decimal | float, days: int = DAYS) -> Monthly:
        """USD per month at this many sessions a day, all like this one."""
        return monthly(summarise_ledgers([self]), sessions_per_day, days)

    def __repr__(self) -> str:
        return f"<Replay {self.strategy}: {count_text(len(self.rows), 'call')}, {cost_words(self)}>"

    def _repr_html_(self) -> str:
        summary = summarise_ledgers([self])
        return _table(summary).html() + "".join(map(paragraph, token_sentences(summary)))


@named_keywords(ModelOptions)
def replay(source: Source, strategy: StrategyLike | None = None, **options: Unpack[ModelOptions]) -> Replay:
    """The usage and cost of each call under `strategy`, a preset's name or a mapping with the keys of a scenario.

    `source` is a result of `read`, or a path. The default strategy is "as recorded" for a log and "automatic" for a
    conversation. Raises InputError, CannotEvaluate.
    """
    recorded = read_source(source)
    given = strategy or (AS_RECORDED if isinstance(recorded, Recording) and recorded.calls else "automatic")
    return _replay(recorded, spec_of(given), options)


@named_keywords(ModelOptions)
def compare(
    source: Source,
    strategies: Sequence[StrategyLike] | None = None,
    *,
    sets: Mapping[str, object] | None = None,
    **options: Unpack[ModelOptions],
) -> Result:
    """Replay several strategies and compare them with the first; a log also has the strategy "as recorded".

    `source` may be a scenario file: it names its own strategies and options, and `sets` overrides its values, like
    {"conversation.head.tools.tokens": 4000}. Raises InputError with every error, CannotEvaluate.
    """
    if isinstance(source, str | Path) and is_yaml(Path(source)):
        return _compare_scenario(Path(source), strategies, sets or {}, options)
    given: object = source
    if isinstance(given, list | tuple):  # strategies in place of the recording
        specs_of(given)
        raise InputError([Fault("recording:", f"expected before the strategies: compare(read(…), {list(given)})")])
    if strategies is None or sets:
        raise InputError([Fault("strategies:", "expected a list of them; only a scenario's file names its own")])
    specs, recorded = specs_of(strategies), read_source(source)
    ledgers: list[Ledger] = [_replay(recorded, spec, options) for spec in specs]
    setup = comparison_setup(recorded, **options)
    rules = {name: str(value) for name, value in (options.get("rules") or {}).items()}
    rows = [row for ledger in ledgers for row in ledger.rows]
    last_day = max((day_of(row.start) for row in rows if row.timestamp), default=None)
    models = [setup.model] if setup.model else list(dict.fromkeys(row.model for row in rows))
    host = host_of(None, setup.host, next(iter(models), ""))
    day = setup.day or last_day or data_date(setup.host)
    return Result(Comparison("", host, ", ".join(models), day, rules, ledgers, ledgers[0].strategy))


def _compare_scenario(
    path: Path, strategies: object, sets: Mapping[str, object], options: Mapping[str, object]
) -> Result:
    from cachecost.analysis.comparison.run import run
    from cachecost.live.agent_runs.recorder import AgentRecorder
    from cachecost.scenario import load

    given = [*(["strategies"] if strategies is not None else []), *options]
    if given:
        raise InputError([Fault(str(path), f"sets {', '.join(given)} itself; override them with sets={{…}}")])
    scenario = load(path, [f"{key}={json.dumps(value, default=str)}" for key, value in sets.items()])
    if not scenario.strategies:
        raise InputError([scenario.fault(("strategies",), "expected a list: compare(…) compares strategies")])
    with AgentRecorder() as recorder:
        found = run(recorder.record(path, scenario).scenario, path.parent)
    return Result(found.main, found.question, tuple(found.comparisons[1:]), found.verdict)


def _replay(recorded: Conversation | Recording, spec: SpecOrRecorded, options: ModelOptions) -> Replay:
    if spec is None:
        workload = workload_of(recorded, **options)
        setup = replace(workload.setup, may_lack_prices=True)
        rows = list(replace(workload, setup=setup).simulation().rows(workload.calls))
        return Replay(AS_RECORDED, rows, [], setup.token_source, margin(rows, setup.error_margin))
    setup = replace(comparison_setup(recorded, **options), may_lack_prices=True)
    ledger = replay_strategy(spec, conversations_in(recorded), setup)
    uses_bills = bool(setup.bills) and not options.get("model")
    source = f"the recording's bills, then {ledger.token_source}" if uses_bills else ledger.token_source
    return _as_replay(replace(ledger, token_source=source))


def cost_words(ledger: Ledger) -> str:
    """Its dollars; without a price, the tokens to compute."""
    summed = ledger.usage
    return dollars(ledger.cost.total) if ledger.is_priced else f"{tokens(summed.unread)} to compute"


def _as_replay(ledger: Ledger) -> Replay:
    return ledger if isinstance(ledger, Replay) else Replay(**{f.name: getattr(ledger, f.name) for f in fields(ledger)})


STRATEGY_FIELDS = (
    *("name", "calls", "errors", "usage", "cost_usd", "cost_by_class_usd", "vs_first", "lower_bound_usd"),
    *("inquiries", "cost_per_inquiry_usd"),
)


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """A comparison of strategies. `question` and `variants` (by name) are those of a scenario."""

    comparison: Comparison
    question: str = ""
    others: tuple[Comparison, ...] = ()
    verdict_of_run: str = ""
    """What `run` says of the scenario."""

    def __getitem__(self, strategy: str) -> Replay:
        """The calls of a strategy by its name. Raises KeyError."""
        for ledger in self.comparison.ledgers:
            if ledger.strategy == strategy:
                return _as_replay(ledger)
        raise KeyError(f"{strategy}; there are {', '.join(one.strategy for one in self.comparison.ledgers)}")

    @property
    def best(self) -> Replay:
        """The cheapest strategy that had no refused call."""
        return _as_replay(self.comparison.best)

    @property
    def first(self) -> Replay:
        """The strategy that the others are compared with."""
        return _as_replay(self.comparison.base)

    @property
    def verdict(self) -> str:
        """The answer in at most 40 words, with the rounded numbers of the table; that of `run` for a scenario."""
        return self.verdict_of_run or verdict_of([self.comparison, *self.others])

    @property
    def variants(self) -> dict[str, Result]:
        """The variants of the scenario, each as a result."""
        return {one.variant: Result(one, self.question) for one in self.others}

    def frame(self, *, money: MoneyColumn = "float") -> pd.DataFrame:
        """One row per strategy: `calls` and `errors` (refused calls); `usage.…` (tokens); `cost_usd`, its error margin
        from token counts `error_usd`, `cost_by_class_usd.…`, `lower_bound_usd` (NaN if not computed); the ratio
        `vs_first`; `inquiries` (side questions) and `cost_per_inquiry_usd` (one with all its calls); the ranks
        `rank_from` and `rank_to` (1 is the cheapest; they differ where the costs of strategies do by less than the
        error margin; NA: not compared).
        """
        from cachecost.views.run.report import comparison_object

        summary = summarise(self.comparison)
        ranks = rank_fields(summary)
        errors = {line.name: line.error if line.is_priced else None for line in summary.lines}
        rows = []
        for row in comparison_object(self.comparison)["strategies"]:
            name = row["name"]
            fields = {field: row[field] for field in STRATEGY_FIELDS}
            rows.append({**fields, "error_usd": errors[name], **ranks[name]})
        return frame_of(rows, money, index="name")

    def plot(self, picture: Picture = "dollars") -> Figure:
        """`picture` is "dollars" by token class (tokens without a price), cumulative dollars over "calls", or dollars
        of one "question". Raises InputError, CannotEvaluate."""
        from cachecost.api.charts import as_chart
        from cachecost.views.run.charts import cumulative_figure, dollars_figure, question_figure

        drawn = {"dollars": dollars_figure, "calls": cumulative_figure, "question": question_figure}
        if picture not in drawn:
            raise InputError([Fault("picture:", f"expected one of {', '.join(drawn)}; got '{picture}'")])
        if picture != "dollars" and not self.comparison.is_priced:
            raise CannotEvaluate(f"picture '{picture}' shows dollars, but no price is known; use plot() for tokens")
        return as_chart(drawn[picture](summarise(self.comparison)))

    def monthly(self, sessions_per_day: Decimal | float, days: int = DAYS) -> Monthly:
        """USD per month of each strategy at this many sessions a day, all like the compared one."""
        return monthly(summarise(self.comparison), sessions_per_day, days)

    def __repr__(self) -> str:
        ranks, costs = find_ranks(summarise(self.comparison)), []
        for ledger in self.comparison.ledgers:
            rank = ranks.get(ledger.strategy)
            costs.append(f"{ledger.strategy}: {cost_words(ledger)}{f' (rank {rank})' if rank else ''}")
        return f"<Result {'; '.join(costs)}>"

    def _repr_html_(self) -> str:
        summary = summarise(self.comparison)
        below = [*rank_sentences(summary), *token_sentences(summary), rules_sentence(self.comparison)]
        below += refusal_sentences(summary)
        return paragraph(self.verdict, strong=True) + _table(summary).html() + "".join(map(paragraph, below))


def _table(summary: Summary) -> HtmlTable:
    ranks = find_ranks(summary)
    classes = {name: summary.class_names[name] for name in summary.classes}
    asks = ("a question",) if summary.has_questions else ()
    versus = ("rank", summary.against) if len(summary.lines) > 1 else ()
    table = HtmlTable(("strategy", "calls", *classes.values(), "cost", *versus, *asks))
    for line in summary.lines:
        used = [tokens(getattr(line.usage, CLASS_FIELDS[name])) for name in classes]
        against = [str(ranks.get(line.name, "")), percent(line.vs_first, signed=True)] if versus else []
        asked = [dollars(line.question)] if asks else []
        cells = (line.name, f"{line.calls:,}", *used, dollars(line.total), *against, *asked)
        table.add(*cells, strong=line in summary.best_lines and bool(versus))
    return table
