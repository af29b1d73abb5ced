"""Two recordings beside each other, as a page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cachecost.analysis.bill.summary import BillSummary
from cachecost.analysis.bill.timeline import TimelineCall
from cachecost.base.formatting import count_text, exact, percent
from cachecost.views.bill.json_output import hit_rate
from cachecost.views.bill.session import MAIN, session_headline
from cachecost.views.viewer.columns import NameList, cause_objects
from cachecost.views.viewer.session import call_columns


def side_object(title: str, summary: BillSummary, calls: Sequence[TimelineCall]) -> dict[str, Any]:
    """One recording: its calls as columns, numbered in the order of time."""
    causes, models, agents = NameList(), NameList(), NameList([MAIN])
    columns = call_columns(calls, causes, models, agents) | {"number": list(range(1, len(calls) + 1))}
    return {
        "title": title,
        "headline": session_headline(summary),
        "cost_usd": exact(summary.total.cost),
        "rewritten_usd": exact(summary.total.rewritten),
        "hit_rate": hit_rate(summary.total),
        "calls": columns,
        "causes": cause_objects(causes),
        "models": models.names,
        "agents": agents.names,
    }


def comparison_object(
    titles: tuple[str, str],
    summaries: tuple[BillSummary, BillSummary],
    calls: tuple[Sequence[TimelineCall], Sequence[TimelineCall]],
    pairs: Sequence[tuple[int, int]],
) -> dict[str, Any]:
    """Both recordings, and the indices of the calls that correspond."""
    left, right = (side_object(*one) for one in zip(titles, summaries, calls, strict=True))
    before, after = (summary.total for summary in summaries)
    rates = f"cache hit rate {percent(after.hit_rate)} instead of {percent(before.hit_rate)}"
    counts = f"{count_text(after.calls, 'call')} instead of {before.calls:,}"
    return {
        "left": left,
        "right": right,
        "pairs": pairs,
        "difference_usd": exact(after.cost - before.cost),
        "words": f"{titles[1]} against {titles[0]}: {counts}, {rates}",
    }
