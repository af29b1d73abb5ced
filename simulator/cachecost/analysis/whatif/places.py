"""Other models, other hosts, batches, US residency: the same bytes, sent elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial

from cachecost.analysis.replays.steps import ReplayStep, change_calls
from cachecost.analysis.whatif.option import MODEL, Option
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Thread
from cachecost.prompts.refusals import sent_breakpoints
from cachecost.prompts.request import Request
from cachecost.providers.hosts import host_of
from cachecost.providers.rulefile import Model, catalogue
from cachecost.providers.rules import ModelRules
from cachecost.providers.served_models import list_models, must_be_served, withdrawn
from cachecost.simulation.workload import Workload

HOSTS = ("anthropic", "bedrock", "google-cloud", "foundry")
SAME_WORDS = "The other model is assumed to need as many output tokens and turns"
SAME_OUTPUT = "The model there is assumed to answer the same"
ELSEWHERE = (
    "A bare model name means the host's default endpoint. Automatic caching becomes a breakpoint on the last block "
    "where the host has none"
)
BATCH = "Cache hits in batches are best effort: the range is from every possible hit to none"


@dataclass(frozen=True, slots=True)
class MainModel:
    """The model that the most dollars go to, with its rules on the last day it was called."""

    rules: ModelRules
    host: str
    day: date | None

    @classmethod
    def of(cls, traffic: Workload, costs: Mapping[int, Decimal]) -> MainModel | None:
        """None where no call can be evaluated. `costs` are dollars by number of the call."""
        totals: dict[tuple[str, str], Decimal] = {}
        last: dict[tuple[str, str], MainModel] = {}
        for number, call in enumerate(traffic.calls, 1):
            host = host_of(call.host, traffic.setup.host, call.request.model)
            try:
                rules = traffic.setup.rules.rules(host, call.request.model, call.day)
            except CannotEvaluate:
                continue
            key = (host, rules.model)
            totals[key] = totals.get(key, Decimal(0)) + costs.get(number, Decimal(0))
            last[key] = cls(rules, host, call.day)
        return last[max(totals, key=lambda key: totals[key])] if totals else None


def model_options(traffic: Workload, main: MainModel, today: date | None = None) -> Iterator[Option]:
    """The models that the host serves on the last day of the recording, for the calls of its most expensive model.

    What the host has withdrawn by `today` (None: no such day) is not among them.
    """
    ours = catalogue(main.host).model(main.rules.model).name
    for model in _current(main, today):
        if model.name != ours and _is_alike(traffic, main, model):
            yield model_option(traffic, main, model.id)


def _is_alike(traffic: Workload, main: MainModel, model: Model) -> bool:
    """Whether it has breakpoints with a lookback as well, and is of the same maker: Bedrock also serves Amazon's."""
    book, rules = catalogue(main.host), traffic.setup.rules.rules(main.host, model.id, main.rules.day)
    return rules.uses_breakpoints and book.inherits(model.name) == book.inherits(book.model(main.rules.model).name)


def retired_since(main: MainModel, today: date | None) -> list[Model]:
    """The models that are no options as they were retired between the last day of the recording and `today`."""
    offered = set() if today is None else {one.name for one in list_models(main.host, main.rules.day, today)}
    then = [] if today is None else list_models(main.host, main.rules.day)
    ours = catalogue(main.host).model(main.rules.model).name
    book = catalogue(main.host)
    alike = [one for one in then if book.inherits(one.name) == book.inherits(ours)]
    return [one for one in alike if one.name not in offered and one.name != ours]


def model_option(traffic: Workload, main: MainModel, name: str) -> Option:
    """Another model for the calls of the most expensive one. Raises CannotEvaluate if it is unknown or not served."""
    host = main.host
    must_be_served(host, name, main.rules.day)
    traffic.setup.rules.rules(host, name, main.rules.day).require_breakpoints(f"model={name}")
    generation = catalogue(host).model(name).generation
    return Option(
        f"model={name}",
        "model",
        f"calls to {main.rules.model} go to {name}",
        change_calls(partial(_to_model, traffic=traffic, main=main, name=name)),
        MODEL,
        SAME_WORDS
        + (f"; tokens are counted by its own tokenizer ({generation})" if _is_other(main, generation) else ""),
        keeps_answers=False,
        counts_anew=_is_other(main, generation),
    )


def _is_other(main: MainModel, generation: str) -> bool:
    return generation != main.rules.generation


def _current(main: MainModel, today: date | None) -> list[Model]:
    """Out on that day, and retired neither then nor today.

    Cached the way that the id of the calls' model names, if it does.
    """
    book = catalogue(main.host)
    found = list(list_models(main.host, main.rules.day, *([today] if today else [])))
    ours = book.model(main.rules.model)
    if ours.is_other_way:
        found = [way for one in found for way in book.other_ways(one) if way.endpoint == ours.endpoint]
    return sorted(found, key=lambda one: (one.released, one.id), reverse=True)


def _to_model(call: Call, traffic: Workload, main: MainModel, name: str) -> Call:
    host = host_of(call.host, traffic.setup.host, call.request.model)
    try:
        mine = traffic.setup.rules.rules(host, call.request.model, call.day).model
    except CannotEvaluate:
        return call
    if host != main.host or mine != main.rules.model:
        return call
    return replace(call, request=replace(call.request, model=name))


def host_options(traffic: Workload, main: MainModel, today: date | None = None) -> Iterator[Option]:
    """The other hosts, at whose endpoint the bare name of the model stands for; not supported where it is withdrawn,
    on the last day of the recording or `today`."""
    name = catalogue(main.host).model(main.rules.model).name
    last = max((day for day in (main.rules.day, today) if day), default=None)
    for host in HOSTS:
        if host != main.host:
            yield Option(
                f"host={host}",
                "host",
                f"all calls go to {host}: its lookback, minimums, scope and prices",
                change_calls(partial(to_host, traffic=traffic, host=host)),
                MODEL,
                f"{SAME_OUTPUT}. {ELSEWHERE}",
                withdrawn(host, name, last),
            )


def to_host(call: Call, traffic: Workload, host: str) -> Call:
    """The call as `host` takes it: its name for the model, and explicit breakpoints where it has no automatic
    caching.
    """
    model = call.request.model
    try:
        model = catalogue(host_of(call.host, traffic.setup.host, model)).model(model, call.day).name
        rules = traffic.setup.rules.rules(host, model, call.day)
    except CannotEvaluate:
        return replace(call, host=host, request=replace(call.request, model=model))
    request = replace(call.request, model=model)
    if request.automatic and not rules.accepts_automatic:
        request = replace(request, breakpoints=sent_breakpoints(request).every, automatic=None)
    return replace(call, host=host, request=request)


def batch_options(calls: Sequence[Call], waiting: int) -> Iterator[Option]:
    """All calls in batches; `waiting` go on from another's answer."""
    there = all(call.is_batch for call in calls)
    why = (
        f"{waiting:,} of {len(calls):,} calls depend on an earlier answer, which a batch returns within a day"
        if waiting
        else ""
    )
    yield Option(
        "batch",
        "batch",
        "all calls in batches, at half the price",
        change_calls(lambda call: call if call.is_batch else replace(call, is_batch=True)),
        MODEL,
        BATCH,
        why,
        "all calls are in batches already" if there else "",
        is_batch=True,
    )


def residency_options(calls: Sequence[Call]) -> Iterator[Option]:
    """US-only inference if the calls do not request it, else inference anywhere."""
    inside = all(_is_us(call.request) for call in calls)
    name, does = ("us=no", "inference anywhere") if inside else ("us", "US-only inference (inference_geo: us)")
    yield Option(name, "us", does, change_calls(partial(_residing, us=not inside)), MODEL, SAME_OUTPUT)


def _is_us(request: Request) -> bool:
    return request.params.get("inference_geo") == "us"


def _residing(call: Call, us: bool) -> Call:
    params = {name: value for name, value in call.request.params.items() if name != "inference_geo"}
    if us:
        params["inference_geo"] = "us"
    return replace(call, request=replace(call.request, params=params))


def count_waiting(steps: Sequence[ReplayStep]) -> int:
    """How many calls have an answer in their messages that another call of the recording waited for."""
    sent = {step.call.request.thread for step in steps}
    return sum(_goes_on(step.call.request, sent) for step in steps)


def _goes_on(request: Request, sent: set[Thread]) -> bool:
    return any(
        node.parent in sent for node in request.thread.back() if node.message and node.message.role == "assistant"
    )
