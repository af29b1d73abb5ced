"""Replays each strategy once, with everything that limits need.

The last accepted cost of a scenario, as a file: a line a figure and a line a call, so that a change is a diff.

What the command of a scenario sent when its costs were accepted: `recording.jsonl` beside the baseline.

Short digests of what was sent: enough to find the first changed call and block, without any content.

Makes the baseline that accepts today's costs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cached_property
from hashlib import blake2b
from importlib.metadata import version
from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError, WithJsonSchema

from cachecost.base import yaml_text
from cachecost.base.atomic_files import write_together
from cachecost.base.errors import InputError
from cachecost.base.formatting import exact
from cachecost.base.version import __version__
from cachecost.base.yaml_text import faults_of, show_value
from cachecost.conversations.calls import Call
from cachecost.conversations.model import Human
from cachecost.ledger.findings import margin
from cachecost.ledger.results import Ledger
from cachecost.ledger.rows import REFUSED, CallRow
from cachecost.prompts.blocks import Block, Message, Part, Thread
from cachecost.prompts.request import Request, sent_breakpoints
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules, data_date
from cachecost.providers.usage import TOKEN_CLASSES, ZERO
from cachecost.scenario import Scenario, load_conversations
from cachecost.scenario.loading import RecordedScenario
from cachecost.scenario.models import SHIPPED, Strict
from cachecost.simulation.engine import AS_RECORDED, SimulatedCall
from cachecost.simulation.setup import Progress, no_progress
from cachecost.simulation.workload import Workload, scenario_workloads, workload_as_recorded

FILE_NAME = "baseline.json"
FORMAT: Literal[2] = 2
Count = Annotated[int, Field(ge=0)]


def _decimal(value: Any) -> Decimal:
    try:
        amount = value if isinstance(value, Decimal) else Decimal(value if isinstance(value, str) else "")
    except InvalidOperation:
        amount = Decimal("NaN")
    if amount.is_finite() and amount >= 0:
        return amount
    raise ValueError(f'expected dollars as text, like "24.1"; got {show_value(value)}')


def _day(value: Any) -> date | None:
    if value is None or isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f'expected a day like "2026-03-07"; got {show_value(value)}') from None


@dataclass(frozen=True, slots=True)
class BaselineRow:
    """One call, or as many in a row as `calls_a_row` says, from `call` on: short digests of the prompt and the
    breakpoints, tokens read, other input and output, dollars.
    """

    call: int
    prompt: str
    breakpoints: str
    read: int
    other: int
    output: int
    cost: Decimal

    def __str__(self) -> str:
        return f"{self.call} {self.prompt}.{self.breakpoints} {self.read} {self.other} {self.output} {exact(self.cost)}"


@dataclass(frozen=True, slots=True)
class HeadFrom:
    """From this call on, tools, system or parameters are those of this digest."""

    call: int
    layer: str
    digest: str

    def __str__(self) -> str:
        return f"{self.call} {self.layer} {self.digest}"


@dataclass(frozen=True, slots=True)
class BlockEntry:
    """One block of a head: short digest, tokens; of a parameter its name."""

    digest: str
    tokens: int
    name: str = ""

    def __str__(self) -> str:
        return f"{self.digest} {self.tokens} {self.name}".rstrip()


def _row(text: str) -> BaselineRow:
    call, prompt, read, other, output, cost = text.split(" ")
    digest, breakpoints = prompt.split(".")
    return BaselineRow(int(call), digest, breakpoints, int(read), int(other), int(output), _decimal(cost))


def _head(text: str) -> HeadFrom:
    call, layer, digest = text.split(" ")
    return HeadFrom(int(call), layer, digest)


def _entry(text: str) -> BlockEntry:
    digest, tokens, *name = text.split(" ")
    return BlockEntry(digest, int(tokens), " ".join(name))


def _line(kind: type, read: Callable[[str], Any], like: str) -> BeforeValidator:
    """Reads what is one line of text in the file."""

    def validate(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        try:
            return read(value)
        except (AttributeError, ValueError):
            raise ValueError(f'expected a line like "{like}"; got {show_value(value)}') from None

    return BeforeValidator(validate)


AS_TEXT = PlainSerializer(str, return_type=str)
TEXT = WithJsonSchema({"type": "string"})
DollarText = Annotated[
    Decimal, BeforeValidator(_decimal), PlainSerializer(exact, return_type=str), WithJsonSchema({"type": "string"})
]
DayText = Annotated[
    date | None,
    BeforeValidator(_day),
    PlainSerializer(lambda day: day and day.isoformat(), return_type=str | None),
    WithJsonSchema({"type": ["string", "null"]}),
]
RowText: TypeAlias = Annotated[
    BaselineRow, _line(BaselineRow, _row, "18 9f3a2b1c.12ab 26021 410 310 0.1234"), AS_TEXT, TEXT
]
HeadText: TypeAlias = Annotated[HeadFrom, _line(HeadFrom, _head, "18 tools 9f3a2b1c"), AS_TEXT, TEXT]
EntryText: TypeAlias = Annotated[BlockEntry, _line(BlockEntry, _entry, "9f3a2b1c 812"), AS_TEXT, TEXT]


class Figures(Strict):
    """What one strategy came to: all calls together, then call by call. Tokens are whole; dollars are exact."""

    calls: Count
    errors: Count
    refused: Count
    """Of the errors, those that the API makes."""
    tokens: str
    """How tokens were counted."""
    cost_usd: DollarText
    input_tokens: Count
    cache_read_input_tokens: Count
    ephemeral_5m_input_tokens: Count
    ephemeral_1h_input_tokens: Count
    output_tokens: Count
    prices: list[str]
    """Keys of `Baseline.prices` that were used."""
    rules: list[str]
    """Keys of `Baseline.rules` that applied."""
    heads: list[HeadText]
    """Since which call tools, system and parameters are what they are."""
    heads_known_to: int | None
    """The last call that `heads` cover, if they change too often to list; null: all."""
    calls_a_row: Annotated[int, Field(ge=1)]
    """How many calls a row stands for."""
    rows: list[RowText]
    """The calls."""


class Baseline(Strict):
    """The figures of every strategy of a scenario, and under what they were made."""

    format: Literal[2]
    scenario: str
    accepted: DayText
    """The day these figures were accepted."""
    as_of: str
    """The day that the scenario asks for, or shipped: then only what the rules and prices say is compared."""
    host: str
    model: str
    versions: dict[str, str]
    """Versions that made the file. For information: only the rules and prices below are compared."""
    prices: dict[str, dict[str, str]]
    """USD per 10**6 tokens that were used, by short digest."""
    rules: dict[str, dict[str, str]]
    """Rules that applied, by short digest."""
    parts: dict[str, list[EntryText]]
    """The blocks of each head, by its digest."""
    strategies: dict[str, Figures]


def read_baseline(path: Path) -> Baseline | None:
    """The baseline at `path`, None if there is none. Raises InputError with every fault and its place."""
    if not path.exists():
        return None
    placed = yaml_text.read(path)
    if isinstance(placed.value, dict) and placed.value.get("format") == 1:
        raise InputError([placed.fault(("format",), f"expected {FORMAT}; got 1, from an older cachecost: {REWRITE}")])
    try:
        baseline = Baseline.model_validate(placed.value)
    except ValidationError as error:
        raise InputError(placed.faults + faults_of(error, placed, Baseline.model_json_schema())) from None
    if placed.faults:
        raise InputError(placed.faults)
    return baseline


REWRITE = "rewrite it with `cachecost check --update`"


def baseline_text(baseline: Baseline) -> str:
    """The file's text: sorted, one value a line, the same bytes for the same figures."""
    return json.dumps(baseline.model_dump(mode="json"), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def is_same_but_day(path: Path, baseline: Baseline) -> bool:
    """Whether the file at `path` is this baseline, but for the day on which it was accepted."""
    return _without_day(_read(path)) == _without_day(baseline_text(baseline))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return ""


def _without_day(text: str) -> list[str]:
    """The lines but those that change from day to day while the figures stay."""
    return [line for line in text.splitlines() if not line.startswith(' "accepted":')]


@dataclass(frozen=True)
class ReplayedStrategy:
    """The calls of one strategy, and what the simulation made of each. `turns` are the human turns they serve."""

    traffic: Workload
    simulated: Sequence[SimulatedCall]
    turns: int

    @property
    def strategy(self) -> str:
        return self.traffic.strategy

    @property
    def calls(self) -> Sequence[Call]:
        return self.traffic.calls

    @property
    def rows(self) -> list[CallRow]:
        return self.ledger.rows

    @cached_property
    def ledger(self) -> Ledger:
        rows = [one.row for one in self.simulated]
        return Ledger(self.strategy, rows, [], self._token_source, margin(rows, self.traffic.setup.error_margin))

    @property
    def _token_source(self) -> str:
        """Where the lengths come from: the tokenizers of this strategy's calls."""
        known = dict.fromkeys(one.rules.generation for one in self.simulated if one.rules)
        counted = "; ".join(dict.fromkeys(self.traffic.setup.counter(generation).source for generation in known))
        return f"the recording's bills, then {counted}" if self.traffic.setup.bills else counted

    def request(self, call: int) -> Request:
        """The request of a call, by its number from 1."""
        return self.calls[call - 1].request

    def conversation(self, call: int) -> tuple[str, Thread]:
        """What the calls of one conversation have in common: their workspace and their first message."""
        one = self.calls[call - 1]
        return one.workspace, one.request.thread.beginning


def replay_strategies(
    scenario: Scenario, folder: Path, progress: Progress = no_progress, and_recorded: bool = False
) -> Iterator[ReplayedStrategy]:
    """Replays of each strategy of a scenario as written, and of the recorded calls if a budget names them, or with
    `and_recorded` if there are any.

    Raises InputError, CannotEvaluate.
    """
    said_turns = _turns(scenario, folder)
    for traffic in (*scenario_workloads(scenario, folder), *_recorded_workload(scenario, folder, and_recorded)):
        turns = _turns_sent(traffic) if traffic.strategy == AS_RECORDED else said_turns
        simulation = traffic.simulation()
        simulated = []
        for number, call in enumerate(traffic.calls, 1):
            simulated.append(simulation.simulate(call))
            progress(traffic.strategy, number)
        yield ReplayedStrategy(traffic, simulated, turns)


def _turns(scenario: Scenario, folder: Path) -> int:
    """Human turns of the conversations; 0 if no budget needs them."""
    if all(budget.max_cost_per_turn_usd is None for budget in scenario.budget):
        return 0
    conversations = load_conversations(scenario, folder).conversations
    return sum(isinstance(event, Human) for conversation in conversations for event in conversation.events)


def _turns_sent(traffic: Workload) -> int:
    """Human messages that recorded calls answer; one that is sent in several calls is one turn."""
    return len({(call.workspace, human) for call in traffic.calls if (human := call.request.thread.human)})


def _recorded_workload(scenario: Scenario, folder: Path, and_recorded: bool) -> Iterator[Workload]:
    """The calls just as they were sent, if a budget names them beside the strategies, or all are asked for."""
    is_named = any(budget.strategy == AS_RECORDED for budget in scenario.budget)
    if not scenario.strategies or not (is_named or and_recorded):
        return
    bills = load_conversations(scenario, folder).bills
    if bills or is_named:
        yield workload_as_recorded(scenario, folder, bills)


RECORDING = "recording.jsonl"


def write_accepted(folder: Path, now: Baseline, recorded: RecordedScenario) -> list[Path]:
    """Write the baseline and, for a command, its recording: those that changed, all or none. Returns their paths.

    Raises InputError if the folder cannot be written.
    """
    files: dict[Path, bytes] = {}
    if not is_same_but_day(folder / FILE_NAME, now):
        files[folder / FILE_NAME] = baseline_text(now).encode()
    if recorded.kept is not None and _bytes_at(folder / RECORDING) != (kept := recorded.kept.read_bytes()):
        files[folder / RECORDING] = kept
    write_together(files)
    return list(files)


def _bytes_at(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


SHORT = 4
"""Bytes of a digest: 8 hex digits. Two texts share one in a case of four thousand million."""
IN_KEY = (
    "tool_choice",
    "thinking",
    "output_config",
    "output_format",
    "speed",
    "container",
    "context_management",
)
"""Parameters that the layers of a prompt depend on (rule 2), or that change what is sent."""
LAYERS = ("tools", "system", "parameters")
Entries = tuple[tuple[str, int, str], ...]
"""The blocks of a layer: short digest, tokens, and of a parameter its name."""


def short(*parts: bytes) -> str:
    """8 hex digits of a digest over `parts`."""
    return blake2b(b"\0".join(parts), digest_size=SHORT, person=b"baseline").hexdigest()


class Fingerprints:
    """The digests of a strategy's calls. Each costs work for what is new in a call."""

    def __init__(self, replayed: ReplayedStrategy) -> None:
        self._replayed = replayed
        self._threads: dict[Thread, bytes] = {}
        self._parts: dict[Part, tuple[str, Entries]] = {}
        generations = [one.rules.generation for one in replayed.simulated if one.rules]
        self._counter = replayed.traffic.setup.counter(generations[0]) if generations else None

    def prompt(self, call: int) -> str:
        """What a call sends, breakpoints left out."""
        request = self._replayed.request(call)
        layers = (digest.encode() for digest, _ in self.layers(call).values())
        return short(request.model.encode(), *layers, self._thread(request.thread))

    def breakpoints(self, call: int) -> str:
        """Where its breakpoints stand and how long they live: 4 hex digits."""
        sent = sent_breakpoints(self._replayed.request(call)).breakpoints
        found = [
            f"{breakpoint.layer}.{breakpoint.node.length if breakpoint.node else 0}.{breakpoint.index}.{breakpoint.ttl}"
            for breakpoint in sent
        ]
        return short(" ".join(found).encode())[:4]

    def layers(self, call: int) -> dict[str, tuple[str, Entries]]:
        """Digest and entries of tools, system and parameters."""
        request = self._replayed.request(call)
        parameters = tuple(_parameters(request))
        found = (self._part(request.tools), self._part(request.system), (_of_entries(parameters), parameters))
        return dict(zip(LAYERS, found, strict=True))

    def _part(self, part: Part) -> tuple[str, Entries]:
        if part not in self._parts:
            entries = tuple((short(block.digest), self._tokens(block), "") for block in part.blocks)
            self._parts[part] = (_of_entries(entries), entries)
        return self._parts[part]

    def _tokens(self, block: Block) -> int:
        return self._counter.block(block) if self._counter else 0

    def _thread(self, thread: Thread) -> bytes:
        return thread.fold(self._threads, b"", _digest_after)


def _digest_after(digest: bytes, message: Message) -> bytes:
    return blake2b(digest + message.digest, digest_size=16).digest()


def _parameters(request: Request) -> Iterator[tuple[str, int, str]]:
    params: Any = request.params
    for name in IN_KEY:
        if params.get(name):
            yield short(dumps(params[name], sort_keys=True).encode()), 0, name


def _of_entries(entries: Iterable[tuple[str, int, str]]) -> str:
    return short(*(f"{digest} {name}".encode() for digest, _, name in entries))


LARGEST = 58_000
"""Characters of a file. Of more calls than fit, several share a line, and fewer changes of the head are listed."""
MOST_ROWS = 1_300
"""Lines for calls that may fit."""
MOST_HEADS = 100
"""Changes of tools, system and parameters that are listed of one strategy, where each call has its line."""
NOT_ITS_EFFECT = frozenset(
    {"day", "retired", "hidden", "assumptions", "ttl_s", "name", "accepts_message_effort", "accepts_system_messages"}
    | {"accepted_efforts", "accepted_thinking", "efforts_without_thinking", "accepts_fast", "accepts_inference_geo"}
    | {"prewarming_excludes", "fast_excludes", "format_excludes", "late_answer"}
)
"""Fields of the rules that are recorded elsewhere, or that change no dollar of a call that is answered."""


def baseline_of(scenario: Scenario, replays: Sequence[ReplayedStrategy], accepted: date | None = None) -> Baseline:
    """The baseline that accepts the replays of `scenario`, thinned to at most LARGEST characters."""
    step = -(-sum(len(one.calls) for one in replays) // MOST_ROWS) or 1
    while True:
        baseline = _build(scenario, replays, accepted, step)
        if len(baseline_text(baseline)) <= LARGEST or all(step >= len(one.calls) for one in replays):
            return baseline
        step += 1


def _build(scenario: Scenario, replays: Sequence[ReplayedStrategy], accepted: date | None, step: int) -> Baseline:
    prices: dict[str, dict[str, str]] = {}
    rules: dict[str, dict[str, str]] = {}
    parts: dict[str, list[BlockEntry]] = {}
    return Baseline(
        format=FORMAT,
        scenario=scenario.name,
        accepted=accepted,
        as_of=str(scenario.as_of or SHIPPED),
        host=scenario.host,
        model=scenario.model,
        versions=_versions(scenario, replays),
        strategies={one.strategy: figures_of(one, prices, rules, parts, step) for one in replays},
        prices=prices,
        rules=rules,
        parts=parts,
    )


def _versions(scenario: Scenario, replays: Sequence[ReplayedStrategy]) -> dict[str, str]:
    return {
        "cachecost": __version__,
        "rules": str(data_date(scenario.host)),
        "prices": replays[0].traffic.setup.prices.versions if replays else "",
        "tiktoken": version("tiktoken"),
    }


def figures_of(
    replayed: ReplayedStrategy,
    prices: dict[str, dict[str, str]],
    rules: dict[str, dict[str, str]],
    parts: dict[str, list[BlockEntry]],
    step: int = 1,
) -> Figures:
    """The figures of a strategy; what they refer to by digest is added to `prices`, `rules` and `parts`."""
    ledger, usage = replayed.ledger, replayed.ledger.usage
    fingerprints = Fingerprints(replayed)
    heads, known_to = _heads(fingerprints, len(replayed.calls), parts, MOST_HEADS // step)
    return Figures(
        calls=len(ledger.rows),
        errors=ledger.errors,
        refused=sum(row.error_type == REFUSED for row in ledger.rows),
        tokens=ledger.token_source,
        cost_usd=ledger.cost.total,
        input_tokens=usage.input_tokens,
        cache_read_input_tokens=usage.read,
        ephemeral_5m_input_tokens=usage.write_5m,
        ephemeral_1h_input_tokens=usage.write_1h,
        output_tokens=usage.output_tokens,
        prices=sorted(_store_record(prices, one) for one in _distinct_records(replayed.simulated, _prices)),
        rules=sorted(_store_record(rules, one) for one in _distinct_records(replayed.simulated, _rules)),
        heads=heads,
        heads_known_to=known_to,
        calls_a_row=step,
        rows=list(rows_of(replayed, fingerprints, step)),
    )


def rows_of(replayed: ReplayedStrategy, fingerprints: Fingerprints, step: int) -> Iterator[BaselineRow]:
    """A row for every `step` calls."""
    rows = replayed.rows
    for start in range(0, len(rows), step):
        group = rows[start : start + step]
        prompts = [fingerprints.prompt(row.call) for row in group]
        breakpoints = [fingerprints.breakpoints(row.call) for row in group]
        yield BaselineRow(
            group[0].call,
            prompts[0] if len(group) == 1 else short(*(one.encode() for one in prompts)),
            breakpoints[0] if len(group) == 1 else short(*(one.encode() for one in breakpoints))[:4],
            sum(row.usage.read for row in group),
            sum(row.usage.unread for row in group),
            sum(row.usage.output_tokens for row in group),
            sum((row.cost.total for row in group), ZERO),
        )


def _heads(
    fingerprints: Fingerprints, calls: int, parts: dict[str, list[BlockEntry]], most: int
) -> tuple[list[HeadFrom], int | None]:
    """Since which call each layer is what it is, and the last call known where they change too often to be listed."""
    now: dict[str, str] = {}
    heads: list[HeadFrom] = []
    for call in range(1, calls + 1):
        layers = fingerprints.layers(call)
        changed = [name for name in LAYERS if layers[name][0] != now.get(name)]
        if len(heads) + len(changed) > most:
            return heads, call - 1
        for name in changed:
            digest, entries = layers[name]
            now[name] = digest
            heads.append(HeadFrom(call, name, digest))
            parts.setdefault(digest, [BlockEntry(*entry) for entry in entries])
    return heads, None


def _distinct_records(simulated: Sequence[SimulatedCall], record_of: Any) -> list[dict[str, str]]:
    answers = {json.dumps(record_of(one), sort_keys=True): None for one in simulated if one.rules and one.prices}
    return [json.loads(answer) for answer in answers]


def _store_record(table: dict[str, dict[str, str]], record: dict[str, str]) -> str:
    digest = short(json.dumps(record, sort_keys=True).encode())
    table[digest] = record
    return digest


def _prices(one: SimulatedCall) -> Mapping[str, str]:
    assert isinstance(one.prices, Prices) and one.rules
    amounts = {name: exact(getattr(one.prices, name)) for name in TOKEN_CLASSES}
    return {"host": one.rules.host, "model": one.rules.model, **amounts}


def _rules(one: SimulatedCall) -> Mapping[str, str]:
    """Everything of the rules that may change what a call reads, writes or counts."""
    rules = one.rules
    assert isinstance(rules, ModelRules)
    record = {name: getattr(rules, name) for name in (field.name for field in fields(rules))}
    plain = {name: str(value) for name, value in record.items() if name not in NOT_ITS_EFFECT}
    ttls = {f"TTL {name}": f"{seconds:g} s" for name, seconds in rules.ttl_s.items()}
    hidden = {"hidden tokens": short(str(rules.hidden).encode())}
    return {**plain, **ttls, **hidden, **_assumptions(rules)}


def _assumptions(rules: ModelRules) -> dict[str, str]:
    """Switches of the rulebook that are not at their default."""
    ours, default = rules.assumptions, type(rules.assumptions)()
    names = [field.name for field in fields(ours) if field.compare]
    return {name: str(getattr(ours, name)) for name in names if getattr(ours, name) != getattr(default, name)}
