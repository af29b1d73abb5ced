"""The rules of one host and model on one day, with a user's own rules file (`--rules FILE`) over them.

They come from the dated, sourced rows of `rules/HOST.toml`; the code has no constants. Reading a file takes a few
milliseconds, once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from math import exp
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from cachecost.base.errors import CannotEvaluate, Fault, InputError, OtherCache, nearest
from cachecost.base.formatting import percent
from cachecost.base.limits import is_tokens
from cachecost.base.structs import replace
from cachecost.base.toml_text import TomlLines, read_toml
from cachecost.providers.assumptions import Assumptions, assumptions_from, read_assumptions
from cachecost.providers.hosts import (
    ANY,
    AUTO_HOST,
    DEFAULT_HOST,
    Catalogue,
    Model,
    catalogue,
    host_of,
    hosts,
    unknown_model,
)
from cachecost.providers.usage import USUAL_TTL_S

LEAST = {"minimum_tokens": 0, "capacity_tokens": 1, "step_tokens": 1}
"""Rules in tokens that a file may give for a model, and the least that each can be."""
VALUES = tuple(LEAST)
TABLES = ("data", "assumptions", *VALUES, "evidence")
VALUE_KEYS = ("host", "model", "value", "from", "source")
NO_SWITCHES: Mapping[str, Any] = {}


class OwnValue(msgspec.Struct, frozen=True):
    """A rule of a model on a host in tokens, from a day on."""

    rule: str
    host: str
    model: str
    value: int
    begins: date


class OwnRules(msgspec.Struct, frozen=True):
    """The content of a rules file: assumptions by name, and rules of models in the order of their days."""

    assumptions: Mapping[str, Any] = msgspec.field(default_factory=lambda: NO_SWITCHES)
    rows: tuple[OwnValue, ...] = ()

    def values(self, host: str, model: Model, day: date) -> dict[str, int]:
        """The rules of the model on `day` in this file, by name; a row of the model wins over one for all models."""
        found = [one for one in self.rows if one.host == host and one.begins <= day]
        wanted = (ANY, model.id)
        return {one.rule: one.value for name in wanted for one in found if one.model == name}


NO_OWN_RULES = OwnRules()


def own_rules(path: Path) -> OwnRules:
    """The rules of a file. Raises InputError with every fault, each with file and line."""
    data, lines = read_toml(path)
    faults = sorted(_faults(data, lines, str(path)), key=lambda fault: fault.line or 0)
    if faults:
        raise InputError(faults)
    rows = (
        OwnValue(rule, host, catalogue(host).model(row["model"]).id, row["value"], row.get("from", date.min))
        for rule in VALUES
        for row in data.get(rule, [])
        for host in (row.get("host", DEFAULT_HOST),)
    )
    return OwnRules(data.get("assumptions", {}), tuple(sorted(rows, key=lambda row: row.begins)))


def _faults(data: Mapping[str, Any], lines: TomlLines, file: str) -> Iterator[Fault]:
    for key in data:
        if key not in TABLES:
            yield Fault(file, f"{key}: expected one of {', '.join(TABLES)}{nearest(key, TABLES)}", lines.top(key))
    assumptions = data.get("assumptions", {})
    if not isinstance(assumptions, dict):
        yield Fault(file, "assumptions: expected a table, NAME = VALUE a line", lines.top("assumptions"))
    else:
        _, problems = read_assumptions(assumptions)
        for name, words in problems.items():
            yield Fault(file, f"assumptions.{words}", lines.of("assumptions", 0, name))
    for rule in VALUES:
        rows = data.get(rule, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            yield Fault(file, f"{rule}: expected [[{rule}]], one table a row", lines.top(rule))
            continue
        for number, row in enumerate(rows):
            for key, words in _row_faults(row, LEAST[rule]):
                where = f"{rule}[{number}]" + (f".{key}" if key else "")
                yield Fault(file, f"{where}: {words}", lines.of(rule, number, key))


def _row_faults(row: Mapping[str, Any], least: int) -> Iterator[tuple[str, str]]:
    yield from ((key, f"unknown key{nearest(key, VALUE_KEYS)}") for key in row if key not in VALUE_KEYS)
    yield from (("", f"{key} is missing") for key in ("model", "value") if key not in row)
    value = row.get("value", least)
    if not is_tokens(value) or value < least:
        yield "value", f"expected tokens, a whole number from {least}; got {value!r}"
    if "from" in row and type(row["from"]) is not date:
        yield "from", f"expected a day like 2026-03-07; got {row['from']!r}"
    host = row.get("host", DEFAULT_HOST)
    if host not in hosts():
        yield "host", f"no rules for host {host!r}{nearest(str(host), hosts())}; known: {', '.join(hosts())}"
    elif "model" in row and (why := unknown_model(host, row["model"])):
        yield "model", why


__all__ = ["Assumptions", "HiddenTokens", "ModelRules", "RuleBook", "assumptions_from", "data_date", "read_assumptions"]
NEEDED = ("minimum_tokens", "context_window", "scope", "ttl_s")
"""Rules that every host states; each is a field of ModelRules under the same name."""
WHERE_STATED = (
    *("keeps_thinking", "accepts_forced_choice", "default_effort", "default_thinking", "standard_context_window"),
    *("effort_layer", "accepts_message_effort", "accepts_system_messages", "accepted_efforts", "accepted_thinking"),
    *("efforts_without_thinking", "accepts_fast", "accepts_inference_geo", "accepts_prefill"),
    *("prewarming_excludes", "fast_excludes", "format_excludes"),
    *("lookback_positions", "maximum_breakpoints", "accepts_automatic", "accepted_ttls", "matching", "step_tokens"),
    *("reported_step_tokens", "grid_offset_tokens", "recomputed_tokens", "capacity_tokens", "refreshes_on_read"),
    *("surplus_breakpoints", "breakpoint_layers", "implicit_breakpoint", "finds", "keyed_by", "keeps_answers"),
    *(
        "null_blocks",
        "keeps_copies",
        "evicts_nodes",
        "keeps_unreasoned_answers",
        "opener_tokens",
        "machine_shares",
        "first_shares",
    ),
    "caches_instructions",
    *("shared_prefix", "shared_prefix_with_tools", "late_answer"),
    *(
        "bills_reasoning",
        "keeps_reasoning",
        "keeps_first_call_only",
        "answer_end_tokens",
        "closing_tokens",
        "charged_ttl",
    ),
    *("accepts_threads", "thread_breakpoints", "thread_held_s", "thread_reads", "accepts_compaction"),
)
"""Such rules that a host may leave out: the field has a default, which is Anthropic's way."""
ELSEWHERE = (
    *("frame", "tool_prompt", "forced_tail", "thinking_tokens", "adaptive_tokens", "read_range"),
    *("visibility_lag", "collapses_runs"),
    *("visibility", "affinity", "sticky_routing_s", "serves"),
)
"""Rules that are more than a field of ModelRules; the last four are facts that the cache model does not use."""
WAYS = {
    "lookback": "uses breakpoints with a lookback",
    "boundaries": "uses breakpoints, and looks for entries at breakpoints and at the ends of messages",
    "grid": "keeps every prefix automatically, in fixed-size blocks of tokens",
    "units": "keeps fixed units automatically",
    "named": "keeps explicit cache objects",
    "best_effort": "is automatic and best effort",
    "none": "keeps nothing: this model has no prompt cache there",
}
"""Descriptions of caches by `finds` where they use breakpoints, else by `matching`."""
NO_TOKENS = {"const": 0, "turn": 0, "prefix": 0, "tail": 0}


class HiddenTokens(msgspec.Struct, frozen=True):
    """Hidden tokens that the provider adds (rule 4), as published or fitted."""

    tool_prompt: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Tool-use system prompt by tool choice class: auto, any, tool. A refused class is absent."""
    frame_const: int = 0
    frame_turn: int = 0
    forced_tail: Mapping[str, int] = msgspec.field(default_factory=dict)
    """How many of the forced choice's extra tokens come after the last block, by class: any, tool."""
    thinking_prefix: int = 0
    thinking_tail: int = 0
    adaptive_prefix: int = 0
    """As `thinking_prefix`, where the thinking type is adaptive."""
    adaptive_tail: int = 0


class VisibilityLag(msgspec.Struct, frozen=True):
    """How long after its writer's start an entry can be read: log-normal, `median_s` in seconds, `sigma` of its log."""

    median_s: float
    sigma: float

    @property
    def longest_s(self) -> float:
        """The 97.7th percentile: two sigmas above the median."""
        return self.median_s * exp(2 * self.sigma)


class StatedRange(msgspec.Struct, frozen=True):
    """What a call reads where its host does not promise it: from a share `least` of what it could read to all of it, in
    a share `coverage` of the calls (1: in all, so these are bounds)."""

    least: float
    coverage: float


class SharedPrefix(NamedTuple):
    """Tokens that a call reads of what only others' calls can have sent: the provider's own text before every prompt,
    which everybody's calls keep cached, and what prompts commonly begin with."""

    least: int = 0
    usual: int = 0
    most: int = 0


BOUNDS = StatedRange(0.0, 1.0)
"""Nothing to all: what can be said of a cache that promises nothing."""
ANY_CACHE = "bill, replay and validate support it"
"""Commands that need no breakpoints, as a hint."""
LOOKBACK_CACHES = "breakpoint caches with a lookback only, like Claude's"
"""All that some commands support."""
ALL_BUT_OBJECTS = "all caches but explicit cache objects"
"""All that others support."""
EXPLAIN_AUTOMATIC = frozenset({"explain", "whatif", "view", "lint"})


def supported_by(command: str) -> str:
    """The caches that a command supports, in words."""
    return ALL_BUT_OBJECTS if command in EXPLAIN_AUTOMATIC else LOOKBACK_CACHES


VIA = " via "
"""Between a workspace and the upstream that a gateway chose for a call, which has a cache of its own."""


class ModelRules(msgspec.Struct, frozen=True):
    """Every rule of one (host, model, day), resolved. Tokens are tokens of this model.

    `model` is the id behind an alias, `name` the same without what the host adds to it. `context_window` is the API's
    limit on that day, with the 1M beta header where needed; `standard_context_window` is the limit without it.
    `retired` is the first day on which the host no longer served the model: its last rules stay in force. `day` is
    the day asked for. `endpoint` is the one that the id names ("us", "explicit"), where ids name one.
    `ttl_s` are the host's short and long TTL in seconds; empty: unknown. A host with one TTL has only "5m".
    """

    host: str
    model: str
    generation: str
    minimum_tokens: int
    context_window: int
    scope: str
    name: str = ""
    keeps_thinking: bool = True
    accepts_forced_choice: bool = True
    default_effort: str | None = None
    collapses_runs: bool = False
    lookback_positions: int = 20
    maximum_breakpoints: int = 4
    ttl_s: Mapping[str, float] = msgspec.field(default_factory=lambda: USUAL_TTL_S)
    hidden: HiddenTokens = HiddenTokens()
    assumptions: Assumptions = Assumptions()
    standard_context_window: int = 0
    retired: date | None = None
    day: date | None = None
    accepts_automatic: bool = True
    """False: a top-level `cache_control` is a 400."""
    accepted_ttls: tuple[str, ...] = ("5m", "1h")
    """A breakpoint with another TTL is a 400."""
    endpoint: str = ""
    matching: str = "breakpoint"
    """How the cache finds what it has: breakpoint, grid, units, named, best_effort or none."""
    step_tokens: int = 1
    """Grid: a hit ends on a multiple of it."""
    reported_step_tokens: int = 1
    """What usage reports is rounded down to a multiple of it."""
    grid_offset_tokens: int = 0
    """The provider's own text before the prompt, from whose start the grid counts."""
    recomputed_tokens: int = 0
    """Tokens at the end that are always computed anew."""
    capacity_tokens: int | None = None
    """What the cache holds: the least recently used go first. None: no bound."""
    null_blocks: int = 0
    """Blocks of that capacity that hold nothing. Grid."""
    keeps_copies: bool = False
    """A last block that is computed anew is kept beside the one that is cached. Grid."""
    evicts_nodes: bool = False
    """A full server evicts whole nodes of a tree, which end where prompts end or part. Grid."""
    keeps_answers: bool = False
    """An answer is cached as its call made it, and read when it first comes back. Grid."""
    keeps_unreasoned_answers: bool = False
    """The same of an answer whose bill shows that it came back whole, without reasoning before it. Grid."""
    opener_tokens: int = 0
    """Tokens at the end of a prompt that open the answer, and that a longer prompt does not share. Grid."""
    machine_shares: Mapping[str, float] = msgspec.field(default_factory=dict)
    """Shares of the calls that could read an earlier one: those on the machine that has the `latest` it could read, on
    one that has the `previous` (what the latest itself read), an `older` one, or `none`. Empty: every call is on the
    machine that has it. Grid."""
    first_shares: Mapping[str, float] = msgspec.field(default_factory=dict)
    """The same shares where no call has read the latest yet. Grid."""
    caches_instructions: bool = True
    """The `instructions` of a Responses request are part of the prefix; False: they are counted, and never cached."""
    shared_prefix: Mapping[str, int] = msgspec.field(default_factory=dict)
    """The fields of `SharedPrefix`. Bills count it as part of the prompt, and so does `hidden.frame_const`."""
    shared_prefix_with_tools: Mapping[str, int] = msgspec.field(default_factory=dict)
    """The same of requests with tools; empty: as without."""
    bills_reasoning: bool = False
    """The bill of a prompt may count reasoning of earlier answers, though no client sends it back."""
    keeps_reasoning: bool = False
    """The reasoning of an answer stays in the prompt, and cached, though no client sends it back."""
    keeps_first_call_only: bool = False
    """Of parallel calls in such an answer only the first is read when it comes back."""
    answer_end_tokens: int = 0
    """Tokens that close an answer whose reasoning stays."""
    closing_tokens: int = 0
    """Of the tokens around a message, those after its last block: no part of a prefix that ends there."""
    charged_ttl: str = ""
    """The TTL at whose price whole steps that are not read are charged: 5m or 1h. Empty: writes are free. Grid."""
    read_range: StatedRange | None = None
    """Where a call may read less than what earlier calls sent, or more than is predicted; None: it never does."""
    refreshes_on_read: bool = True
    surplus_breakpoints: str = "refused"
    """What becomes of more than `maximum_breakpoints`: refused, or oldest_dropped."""
    breakpoint_layers: tuple[str, ...] = ("tools", "system", "messages")
    """Where breakpoints may stand. A host without breakpoints has none."""
    implicit_breakpoint: bool = False
    """The host puts one at the end of the latest user message or run of tool results."""
    finds: str = "lookback"
    """How a breakpoint looks for what was written: lookback (rule 9) or boundaries (those of this request alone)."""
    keyed_by: Mapping[str, tuple[str, ...]] | None = None
    """By layer, the parameters at its head: a change starts it over. None: as the assumptions say (Anthropic's way)."""

    effort_layer: str = "thinking"
    """The layer that another effort rewrites, with those after it: tools, messages, or that of the thinking
    configuration (rule 2)."""
    accepts_message_effort: bool = False
    """Whether a system message within the conversation may change the effort, which keeps what is cached."""
    accepts_system_messages: bool = True
    """Whether messages may have the role system."""
    accepted_efforts: tuple[str, ...] | None = None
    """The values of output_config.effort; none: it is a 400. None: any."""
    accepted_thinking: tuple[str, ...] | None = None
    """The values of thinking.type. None: any."""
    efforts_without_thinking: tuple[str, ...] | None = None
    """The efforts at which thinking may be disabled. None: any."""
    accepts_fast: bool = True
    accepts_inference_geo: bool = True
    accepts_prefill: bool = True
    """False: a last message of the assistant that ends in a text is a 400."""
    prewarming_excludes: tuple[str, ...] = ()
    """What a request with `max_tokens: 0` may not have."""
    fast_excludes: tuple[str, ...] = ()
    """What a request with `speed: fast` may not have."""
    format_excludes: tuple[str, ...] = ()
    """What a request with an output format may not have."""
    default_thinking: str = "disabled"
    """Thinking that equals leaving it out: disabled or adaptive (rule 2)."""
    accepts_threads: bool = True
    """False: `thread` is a 400."""
    thread_breakpoints: int = 3
    """More breakpoints of the client's own in a request with `thread` are a 400."""
    thread_held_s: float = 300.0
    """A thread whose last request is longer ago is not found: 404."""
    thread_reads: str = "all"
    """What a thread reads of entries that others wrote: all, or system (their tools and system prompt)."""
    accepts_compaction: bool = True
    """False: a top-level `compaction` is a 400."""
    late_answer: Mapping[str, float] = msgspec.field(default_factory=dict)
    """A late but plausible time to first token where none was recorded: `base` seconds, and `per_token` of the prefix
    that is written. A call that began within it and did not read what the other wrote came too early. Empty: none."""
    visibility_lag: VisibilityLag | None = None
    """Entries written on this day became readable late (rule 14); None: from the first token on. The cache draws it
    only under the assumption `visibility_lag_by_date`."""

    def shared_by_all(self, has_tools: bool) -> SharedPrefix:
        """What a call reads of the provider's own text; nothing where no rule says so."""
        return SharedPrefix(**((has_tools and self.shared_prefix_with_tools) or self.shared_prefix))

    @property
    def uses_breakpoints(self) -> bool:
        """Whether it caches by the Messages API's breakpoints, with their lookback (rules 5, 9)."""
        return self.matching == "breakpoint" and self.finds == "lookback"

    def is_supported_by(self, command: str) -> bool:
        """Whether a command ("explain") supports this cache."""
        return self.uses_breakpoints or (self.finds_without_lookback and command in EXPLAIN_AUTOMATIC)

    def require_support(self, command: str) -> None:
        """Raise OtherCache unless `command` supports this cache."""
        if not self.is_supported_by(command):
            raise OtherCache(f"{command} supports {supported_by(command)}; {self.way_in_words} ({ANY_CACHE})")

    @property
    def way_in_words(self) -> str:
        """A description: "the cache of gpt-5.5 on host openai caches every prefix automatically, in …"."""
        way = WAYS[self.finds if self.matching == "breakpoint" else self.matching]
        return f"the cache of {self.model} on host {self.host} {way}"

    @property
    def varies_by_machine(self) -> bool:
        """Whether a call reads what the cache of its machine has, which may be less than what earlier calls sent."""
        return self.matching == "grid" and bool(self.machine_shares)

    @property
    def range_in_words(self) -> str:
        """What its rules say of hits that are not certain, a sentence; "" where they are certain."""
        stated = self.read_range
        if self.varies_by_machine:
            return (
                f"hits on host {self.host} are a range: a call may come to a machine whose cache has less; "
                f"cachecost rules --host {self.host} has machine_shares"
            )
        if stated is None:
            return ""
        often = "a call" if stated.coverage == 1 else f"{percent(stated.coverage)} of the calls"
        least = percent(stated.least) if stated.least else "nothing"
        return (
            f"hits of {self.model} on host {self.host} are a range: {often} may read from {least} to what is shown; "
            f"cachecost rules --host {self.host} has where read_range is from"
        )

    @property
    def finds_without_lookback(self) -> bool:
        """Whether it finds what was sent before by itself: automatically, or at the ends of earlier messages."""
        return not self.uses_breakpoints and self.matching != "named"

    @property
    def is_automatic(self) -> bool:
        """Whether it caches automatically, without breakpoints."""
        return self.matching not in ("breakpoint", "named")

    def pool(self, workspace: str) -> str:
        """The pool that shares entries with calls of `workspace` (rule 7): that workspace, or the whole host.

        Each upstream of a gateway has its own.
        """
        own, via, upstream = workspace.partition(VIA)
        return f"{self.host}/{own if self.scope == 'workspace' else ''}{via}{upstream}"


class RuleBook:
    """The dated rows of all hosts and models, with `assumptions`, `as_of` and a user's `own` rules applied."""

    def __init__(
        self, assumptions: Assumptions | None = None, as_of: date | None = None, own: OwnRules = NO_OWN_RULES
    ) -> None:
        self.assumptions = assumptions or Assumptions()
        self.as_of = as_of
        self.own = own
        self._known: dict[tuple[str, str, date | None], ModelRules] = {}

    @property
    def is_bounded(self) -> bool:
        """Whether the user stated the capacity of a self-hosted server."""
        return self.assumptions.capacity_tokens > 0 or any(row.rule == "capacity_tokens" for row in self.own.rows)

    def rules(self, host: str, model: str, day: date | None = None) -> ModelRules:
        """Rules of `model` (id or alias) on `host` (AUTO_HOST: by the model's name) on `day`; `as_of` wins over `day`.

        Without either, the date of the shipped data decides. Raises CannotEvaluate for an unknown
        host or model (naming the nearest), for a day before its release and for a rule without a row.
        """
        key = (host_of(None, host, model), model, self.as_of or day)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._resolve(*key)
        return found

    def _resolve(self, host: str, name: str, day: date | None) -> ModelRules:
        book, assumptions = catalogue(host), self.assumptions.on(host)
        _check_rule_names(host, book.rules)
        model = book.under(book.model(name, day), assumptions)
        when = day or book.data_date
        if when < model.released:
            known = f"known from {model.released}: --as-of {model.released}"
            raise CannotEvaluate(f"{model.id} has no rules on {when}; {known}")
        server = {"capacity_tokens": assumptions.capacity_tokens, "step_tokens": assumptions.step_tokens}
        own: dict[str, Any] = self.own.values(host, model, when)
        if not book.is_priced:  # a self-hosted server: 0 means that the user did not set it
            own |= {name: value for name, value in server.items() if value}
        lag = book.value(model, "visibility_lag", when) if "visibility_lag" in book.rules else {}
        stated = book.value(model, "read_range", when) if "read_range" in book.rules else {}
        is_best_effort = "matching" in book.rules and book.value(model, "matching", when) == "best_effort"
        read_range = BOUNDS if is_best_effort else None
        runs = self.assumptions.lookback_runs
        collapses = runs == "collapsed"
        if runs == "by_date" and "collapses_runs" in book.rules:
            collapses = bool(book.value(model, "collapses_runs", when))
        rules = ModelRules(
            host=host,
            model=model.id,
            name=model.name,
            generation=model.generation,
            collapses_runs="collapses_runs" in book.rules and collapses,
            hidden=_hidden_tokens(book, model, when),
            visibility_lag=VisibilityLag(lag["median"], lag["sigma"]) if lag else None,
            read_range=StatedRange(stated["least"], stated["coverage"]) if stated else read_range,
            assumptions=assumptions,
            retired=model.retired,
            day=when,
            endpoint=model.endpoint,
            **{name: book.value(model, name, when) for name in NEEDED},
            **{name: _plain(book.value(model, name, when)) for name in WHERE_STATED if book.states(model, name)},
        )
        return replace(rules, **own) if own else rules


def _check_rule_names(host: str, stated: Collection[str]) -> None:
    """Raises ValueError for a rule that nothing reads, and for one that is missing."""
    known = {*NEEDED, *WHERE_STATED, *ELSEWHERE}
    unread = [f"nothing reads [rules.{name}]{nearest(name, known)}" for name in stated if name not in known]
    missing = [f"[rules.{name}] is missing" for name in NEEDED if name not in stated]
    if unread or missing:
        raise ValueError(f"rules/{host}.toml: {'; '.join([*unread, *missing])}")


def _plain(value: Any) -> Any:
    """Lists as tuples, also within tables, as rules are compared and hashed."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _hidden_tokens(book: Catalogue, model: Model, day: date) -> HiddenTokens:
    """The hidden tokens that the host's rules state; none where it has no such rule."""

    def stated(name: str, without: Any) -> Any:
        return book.value(model, name, day) if name in book.rules else without

    frame, thinking, adaptive = (stated(name, NO_TOKENS) for name in ("frame", "thinking_tokens", "adaptive_tokens"))
    return HiddenTokens(
        stated("tool_prompt", {}),
        frame["const"],
        frame["turn"],
        stated("forced_tail", {}),
        thinking["prefix"],
        thinking["tail"],
        adaptive["prefix"],
        adaptive["tail"],
    )


def data_date(host: str = DEFAULT_HOST) -> date:
    """The date of the shipped rule data."""
    return catalogue(DEFAULT_HOST if host == AUTO_HOST else host).data_date
