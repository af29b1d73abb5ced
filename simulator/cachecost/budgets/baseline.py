"""The last accepted cost of a scenario, as a file: a line a figure and a line a call, so that a change is a diff.

It has short digests of what was sent, enough to find the first changed call and block, without any content. Beside it
is `recording.jsonl`, what the command of a scenario sent when its costs were accepted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal, InvalidOperation
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError, WithJsonSchema

from cachecost.analysis.comparison.variant_run import versions_of
from cachecost.base import yaml_text
from cachecost.base.atomic_files import write_together
from cachecost.base.errors import InputError
from cachecost.base.formatting import exact
from cachecost.base.yaml_text import faults_of, show_value
from cachecost.budgets.strategy_replays import ReplayedStrategy
from cachecost.ledger.rows import REFUSED
from cachecost.prompts.blocks import Part, Thread
from cachecost.prompts.request import sent_breakpoints
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import TOKEN_CLASSES, ZERO
from cachecost.scenario import Scenario
from cachecost.scenario.loading import RecordedScenario
from cachecost.scenario.models import SHIPPED, Strict

FILE_NAME = "baseline.json"
FORMAT: Literal[2] = 2
Count = Annotated[int, Field(ge=0)]
RECORDING = "recording.jsonl"
LARGEST = 58_000
"""Characters of a file. Of more calls than fit, several share a line, and fewer changes of the head are listed."""
MOST_ROWS = 1_300
"""Lines for calls that may fit."""
NOT_ITS_EFFECT = frozenset(
    {"day", "retired", "hidden", "assumptions", "ttl_s", "name", "accepts_message_effort", "accepts_system_messages"}
    | {"accepted_efforts", "accepted_thinking", "efforts_without_thinking", "accepts_fast", "accepts_inference_geo"}
    | {"prewarming_excludes", "fast_excludes", "format_excludes", "late_answer"}
)
"""Fields of the rules that are recorded elsewhere, or that change no dollar of a call that is answered."""


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
    breakpoints, tokens read, other input and output, dollars."""

    call: int
    prompt: str
    breakpoints: str
    read: int
    other: int
    output: int
    cost: Decimal

    @classmethod
    def parse(cls, text: str) -> BaselineRow:
        call, prompt, read, other, output, cost = text.split(" ")
        digest, breakpoints = prompt.split(".")
        return cls(int(call), digest, breakpoints, int(read), int(other), int(output), _decimal(cost))

    def __str__(self) -> str:
        return f"{self.call} {self.prompt}.{self.breakpoints} {self.read} {self.other} {self.output} {exact(self.cost)}"


@dataclass(frozen=True, slots=True)
class HeadFrom:
    """From this call on, tools, system or parameters are those of this digest."""

    call: int
    layer: str
    digest: str

    @classmethod
    def parse(cls, text: str) -> HeadFrom:
        call, layer, digest = text.split(" ")
        return cls(int(call), layer, digest)

    def __str__(self) -> str:
        return f"{self.call} {self.layer} {self.digest}"


@dataclass(frozen=True, slots=True)
class BlockEntry:
    """One block of a head: short digest, tokens; of a parameter its name."""

    digest: str
    tokens: int
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> BlockEntry:
        digest, tokens, *name = text.split(" ")
        return cls(digest, int(tokens), " ".join(name))

    def __str__(self) -> str:
        return f"{self.digest} {self.tokens} {self.name}".rstrip()


def _line(kind: type[BaselineRow] | type[HeadFrom] | type[BlockEntry], like: str) -> BeforeValidator:

    def validate(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        try:
            return kind.parse(value)
        except (AttributeError, ValueError):
            raise ValueError(f'expected a line like "{like}"; got {show_value(value)}') from None

    return BeforeValidator(validate)


AS_TEXT = PlainSerializer(str, return_type=str)
TEXT = WithJsonSchema({"type": "string"})
DollarText = Annotated[Decimal, BeforeValidator(_decimal), PlainSerializer(exact, return_type=str), TEXT]
DayText = Annotated[
    date | None,
    BeforeValidator(_day),
    PlainSerializer(lambda day: day and day.isoformat(), return_type=str | None),
    WithJsonSchema({"type": ["string", "null"]}),
]
RowText: TypeAlias = Annotated[BaselineRow, _line(BaselineRow, "18 9f3a2b1c.12ab 26021 410 310 0.1234"), AS_TEXT, TEXT]
HeadText: TypeAlias = Annotated[HeadFrom, _line(HeadFrom, "18 tools 9f3a2b1c"), AS_TEXT, TEXT]
EntryText: TypeAlias = Annotated[BlockEntry, _line(BlockEntry, "9f3a2b1c 812"), AS_TEXT, TEXT]


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
        words = f"expected {FORMAT}; got 1, from an older cachecost: rewrite it with `cachecost check --update`"
        raise InputError([placed.fault(("format",), words)])
    try:
        baseline = Baseline.model_validate(placed.value)
    except ValidationError as error:
        raise InputError(placed.faults + faults_of(error, placed, Baseline.model_json_schema())) from None
    if placed.faults:
        raise InputError(placed.faults)
    return baseline


def baseline_text(baseline: Baseline) -> str:
    """The file's text: sorted, one value a line, the same bytes for the same figures."""
    return json.dumps(baseline.model_dump(mode="json"), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def is_same_but_day(path: Path, baseline: Baseline) -> bool:
    """Whether the file at `path` is this baseline, but for the day on which it was accepted."""
    try:
        written = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return False
    texts = (text.splitlines() for text in (written, baseline_text(baseline)))
    one, other = ([line for line in lines if not line.startswith(' "accepted":')] for lines in texts)
    return one == other


def write_accepted(folder: Path, now: Baseline, recorded: RecordedScenario) -> list[Path]:
    """Write the baseline and, for a command, its recording: those that changed, all or none. Returns their paths.
    Raises InputError if the folder cannot be written."""
    files: dict[Path, bytes] = {}
    if not is_same_but_day(folder / FILE_NAME, now):
        files[folder / FILE_NAME] = baseline_text(now).encode()
    if recorded.kept is not None:
        place, kept = folder / RECORDING, recorded.kept.read_bytes()
        if not place.exists() or place.read_bytes() != kept:
            files[place] = kept
    write_together(files)
    return list(files)


IN_KEY = ("tool_choice", "thinking", "output_config", "output_format", "speed", "container", "context_management")
"""Parameters that the layers of a prompt depend on (rule 2), or that change what is sent."""
LAYERS = ("tools", "system", "parameters")
Entries = tuple[BlockEntry, ...]


def short(*parts: bytes) -> str:
    """8 hex digits of a digest over `parts`. Two texts share one in a case of four thousand million."""
    return blake2b(b"\0".join(parts), digest_size=4, person=b"baseline").hexdigest()


class Fingerprints:
    """The digests of a strategy's calls. Each costs work for what is new in a call."""

    def __init__(self, replayed: ReplayedStrategy) -> None:
        self._replayed = replayed
        self._threads: dict[Thread, bytes] = {}
        self._parts: dict[Part, tuple[str, Entries]] = {}

    def prompt(self, call: int) -> str:
        """What a call sends, breakpoints left out."""
        request = self._replayed.request(call)
        layers = (digest.encode() for digest, _ in self.layers(call).values())
        messages = request.thread.fold(
            self._threads, b"", lambda digest, one: blake2b(digest + one.digest, digest_size=16).digest()
        )
        return short(request.model.encode(), *layers, messages)

    def breakpoints(self, call: int) -> str:
        """Where its breakpoints stand and how long they live: 4 hex digits."""
        sent = sent_breakpoints(self._replayed.request(call)).breakpoints
        found = [
            f"{breakpoint.layer}.{breakpoint.node.length if breakpoint.node else 0}.{breakpoint.index}.{breakpoint.ttl}"
            for breakpoint in sent
        ]
        return short(" ".join(found).encode())[:4]

    def layers(self, call: int) -> dict[str, tuple[str, Entries]]:
        request = self._replayed.request(call)
        given = [(name, value) for name in IN_KEY if (value := request.params.get(name))]
        parameters = tuple(
            BlockEntry(short(json.dumps(value, sort_keys=True).encode()), 0, name) for name, value in given
        )
        found = (self._part(request.tools), self._part(request.system), (_digest_of(parameters), parameters))
        return dict(zip(LAYERS, found, strict=True))

    def _part(self, part: Part) -> tuple[str, Entries]:
        if part not in self._parts:
            counter = self._replayed.counter
            entries = tuple(
                BlockEntry(short(block.digest), counter.block(block) if counter else 0) for block in part.blocks
            )
            self._parts[part] = (_digest_of(entries), entries)
        return self._parts[part]


def _digest_of(entries: Entries) -> str:
    return short(*(f"{one.digest} {one.name}".encode() for one in entries))


def baseline_of(scenario: Scenario, replays: Sequence[ReplayedStrategy], accepted: date | None = None) -> Baseline:
    """The baseline that accepts the replays of `scenario`, thinned to at most LARGEST characters."""
    step = -(-sum(len(one.calls) for one in replays) // MOST_ROWS) or 1
    while True:
        prices, rules, parts = dict[str, dict[str, str]](), dict[str, dict[str, str]](), dict[str, list[BlockEntry]]()
        baseline = Baseline(
            format=FORMAT,
            scenario=scenario.name,
            accepted=accepted,
            as_of=str(scenario.as_of or SHIPPED),
            host=scenario.host,
            model=scenario.model,
            versions=versions_of(scenario.host, replays[0].traffic.setup.prices if replays else None),
            strategies={one.strategy: figures_of(one, prices, rules, parts, step) for one in replays},
            prices=prices,
            rules=rules,
            parts=parts,
        )
        if len(baseline_text(baseline)) <= LARGEST or all(step >= len(one.calls) for one in replays):
            return baseline
        step += 1


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
    # changes of tools, system and parameters that are listed of one strategy, where each call has its line
    heads, known_to = _find_heads(fingerprints, len(replayed.calls), parts, 100 // step)
    priced = [(one.rules, one.prices) for one in replayed.simulated if one.rules and isinstance(one.prices, Prices)]
    price_records = (
        {"host": used.host, "model": used.model, **{name: exact(getattr(paid, name)) for name in TOKEN_CLASSES}}
        for used, paid in priced
    )
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
        prices=_store_records(prices, price_records),
        rules=_store_records(rules, (_rules_record(used) for used, _ in priced)),
        heads=heads,
        heads_known_to=known_to,
        calls_a_row=step,
        rows=list(rows_of(replayed, fingerprints, step)),
    )


def rows_of(replayed: ReplayedStrategy, fingerprints: Fingerprints, step: int) -> Iterator[BaselineRow]:
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


def _find_heads(
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
            parts.setdefault(digest, list(entries))
    return heads, None


def _store_records(table: dict[str, dict[str, str]], records: Iterable[dict[str, str]]) -> list[str]:
    """The digests of the records, which are added to `table`."""
    distinct = {json.dumps(one, sort_keys=True): one for one in records}
    digests = {short(text.encode()): one for text, one in distinct.items()}
    table.update(digests)
    return sorted(digests)


def _rules_record(rules: ModelRules) -> dict[str, str]:
    """Everything of the rules that may change what a call reads, writes or counts."""
    plain = {name: str(getattr(rules, name)) for name in rules.__struct_fields__ if name not in NOT_ITS_EFFECT}
    ttls = {f"TTL {name}": f"{seconds:g} s" for name, seconds in rules.ttl_s.items()}
    hidden = {"hidden tokens": short(str(rules.hidden).encode())}
    ours, default = rules.assumptions, type(rules.assumptions)()
    pairs = {one.name: (getattr(ours, one.name), getattr(default, one.name)) for one in fields(ours) if one.compare}
    changed = {name: str(mine) for name, (mine, usual) in pairs.items() if mine != usual}
    return {**plain, **ttls, **hidden, **changed}
