"""The tables of a run's page as words, with the rounded numbers of every other view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal

from cachecost.analysis.comparison.sentences import MOST_COLUMNS, variant_name, variant_rows
from cachecost.analysis.comparison.summary import CLASS_FIELDS, CLASS_NAMES, Line, Summary
from cachecost.base.formatting import UNKNOWN, change, dollars, exact_dollars, percent, tokens
from cachecost.ledger.findings import Explanation
from cachecost.ledger.results import ZERO, CallRow, Claim, Ledger
from cachecost.prompts.blocks import Layer
from cachecost.providers.listing import switch_rows
from cachecost.views.explain.text import groups
from cachecost.views.html.frame import Table
from cachecost.views.run.area_charts import by_class, by_layer, running, thinned
from cachecost.views.tables.columns import vs_first

CALLS_SHOWN = 20
SHOWN_CALLS = 6


def question_table(summary: Summary) -> Table:
    """What one question is made of under each strategy: mean tokens by class, dollars."""
    asking = [line for line in summary.lines if line.questions]
    cheapest = min((line.question for line in asking if line.question is not None), default=None)
    classes = [summary.class_names[name] for name in summary.classes]
    return Table(
        "What one question costs: means over all questions, retries included",
        ["strategy", "questions", "calls", *classes, "a question", summary.against],
        [_question_cells(line, summary) for line in asking],
        strong=_where(line.question is not None and line.question == cheapest for line in asking),
    )


def cumulative_table(summary: Summary) -> Table:
    """Dollars so far of each strategy at some calls, the last one among them."""
    ledgers = [ledger for ledger in summary.comparison.ledgers if ledger.rows]
    most = max((len(ledger.rows) for ledger in ledgers), default=0)
    at = thinned(most, CALLS_SHOWN)[1:]
    sums = [_so_far(ledger.rows) for ledger in ledgers]
    rows = [
        [ledger.strategy, *(dollars(each[number]) if number < len(each) else "" for number in at)]
        for ledger, each in zip(ledgers, sums, strict=True)
    ]
    return Table("Dollars so far, after so many calls", ["strategy", *(f"{number:,}" for number in at)], rows)


def parts_table(ledger: Ledger) -> Table:
    """Dollars so far by token class and by layer, after some calls."""
    at = thinned(len(ledger.rows), CALLS_SHOWN)[1:]
    parts: list[tuple[str, Callable[[CallRow], Mapping[str, Decimal]], str]] = [
        *((CLASS_NAMES[name], by_class, name) for name in CLASS_NAMES),
        *((f"{layer} layer", by_layer, layer.value) for layer in Layer),
    ]
    rows = [
        [title, *(dollars(sums[number]) for number in at)]
        for title, split, name in parts
        if (sums := running(ledger.rows, split, name))[-1]
    ]
    return Table("Dollars so far, after so many calls", ["part", *(f"{number:,}" for number in at)], rows)


def layer_table(summary: Summary) -> Table:
    """Dollars of input by layer of the prompt, and of output."""
    rows = [_layer_cells(line) for line in summary.lines]
    headers = ["strategy", *(layer.value for layer in Layer), "output", "cost"]
    return Table("Dollars by layer of the prompt", headers, rows, strong=_best(summary))


def findings_table(told: Explanation) -> Table:
    """A row a cause, the dearest first, with its dearest example and the mend."""
    rows = [
        [
            f"{group.dearest.code} {group.dearest.cause.replace('_', ' ')}",
            f"call {group.dearest.call}: {group.dearest.message}",
            group.dearest.fix,
            _calls([finding.call for finding in group.findings]),
            f"{len(group.findings):,}",
            dollars(group.cost),
        ]
        for group in groups(told)
    ]
    headers = ["cause", "dearest example", "what mends it", "calls", "times", "avoidable"]
    return Table(f"What “{told.strategy}” pays more than it must", headers, rows, names=4)


def variant_table(summaries: Sequence[Summary]) -> Table:
    """A row a reading: what it assumes, who is cheapest there, whether the order of the strategies stays."""
    rows = [
        [
            row.variant,
            summary.comparison.as_of.isoformat(),
            summary.comparison.model,
            readings(summary.comparison.rules),
            row.best,
            row.cost,
            row.saving,
            row.order,
        ]
        for row, summary in zip(variant_rows(summaries), summaries, strict=True)
    ]
    headers = ["reading", "as of", "model", "switches", "cheapest", "cost", summaries[0].against, "order"]
    return Table("The same comparison under other readings", headers, rows, names=5)


def variant_costs(summaries: Sequence[Summary]) -> Table:
    """What each strategy costs in each reading, and against the first strategy there."""
    caption = "Cost of each strategy under each reading"
    names = list(dict.fromkeys(line.name for summary in summaries for line in summary.lines))
    variants = [variant_name(summary.comparison) for summary in summaries]
    if len(variants) > MOST_COLUMNS:
        cells = [[_variant_cell(summary, name) for name in names] for summary in summaries]
        below = [[variant, *costs] for variant, costs in zip(variants, cells, strict=True)]
        return Table(caption, ["reading", *names], below, wraps=True)
    rows = [[name, *(_variant_cell(summary, name) for summary in summaries)] for name in names]
    return Table(caption, ["strategy", *variants], rows, strong=_best(summaries[0]))


def claim_table(claims: Sequence[Claim]) -> Table:
    """Figures somebody published, beside what they are to the last digit."""
    rows = [[claim.source, claim.says, claim.how, _exactly(claim)] for claim in claims]
    return Table("Published figures, exactly", ["source", "says", "how", "exactly"], rows, names=3)


def switch_table(rules: Mapping[str, str], host: str) -> Table:
    """Every open rule of `host`: the reading that was used, what it means, and the other readings."""
    rows = []
    for switch in switch_rows(host):
        used = rules.get(switch.name, switch.readings[0].value)
        means = next((each.means for each in switch.readings if each.value == used), "")
        others = ", ".join(each.value for each in switch.readings if each.value != used)
        rows.append([switch.name, used, means, others or switch.number or ""])
    headers = ["switch", "reading used", "which means", "other readings"]
    strong = _where(switch.name in rules for switch in switch_rows(host))
    return Table("Rules on which the sources are silent or differ", headers, rows, names=4, strong=strong)


def readings(rules: Mapping[str, str]) -> str:
    """Switches that are not at their default, in words."""
    return ", ".join(f"{name}={value}" for name, value in sorted(rules.items())) or "defaults"


def _so_far(rows: Sequence[CallRow]) -> list[Decimal]:
    total, sums = ZERO, [ZERO]
    for row in rows:
        total += row.cost.total
        sums.append(total)
    return sums


def _where(marked: Iterable[bool]) -> frozenset[int]:
    return frozenset(number for number, each in enumerate(marked) if each)


def _best(summary: Summary) -> frozenset[int]:
    return _where(line in summary.tied for line in summary.lines)


def _question_cells(line: Line, summary: Summary) -> list[str]:
    counts = [line.name, f"{line.questions:,}", f"{line.question_calls:,}"]
    if line.question is None and (line.is_priced or any(line.refusals)):
        return [*counts, *([UNKNOWN] * (len(summary.classes) + 2))]
    means = [getattr(line.question_usage, CLASS_FIELDS[name]) / line.questions for name in summary.classes]
    base = summary.first.question if summary.first and line is not summary.first else None
    against = percent(change(line.question, base), signed=True)
    return [*counts, *(tokens(round(mean)) for mean in means), line.question_money, against]


def _layer_cells(line: Line) -> list[str]:
    amounts = [*(line.by_layer.get(layer, ZERO) for layer in Layer), line.cost.output, line.cost.total]
    return [line.name, *(dollars(None if line.total is None else amount) for amount in amounts)]


def _calls(calls: Sequence[int]) -> str:
    numbers = sorted(set(calls))
    return ", ".join(f"{number:,}" for number in numbers[:SHOWN_CALLS]) + (" …" if len(numbers) > SHOWN_CALLS else "")


def _variant_cell(summary: Summary, name: str) -> str:
    line = summary.line(name)
    if line is None or line.is_empty:
        return UNKNOWN
    against = vs_first(line)
    return line.answer if against == UNKNOWN else f"{line.answer} ({against})"


def _exactly(claim: Claim) -> str:
    return f"{claim.exact * 100:.1f}%".replace("-", "−") if claim.is_share else exact_dollars(claim.exact)
