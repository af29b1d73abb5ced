"""Assumptions: which reading of the documentation holds where sources are silent or differ."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError, nearest
from cachecost.base.structs import replace

TABLE = Path(__file__).with_name("rules") / "assumptions.toml"
TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The assumptions where sources are silent or differ; defaults first (docs/rulebook.md).

    `given` names those that the user set: they hold on every host, even where they equal the default.
    """

    tool_choice_invalidation: str = "rendered_class"
    thinking_rendered_at: str = "messages"
    structured_output_at: str = "system"
    lookback_runs: str = "by_date"
    shallow_breakpoints: str = "rewrite"
    ttl_in_key: bool = False
    visibility_lag_s: float = 0.0
    visibility_lag_probability: float = 0.0
    visibility_lag_by_date: float = 0.0
    early_eviction_probability: float = 0.0
    warm_start: str = "as_billed"
    seed: int = 0
    openai_boundaries: str = "guide"
    openai_developer_end: str = "readable"
    openai_reads: str = "exact"
    deepseek_unit: str = "recorded"
    schema_in_prompt: str = "as_stated"
    capacity_tokens: int = 0
    step_tokens: int = 0
    given: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    @property
    def is_drawn(self) -> bool:
        """Whether the cache behaves randomly (rule 14)."""
        return max(self.visibility_lag_probability, self.visibility_lag_by_date, self.early_eviction_probability) > 0

    def on(self, host: str) -> Assumptions:
        """These assumptions on `host`: with the host's own defaults where the user set nothing."""
        own = {
            name: value
            for name, value in host_defaults(host).items()
            if (name not in self.given and getattr(self, name) == getattr(DEFAULT, name))
        }
        return replace(self, **own) if own else self


DEFAULT = Assumptions()


def assumptions_from(given: Mapping[str, object] | Iterable[tuple[str, object]], file: str = "--rule") -> Assumptions:
    """The assumptions NAME -> VALUE; values may be strings ("true", "0.3"). The others keep their defaults.

    Raises InputError with a Fault in `file` for each unknown name or value, nearest name included.
    """
    assumptions, problems = read_assumptions(given)
    if problems:
        raise InputError([Fault(file, text) for text in problems.values()])
    return assumptions


def read_assumptions(given: Mapping[str, object] | Iterable[tuple[str, object]]) -> tuple[Assumptions, dict[str, str]]:
    """Like `assumptions_from`, but faults come back as texts by name, for a caller that knows their lines."""
    known = {entry["name"]: entry for entry in assumption_table()["assumption"]}
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, value in given.items() if isinstance(given, Mapping) else given:
        if name not in known:
            problems[name] = f"{name}: unknown rule{nearest(name, known)}; expected one of {', '.join(known)}"
            continue
        try:
            values[name] = _parse_value(known[name], value)
        except ValueError as error:
            problems[name] = f"{name}: {error}"
    return Assumptions(**values, given=frozenset(values)), problems


def _parse_value(entry: dict[str, Any], value: object) -> object:
    """A value of the assumption of this row of the table. Raises ValueError."""
    if "number" in entry:
        limits, is_whole = entry["number"], entry["number"]["kind"] == "int"
        try:
            if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
                raise ValueError
            number = int(value) if is_whole else float(value)
            is_cut = is_whole and isinstance(value, float | Decimal) and number != value
            if not is_cut and math.isfinite(number) and limits["minimum"] <= number <= limits.get("maximum", math.inf):
                return number
        except (ValueError, OverflowError):
            pass
        raise ValueError(f"expected {number_range(limits)}; got {value!r}")
    known = [row["value"] for row in entry["values"]]
    meant = TRUTHS.get(value, value) if isinstance(value, str) and isinstance(known[0], bool) else value
    if any(meant is truth or (isinstance(meant, str) and meant == truth) for truth in known):
        return meant
    names = [show_assumption(choice) for choice in known]
    raise ValueError(f"expected one of {', '.join(names)}; got {value!r}{nearest(str(value), names)}")


def number_range(limits: dict[str, Any]) -> str:
    """ "a number from 0 to 1", in words."""
    kind = "a whole number" if limits["kind"] == "int" else "a number"
    return f"{kind} from {limits['minimum']}" + (f" to {limits['maximum']}" if "maximum" in limits else "")


def show_assumption(value: object) -> str:
    """A value as the user writes it: true, not True; 0, not 0.0."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


@cache
def host_defaults(host: str) -> dict[str, Any]:
    """The defaults of `host` that differ from those of all hosts, by assumption."""
    own = ((entry["name"], row) for entry in assumption_table()["assumption"] for row in entry.get("on", ()))
    return {name: row["value"] for name, row in own if row["host"] == host}


@cache
def assumption_table() -> dict[str, Any]:
    """`rules/assumptions.toml` as parsed."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))
