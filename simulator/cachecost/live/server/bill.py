"""The bill of a simulated API: what its calls cost, what caching saved, and which loops are uncached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from cachecost.base.formatting import count_text
from cachecost.ledger.margin import count_margin
from cachecost.ledger.results import ZERO, Cost
from cachecost.ledger.unread import UnreadWrites
from cachecost.live.server.meter import Meter, MeteredCall
from cachecost.live.server.uncached_loops import UncachedLoop, find_uncached_loops
from cachecost.live.viewer.live_calls import conversation_title
from cachecost.providers.usage import Usage

Key = TypeVar("Key")
NO_KEY = "(no key)"
NO_TEXT = "(no text)"


@dataclass(frozen=True, slots=True)
class BillShare:
    """Usage and cost of some of the calls. `uncached` is their cost without caching, in dollars."""

    name: str
    calls: int
    refused: int
    usage: Usage
    cost: Cost
    uncached: Decimal
    unread: UnreadWrites

    @property
    def cache_hit_rate(self) -> Decimal | None:
        """The cache hit rate: tokens read ÷ input tokens; None without input."""
        total = self.usage.total_input
        return Decimal(self.usage.read) / total if total else None

    @property
    def saved_usd(self) -> Decimal:
        """Dollars that caching saved; negative if it cost more than it saved."""
        return self.uncached - self.cost.total


@dataclass(frozen=True, slots=True)
class ServerBill:
    """All calls, then by workspace, conversation and model, and the uncached loops.

    `token_source` says how tokens were counted, `error_margin` is relative (0.03 is ±3%).
    """

    total: BillShare
    workspaces: tuple[BillShare, ...]
    conversations: tuple[BillShare, ...]
    models: tuple[BillShare, ...]
    loops: tuple[UncachedLoop, ...]
    errors: tuple[tuple[str, int], ...]
    token_source: str
    error_margin: float
    notes: tuple[str, ...]


def bill_of(meter: Meter) -> ServerBill:
    """The bill so far."""
    taken = meter.taken
    conversations = _groups(taken, lambda one: (one.workspace, one.first))
    several = len({one.workspace for one in taken}) > 1
    return ServerBill(
        _share("all", taken, meter),
        tuple(_share(key or NO_KEY, calls, meter) for key, calls in _groups(taken, lambda one: one.workspace)),
        tuple(_share(_conversation_name(calls[0], several), calls, meter) for _, calls in conversations),
        tuple(_share(key, calls, meter) for key, calls in _groups(taken, lambda one: one.row.model)),
        tuple(
            loop
            for _, calls in conversations
            for loop in find_uncached_loops(_conversation_name(calls[0], several), calls, meter)
        ),
        tuple(Counter(one.row.error for one in taken if one.row.error is not None).most_common()),
        meter.token_source,
        count_margin([one.row for one in taken], meter.error_margin),
        (*_not_messages(meter.not_messages), *meter.notes()),
    )


def _groups(taken: Iterable[MeteredCall], key: Callable[[MeteredCall], Key]) -> list[tuple[Key, list[MeteredCall]]]:
    """The calls by key, in the order of their first call."""
    found: dict[Key, list[MeteredCall]] = {}
    for one in taken:
        found.setdefault(key(one), []).append(one)
    return list(found.items())


def _share(name: str, calls: Sequence[MeteredCall], meter: Meter) -> BillShare:
    rows = [one.row for one in calls]
    return BillShare(
        name,
        len(rows),
        sum(row.error is not None for row in rows),
        sum((row.usage for row in rows), Usage()),
        sum((row.cost for row in rows), Cost()),
        sum((one.uncached for one in calls), ZERO),
        meter.unread.of_all(row.call for row in rows),
    )


def _conversation_name(call: MeteredCall, several: bool) -> str:
    """The first words of a conversation, with its workspace if there are several."""
    name = conversation_title(call.first) or NO_TEXT
    return f"{call.workspace or NO_KEY}: {name}" if several else name


def _not_messages(count: int) -> Sequence[str]:
    if not count:
        return ()
    return (f"{count_text(count, 'invalid request')} refused with status 400 and not billed",)
