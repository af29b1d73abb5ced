"""The last accepted cost of a scenario, as a file: a line a figure and a line a call, so that a change is a diff.

It holds dollars, tokens and short digests, and no word of what was sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError, WithJsonSchema

from cachecost.base import yaml_text
from cachecost.base.errors import InputError
from cachecost.base.formatting import exact
from cachecost.base.schema_errors import faults_of, show_value
from cachecost.scenario.field_types import Strict

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
