"""All options for a recording, and lookup by name.

Keep-alives in the pauses of each conversation.

Tools in one order, keys of their schemas in one order, and volatile words after the last breakpoint.

Other models, other hosts, batches, US residency: the same bytes, sent elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

from cachecost.analysis.replays.steps import (
    PartPool,
    ReplayStep,
    StepChange,
    add_pings,
    as_sent,
    change_calls,
    has_breakpoints,
)
from cachecost.analysis.replays.volatile import VolatileTail
from cachecost.analysis.whatif.compaction import compaction_option, compaction_options
from cachecost.analysis.whatif.option import (
    CONTENT,
    MODEL,
    PINGS,
    Option,
    breakpoint_options,
    thinking_options,
    ttl_options,
)
from cachecost.analysis.whatif.pauses import RecordedPauses, measure_pauses, pings_worth
from cachecost.base.errors import CannotEvaluate, Fault, InputError, nearest
from cachecost.base.formatting import duration
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Block, Part
from cachecost.prompts.request import block_of, sent_breakpoints
from cachecost.providers.hosts import Model, catalogue, host_of
from cachecost.providers.prices import STANDARD, Prices
from cachecost.providers.rules import ModelRules
from cachecost.providers.served_models import last_day, list_models, must_be_served, withdrawn
from cachecost.providers.usage import USUAL_TTL_S
from cachecost.simulation.workload import Workload
from cachecost.strategies.changes.keepalive import KeepAlive

INTERVALS = (120.0, 240.0, 295.0)
FEW = (1, 3)
ASSUMED = "A client cannot know which call is the last, so keep-alives also follow it; each requests no output"


def ping_options(
    calls: Sequence[Call], found: RecordedPauses, prices: Prices | None, short_s: float, refused: Collection[int]
) -> Iterator[Option]:
    """Several intervals, each for as many pings as the prices are worth, and the longest for a few alone."""
    for value in (*(f"{every_s:g}s" for every_s in INTERVALS), *(f"{max(INTERVALS):g}s:{most}" for most in FEW)):
        yield ping_option(calls, found, prices, short_s, refused, value)


def ping_option(
    calls: Sequence[Call],
    found: RecordedPauses,
    prices: Prices | None,
    short_s: float,
    refused: Collection[int],
    value: str,
) -> Option:
    """Pings as `value` says: "295s", or "295s:3" for at most three in a pause. Raises ValueError."""
    interval, _, most = value.partition(":")
    every_s = float(interval.removesuffix("s"))
    worth = (pings_worth(prices) if prices else None) or 0
    times = int(most) if most else worth
    habit = KeepAlive(every_s=every_s, times=times)
    is_marked = any(has_breakpoints(call.request) and not call.is_batch for call in calls)
    bridged = duration(times * every_s + short_s)
    return Option(
        f"keep-alive={value}",
        "keep-alive",
        f"a keep-alive every {every_s:g} s of a pause, at most {times}: bridges up to {bridged}",
        lambda steps: add_pings(steps, habit, refused),
        PINGS,
        ASSUMED,
        found.missing_reason(short_s),
        "" if is_marked else "no call has a breakpoint, so there is nothing to keep alive",
    )


NEVER_ORDER = "the order of the tools never changes"
NEVER_KEYS = "the key order of a schema never changes"
NO_WORDS = "the recording has no content, so key order is unknown"


def tools_options(calls: Sequence[Call]) -> Iterator[Option]:
    """Tools sorted by name, and the keys of their definitions sorted."""
    lists = list({call.request.tools for call in calls if call.request.tools.blocks})
    orders = Counter(tuple(sorted(block.digest for block in part.blocks)) for part in lists)
    by_name = all(block.content is not None for part in lists for block in part.blocks)
    yield Option(
        "tools=sorted",
        "tools",
        f"tools sorted by {'name' if by_name else 'digest, because the recording has no names'}",
        change_tools(_sort_tools),
        CONTENT,
        "The order of tools is assumed not to affect answers",
        unchanged="" if any(count > 1 for count in orders.values()) else NEVER_ORDER,
    )
    yield Option(
        "schemas=sorted",
        "schemas",
        "keys of tool definitions sorted, including those of schemas",
        change_tools(partial(map, canonical)),
        CONTENT,
        "The order of keys is assumed not to affect answers",
        unsupported="" if by_name else NO_WORDS,
        unchanged="" if not by_name or _keys_differ(lists) else NEVER_KEYS,
    )


def volatile_options(calls: Sequence[Call]) -> Iterator[Option]:
    """What changes in the system prompt from call to call, sent behind the last breakpoint instead."""
    tail = VolatileTail.find(calls)
    cut = sum(span is not None for span in tail.spans.values())
    how = "the words that change" if cut == len(tail.spans) else "the blocks that change"
    places = ", ".join(sorted(tail.paths, key=lambda path: int(path.rpartition(".")[2]))) or "none"
    yield Option(
        "volatile=last",
        "volatile",
        f"{how} in the system prompt ({places}) move to a text block after the last breakpoint",
        change_calls(tail),
        CONTENT,
        "The model is assumed to follow these words there as in the system prompt; earlier versions are dropped",
        unchanged="" if tail.spans else "nothing in the system prompt changes within a conversation",
    )


def _keys_differ(lists: Sequence[Part]) -> bool:
    """Whether a definition came in two spellings."""
    spelt: dict[bytes, set[bytes]] = {}
    for part in lists:
        for block in part.blocks:
            spelt.setdefault(canonical(block).digest, set()).add(block.digest)
    return any(len(one) > 1 for one in spelt.values())


def change_tools(rewrite: Callable[[Sequence[Block]], Iterable[Block]]) -> StepChange:
    """The tools of each call rewritten. Breakpoints keep their positions in the list."""
    parts = PartPool()

    def change(call: Call) -> Call:
        tools = parts.of(rewrite(call.request.tools.blocks))
        return call if tools is call.request.tools else replace(call, request=replace(call.request, tools=tools))

    return change_calls(change)


def _sort_tools(tools: Sequence[Block]) -> list[Block]:
    """By name, or by digest where the recording has no names."""
    if any(block.content is None for block in tools):
        return sorted(tools, key=lambda block: block.digest)
    return sorted(tools, key=lambda block: (str((block.content or {}).get("name") or ""), block.digest))


def canonical(block: Block) -> Block:
    """The block with all keys sorted; itself where it holds no content."""
    return block if block.content is None else block_of(block.role, _sort_keys(block.content))


def _sort_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    return [_sort_keys(one) for one in value] if isinstance(value, list) else value


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
            try:
                rules = traffic.setup.rules_for(call)
            except CannotEvaluate:
                continue
            host = host_of(call.host, traffic.setup.host, call.request.model)
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
        is_main = host == main.host and traffic.setup.rules_for(call).model == main.rules.model
    except CannotEvaluate:
        return call
    return replace(call, request=replace(call.request, model=name)) if is_main else call


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
    inside = all((call.request.params.get("inference_geo") == "us") for call in calls)
    name, does = ("us=no", "inference anywhere") if inside else ("us", "US-only inference (inference_geo: us)")

    def change(call: Call) -> Call:
        params = {name: value for name, value in call.request.params.items() if name != "inference_geo"}
        return replace(
            call, request=replace(call.request, params=params if inside else {**params, "inference_geo": "us"})
        )

    yield Option(name, "us", does, change_calls(change), MODEL, SAME_OUTPUT)


def count_waiting(steps: Sequence[ReplayStep]) -> int:
    """How many calls have an answer in their messages that another call of the recording waited for."""
    sent = {step.call.request.thread for step in steps}
    return sum(
        any(
            node.parent in sent
            for node in step.call.request.thread.back()
            if node.message and node.message.role == "assistant"
        )
        for step in steps
    )


@dataclass(frozen=True, slots=True)
class RecordingProfile:
    """What options need to know of a recording. `main` is its most expensive model (None: unknown), with `prices`.

    What is withdrawn by `today` is not offered (None: what was withdrawn after the recording is).
    """

    traffic: Workload
    main: MainModel | None
    prices: Prices | None
    pauses: RecordedPauses
    lengths: dict[int, int]
    refused: frozenset[int] = frozenset()
    """The calls that have no usage as recorded."""
    today: date | None = None

    @classmethod
    def of(cls, traffic: Workload, rows: Sequence[CallRow], today: date | None = None) -> RecordingProfile:
        """`rows` are those of the calls as recorded."""
        costs: dict[int, Decimal] = {row.call: row.cost.total for row in rows}
        main = MainModel.of(traffic, costs)
        lengths = {row.call: row.usage.total_input for row in rows}
        refused = frozenset(row.call for row in rows if row.error)
        return cls(traffic, main, _prices(traffic, main), measure_pauses(traffic.calls), lengths, refused, today)

    @property
    def short_s(self) -> float:
        """The short TTL, the usual one if no model's rules are known."""
        return (self.main.rules.ttl_s if self.main else USUAL_TTL_S)["5m"]

    def options(self, reads_prompts: bool = True) -> Iterator[Option]:
        """Every option, whether or not it changes anything here; or only those that are found without reading prompts,
        which a page offers.
        """
        calls = self.traffic.calls
        yield from ttl_options(calls, self.pauses, self.short_s)
        yield from ping_options(calls, self.pauses, self.prices, self.short_s, self.refused)
        yield from breakpoint_options(calls)
        if reads_prompts:
            yield from tools_options(calls)
            yield from volatile_options(calls)
            yield from thinking_options(self.traffic)
        yield from compaction_options(self.traffic, self.lengths)
        if reads_prompts:
            yield from batch_options(calls, count_waiting(as_sent(calls)))
            yield from residency_options(calls)
        if self.main:
            yield from model_options(self.traffic, self.main, self.today)
            yield from host_options(self.traffic, self.main, self.today)

    def retired_models(self) -> dict[str, date]:
        """The models that are not offered since they were retired after the recording, and the last day of each."""
        found = retired_since(self.main, self.today) if self.main else []
        return {one.name: day for one in found if (day := last_day(one))}

    def find_options(self, names: Sequence[str]) -> list[Option]:
        """The options of these names; models, intervals, limits and presets' breakpoints that are not in the table are
        allowed.

        Raises InputError with every fault: names that are not known, and two of one kind.
        """
        known = {option.name: option for option in self.options()}
        found, faults = list[Option](), list[Fault]()
        for name in names:
            words = f"expected the name of an alternative from the table; got '{name}'{nearest(name, known)}"
            try:
                option = known.get(name) or self.build_option(name)
            except CannotEvaluate as error:
                option, words = None, f"{name}: {error}"
            if option is None:
                faults.append(Fault("--jointly", words))
            else:
                found.append(option)
        by_kind: dict[str, str] = {}
        for option in found:
            if (other := by_kind.setdefault(option.kind, option.name)) != option.name:
                faults.append(Fault("--jointly", f"'{other}' and '{option.name}' cannot be combined"))
        if faults:
            raise InputError(faults)
        return found

    def build_option(self, name: str) -> Option | None:
        """An option that is not offered; None: no such name. Raises CannotEvaluate: a model not served."""
        kind, _, value = name.partition("=")
        try:
            if kind == "model" and self.main:
                return model_option(self.traffic, self.main, value)
            if kind == "breakpoints":
                from cachecost.analysis.whatif.presets import preset_option  # all strategies are a lot to import

                return preset_option(value)
            if kind == "keep-alive":
                return ping_option(self.traffic.calls, self.pauses, self.prices, self.short_s, self.refused, value)
            if kind == "compaction":
                limit = int(value.removesuffix("k")) * (1000 if value.endswith("k") else 1)
                return compaction_option(self.traffic, self.lengths, limit)
        except ValueError:
            pass
        return None


def _prices(traffic: Workload, main: MainModel | None) -> Prices | None:
    if main is None:
        return None
    try:
        return traffic.setup.prices.quote(main.host, main.rules.model, main.day, STANDARD).of(0)
    except CannotEvaluate:
        return None
