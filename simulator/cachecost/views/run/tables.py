"""The tables of a comparison, each built once: the terminal, report.md and the HTML page render them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal

from cachecost.analysis.comparison.summary import (
    CLASS_FIELDS,
    CLASS_NAMES,
    MOST_COLUMNS,
    StrategyLine,
    Summary,
    assumptions_set,
    ranked,
    shown_name,
    variant_name,
    variant_rows,
)
from cachecost.base.formatting import (
    UNKNOWN,
    change,
    count_text,
    dollars,
    exact_dollars,
    percent,
    percent_column,
    point_aligned,
    quote,
    token_column,
    tokens,
)
from cachecost.base.structs import replace
from cachecost.ledger.results import Ledger, PublishedFigure
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Layer
from cachecost.providers.listing import assumption_rows
from cachecost.providers.usage import ZERO
from cachecost.views.tables.output import have_own_bounds
from cachecost.views.tables.table import (
    ANSWER,
    COMPARISON,
    COUNT,
    DETAIL,
    LOWER_BOUND,
    REFUSED,
    ZERO_CLASS,
    Column,
    Table,
    build_table,
    shorten_middle,
    true_rows,
    word_column,
)

CALLS_SHOWN = 20

POINTS = 120
"""Points of a curve at most: more cannot be seen."""
PREFILL = "prefill"
"""Key of the column of uncached tokens where no price is known: the one that counts."""
Split = Callable[[CallRow], Mapping[str, Decimal]]
"""USD of a call by the names of its parts."""
QUESTION_TITLE = "Cost of one question in each variant"


def strategy_table(summary: Summary) -> Table:
    lines = summary.lines
    columns = [Column("name", "strategy", [shown_name(line) for line in lines], right=False)]
    if any(line.described_in for line in lines):
        columns.append(word_column("described in", [line.described_in for line in lines], DETAIL))
    columns.append(Column("calls", "calls", [f"{line.calls:,}" for line in lines], rank=COUNT))
    for name in summary.classes:  # tokens; a class that is zero everywhere may be hidden, one that counts never
        key = PREFILL if name == "input" and not summary.is_priced else name
        counts = [None if line.is_empty else getattr(line.usage, CLASS_FIELDS[name]) for line in lines]
        rank = ANSWER if any(counts) or key == PREFILL else ZERO_CLASS
        columns.append(Column(key, summary.class_names[name], token_column(counts), rank=rank))
    if not summary.is_priced:
        columns.append(
            Column("cache_hit_rate", "cache hit rate", percent_column([line.cache_hit_rate for line in lines]))
        )
    columns.append(Column("cost", "cost", point_aligned([line.money for line in lines])))
    if len(lines) > 1:
        against = percent_column([line.vs_first for line in lines], signed=True)
        cells = [REFUSED if line.refused else cell for line, cell in zip(lines, against, strict=True)]
        columns.append(Column("vs_first", summary.against, cells, rank=COMPARISON))
    if have_own_bounds(summary.comparison.ledgers):
        above = percent_column([line.above_lower_bound for line in lines], signed=True)
        columns.append(Column("lower_bound", "above lower bound", above, rank=LOWER_BOUND))
    if summary.has_questions:
        columns.append(Column("question", "a question", point_aligned([line.question_money for line in lines])))
    if any(line.less is not None and line.less.calls for line in lines):
        columns.append(
            Column("conversation", "conversation sent", [_sent_cell(line) for line in lines], rank=COMPARISON)
        )
    return Table(columns, strong=_best_rows(summary))


def _sent_cell(line: StrategyLine) -> str:
    """How much of the compared strategy's conversation it sends in the same calls; "all" where it sees no less."""
    less = line.less
    if less is None:
        return "all"
    if less.unasked:
        return f"{less.calls - less.unasked:,} of {less.calls:,} questions"
    return percent(Decimal(less.tokens) / less.compared_tokens) if less.compared_tokens else "less"


def question_table(summary: Summary) -> Table:
    """What one question is made of under each strategy: mean tokens by class, dollars."""
    lines = [line for line in summary.lines if line.questions]
    compared = ranked(lines)
    cheapest = min((line.question for line in compared if line.question is not None), default=None)
    classes = [summary.class_names[name] for name in summary.classes]
    return build_table(
        "What one question costs: means over all questions, retries included",
        ["strategy", "questions", "calls", *classes, "a question", summary.against],
        [_question_cells(line, summary) for line in lines],
        strong=[line in compared and line.question is not None and line.question == cheapest for line in lines],
    )


def layer_table(summary: Summary) -> Table:
    lines = summary.lines
    rests = [line.cost.total - line.cost.output - sum(line.by_layer.values(), ZERO) for line in lines]
    # dollars that dividing an amount among layers may leave over
    with_rest = any(abs(rest) > Decimal("1e-12") for rest in rests)
    headers = ["strategy", *(layer.value for layer in Layer), *["not in a layer"] * with_rest, "output", "cost"]
    rows = []
    for line, rest in zip(lines, rests, strict=True):
        amounts = [*(line.by_layer.get(layer, ZERO) for layer in Layer), *[rest] * with_rest]
        amounts += [line.cost.output, line.cost.total]
        rows.append([shown_name(line), *(dollars(None if line.total is None else amount) for amount in amounts)])
    return replace(build_table("Dollars by layer of the prompt", headers, rows), strong=_best_rows(summary))


def cause_table(summary: Summary) -> Table | None:
    """Dollars of writes and uncached input by the cause of their call, most expensive cause first; None without any."""
    sums: dict[str, Decimal] = {}
    by_strategy: dict[str, dict[str, tuple[Decimal, int]]] = {}
    for ledger in summary.comparison.ledgers:
        costs = by_strategy[ledger.strategy] = {}
        for row in ledger.rows:
            if row.cause is not None:
                amount, count = costs.get(row.cause, (ZERO, 0))
                spent = row.cost.write_5m + row.cost.write_1h + row.cost.input
                costs[row.cause] = (amount + spent, count + 1)
                sums[row.cause] = sums.get(row.cause, ZERO) + spent
    order = sorted((cause for cause in sums if sums[cause]), key=lambda cause: (-sums[cause], cause))
    rows = [
        [name, *(f"{dollars(costs[cause][0])} ({costs[cause][1]:,})" if cause in costs else "" for cause in order)]
        for name, costs in by_strategy.items()
    ]
    headers = ["strategy", *(cause.replace("_", " ") for cause in order)]
    return build_table("Dollars of what was not read, by cause", headers, rows) if order else None


def variant_table(summaries: Sequence[Summary], longest_best: int | None = None) -> Table:
    """A row a variant: its assumptions, the cheapest strategy (its name shortened to `longest_best` cells), and whether
    the order of the strategies stays."""
    rows, main = variant_rows(summaries), summaries[0]
    comparisons = [summary.comparison for summary in summaries]
    best = [shorten_middle(row.best, longest_best) if longest_best else row.best for row in rows]
    columns = [
        Column("name", "variant", [row.variant for row in rows], right=False),
        word_column("as of", [comparison.as_of.isoformat() for comparison in comparisons], DETAIL),
        word_column("model", [comparison.model for comparison in comparisons], DETAIL),
        word_column("assumptions", [assumptions_set(comparison) or "defaults" for comparison in comparisons], DETAIL),
        Column("best", "cheapest", best, right=False),
        Column("first", main.comparison.first, point_aligned([row.first for row in rows]), rank=LOWER_BOUND),
        Column("cost", "cost", point_aligned([row.cost for row in rows])),
        Column("saving", main.against, [row.saving for row in rows], rank=COMPARISON),
        word_column("order", [row.order for row in rows], COMPARISON),
    ]
    return Table(columns, "The same comparison in each variant", wraps=True)


def variant_costs(summaries: Sequence[Summary]) -> Table:
    """What each strategy costs in each variant, and against the first strategy there; the cheapest are bold."""
    best = [set(summary.winners) for summary in summaries]
    return strategies_by_variant("Cost of each strategy in each variant", summaries, _variant_cell, best)


def strategies_by_variant(
    title: str, summaries: Sequence[Summary], cell: Callable[[Summary, str], str], best: Sequence[Collection[str]]
) -> Table:
    """A `cell` for each strategy and variant, those of the `best` bold; many variants are rows, few are columns."""
    names = list(dict.fromkeys(line.name for summary in summaries for line in summary.lines))
    cells = [[cell(summary, name) for name in names] for summary in summaries]
    variants = [variant_name(summary.comparison) for summary in summaries]
    if len(variants) > MOST_COLUMNS:
        rows = [[variant, *row] for variant, row in zip(variants, cells, strict=True)]
        bold = [true_rows(name in winners for winners in best) for name in names]
        table = build_table(title, ["variant", *names], rows, wraps=True)
    else:
        rows = [[name, *(column[number] for column in cells)] for number, name in enumerate(names)]
        bold = [true_rows(name in winners for name in names) for winners in best]
        table = build_table(title, ["strategy", *variants], rows)
    columns = [replace(column, bold=one) for column, one in zip(table.columns, [frozenset[int](), *bold], strict=True)]
    return replace(table, columns=columns)


def published_figure_table(published_figures: Sequence[PublishedFigure]) -> Table:
    rows = []
    for one in published_figures:
        exactly = percent(one.exact, places=1) if one.is_share else exact_dollars(one.exact)
        rows.append([one.source, one.says, one.how, exactly])
    return build_table("Published figures, exactly", ["source", "says", "how", "exactly"], rows, words=3)


def assumption_table(rules: Mapping[str, str], host: str) -> Table:
    """Every open rule of `host`: the value that was used, what it means, and the other values."""
    assumptions = assumption_rows(host)
    rows = []
    for switch in assumptions:
        used = rules.get(switch.name, switch.readings[0].value)
        means = next((reading.means for reading in switch.readings if reading.value == used), "")
        others = ", ".join(reading.value for reading in switch.readings if reading.value != used)
        rows.append([switch.name, used, means, others or switch.number or ""])
    headers = ["assumption", "value used", "meaning", "other values"]
    strong = [switch.name in rules for switch in assumptions]
    return build_table("Rules on which the sources are silent or differ", headers, rows, words=4, strong=strong)


def cumulative_table(summary: Summary) -> Table:
    """Dollars so far of each strategy after some calls, the last one among them."""
    ledgers = [ledger for ledger in summary.comparison.ledgers if ledger.rows]
    sums = {ledger.strategy: running_sums(ledger.rows, lambda row: row.cost.total) for ledger in ledgers}
    return _table_so_far("strategy", sums, max((len(ledger.rows) for ledger in ledgers), default=0))


def parts_table(ledger: Ledger) -> Table:
    """Dollars so far by token class and by layer, after some calls."""
    classes = {**CLASS_NAMES, "fees": "fees of server tools"}
    sums = {title: running_parts(ledger.rows, cost_by_class, name) for name, title in classes.items()}
    sums |= {f"{layer} layer": running_parts(ledger.rows, cost_by_layer, layer.value) for layer in Layer}
    return _table_so_far("part", {title: found for title, found in sums.items() if found[-1]}, len(ledger.rows))


def _table_so_far(header: str, sums: Mapping[str, Sequence[Decimal]], calls: int) -> Table:
    numbers = sample_numbers(calls, CALLS_SHOWN)[1:]
    rows = [[name, *(dollars(own[at]) if at < len(own) else "" for at in numbers)] for name, own in sums.items()]
    return build_table("Dollars so far, after so many calls", [header, *(f"{number:,}" for number in numbers)], rows)


def running_parts(rows: Sequence[CallRow], split: Split, name: str) -> list[Decimal]:
    """USD so far of one part, after each call; as `running_sums`."""
    return running_sums(rows, lambda row: split(row).get(name, ZERO))


def cost_by_class(row: CallRow) -> Mapping[str, Decimal]:
    return row.cost.by_class()


def cost_by_layer(row: CallRow) -> Mapping[str, Decimal]:
    return {**{layer.value: amount for layer, amount in row.cost_by_layer.items()}, "output": row.cost.output}


def running_sums(rows: Sequence[CallRow], amount_of: Callable[[CallRow], Decimal]) -> list[Decimal]:
    """USD so far after each call; the first sum is that before any call, 0."""
    total, sums = ZERO, [ZERO]
    for row in rows:
        total += amount_of(row)
        sums.append(total)
    return sums


def sample_numbers(count: int, most: int = POINTS) -> list[int]:
    """Numbers from 0 to `count`, both included, evenly spaced; at most `most` + 1 of them."""
    if count <= most:
        return list(range(count + 1))
    return [round(number * count / most) for number in range(most + 1)]


def _best_rows(summary: Summary) -> frozenset[int]:
    return true_rows(line in summary.best_lines for line in summary.lines)


def _question_cells(line: StrategyLine, summary: Summary) -> list[str]:
    counts = [shown_name(line), f"{line.questions:,}", f"{line.question_calls:,}"]
    if line.question is None and (line.is_priced or any(line.refusals)):
        return [*counts, *([UNKNOWN] * (len(summary.classes) + 2))]
    means = [getattr(line.question_usage, CLASS_FIELDS[name]) / line.questions for name in summary.classes]
    base = summary.first.question if summary.first and line is not summary.first else None
    against = percent(change(line.question, base), signed=True)
    return [*counts, *(tokens(round(mean)) for mean in means), line.question_money, against]


def _variant_cell(summary: Summary, name: str) -> str:
    line = summary.line(name)
    if line is None or line.is_empty:
        return UNKNOWN
    against = REFUSED if line.refused else percent(line.vs_first, signed=True)
    return line.answer if against == UNKNOWN else f"{line.answer} ({against})"


def name_strategies(names: Sequence[str], summary: Summary) -> str:
    """ "every strategy", or the names of those that are not all."""
    return "every strategy" if len(names) == len(summary.lines) > 1 else ", ".join(f"“{name}”" for name in names)


def providers_title(summaries: Sequence[Summary]) -> str:
    """ "One question in each variant: “answer tool, auto” costs less than “structured output, no tools” in 9 of 20"."""
    main = summaries[0]
    first, best = main.first, main.best
    what = "One question" if main.has_questions else "The session"
    if first is None or best is None or first in main.best_lines:
        return f"{what} in each of {count_text(len(summaries), 'variant')}"
    pairs = [(summary.line(best.name), summary.line(first.name)) for summary in summaries]
    amounts = [
        (one.question, other.question) if main.has_questions else (one.total, other.total)
        for one, other in pairs
        if one is not None and other is not None
    ]
    known = [(one, other) for one, other in amounts if one is not None and other is not None]
    cheaper = sum(one < other for one, other in known)
    names = f"{quote(best.name)} costs less than {quote(first.name)}"
    return f"{what}: {names} in {cheaper:,} of {count_text(len(known), 'variant')}"


def provider_name(summary: Summary, main: Summary) -> str:
    """The name of a variant; the scenario as written has its host's."""
    comparison = summary.comparison
    return f"{comparison.host}, as written" if summary is main else variant_name(comparison)


def question_variants(summaries: Sequence[Summary]) -> Table | None:
    """A cell for each strategy and variant, the cheapest of a variant bold; None without variants or questions."""
    if len(summaries) < 2 or not summaries[0].has_questions:
        return None
    best = []
    for summary in summaries:
        costs = {line.name: line.question for line in ranked(summary.lines) if line.question is not None}
        least = min(costs.values(), default=ZERO)
        best.append({name for name, cost in costs.items() if cost == least})
    return strategies_by_variant(QUESTION_TITLE, summaries, _cell, best)


def _cell(summary: Summary, name: str) -> str:
    line, first = summary.line(name), summary.first
    if line is None or not line.questions:
        return UNKNOWN
    against = None if first is None or first is line else change(line.question, first.question)
    return line.question_money if against is None else f"{line.question_money} ({percent(against, signed=True)})"
