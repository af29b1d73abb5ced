"""How much of the dollars is the price of long prompts: what lies above the price of the same tokens in short ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from cachecost.analysis.comparison.strategy_line import StrategyLine, ranked
from cachecost.analysis.comparison.summary import Summary
from cachecost.analysis.comparison.variant_run import VariantRun
from cachecost.base.errors import CannotEvaluate
from cachecost.base.formatting import all_of, dollars, percent, quote, tokens
from cachecost.base.times import day_of
from cachecost.ledger.assumptions import Assumption
from cachecost.ledger.results import ZERO, CallRow, Ledger
from cachecost.providers.prices import STANDARD
from cachecost.providers.quotes import Quote
from cachecost.providers.usage import TOKEN_CLASSES


def long_context_assumption(main: VariantRun, summary: Summary) -> Iterator[Assumption]:
    """The share of long-context prices, and what is cheapest without them; nothing where no call pays one."""
    ledgers = {ledger.strategy: ledger for ledger in summary.comparison.ledgers}
    extra = {name: surcharge(main, ledger.rows) for name, ledger in ledgers.items()}
    if not summary.is_priced or summary.best is None or not any(extra.values()):
        return
    above = sorted({limit for ledger in ledgers.values() for limit in _limits(main, ledger)})
    lines = [line for line in (summary.first, summary.best) if line is not None]
    shares = [_share(main, ledgers[name], extra[name]) for name in dict.fromkeys(line.name for line in lines)]
    without = min(ranked(summary.lines), key=lambda line: line.effort - extra[line.name])
    stays = "stays" if without.name in summary.winners else "is"
    yield Assumption(
        f"Prompts of more than {' or '.join(map(tokens, above))} tokens have the long-context price of that day",
        changes=stays == "is",
        effect=f"It is {all_of(shares)}. Without it, {quote(without.name)} {stays} the cheapest:"
        f" {_without(without, summary.first, extra)}.",
    )


def surcharge(main: VariantRun, rows: Iterable[CallRow]) -> Decimal:
    """USD of calls above what their tokens would cost at the price of short prompts."""
    return sum((_row_surcharge(main, row) for row in rows if row.error is None), ZERO)


def _row_surcharge(main: VariantRun, row: CallRow) -> Decimal:
    prices = _quote(main, row)
    if prices is None or not prices.above:
        return ZERO
    long, short = prices.of(row.usage.total_input), prices.of(0)
    costs = row.cost.by_class()
    parts = ((costs[name], getattr(long, name), getattr(short, name)) for name in TOKEN_CLASSES)
    return sum((amount * (paid - base) / paid for amount, paid, base in parts if paid != base), ZERO)


def _quote(main: VariantRun, row: CallRow) -> Quote | None:
    day = main.setup.day or day_of(row.start)
    try:
        return main.setup.prices.quote(main.setup.host, row.model, day, STANDARD)
    except CannotEvaluate:
        return None


def _limits(main: VariantRun, ledger: Ledger) -> Iterator[int]:
    """The lengths of prompt above which some of the calls pay more."""
    for row in ledger.rows:
        prices = _quote(main, row)
        yield from (limit for limit in (prices.above if prices else ()) if limit < row.usage.total_input)


def _share(main: VariantRun, ledger: Ledger, extra: Decimal) -> str:
    """ "40% of the $157.50 of “a” (42% of the $2.44 of a question)"."""
    total, asked = ledger.cost.total, ledger.inquiries
    share = f"{percent(extra / total if total else ZERO)} of the {dollars(total)} of {quote(ledger.strategy)}"
    each = ledger.per_inquiry()
    if not each:
        return share
    of_questions = surcharge(main, asked) / ledger.cost_of(asked)
    return f"{share} ({percent(of_questions)} of the {dollars(each)} of a question)"


def _without(best: StrategyLine, first: StrategyLine | None, extra: dict[str, Decimal]) -> str:
    cost = dollars(best.effort - extra[best.name])
    return cost if first is None or first is best else f"{cost} instead of {dollars(first.effort - extra[first.name])}"
