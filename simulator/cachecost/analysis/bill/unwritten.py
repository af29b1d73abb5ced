"""Calls that a client made and wrote into no transcript: compactions, titles and the like, from the client's own sums.

The sums of a session, less the calls that its transcripts contain, are the usage of those calls. Where the transcripts
contain more than the sums (the client was ended before it wrote them), or the file is a copy that goes on from another
session's sums, the difference says nothing and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.conversations.billed_calls import BilledCall, SessionFile
from cachecost.providers.usage import ZERO, Usage

Tokens = tuple[int, int, int, int, int]
NO_TOKENS = (0, 0, 0, 0, 0)
ByModel = dict[str, Tokens]


@dataclass(frozen=True, slots=True)
class UnwrittenUsage:
    """What the unwritten calls of a session used on one model; `cost` in USD (None: no price is known)."""

    session: str
    model: str
    usage: Usage
    cost: Decimal | None


def find_unwritten(account: BillAccount) -> list[UnwrittenUsage]:
    """The unwritten usage of the sessions of an account that are in its period as a whole."""
    if not any(file.client_sums for file in account.files):
        return []
    counted = {id(call) for _, call in account.calls()}
    written, partly = _written(account, counted)
    found: list[UnwrittenUsage] = []
    for file in account.files:
        session = file.calls[-1].session if file.calls else ""
        if file.client_sums and session not in partly:
            found += _differences(file, session, written.get(session, {}), account.prices)
    return found


def unwritten_cost(found: Sequence[UnwrittenUsage]) -> Decimal:
    return sum((one.cost or ZERO for one in found), ZERO)


def _written(account: BillAccount, counted: set[int]) -> tuple[dict[str, ByModel], set[str]]:
    """The usage in transcripts by session and model; the sessions with calls that are copies or not in the period."""
    written: dict[str, ByModel] = {}
    partly: set[str] = set()
    for file in account.files:
        for call in file.calls:
            if id(call) not in counted:
                partly.add(call.session)
            by_model = written.setdefault(call.session, {})
            for model, tokens in (
                (call.model, call.tokens),
                *((name or call.model, part) for name, part in call.extra),
            ):
                by_model[model] = _sum(by_model.get(model, NO_TOKENS), tokens)
    return written, partly


def _differences(file: SessionFile, session: str, written: ByModel, prices: CallPrices) -> Iterator[UnwrittenUsage]:
    for model, tokens in file.client_sums.items():
        rest = _less(tokens, written.get(model, NO_TOKENS))
        if any(rest) and min(rest) >= 0:
            usage = Usage(*rest)
            call = BilledCall(0, 0, model, rest, file.calls[-1].start)
            found = prices.prices_of(call, model, 0)
            yield UnwrittenUsage(session, model, usage, found.total_cost(usage) if found else None)


def _sum(one: Tokens, other: Tokens) -> Tokens:
    first, read, five, hour, output = (a + b for a, b in zip(one, other, strict=True))
    return (first, read, five, hour, output)


def _less(one: Tokens, other: Tokens) -> Tokens:
    first, read, five, hour, output = (a - b for a, b in zip(one, other, strict=True))
    return (first, read, five, hour, output)
