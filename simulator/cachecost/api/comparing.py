"""`replay` one strategy, `compare` several; their results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import Unpack

from cachecost.analysis.comparison.answer import verdict_of
from cachecost.analysis.comparison.ranking import Rank, find_ranks, rank_fields, rank_sentences
from cachecost.analysis.comparison.sentences import refusal_sentences, rules_sentence, token_sentences
from cachecost.analysis.comparison.strategy_line import StrategyLine
from cachecost.analysis.comparison.summary import CLASS_FIELDS, Summary, summarise, summarise_ledgers
from cachecost.api.html import HtmlTable, paragraph
from cachecost.api.projection import DAYS, Monthly, monthly
from cachecost.api.recordings import Recording, Source, conversations_in, read_source
from cachecost.api.setup import ModelOptions, comparison_setup, workload_of
from cachecost.api.strategies import SpecOrRecorded, StrategyLike, spec_of, specs_of
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.formatting import count_text, dollars, percent, tokens
from cachecost.base.suffixes import is_yaml
from cachecost.base.times import day_of
from cachecost.conversations.model import Conversation
from cachecost.ledger.margin import margin
from cachecost.ledger.results import Comparison, Ledger
from cachecost.providers.hosts import host_of
from cachecost.providers.rules import data_date
from cachecost.simulation.engine import AS_RECORDED
from cachecost.simulation.strategy_ledger import replay_strategy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

BY_BILLS = "the recording's bills, then "
RANKS = ("rank_from", "rank_to")
Picture = Literal["dollars", "calls", "question"]
PICTURES: tuple[Picture, ...] = ("dollars", "calls", "question")


@dataclass(frozen=True, slots=True, repr=False)
class Replay(Ledger):
    """The calls of one strategy: `rows`, and their sums `usage` (tokens), `cost` (USD by token class), `errors`.

    If not `is_priced`, the model is self-hosted without a price: `cost` has no meaning, only tokens have.
    """

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


def replay(source: Source, strategy: StrategyLike | None = None, **options: Unpack[ModelOptions]) -> Replay:
    """The usage and cost of each call under `strategy`, a preset's name or a mapping with the keys of a scenario.

    `source` is a result of `read`, or a path. The default strategy is "as recorded" for a log and "automatic" for a
    conversation. Raises InputError, CannotEvaluate.
    """
    recorded = read_source(source)
    given = strategy or (AS_RECORDED if isinstance(recorded, Recording) and recorded.calls else "automatic")
    return _replay(recorded, spec_of(given), options)


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
        return _of_scenario(Path(source), strategies, sets or {}, options)
    _no_strategies(source)
    if strategies is None or sets:
        raise InputError([Fault("strategies:", "expected a list of them; only a scenario's file names its own")])
    specs, recorded = specs_of(strategies), read_source(source)
    ledgers: list[Ledger] = [_replay(recorded, spec, options) for spec in specs]
    setup = comparison_setup(recorded, **options)
    rules = {name: str(value) for name, value in (options.get("rules") or {}).items()}
    day = setup.day or _last_day(ledgers) or data_date(setup.host)
    names = list(dict.fromkeys(row.model for ledger in ledgers for row in ledger.rows))
    models = ", ".join(names)
    host = host_of(None, setup.host, setup.model or next(iter(names), ""))
    return Result(Comparison("", host, setup.model or models, day, rules, ledgers, ledgers[0].strategy))


def _last_day(ledgers: Sequence[Ledger]) -> date | None:
    """The day of the last call: without `as_of` each call of a log has the rules and prices of its own day."""
    return max((day_of(row.start) for ledger in ledgers for row in ledger.rows if row.timestamp), default=None)


def _no_strategies(source: object) -> None:
    """Raises InputError where strategies are passed in place of the recording; errors in them come first."""
    if isinstance(source, list | tuple):
        specs_of(source)
        raise InputError([Fault("recording:", f"expected before the strategies: compare(read(…), {list(source)})")])


def _of_scenario(path: Path, strategies: object, sets: Mapping[str, object], options: Mapping[str, object]) -> Result:
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
        return _as_recorded(recorded, options)
    setup = replace(comparison_setup(recorded, **options), may_lack_prices=True)
    ledger = replay_strategy(spec, conversations_in(recorded), setup)
    uses_bills = bool(setup.bills) and not options.get("model")
    return _as_replay(replace(ledger, token_source=f"{BY_BILLS}{ledger.token_source}") if uses_bills else ledger)


def _as_recorded(recorded: Conversation | Recording, options: ModelOptions) -> Replay:
    if options.get("model"):
        raise InputError([Fault("model:", "expected nothing: as recorded, each call ran on its own model")])
    given: dict[str, Any] = {name: value for name, value in options.items() if name != "model"}
    workload = workload_of(recorded, **given)
    setup = replace(workload.setup, may_lack_prices=True)
    rows = list(replace(workload, setup=setup).simulation().rows(workload.calls))
    return Replay(AS_RECORDED, rows, [], setup.token_source, margin(rows, setup.error_margin))


def cost_words(ledger: Ledger) -> str:
    """Its dollars; without a price, the tokens to compute."""
    summed = ledger.usage
    return dollars(ledger.cost.total) if ledger.is_priced else f"{tokens(summed.total_input - summed.read)} to compute"


def _as_replay(ledger: Ledger) -> Replay:
    """The ledger as a `Replay`."""
    return ledger if isinstance(ledger, Replay) else Replay(**{f.name: getattr(ledger, f.name) for f in fields(ledger)})


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

    def frame(self) -> pd.DataFrame:
        """One row per strategy: the numbers `calls` and `refused`; the tokens `read`, `write_5m`, `write_1h`,
        `input` (uncached) and `output`; as Decimal `cost_usd`, `error_usd` (± from token counts), `lower_bound_usd`
        (the lower bound; None if not computed) and `question_usd` (one side question with all its calls); the ratio
        `vs_first`; the ranks `rank_from` and `rank_to` (1 is the cheapest; they differ where the costs of strategies
        do by less than the error margin; NA: not compared).
        """
        import pandas as pd

        summary = summarise(self.comparison)
        ranks = rank_fields(summary)
        rows = [{**_sums(line), **ranks[line.name]} for line in summary.lines]
        return pd.DataFrame(rows).set_index("strategy").astype(dict.fromkeys(RANKS, "Int64"))

    def plot(self, picture: Picture = "dollars") -> Figure:
        """`picture` is "dollars" by token class (tokens without a price), cumulative dollars over "calls", or dollars
        of one "question". Raises InputError, CannotEvaluate."""
        from cachecost.api.charts import as_chart
        from cachecost.views.run.bar_charts import dollars_figure, question_figure
        from cachecost.views.run.line_charts import cumulative_figure

        if picture not in PICTURES:
            raise InputError([Fault("picture:", f"expected one of {', '.join(PICTURES)}; got '{picture}'")])
        if picture != "dollars" and not self.comparison.is_priced:
            raise CannotEvaluate(f"picture '{picture}' shows dollars, but no price is known; use plot() for tokens")
        draw = {"dollars": dollars_figure, "calls": cumulative_figure, "question": question_figure}[picture]
        return as_chart(draw(summarise(self.comparison)))

    def monthly(self, sessions_per_day: Decimal | float, days: int = DAYS) -> Monthly:
        """USD per month of each strategy at this many sessions a day, all like the compared one."""
        return monthly(summarise(self.comparison), sessions_per_day, days)

    def __repr__(self) -> str:
        ranks = find_ranks(summarise(self.comparison))
        costs = (_ranked_cost(ledger, ranks.get(ledger.strategy)) for ledger in self.comparison.ledgers)
        return f"<Result {'; '.join(costs)}>"

    def _repr_html_(self) -> str:
        summary = summarise(self.comparison)
        below = [
            *rank_sentences(summary),
            *token_sentences(summary),
            rules_sentence(self.comparison),
            *refusal_sentences(summary),
        ]
        return paragraph(self.verdict, strong=True) + _table(summary).html() + "".join(map(paragraph, below))


def _ranked_cost(ledger: Ledger, rank: Rank | None) -> str:
    return f"{ledger.strategy}: {cost_words(ledger)}{f' (rank {rank})' if rank else ''}"


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


def _sums(line: StrategyLine) -> dict[str, Any]:
    used = {name: getattr(line.usage, field) for name, field in CLASS_FIELDS.items()}
    return {
        "strategy": line.name,
        "calls": line.calls,
        **used,
        "cost_usd": line.cost.total if line.is_priced else None,
        "error_usd": line.error if line.is_priced else None,
        "vs_first": line.vs_first,
        "lower_bound_usd": line.lower_bound,
        "question_usd": line.question,
        "refused": line.refused,
    }
