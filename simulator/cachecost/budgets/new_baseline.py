"""Makes the baseline that accepts today's costs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import date
from importlib.metadata import version
from typing import Any

from cachecost.base.formatting import exact
from cachecost.base.version import __version__
from cachecost.budgets.baseline import FORMAT, Baseline, BaselineRow, BlockEntry, Figures, HeadFrom, baseline_text
from cachecost.budgets.fingerprints import LAYERS, Fingerprints, short
from cachecost.budgets.strategy_replays import ReplayedStrategy
from cachecost.ledger.results import TOKEN_CLASSES, ZERO
from cachecost.ledger.rows import REFUSED
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules, data_date
from cachecost.scenario import Scenario
from cachecost.scenario.field_types import SHIPPED
from cachecost.simulation.engine import SimulatedCall

LARGEST = 58_000
"""Characters of a file. Of more calls than fit, several share a line, and fewer changes of the head are listed."""
MOST_ROWS = 1_300
"""Lines for calls that may fit."""
MOST_HEADS = 100
"""Changes of tools, system and parameters that are listed of one strategy, where each call has its line."""
NOT_ITS_EFFECT = frozenset(
    {"day", "retired", "hidden", "assumptions", "ttl_s", "name", "accepts_message_effort", "accepts_system_messages"}
    | {"accepted_efforts", "accepted_thinking", "efforts_without_thinking", "accepts_fast", "accepts_inference_geo"}
    | {"prewarming_excludes", "fast_excludes", "format_excludes"}
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
            sum(row.usage.total_input - row.usage.read for row in group),
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
    """The distinct records of all calls, in order."""
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
