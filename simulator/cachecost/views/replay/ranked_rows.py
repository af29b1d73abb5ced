"""The rows of strategies that are compared: each has the rank of its strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cachecost.analysis.comparison.ranking import rank_fields
from cachecost.analysis.comparison.summary import summarise_ledgers
from cachecost.ledger.results import Ledger
from cachecost.views.replay.call_rows import call_object


def ranked_objects(ledgers: Sequence[Ledger]) -> Iterator[dict[str, Any]]:
    """The rows for JSON and CSV, all of one strategy before the next, with `rank_from` and `rank_to`."""
    ranks = rank_fields(summarise_ledgers(ledgers)) if ledgers else {}
    return ({**call_object(row), **ranks[ledger.strategy]} for ledger in ledgers for row in ledger.rows)
