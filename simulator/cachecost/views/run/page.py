"""The page of a run: the answer, the prompt timelines, the strategies side by side, why, how sure, which rules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from markupsafe import Markup

from cachecost.analysis.comparison.assumptions import assumption_groups, first_assumptions, summary_sentence
from cachecost.analysis.comparison.summary import (
    APART,
    CLASS_FIELDS,
    CLASS_NAMES,
    TTL_NAMES,
    Summary,
    apart_sentences,
    bold_words,
    cheapest_words,
    cumulative_title,
    join_names,
    refusal_sentences,
    rules_sentence,
    shared_notes,
    summarise,
    token_sentences,
)
from cachecost.analysis.comparison.verdict import seeds_sentence
from cachecost.base.formatting import UNKNOWN, change_text, dollars, tokens
from cachecost.base.structs import replace
from cachecost.ledger.findings import Explanation
from cachecost.ledger.results import Ledger, RunResult
from cachecost.providers.usage import ZERO
from cachecost.views.charts.style import inline
from cachecost.views.explain.text import findings_table, group_findings, headline
from cachecost.views.html.frame import render_page
from cachecost.views.run.charts import area_figure, compares_providers, cumulative_figure, group_name, providers_figure
from cachecost.views.run.tables import (
    assumption_table,
    cumulative_table,
    layer_table,
    name_strategies,
    parts_table,
    providers_title,
    published_figure_table,
    question_table,
    question_variants,
    strategy_table,
    variant_costs,
    variant_table,
)
from cachecost.views.tables.output import lower_bound_sentence, rank_column
from cachecost.views.tables.table import Column, Table
from cachecost.views.timeline.columns import (
    MOST,
    draw_paths,
    ledger_columns,
    limit_columns,
    limit_spots,
    rewritten_by_call,
)
from cachecost.views.timeline.picture import TimelineScale, TimelineView, timeline_key, timeline_view, usage_sentence

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
BILLED = "billed"
HAIRLINE = Decimal("0.0005")
FIRST = ("cache_hit_rate", "cost", "rank", "vs_first", "lower_bound", "question", "error_margin")
"""Columns before the bar; the others stand after it."""
SHOWN = 6
"""Pictures that have a place of their own; further ones are folded away together."""


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """A row of the comparison: the figures of a strategy by column, and its bar in parts of the most expensive one."""

    name: str
    anchor: str
    cells: list[tuple[str, str]]
    bar: list[tuple[str, str, str]]
    """Token class, width in percent, tooltip."""
    is_best: bool
    is_pale: bool
    mark: str = ""
    """After the name: it is compared apart."""


@dataclass(frozen=True, slots=True)
class BilledRow:
    """What a recording was billed; `saving` is the amount in large type with its words, `cells` are by column key."""

    cost: Decimal
    cells: Mapping[str, str]
    saving: tuple[str, str]


@dataclass(frozen=True, slots=True)
class ChartView:
    """A picture, what it shows, and the table behind it."""

    anchor: str
    title: str
    picture: Markup
    table: Table


def run_page(
    result: RunResult, again: str | None = None, billed: BilledRow | None = None, with_ranks: bool = False
) -> str:
    """The whole page, what was `billed` before what is simulated. `again` is the command that makes it; by default that
    of a scenario in `scenarios/`."""
    summaries = [summarise(comparison) for comparison in result.comparisons]
    main = summaries[0]
    timelines = run_timelines(main, result.explanations)
    columns = _columns(main, with_ranks)
    anchors = {name: view.anchor for view in timelines for name in (view.members or (view.name,))}
    rows = _rows(main, columns, anchors, billed)
    opened = sorted(timelines, key=lambda view: not view.is_open)
    questions = question_variants(summaries)
    variants = [variant_table(summaries), variant_costs(summaries)] if len(summaries) > 1 else []
    variants += [questions] if questions else []
    providers, *charts = _charts(summaries)
    first, *rest = SENTENCE_END.split(result.verdict) if result.verdict else [""]
    return render_page(
        "run.html",
        title=result.scenario,
        result=result,
        answer=first,
        more=rest,
        saving=billed.saving if billed else _saving(main),
        summary=main,
        headers=[(column.key, column.header) for column in columns],
        before_bar=FIRST,
        rows=rows,
        bar_classes=[name for name in main.classes if any(part[0] == name for row in rows for part in row.bar)],
        error_margins=[*token_sentences(main), *filter(None, [seeds_sentence(main, result.seeds).removesuffix(".")])],
        lower_bound=lower_bound_sentence(main.comparison.ledgers),
        refusals=refusal_sentences(main),
        compared_apart=apart_sentences(main),
        bold=bold_words(main),
        questions=question_table(main) if main.has_questions else None,
        class_names=main.class_names,
        timelines=opened[:SHOWN],
        more_timelines=opened[SHOWN:],
        timeline_legend=timeline_key(timelines, next((ledger.ttls for ledger in main.comparison.ledgers), TTL_NAMES)),
        providers=providers,
        charts=charts,
        layers=layer_table(main) if main.lines else None,
        findings=[
            (next(headline(one, groups)), findings_table(one) if groups else None)
            for one, groups in ((one, group_findings(one)) for one in result.explanations)
        ],
        variants=variants,
        published_figures=published_figure_table(result.published_figures) if result.published_figures else None,
        rules=rules_sentence(main.comparison),
        assumption_sentence=summary_sentence(result.assumptions),
        assumed=assumption_groups(result.assumptions),
        first_assumed=first_assumptions(result.assumptions),
        assumptions=assumption_table(main.comparison.rules, main.comparison.host),
        notes=[(note, name_strategies(names, main)) for note, names in shared_notes(main.lines)],
        versions=sorted(result.versions.items()),
        again=again or f"cachecost run scenarios/{result.scenario}.yaml",
    )


def _saving(summary: Summary) -> tuple[str, str] | None:
    """The saving in few words, and what it is a saving of; None where there is nothing to compare."""
    best, first = summary.best, summary.first
    if best is None or best.is_empty:
        return None
    if first in summary.best_lines or first is None or best.vs_first is None:
        subject = cheapest_words(summary) if len(summary.lines) > 1 else f"“{best.name}”"
        return best.answer, subject
    return change_text(best.vs_first), f"{best.answer} instead of {first.answer}: {join_names(summary.winners)}"


def _rows(
    summary: Summary, columns: Sequence[Column], anchors: Mapping[str, str], billed: BilledRow | None
) -> list[StrategyRow]:
    """A row a strategy, after that of the bill; a bar is in USD, or in tokens where no price is known."""
    is_priced = summary.is_priced
    names = CLASS_NAMES if is_priced else summary.class_names
    parts = [
        line.cost.by_class()
        if is_priced
        else {name: Decimal(getattr(line.usage, CLASS_FIELDS[name])) for name in summary.classes}
        for line in summary.lines
    ]
    amounts = [
        line.cost.total if is_priced else sum(found.values(), ZERO)
        for line, found in zip(summary.lines, parts, strict=True)
    ]
    largest = max([*amounts, *([billed.cost] if billed else [])], default=ZERO)
    rows = []
    if billed and is_priced:
        cells = [(column.key, billed.cells.get(column.key, "")) for column in columns]
        width = f"{billed.cost / largest * 100:.2f}" if largest else "0"
        bar = [(BILLED, width, f"billed {dollars(billed.cost)}")]
        rows.append(StrategyRow(BILLED, "", cells, bar, False, False))
    for number, (line, found) in enumerate(zip(summary.lines, parts, strict=True)):
        bar = [
            (
                name,
                f"{amount / largest * 100:.2f}",
                f"{names[name]} {dollars(amount) if is_priced else tokens(int(amount))}",
            )
            for name, amount in found.items()
            if amount > largest * HAIRLINE
        ]
        rows.append(
            StrategyRow(
                line.name,
                anchors.get(line.name, "strategies"),
                [(column.key, column.cells[number].strip()) for column in columns],
                bar,
                line in summary.best_lines,
                bool(line.refused) or line.is_apart,
                APART if line.is_apart else "",
            )
        )
    return rows


def _columns(summary: Summary, with_ranks: bool) -> list[Column]:
    """The columns of every other view, what it costs first: that is what a narrow page shows."""
    lines = summary.lines
    if not lines:
        return []
    places = lines[0].places
    errors = [dollars(None if line.total is None else line.error, places) for line in lines]
    errors = [cell if cell.startswith(("<", UNKNOWN)) else f"±{cell}" for cell in errors]
    ranks = [rank_column(summary, [line.name for line in lines])] if with_ranks and len(lines) > 1 else []
    columns = [*strategy_table(summary).columns[1:], *ranks, Column("error_margin", "error margin", errors)]
    return sorted(columns, key=lambda column: FIRST.index(column.key) if column.key in FIRST else len(FIRST))


def _charts(summaries: Sequence[Summary]) -> list[ChartView | None]:
    """What each provider costs, else None; then, where there are prices, dollars so far: of all strategies, and of the
    first and the best by token class and layer."""
    summary, charts = summaries[0], list[ChartView | None]()
    if compares_providers(summaries):
        title = providers_title(summaries)
        picture = inline(providers_figure(summaries, headed=False), "providers", title)
        charts.append(ChartView("providers", title, picture, question_variants(summaries) or variant_costs(summaries)))
    else:
        charts.append(None)
    if not summary.is_priced:
        return charts
    if any(line.cost.total for line in summary.lines):
        title = cumulative_title(summary)
        picture = inline(cumulative_figure(summary, headed=False), "cumulative", title)
        charts.append(ChartView("cumulative", title, picture, cumulative_table(summary)))
    shown = dict.fromkeys(line.name for line in (summary.first, summary.best) if line is not None and line.cost.total)
    ledgers = {ledger.strategy: ledger for ledger in summary.comparison.ledgers}
    top = max((float(ledgers[name].cost.total) for name in shown), default=0.0) * 1.03
    for number, name in enumerate(shown, 1):
        title = f"“{name}”: dollars so far by token class, and by layer of the prompt"
        picture = inline(area_figure(ledgers[name], top), f"parts{number}", title)
        charts.append(ChartView(f"parts-{number}", title, picture, parts_table(ledgers[name])))
    return charts


def run_timelines(summary: Summary, explanations: Sequence[Explanation] = ()) -> list[TimelineView]:
    """The first and the best strategy open, then the others in their order; `explanations` tell what was rewritten."""
    ledgers = [ledger for ledger in summary.comparison.ledgers if ledger.rows]
    shown = [line.name for line in (summary.first, summary.best) if line is not None]
    order = sorted(ledgers, key=lambda one: shown.index(one.strategy) if one.strategy in shown else len(shown))
    longest = max((row.usage.total_input for ledger in ledgers for row in ledger.rows), default=0)
    rewritten = {one.strategy: rewritten_by_call(one) for one in explanations}
    groups: dict[tuple[object, ...], list[Ledger]] = {}  # those whose columns are the same to the eye
    for ledger in order:
        paths = draw_paths(ledger_columns(ledger, MOST), longest)
        groups.setdefault((len(ledger.rows), *paths.states, paths.refused), []).append(ledger)
    others = len(groups) - len(set(shown))
    anchors = {line.name: f"strip-{number + 1}" for number, line in enumerate(summary.lines)}
    views = []
    for group in groups.values():
        ledger, names = group[0], [one.strategy for one in group]
        is_open = ledger.strategy in shown
        limits = () if is_open else (limit_columns(others), limit_spots(others))
        calls = ledger_columns(ledger, max(len(ledger.rows), 1), rewritten.get(ledger.strategy, {}))
        says = usage_sentence(len(ledger.rows), ledger.usage, ledger.cost.total if ledger.is_priced else None)
        scale, anchor = TimelineScale(longest, *limits), anchors[ledger.strategy]
        view = timeline_view(group_name(names), anchor, says, calls, scale, is_open=is_open)
        views.append(replace(view, members=names))
    return views
