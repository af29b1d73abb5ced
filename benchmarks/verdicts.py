"""Ratios beside the ones that were recorded: a third worse is over the limit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from platform import python_version

from cachecost.base.structs import replace

RECORDED = Path(__file__).with_name("recorded.json")
SLACK = 4 / 3


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a case once gave, on which Python and day."""

    ratio: float
    peak_mib: float | None
    python: str
    date: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a case gives now, beside what is recorded of it (None: nothing yet)."""

    name: str
    against: str
    ratio: float
    peak_mib: float | None
    recorded: Recorded | None = None

    @property
    def limit(self) -> float | None:
        return None if self.recorded is None else self.recorded.ratio * SLACK

    @property
    def faults(self) -> list[str]:
        """What is over its limit, in words: the ratio, the peak of memory."""
        if self.recorded is None:
            return []
        pairs = (("over", self.ratio, self.recorded.ratio), ("memory over", self.peak_mib, self.recorded.peak_mib))
        return [words for words, now, then in pairs if now is not None and then is not None and now > then * SLACK]

    @property
    def verdict(self) -> str:
        if self.recorded is None:
            return "not recorded"
        better = "better: record it" if self.ratio < self.recorded.ratio / SLACK else "ok"
        return ", ".join(self.faults) or better


def as_json(result: Result) -> dict[str, object]:
    return {**asdict(result), "limit": result.limit, "verdict": result.verdict}


def load(path: Path = RECORDED) -> dict[str, Recorded]:
    if not path.exists():
        return {}
    return {name: Recorded(**one) for name, one in json.loads(path.read_text(encoding="utf-8")).items()}


def record(results: Iterable[Result], order: Iterable[str], path: Path = RECORDED) -> None:
    """Writes what was found over what is recorded, in that order of names; names that are no more are dropped."""
    found = {one.name: _recorded(one) for one in results}
    all_names: Mapping[str, Recorded] = {**load(path), **found}
    kept = {name: asdict(all_names[name]) for name in order if name in all_names}
    path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def recorded_now(result: Result) -> Result:
    """The result as it stands once it is recorded."""
    return replace(result, recorded=_recorded(result))


def _recorded(result: Result) -> Recorded:
    peak = None if result.peak_mib is None else round(result.peak_mib, 1)
    return Recorded(float(f"{result.ratio:.3g}"), peak, python_version(), date.today().isoformat())
