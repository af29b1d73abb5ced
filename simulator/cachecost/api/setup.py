"""The setup of a replay as keywords: model, day, host, token counter, assumptions, prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args
from warnings import warn

from cachecost.api.recordings import Recording, Source, calls_in, conversations_in, read_source
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.schema_errors import one_of
from cachecost.conversations.model import Conversation
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.hosts import AUTO_HOST
from cachecost.providers.prices import PriceBook
from cachecost.providers.rulefile import hosts
from cachecost.providers.rules import RuleBook, data_date
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, plan_workload, recorded_workload
from cachecost.strategies.spec import StrategySpec
from cachecost.tokens.factory import CALIBRATED, counter_name

Counter = Literal["calibrated", "auto", "tiktoken", "bytes", "ctok", "native"]
COUNTERS: tuple[Counter, ...] = get_args(Counter)


class RuleOptions(TypedDict, total=False):
    """Keywords of every function. `as_of` is the day whose rules and prices hold, a date or "2026-03-07"; the default
    is the day of each call of a log, else that of the shipped data. `host` is the host of calls that name none. `rules`
    are assumptions by name (`cachecost rules --assumptions`). `prices` is a price file of your own."""

    as_of: date | str | None
    host: str
    rules: Mapping[str, object] | None
    prices: str | Path | None


class CountOptions(RuleOptions, total=False):
    """`tokens` is the token counter: calibrated (the default: calibrated on the bills, else auto), auto, tiktoken,
    bytes, ctok or native.
    """

    tokens: Counter | None


class ModelOptions(CountOptions, total=False):
    """`model` is the model of all calls; the default is that of the recording."""

    model: str | None


def setup_of(
    *,
    as_of: date | str | None = None,
    host: str = AUTO_HOST,
    rules: Mapping[str, object] | None = None,
    prices: str | Path | None = None,
) -> ReplaySetup:
    """The setup that the keywords describe. Raises InputError."""
    day = day_from(as_of)
    return ReplaySetup(RuleBook(_assumptions(rules), day), PriceBook.load(_path(prices), day), host_from(host))


def comparison_setup(
    recording: Conversation | Recording,
    *,
    model: str | None = None,
    as_of: date | str | None = None,
    host: str = AUTO_HOST,
    tokens: str | None = None,
    rules: Mapping[str, object] | None = None,
    prices: str | Path | None = None,
) -> ReplaySetup:
    """The setup of strategies that are compared. Raises InputError; CannotEvaluate where no model is named."""
    chosen = model or recording.model
    calls = calls_in(recording)
    if chosen is None and not calls:
        raise CannotEvaluate(f"{recording.name} names no model; pass model='claude-…'")
    day = day_from(as_of) or (None if calls else data_date(host_from(host)))
    setup = setup_of(as_of=day, host=host, rules=rules, prices=prices)
    counter = counter_name(_check_counter(tokens), bool(calls))
    bills = calls if tokens in (None, CALIBRATED) else []
    return replace(setup, model=chosen, tokens=counter, bills=bills, starts_warm=True)


def workload_of(source: Source, strategy: StrategySpec | None = None, **options: Any) -> Workload:
    """The calls of a log as they were sent, or those that `strategy` makes. Raises CannotEvaluate, InputError."""
    recording = read_source(source)
    if strategy is not None:
        setup = comparison_setup(recording, **options)
        return plan_workload(strategy, conversations_in(recording), setup, recording.name)
    if not isinstance(recording, Recording) or not recording.calls:
        raise CannotEvaluate(f"{recording.name} contains no recorded call; pass a strategy, like strategy='automatic'")
    tokens = _check_counter(options.pop("tokens", None))
    return recorded_workload(
        recording.name, recording.calls, setup_of(**options).with_recorded(recording.calls, tokens)
    )


def only_supported(workload: Workload, function: str) -> Workload:
    """The workload without the calls of caches that `function` ("explain") does not support, of which it warns.

    Raises CannotEvaluate where no call is left.
    """
    from cachecost.simulation.left_out import supported_calls

    supported, left_out = supported_calls(workload, function)
    for note in left_out.notes(function):
        warn(note, stacklevel=3)
    return supported


def _check_counter(tokens: str | None) -> str | None:
    """The name of a counter. Raises InputError."""
    if tokens not in (None, *COUNTERS):
        raise InputError([Fault("tokens:", one_of(COUNTERS, tokens))])
    return tokens


def host_from(host: str) -> str:
    """The host, if it has rules, or AUTO_HOST. Raises InputError."""
    if host not in (known := [*hosts(), AUTO_HOST]):
        raise InputError([Fault("host:", one_of(known, host))])
    return host


def day_from(as_of: date | str | None, keyword: str = "as_of") -> date | None:
    """A date, or None. Raises InputError for text that is not an ISO date."""
    if not isinstance(as_of, str):
        return as_of
    try:
        return date.fromisoformat(as_of)
    except ValueError:
        raise InputError([Fault(f"{keyword}:", f"expected a date like 2026-03-07; got '{as_of}'")]) from None


def _assumptions(rules: Mapping[str, object] | None) -> Any:
    return assumptions_from(rules or {}, "rules:")


def _path(prices: str | Path | None) -> Path | None:
    return Path(prices) if prices is not None else None
