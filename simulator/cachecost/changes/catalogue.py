"""All options for a recording, and lookup by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from math import inf
from typing import Any

from cachecost.base.errors import CannotEvaluate, Fault, InputError, nearest
from cachecost.base.structs import replace
from cachecost.changes.offers import (
    SCOPES,
    cause_changes,
    cause_options,
    deferred_options,
    hour_options,
    scoped_ttl_options,
)
from cachecost.changes.option import (
    CONTENT,
    MODEL,
    PINGS,
    Option,
    RecordedPauses,
    breakpoint_options,
    compaction_option,
    compaction_options,
    keep_alive_words,
    measure_pauses,
    pings_worth,
    thinking_options,
    ttl_options,
)
from cachecost.changes.steps import (
    PartPool,
    add_pings,
    change_calls,
    has_breakpoints,
)
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Block, Part
from cachecost.prompts.request import block_of, sent_breakpoints
from cachecost.providers.hosts import catalogue, host_of
from cachecost.providers.prices import STANDARD, Prices, last_day, list_models, must_be_served, withdrawn
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import USUAL_TTL_S
from cachecost.simulation.workload import Workload
from cachecost.strategies.changes.keepalive import KeepAlive
from cachecost.tokens.calibration import CLAUDE


def tools_options(calls: Sequence[Call]) -> Iterator[Option]:
    """Tools sorted by name, and the keys of their definitions sorted. Breakpoints keep their positions in the list."""
    lists = {call.request.tools for call in calls if call.request.tools.blocks}
    has_names = all(block.content is not None for part in lists for block in part.blocks)
    parts, made = PartPool(), dict[Part, Part]()

    def sort_tools(part: Part) -> Part:
        if part not in made:
            blocks = sorted(
                map(canonical, part.blocks), key=lambda one: (str((one.content or {}).get("name") or ""), one.digest)
            )
            made[part] = parts.of(blocks)
        return made[part]

    def change(call: Call) -> Call:
        tools = sort_tools(call.request.tools)
        return call if tools is call.request.tools else replace(call, request=replace(call.request, tools=tools))

    is_alike = len({sort_tools(part).digest for part in lists}) < len({part.digest for part in lists})
    yield Option(
        "tools=sorted",
        "tools",
        f"tools sorted by {'name, and their keys' if has_names else 'digest, because the recording has no names'}",
        change_calls(change),
        CONTENT,
        "The order of tools and of their keys is assumed not to affect answers",
        unchanged="" if is_alike else "the order of tools and of their keys never changes",
    )


def canonical(block: Block) -> Block:
    """The block with all keys sorted; itself where it holds no content."""
    return block if block.content is None else block_of(block.role, _sort_keys(block.content))


def _sort_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    return [_sort_keys(one) for one in value] if isinstance(value, list) else value


ONE = Decimal(1)
HOSTS = ("anthropic", "bedrock", "google-cloud", "foundry")
SAME_OUTPUT = "The model there is assumed to answer the same"


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


def is_cached_alike(one: ModelRules, other: ModelRules) -> bool:
    """Whether both look back from breakpoints, or both find by themselves what was sent before."""
    ways = [(rules.uses_breakpoints, rules.finds_without_lookback) for rules in (one, other)]
    return ways[0] == ways[1]


def is_served(host: str, name: str, day: date | None) -> bool:
    """Whether a host knows a model of this name."""
    try:
        catalogue(host).model(name, day)
    except CannotEvaluate:
        return False
    return True


def to_host(call: Call, traffic: Workload, host: str) -> Call:
    """The call as `host` takes it: its name for the model, and explicit breakpoints where it has no automatic
    caching. A call of a model that it does not have stays where it is.
    """
    model = call.request.model
    try:
        model = catalogue(host_of(call.host, traffic.setup.host, model)).model(model, call.day).name
        rules = traffic.setup.rules.rules(host, model, call.day)
    except CannotEvaluate:
        return call
    request = replace(call.request, model=model)
    if request.automatic and not rules.accepts_automatic:
        request = replace(request, breakpoints=sent_breakpoints(request).every, automatic=None)
    return replace(call, host=host, request=request)


def batch_and_residency_options(calls: Sequence[Call], main: MainModel | None) -> Iterator[Option]:
    """All calls in batches; US-only inference if the calls do not request it, else inference anywhere."""
    sent = {call.request.thread for call in calls}
    waiting = sum(
        any(
            node.parent in sent
            for node in call.request.thread.back()
            if node.message and node.message.role == "assistant"
        )
        for call in calls
    )
    why = f"{waiting:,} of {len(calls):,} calls depend on an earlier answer, which a batch returns within a day"
    yield Option(
        "batch",
        "batch",
        "all calls in batches, at half the price",
        change_calls(lambda call: call if call.is_batch else replace(call, is_batch=True)),
        MODEL,
        "Cache hits in batches are best effort: the range is from every possible hit to none",
        why if waiting else "",
        "all calls are in batches already" if all(call.is_batch for call in calls) else "",
        is_batch=True,
    )
    if main is not None and main.host not in HOSTS:
        return
    inside = all((call.request.params.get("inference_geo") == "us") for call in calls)
    name, does = ("us=no", "inference anywhere") if inside else ("us", "US-only inference (inference_geo: us)")
    geo = {} if inside else {"inference_geo": "us"}

    def change(call: Call) -> Call:
        params = {name: value for name, value in call.request.params.items() if name != "inference_geo"}
        return replace(call, request=replace(call.request, params={**params, **geo}))

    yield Option(name, "us", does, change_calls(change), MODEL, SAME_OUTPUT)


def host_options(traffic: Workload, main: MainModel, today: date | None) -> Iterator[Option]:
    """The other hosts, at the endpoint that the bare name of the model stands for; not supported where it is
    withdrawn on the last day of the recording or today."""
    name = catalogue(main.host).model(main.rules.model).name
    last = max((day for day in (main.rules.day, today) if day), default=None)
    for host in HOSTS:
        if host != main.host and is_served(host, name, main.rules.day):
            yield Option(
                f"host={host}",
                "host",
                f"all calls go to {host}: its lookback, minimums, scope and prices",
                change_calls(partial(to_host, traffic=traffic, host=host)),
                MODEL,
                f"{SAME_OUTPUT}. A bare model name means the host's default endpoint. Automatic caching becomes a "
                "breakpoint on the last block where the host has none",
                withdrawn(host, name, last),
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
        main = MainModel.of(traffic, {row.call: row.cost.total for row in rows})
        prices = None
        if main is not None:
            with suppress(CannotEvaluate):
                prices = traffic.setup.prices.quote(main.host, main.rules.model, main.day, STANDARD).of(0)
        lengths = {row.call: row.usage.total_input for row in rows}
        refused = frozenset(row.call for row in rows if row.error)
        return cls(traffic, main, prices, measure_pauses(traffic.calls), lengths, refused, today)

    @property
    def short_s(self) -> float:
        """The shortest TTL in seconds, the usual one if no model's rules are known."""
        return min((self.main.rules.ttl_s if self.main else USUAL_TTL_S).values(), default=inf)

    def options(self, reads_prompts: bool = True, fixes: bool = True) -> Iterator[Option]:
        """Every option, whether or not it changes anything here; or only those that are found without reading prompts,
        which a page offers, or without a replay: those that are not `fixes` of a cause.
        """
        calls = self.traffic.calls
        looks_back = self.main is None or self.main.rules.uses_breakpoints
        if looks_back:  # elsewhere no request says what is cached, and for how long
            yield from ttl_options(calls, self.pauses, self.short_s)
            # Several intervals, each for as many pings as the prices are worth, and the longest for a few alone.
            for value in ("120s", "240s", "295s", "295s:1", "295s:3"):
                yield self._ping_option(value)
            yield from breakpoint_options(calls)
        if reads_prompts:
            yield from tools_options(calls)
            yield from thinking_options(self.traffic)
            yield from cause_options(self.traffic) if fixes else ()
            yield from hour_options(self.traffic)
            if self.main is not None and self.main.rules.generation.startswith(CLAUDE):
                yield from deferred_options(self.traffic)
        if looks_back:
            yield from scoped_ttl_options(self.traffic, self.short_s)
        yield from compaction_options(self.traffic, self.lengths)
        if reads_prompts:
            yield from batch_and_residency_options(calls, self.main)
        if self.main:
            yield from self._model_options(self.main)
            agents = [call for call in self.traffic.calls if call.agent]
            side = MainModel.of(replace(self.traffic, calls=agents), dict.fromkeys(range(len(agents) + 1), ONE))
            if side is not None:
                yield from self._model_options(side, of_agents=True)
            if looks_back:
                yield from host_options(self.traffic, self.main, self.today)

    def _model_options(self, main: MainModel, of_agents: bool = False) -> Iterator[Option]:
        """The models that the host serves on the last day of the recording and today, for the calls of its most
        expensive model, of the same maker (Bedrock also serves Amazon's); of sub-agents, only what is cheaper."""
        day, book = main.rules.day, catalogue(main.host)
        ours = book.model(main.rules.model)
        found = list(list_models(main.host, day, *([self.today] if self.today else [])))
        if ours.is_other_way:  # cached as the id of the calls' model names
            found = [way for one in found for way in book.other_ways(one) if way.endpoint == ours.endpoint]
        for model in sorted(found, key=lambda one: (one.released, one.id), reverse=True):
            is_other = model.name != ours.name and book.inherits(model.name) == book.inherits(ours.name)
            if is_other and is_cached_alike(self.traffic.setup.rules.rules(main.host, model.id, day), main.rules):
                option = self._model_option(main, model.id, of_agents)
                if not of_agents or self._input_price(main, model.id) < self._input_price(main, main.rules.model):
                    yield option

    def _input_price(self, main: MainModel, name: str) -> Decimal:
        with suppress(CannotEvaluate):
            return self.traffic.setup.prices.quote(main.host, name, main.day, STANDARD).of(0).input
        return Decimal("inf")

    def _ping_option(self, value: str) -> Option:
        """Pings as `value` says: "295s", or "295s:3" for at most three in a pause. Raises ValueError."""
        interval, _, most = value.partition(":")
        every_s = float(interval.removesuffix("s"))
        worth = (pings_worth(self.prices) if self.prices else None) or 0
        times = int(most) if most else worth
        habit = KeepAlive(every_s=every_s, times=times)
        is_marked = any(has_breakpoints(call.request) and not call.is_batch for call in self.traffic.calls)
        refused = self.refused
        return Option(
            f"keep-alive={value}",
            "keep-alive",
            keep_alive_words(habit, self.short_s),
            lambda steps: add_pings(steps, habit, refused),
            PINGS,
            "A client cannot know which call is the last, so keep-alives also follow it; each requests no output",
            self.pauses.missing_reason(self.short_s),
            "" if is_marked else "no call has a breakpoint, so there is nothing to keep alive",
        )

    def _model_option(self, main: MainModel, name: str, of_agents: bool = False) -> Option:
        """Another model for the calls of the most expensive one. Raises CannotEvaluate where it is not served."""
        setup = self.traffic.setup
        must_be_served(main.host, name, main.rules.day)
        rules = setup.rules.rules(main.host, name, main.rules.day)
        if not is_cached_alike(rules, main.rules):
            raise CannotEvaluate(f"not cached as {main.rules.model} is: {rules.way_in_words}")
        generation = catalogue(main.host).model(name).generation
        counts_anew = generation != main.rules.generation
        by_own = f"; tokens are counted by its own tokenizer ({generation})" if counts_anew else ""

        kind = "sub-agents-model" if of_agents else "model"

        def change(call: Call) -> Call:
            host = host_of(call.host, setup.host, call.request.model)
            if of_agents and not call.agent:
                return call
            try:
                is_main = host == main.host and setup.rules_for(call).model == main.rules.model
            except CannotEvaluate:
                return call
            return replace(call, request=replace(call.request, model=name)) if is_main else call

        return Option(
            f"{kind}={name}",
            kind,
            f"calls {'of sub-agents ' if of_agents else ''}to {main.rules.model} go to {name}",
            change_calls(change),
            MODEL,
            f"The other model is assumed to need as many output tokens and turns{by_own}",
            keeps_answers=False,
            counts_anew=counts_anew,
        )

    def retired_models(self) -> dict[str, date]:
        """The models that are not offered since they were retired after the recording, and the last day of each."""
        if self.main is None or self.today is None:
            return {}
        host, day, book = self.main.host, self.main.rules.day, catalogue(self.main.host)
        offered = {one.name for one in list_models(host, day, self.today)}
        ours = book.model(self.main.rules.model).name
        return {
            one.name: last
            for one in list_models(host, day)
            if book.inherits(one.name) == book.inherits(ours) and one.name not in offered and one.name != ours
            if (last := last_day(one))
        }

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
            if any(change.name == name for change in cause_changes()):
                return next(one for one in cause_options(self.traffic, name) if one.name == name)
            if kind == "model" and self.main:
                return self._model_option(self.main, value)
            if kind == "breakpoints":
                from cachecost.changes.presets import preset_option  # all strategies are a lot to import

                return preset_option(value)
            if kind == "keep-alive":
                return self._ping_option(value)
            if kind in SCOPES:
                scoped = scoped_ttl_options(self.traffic, self.short_s, least_scopes=1)
                return next((option for option in scoped if option.name == name), None)
            if kind == "compaction":
                limit = int(value.removesuffix("k")) * (1000 if value.endswith("k") else 1)
                return compaction_option(self.traffic, self.lengths, limit)
        except ValueError:
            pass
        return None
