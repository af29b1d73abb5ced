"""What figures rest on, as keywords: model, day, host, token counter, readings of the rules, prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypedDict

from cachecost.api.reading import Recording, Source, bills_in, taken, talks_in
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.schema_errors import one_of
from cachecost.conversations.calls import date_call
from cachecost.conversations.model import Conversation
from cachecost.providers.assumptions import switches_from
from cachecost.providers.prices import PriceBook
from cachecost.providers.rulefile import hosts
from cachecost.providers.rules import RuleBook, data_date
from cachecost.replay.setup import Terms, in_time, own_readings
from cachecost.replay.workload import Traffic
from cachecost.strategies.build import build
from cachecost.strategies.spec import StrategySpec
from cachecost.tokens.factory import ANCHORED, counter_name

Counter = Literal["anchored", "auto", "tiktoken", "bytes", "ctok"]
COUNTERS: tuple[Counter, ...] = ("anchored", "auto", "tiktoken", "bytes", "ctok")


class GroundOptions(TypedDict, total=False):
    """Keywords of every function. `as_of`: rules and prices of that day (a date or "2026-03-07"; that of the shipped
    data if left out, for a log the day of each call). `host`: of calls that name none. `rules`: {switch: value}
    (`cachecost rules --switches`). `prices`: a file of own prices."""

    as_of: date | str | None
    host: str
    rules: Mapping[str, object] | None
    prices: str | Path | None


class CountOptions(GroundOptions, total=False):
    """`tokens`: anchored (by the bills, then tiktoken; the default), tiktoken, bytes or ctok."""

    tokens: Counter | None


class TermOptions(CountOptions, total=False):
    """`model`: that all run on; that of the recording if left out."""

    model: str | None


def ground(
    *,
    as_of: date | str | None = None,
    host: str = "anthropic",
    rules: Mapping[str, object] | None = None,
    prices: str | Path | None = None,
) -> tuple[RuleBook, PriceBook, str]:
    """The rules, prices and host that are asked for. Raises InputError."""
    day = day_from(as_of)
    return RuleBook(_switches(rules), day), PriceBook.load(_path(prices), day), host_from(host)


def terms_of(
    recorded: Conversation | Recording,
    *,
    model: str | None = None,
    as_of: date | str | None = None,
    host: str = "anthropic",
    tokens: str | None = None,
    rules: Mapping[str, object] | None = None,
    prices: str | Path | None = None,
) -> Terms:
    """The terms of a comparison. Raises InputError, and CannotEvaluate where no model is named anywhere."""
    chosen = model or recorded.model
    bills = bills_in(recorded)
    if chosen is None and not bills:
        raise CannotEvaluate(f"{recorded.name} names no model: say model='claude-…'")
    day = day_from(as_of) or (None if bills else data_date(host_from(host)))
    _switches(rules)
    book = PriceBook.load(_path(prices), day)
    counter, may_anchor = _counter(tokens, bool(bills))
    anchors = bills if may_anchor else []
    return Terms(chosen, day, book, host_from(host), counter, rules or {}, bills=anchors, starts_warm=True)


def traffic_of(source: Source, strategy: StrategySpec | None = None, **terms: Any) -> Traffic:
    """The calls of a log as they were sent, or those that `strategy` makes. Raises CannotEvaluate, InputError."""
    recorded = taken(source)
    if strategy is not None:
        return _planned(recorded, strategy, terms_of(recorded, **terms))
    if not isinstance(recorded, Recording) or not recorded.calls:
        raise CannotEvaluate(f"{recorded.name} holds no call that was sent: say strategy='automatic', or another one")
    return _sent(recorded, **terms)


def _sent(recorded: Recording, *, tokens: str | None = None, **given: Any) -> Traffic:
    rules, prices, host = ground(**given)
    has_bills = any(call.billed for call in recorded.calls)
    counter, may_anchor = _counter(tokens, has_bills)
    bills = recorded.calls if may_anchor and has_bills else []
    return Traffic(recorded.name, recorded.calls, rules, prices, host, counter, bills, starts_warm=True)


def _planned(recorded: Conversation | Recording, spec: StrategySpec, terms: Terms) -> Traffic:
    book = terms.book()
    strategy = build(spec, model=terms.model, facts=lambda model: book.rules(terms.host, model))
    calls = [date_call(call) for call in in_time(strategy, talks_in(recorded))]
    read_as = terms.book(own_readings(strategy))
    traffic = Traffic(recorded.name, calls, read_as, terms.prices, terms.host, terms.tokens, terms.bills)
    return replace(traffic, strategy=strategy.name, counters=terms.counters, starts_warm=True)


def _counter(tokens: str | None, has_bills: bool) -> tuple[str, bool]:
    """The counter of what no bill tells, and whether bills may tell. Raises InputError."""
    if tokens not in (None, *COUNTERS):
        raise InputError([Fault("tokens:", one_of(COUNTERS, tokens))])
    return counter_name(tokens, has_bills), tokens in (None, ANCHORED)


def host_from(host: str) -> str:
    """A host whose rules are known. Raises InputError."""
    if host not in hosts():
        raise InputError([Fault("host:", one_of(list(hosts()), host))])
    return host


def day_from(as_of: date | str | None) -> date | None:
    """A day, however it is written. Raises InputError."""
    if not isinstance(as_of, str):
        return as_of
    try:
        return date.fromisoformat(as_of)
    except ValueError:
        raise InputError([Fault("as_of:", f"expected a date like 2026-03-07; got '{as_of}'")]) from None


def _switches(rules: Mapping[str, object] | None) -> Any:
    return switches_from(rules or {}, "rules:")


def _path(prices: str | Path | None) -> Path | None:
    return Path(prices) if prices is not None else None
