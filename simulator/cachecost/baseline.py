"""The last accepted cost of a scenario: one number a line, so that a change of cost is a diff to review."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError, WithJsonSchema

from cachecost.faults import Fault, InputError
from cachecost.inputs import yaml_text
from cachecost.inputs.schema_faults import faults_of, shown
from cachecost.ledger import Ledger, RunResult
from cachecost.scenario.models import Strict
from cachecost.views.numbers import exact

FILE_NAME = "baseline.json"
ONLY_TOLD = frozenset({"cachecost", "tiktoken"})
"""Versions that make no baseline stale: unchanged prompts keep their figures under a new release of these."""

Count = Annotated[int, Field(ge=0)]


def _decimal(value: Any) -> Decimal:
    try:
        amount = value if isinstance(value, Decimal) else Decimal(value if isinstance(value, str) else "")
    except InvalidOperation:
        amount = Decimal("NaN")
    if amount.is_finite() and amount >= 0:
        return amount
    raise ValueError(f'expected dollars as text, like "24.1"; got {shown(value)}')


DollarText = Annotated[
    Decimal,
    BeforeValidator(_decimal),
    PlainSerializer(exact, return_type=str),
    WithJsonSchema({"type": "string"}),
]


class Figures(Strict):
    """What one strategy came to: all calls together. Tokens are whole; `cost_usd` is exact."""

    calls: Count
    errors: Count
    tokens: str
    """How tokens were counted."""
    cost_usd: DollarText
    input_tokens: Count
    cache_read_input_tokens: Count
    ephemeral_5m_input_tokens: Count
    ephemeral_1h_input_tokens: Count
    output_tokens: Count


class Baseline(Strict):
    """The figures of every strategy of a scenario, and under what they were made."""

    format: Literal[1]
    scenario: str
    as_of: str
    host: str
    model: str
    rules: dict[str, str]
    """Switches that were not at their default."""
    versions: dict[str, str]
    """Versions of all that fixes the figures: rules data, prices …"""
    strategies: dict[str, Figures]


def baseline_of(result: RunResult) -> Baseline:
    """The baseline that accepts `result`: the scenario as written, its variants left out."""
    main = result.main
    return Baseline(
        format=1,
        scenario=result.scenario,
        as_of=main.as_of.isoformat(),
        host=main.host,
        model=main.model,
        rules=dict(main.rules),
        versions=dict(result.versions),
        strategies={ledger.strategy: figures_of(ledger) for ledger in main.ledgers},
    )


def figures_of(ledger: Ledger) -> Figures:
    """The sums of a ledger."""
    usage = ledger.usage
    return Figures(
        calls=len(ledger.rows),
        errors=ledger.errors,
        tokens=ledger.token_source,
        cost_usd=ledger.cost.total,
        input_tokens=usage.input_tokens,
        cache_read_input_tokens=usage.read,
        ephemeral_5m_input_tokens=usage.write_5m,
        ephemeral_1h_input_tokens=usage.write_1h,
        output_tokens=usage.output_tokens,
    )


def differences(baseline: Baseline, result: RunResult) -> list[str]:
    """What besides the prompts has changed since: "prices 2026.3, now 2026.11". Empty: comparable."""
    now = baseline_of(result)
    return [f"{name} {old}, now {new}" for name, old, new in _conditions(baseline, now) if old != new]


def _conditions(old: Baseline, new: Baseline) -> Iterator[tuple[str, str, str]]:
    for name in ("host", "model", "as_of"):
        yield name, getattr(old, name), getattr(new, name)
    for name in sorted(old.rules.keys() | new.rules.keys()):
        yield name, old.rules.get(name, "at its default"), new.rules.get(name, "at its default")
    for name in sorted((old.versions.keys() | new.versions.keys()) - ONLY_TOLD):
        yield name, old.versions.get(name, "unknown"), new.versions.get(name, "unknown")


def read_baseline(path: Path) -> Baseline | None:
    """The baseline at `path`, None if there is none. Raises InputError with every fault and its place."""
    if not path.exists():
        return None
    placed = yaml_text.read(path)
    try:
        baseline = Baseline.model_validate(placed.value)
    except ValidationError as error:
        raise InputError(placed.faults + faults_of(error, placed, Baseline.model_json_schema())) from None
    if placed.faults:
        raise InputError(placed.faults)
    return baseline


def baseline_text(baseline: Baseline) -> str:
    """The file's text: sorted, one value a line, the same bytes for the same figures."""
    return json.dumps(baseline.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write the file whole or not at all. Raises InputError if the folder cannot be written."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(baseline_text(baseline), encoding="utf-8", newline="\n")
        unfinished.replace(path)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise InputError([Fault(str(path), f"cannot be written: {error.strerror or error}")]) from None
