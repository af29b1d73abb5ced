"""What machines read of a run: one JSON object of sums, one CSV row a call. Dollars with all their digits."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from io import StringIO
from json import dumps
from typing import Any

from cachecost.analysis.comparison.strategy_line import StrategyLine, best_and_next, error_of_difference
from cachecost.analysis.comparison.summary import Summary, summarise
from cachecost.base.formatting import exact
from cachecost.ledger.assumptions import Assumption, BreakEven, TriedValue
from cachecost.ledger.conversation_shares import QUESTIONS, LessInput
from cachecost.ledger.results import Comparison, PublishedFigure, RunResult
from cachecost.scenario.assumed import plain
from cachecost.views.replay.call_rows import FORMAT, write_call_csv


def run_json(result: RunResult) -> str:
    """The object of `run --json`, indented, ending in a newline.

    `strategies` are those of the scenario as written, `variants` hold the further comparisons alike.
    """
    return dumps(run_object(result), ensure_ascii=False, indent=2) + "\n"


def run_object(result: RunResult) -> dict[str, Any]:
    """What `run_json` writes, as plain dicts, lists, strings and numbers. `best` is None if no strategy ran whole."""
    return {
        "format": FORMAT,
        "scenario": result.scenario,
        "question": result.question,
        "about": result.about,
        "verdict": result.verdict,
        **_comparison(result.main),
        "variants": [{"variant": each.variant, **_comparison(each)} for each in result.comparisons[1:]],
        "published_figures": [_published_figure(published_figure) for published_figure in result.published_figures],
        "seeds": [{"seed": int(each.variant.split()[-1]), **_comparison(each)} for each in result.seeds],
        "assumptions": [_assumption(one) for one in result.assumptions],
        "versions": dict(sorted(result.versions.items())),
    }


def calls_csv(result: RunResult) -> str:
    """One row a call, over all strategies of the scenario as written, in their order; lines end in a newline."""
    text = StringIO()
    write_call_csv((row for ledger in result.main.ledgers for row in ledger.rows), text)
    return text.getvalue()


def _comparison(comparison: Comparison) -> dict[str, Any]:
    summary = summarise(comparison)
    names = [ledger.strategy for ledger in comparison.ledgers]
    return {
        "host": comparison.host,
        "model": comparison.model,
        "as_of": comparison.as_of.isoformat(),
        "rules": dict(sorted(comparison.rules.items())),
        "compare_to": comparison.first,
        "strategies": [_strategy(line) for line in map(summary.line, names) if line is not None],
        "best": summary.best.name if summary.best else None,
        "tied": list(summary.winners) if len(summary.winners) > 1 else [],
        "tied_with": [name for name in summary.winners if summary.best and name != summary.best.name],
        "lead": _lead(summary),
    }


def _strategy(line: StrategyLine) -> dict[str, Any]:
    return {
        "name": line.name,
        "calls": line.calls,
        "errors": line.refused,
        "usage": line.usage.wire(),
        **_dollars(line),
        "vs_first": None if line.vs_first is None else exact(round(line.vs_first, 6)),
        "lower_bound_usd": None if line.lower_bound is None else exact(line.lower_bound),
        "inquiries": line.questions,
        "cost_per_inquiry_usd": None if line.question is None else exact(line.question),
        "refusals": [{"type": each.kind, "message": each.reason, "calls": each.calls} for each in line.refusals],
        "token_source": line.token_source,
        "token_error_margin": line.error_margin,
        "notes": list(line.notes),
        "compared_apart": line.is_apart,
        "described_in": line.described_in,
        "own_assumptions": line.assumes,
        "sees_less": None if line.less is None else _less(line.less),
    }


def _less(less: LessInput) -> dict[str, Any]:
    """What a strategy leaves out of the calls that the compared one makes too."""
    return {
        "calls": less.calls,
        "of": "questions" if less.what == QUESTIONS else "main",
        "mean_tokens": less.tokens,
        "mean_tokens_compared": less.compared_tokens,
        "calls_under_1000_tokens": less.small,
        "questions_not_asked": less.unasked,
        "leaves_out": less.words,
    }


def _lead(summary: Summary) -> dict[str, str] | None:
    """The lead of the cheapest strategy over the next, and its error margin; None without a next, or a price."""
    found = best_and_next(summary.lines)
    if found is None or not summary.is_priced:
        return None
    best, second = found
    lead, margin = second.effort - best.effort, error_of_difference(best, second)
    return {"over": second.name, "usd": exact(lead), "error_usd": exact(margin)}


def _dollars(line: StrategyLine) -> dict[str, Any]:
    """None, and the share of the input that was read, where no price is known."""
    if not line.is_priced:
        share = None if line.cache_hit_rate is None else exact(round(line.cache_hit_rate, 6))
        return {"cost_usd": None, "cost_by_class_usd": None, "cost_by_layer_usd": None, "cache_hit_rate": share}
    return {
        "cost_usd": exact(line.cost.total),
        **({} if line.most is None else {"cost_range_usd": [exact(line.cost.total), exact(line.most)]}),
        "cost_by_class_usd": _exact_all(line.cost.by_class()),
        "cost_by_layer_usd": _exact_all({layer.value: amount for layer, amount in line.by_layer.items()}),
    }


def _assumption(assumption: Assumption) -> dict[str, Any]:
    """`changes_answer` is None for what was not tried."""
    return {
        "name": assumption.name,
        "why": assumption.why,
        "source": assumption.source,
        "value": assumption.value,
        "changes_answer": assumption.changes,
        "effect": assumption.effect,
        "impact": exact(round(assumption.impact, 6)),
        "tried": [_tried(value) for value in assumption.tried],
        "break_even": [_break_even(each) for each in assumption.break_evens],
    }


def _tried(value: TriedValue) -> dict[str, Any]:
    return {
        "value": value.value,
        "best": value.best,
        "cost": _exact_all(value.costs),
        "cost_per_inquiry_usd": _exact_all(value.questions),
    }


def _break_even(found: BreakEven) -> dict[str, Any]:
    return {
        "claim": found.claim,
        "instead": found.instead,
        "holds_to": plain(found.holds_to),
        "changes_at": plain(found.changes_at),
    }


def _published_figure(published_figure: PublishedFigure) -> dict[str, Any]:
    name = "exact_share" if published_figure.is_share else "exact_usd"
    return {
        "source": published_figure.source,
        "says": published_figure.says,
        name: exact(published_figure.exact),
        "how": published_figure.how,
    }


def _exact_all(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    return {name: exact(amount) for name, amount in amounts.items()}
